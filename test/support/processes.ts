/**
 * The platform as separate operating-system processes, one per service, as on a cluster. Their output goes to a file
 * each; when one does not get ready, the end of its file is part of the error.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceName } from '../../config/services.ts';
import { testEnvironment } from './platform.ts';

const root = join(import.meta.dirname, '..', '..');
const alive = new Map<ChildProcess, string>();

export const processStarted = (child: ChildProcess, name: string): void => void alive.set(child, name);
export const processStopped = (child: ChildProcess): void => void alive.delete(child);
export const processesLeftRunning = (): string[] => [...alive.values()];

// A test run that ends early leaves nothing behind.
process.once('exit', () => {
  for (const child of alive.keys()) child.kill('SIGKILL');
});

/** Node's compile cache, which shortens the start of a process; set by `npm test`. */
export const compileCache = (): Record<string, string> => {
  const folder = process.env['NODE_COMPILE_CACHE'];
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
};

export interface ServiceProcess {
  readonly services: readonly ServiceName[];
  readonly pid: number;
  /** Of the gateway; empty otherwise. */
  readonly baseUrl: string;
  /** The file that it prints into. */
  readonly log: string;
  /** Output so far. */
  output(): string;
  /** How it ended without having been asked to: the end of what it printed; null when it did not. */
  crash(): string | null;
  /** Ends it at once, as a crash would (kill -9). */
  kill(): Promise<void>;
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>;
}

interface ProcessOptions {
  services: readonly ServiceName[];
  databaseUrl: string;
  natsUrl: string;
  env?: Record<string, string>;
  /** `env` is the whole environment, without what makes tests fast. */
  production?: boolean;
  /** Folder of the program; default: this repository. */
  folder?: string;
  /** Milliseconds until the ready line must be there. */
  patience?: number;
}

/** Folder for the output of this run's processes. */
export const logs = join(tmpdir(), `erp-test-logs-${process.pid}`);

/** Deleted after a run without a failure. */
export const removeLogs = (): void => rmSync(logs, { recursive: true, force: true });

let count = 0;

const forTests = ({ services, databaseUrl, natsUrl, env }: ProcessOptions): Record<string, string> =>
  testEnvironment(databaseUrl, {
    SERVICES: services.join(','),
    NATS_URL: natsUrl,
    LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'warn',
    ...env,
  });

/** `node main.ts` with these services; resolves at its ready line. */
export async function startProcess(options: ProcessOptions): Promise<ServiceProcess> {
  const name = `${options.services.join('-')}-${++count}`;
  mkdirSync(logs, { recursive: true });
  const file = join(logs, `${name}.log`);
  const handle = openSync(file, 'w');
  const child = spawn(process.execPath, ['main.ts'], {
    cwd: options.folder ?? root,
    stdio: ['ignore', handle, handle],
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      ...compileCache(),
      ...(options.production ? options.env : forTests(options)),
    },
  });
  closeSync(handle);
  processStarted(child, name);
  const output = (): string => readFileSync(file, 'utf8');
  let asked = false;
  let crash: string | null = null;
  const ended = new Promise<number | null>((resolve) =>
    child.once('exit', (code) => {
      processStopped(child);
      if (!asked) crash = `${name} ended by itself (${code}); the end of ${file}:\n${output().slice(-4_000)}`;
      resolve(code);
    }),
  );
  const fail = (what: string): Error => new Error(`${name} ${what}; the end of ${file}:\n${output().slice(-4_000)}`);
  const patience = Date.now() + (options.patience ?? 120_000);
  let ready: RegExpExecArray | null;
  while (!(ready = /^ready (\S+)/m.exec(output()))) {
    if (child.exitCode !== null || child.signalCode !== null) throw fail('ended before it was ready');
    if (Date.now() > patience) {
      child.kill('SIGKILL');
      throw fail('was not ready in time');
    }
    await pause(50);
  }
  return {
    services: options.services,
    pid: child.pid!,
    baseUrl: ready[1]!.startsWith('http') ? ready[1]! : '',
    log: file,
    output,
    crash: () => crash,
    kill: async () => {
      asked = true;
      child.kill('SIGKILL');
      await ended;
    },
    stop: async () => {
      asked = true;
      child.kill('SIGTERM');
      return ended;
    },
  };
}

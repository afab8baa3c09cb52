/** Runs the command line client as a user does: its own process, a configuration folder of its own. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Asked } from './erp-kept.ts';
import { temporaryFolder } from './temporary.ts';

export const PROGRAM = join(import.meta.dirname, '..', '..', 'cli', 'bin', 'erp.js');

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

interface ErpOptions {
  env?: Record<string, string>;
  stdin?: string;
  cwd?: string;
  /** Another program than that of the checkout. */
  program?: string;
  /** Aborted: the user presses Ctrl-C. */
  interrupt?: AbortSignal;
  /** Called with all that has come on standard error so far. */
  onStderr?: (text: string) => void;
}

/** Environment of a user with nothing but a home of their own. */
export function userEnvironment(more: Record<string, string> = {}): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: temporaryFolder('home'),
    ...more,
  };
}

/** A user's `erp`: every call has this environment, and runs until the program ends. */
export function erpOf(env: Record<string, string>) {
  return (args: readonly string[], options: ErpOptions = {}): Promise<Ended> => {
    const child = spawn(process.execPath, [options.program ?? PROGRAM, ...args], {
      env: { ...env, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.cwd ? { cwd: options.cwd } : {}),
    });
    child.stdin.end(options.stdin ?? '');
    options.interrupt?.addEventListener('abort', () => child.kill('SIGINT'));
    return new Promise((resolve, reject) => {
      let stdout = '';
      let stderr = '';
      child.stdout.on('data', (chunk: Buffer) => (stdout += chunk));
      child.stderr.on('data', (chunk: Buffer) => {
        stderr += chunk;
        options.onStderr?.(stderr);
      });
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, stdout, stderr }));
    });
  };
}

let kept: { child: ChildProcess; busy: boolean } | undefined;

/**
 * The same, in one process for all commands, where a test is not about the process: most of the time of a command goes
 * into starting the program. Commands at the same time have processes of their own.
 */
export function keptErpOf(env: Record<string, string>): ReturnType<typeof erpOf> {
  const alone = erpOf(env);
  return async (args, options = {}) => {
    const { env: more, cwd = process.cwd(), ...others } = options;
    if (kept?.busy || Object.values(others).some((value) => value !== undefined)) return alone(args, options);
    if (!kept || kept.child.exitCode !== null) {
      const child = fork(join(import.meta.dirname, 'erp-kept.ts'), { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
      child.unref();
      child.channel?.unref();
      kept = { child, busy: false };
    }
    const one = kept;
    one.busy = true;
    const over = new AbortController();
    try {
      one.child.send({ args, env: { ...env, ...more }, cwd } satisfies Asked);
      const answers = ['message', 'exit'].map((event) => once(one.child, event, { signal: over.signal }));
      const [ended] = await Promise.race(answers);
      if (typeof ended !== 'object') throw new Error(`erp ended with ${ended}.`);
      return ended as Ended;
    } finally {
      over.abort();
      one.busy = false;
    }
  };
}

/** The same, for tests that end it themselves. */
export const startErp = (env: Record<string, string>, args: readonly string[]): ChildProcess =>
  spawn(process.execPath, [PROGRAM, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });

/** Runs the command line client as a user does: its own process, a configuration folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
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

/** The same, for tests that end it themselves. */
export const startErp = (env: Record<string, string>, args: readonly string[]): ChildProcess =>
  spawn(process.execPath, [PROGRAM, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });

/** Runs commands of the documents in a terminal, and ends those that do not end by themselves. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { processStarted, processStopped } from './processes.ts';

export class Terminal {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #script: string;
  readonly #closed: Promise<number | null>;
  #output = '';
  #heard: () => void = () => {};

  /** Runs the script until its first command that fails. It and all that it starts are a group of processes of their own. */
  constructor(script: string, { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv }) {
    this.#script = script;
    this.#child = spawn('bash', ['--norc', '-ec', script], { cwd, env, detached: true });
    processStarted(this.#child, 'terminal');
    const killed = (): void => this.signal('SIGKILL');
    process.once('exit', killed);
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream.on('data', (chunk: Buffer) => {
        this.#output += chunk;
        this.#heard();
      });
    // Not before the last of the group has closed what it prints into.
    this.#closed = new Promise((resolve) =>
      this.#child.once('close', (code) => {
        process.removeListener('exit', killed);
        processStopped(this.#child);
        resolve(code);
        this.#heard();
      }),
    );
  }

  /** All that was printed so far. */
  get output(): string {
    return this.#output;
  }

  /** Resolves with the matches once there are so many. */
  async until(pattern: RegExp, times = 1): Promise<RegExpExecArray[]> {
    const every = new RegExp(pattern, 'gm');
    for (;;) {
      const found = [...this.#output.matchAll(every)];
      if (found.length >= times) return found;
      if (!processIsThere(this.#child)) throw new Error(`${this.#script}\nhas ended:\n${this.#output}`);
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  /** To all processes of the group: SIGINT is Ctrl-C. */
  signal(name: NodeJS.Signals): void {
    try {
      process.kill(-this.#child.pid!, name);
    } catch {
      // They have ended.
    }
  }

  /** Types this, and the end of what is typed. */
  type(text: string): void {
    this.#child.stdin.end(text);
  }

  /** Signals, and waits until all have ended: the exit code. */
  async end(name: NodeJS.Signals = 'SIGINT'): Promise<number | null> {
    this.signal(name);
    return this.#closed;
  }

  /** The exit code of a script that ends by itself. */
  async done(): Promise<number | null> {
    return this.#closed;
  }
}

const processIsThere = (child: ChildProcessWithoutNullStreams): boolean =>
  child.exitCode === null && child.signalCode === null;

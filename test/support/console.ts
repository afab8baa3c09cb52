/** The console of operators, `npm run repl`, for tests that type in it. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { compileCache, processStarted, processStopped } from './processes.ts';
import { root } from './sources.ts';

const PROMPT = 'erp $ ';

/** A console that is written to, command by command. */
export class Console {
  readonly #child: ChildProcessWithoutNullStreams;
  #output = '';
  #heard: () => void = () => {};

  constructor(env: Record<string, string>) {
    // One stream, so that what is said of an error stands before the next prompt.
    this.#child = spawn('sh', ['-c', `exec "${process.execPath}" scripts/repl.ts 2>&1`], {
      cwd: root,
      env: { PATH: process.env['PATH']!, HOME: '/nonexistent', ...compileCache(), ...env },
    });
    processStarted(this.#child, 'console');
    this.#child.once('exit', () => {
      processStopped(this.#child);
      this.#heard();
    });
    this.#child.stdout.on('data', (chunk) => {
      this.#output += chunk;
      this.#heard();
    });
  }

  /** Output up to the next prompt. */
  async answer(): Promise<string> {
    for (;;) {
      const at = this.#output.indexOf(PROMPT);
      if (at >= 0) {
        const text = this.#output.slice(0, at);
        this.#output = this.#output.slice(at + PROMPT.length);
        return text;
      }
      if (this.#child.exitCode !== null) throw new Error(`The console has ended: ${this.#output}`);
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  type(line: string): Promise<string> {
    this.#child.stdin.write(`${line}\n`);
    return this.answer();
  }

  /** Output until it ends, after these lines. */
  async end(lines: readonly string[] = []): Promise<string> {
    if (this.#child.exitCode !== null) return this.#output;
    const ended = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.stdin.end(lines.map((line) => `${line}\n`).join(''));
    await ended;
    return this.#output;
  }
}

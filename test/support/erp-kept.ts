/** The process of `keptErpOf`: runs commands of `erp` one after the other, and loads the program once. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { main } from '../../cli/main.ts';

export interface Asked {
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  readonly cwd: string;
}

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../cli/package.json'), 'utf8'));
const streams = [process.stdout, process.stderr] as const;

process.on('disconnect', () => process.exit());
process.on('message', async ({ args, env, cwd }: Asked) => {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  process.exitCode = undefined;
  const ended = { code: 0, stdout: '', stderr: '' };
  for (const [name, stream] of [
    ['stdout', process.stdout],
    ['stderr', process.stderr],
  ] as const)
    stream.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
      ended[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
      const done = rest.at(-1);
      if (typeof done === 'function') process.nextTick(done);
      return true;
    };
  try {
    await main(args, version);
    ended.code = Number(process.exitCode ?? 0);
  } catch (error) {
    Object.assign(ended, { code: 1, stderr: `${ended.stderr}${String(error)}` });
  }
  // Those of a process that runs one command.
  process.removeAllListeners('SIGINT');
  for (const stream of streams) stream.removeAllListeners('error');
  process.send?.(ended);
});

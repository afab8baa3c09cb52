/** What a command was at when it was interrupted, such as an upload: the same command goes on with it. */
import { createHash } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject } from '../../lib/json/objects.ts';
import type { Run } from '../command.ts';
import { writePrivately } from '../profiles/store.ts';

export interface Unfinished {
  /** What an earlier command kept; null: nothing, or --no-resume. */
  readonly found: Readonly<Record<string, unknown>> | null;
  keep(state: Readonly<Record<string, unknown>>): Promise<void>;
  forget(): Promise<void>;
}

/** `identity`: what makes a command the same; besides platform and person. */
export async function openUnfinished(run: Run, identity: readonly string[]): Promise<Unfinished> {
  const session = await run.session();
  const all = [session.baseUrl, await session.person(), ...identity];
  const name = createHash('sha256').update(JSON.stringify(all)).digest('hex').slice(0, 32);
  const folder = join(run.store.folder, 'unfinished');
  const path = join(folder, `${name}.json`);
  return {
    found: run.options.resume ? parsed(await readFile(path, 'utf8').catch(() => '')) : null,
    keep: async (state) => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writePrivately(path, `${JSON.stringify(state)}\n`);
    },
    forget: () => rm(path, { force: true }),
  };
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

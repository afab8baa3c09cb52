/**
 * Idempotency keys, one per intention, kept in a file from before the request is sent until its outcome is known. After
 * a crash the same command finds the key of its unfinished request again, and the platform answers with what became of
 * it. A request is "the same" when address, person, method, path, query and body are.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Intention } from '../../client/attempts.ts';
import { isObject } from '../../lib/json/objects.ts';
import { LIMITS } from '../../lib/limits.ts';
import { EXIT, Failure } from '../failure.ts';
import { type Store, writePrivately } from '../profiles/store.ts';

/** A key is good as long as the platform remembers it, less what clocks may differ by. */
const KEPT_MS = (LIMITS.idempotency_retention_hours - 0.25) * 3_600_000;

const FORGOTTEN_MS = 30 * 86_400_000;

export interface Wanted {
  baseUrl: string;
  method: string;
  url: string;
  body: string | undefined;
  /** Subject of the request; not part of its identity. */
  subject?: string | undefined;
}

/** An intention that is kept in a file. */
export interface KeptIntention extends Intention {
  /** Headers of the first attempt that belong to the request, such as If-Match. */
  readonly headers: Record<string, string>;
  readonly startedAt: string;
}

interface Kept {
  key: string;
  startedAt: string;
  /** The process that is at it. */
  pid: number;
  request: string;
  headers: Record<string, string>;
  /** Person, platform and subject, as a hash. */
  subject?: string;
}

/** Headers by which the platform tells requests apart (docs/reference/idempotency.md). */
const REMEMBERED = ['if-match', 'if-none-match', 'x-expected-revision', 'x-duplicate-confirmation', 'x-agent-run-id'];

/** Requests that this process has begun and not seen answered. */
const open = new Set<string>();

/** True when a change may have been made although its answer was lost. */
export const changeUnderWay = (): boolean => open.size > 0;

export class Intentions {
  readonly #store: Store;
  readonly #person: () => Promise<string>;
  readonly #resume: boolean;

  constructor(store: Store, options: { person: () => Promise<string>; resume: boolean }) {
    this.#store = store;
    this.#person = options.person;
    this.#resume = options.resume;
  }

  newKey(): string {
    return `erp-${randomUUID()}`;
  }

  /** Keeps a key for the request: the one of an earlier process that ended without knowing the outcome, or a new one. */
  async begin(wanted: Wanted, headers: Record<string, string>, givenKey: string | undefined): Promise<KeptIntention> {
    const identity = [wanted.baseUrl, await this.#person(), wanted.method, wanted.url, wanted.body ?? ''];
    const id = idOf(identity);
    const folder = join(this.#store.folder, 'pending');
    return this.#store.locked(async () => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await forgetOld(folder);
      const earlier = await this.#unfinished(folder, id, givenKey);
      const kept: Kept = {
        key: givenKey ?? earlier?.kept.key ?? this.newKey(),
        startedAt: earlier?.kept.startedAt ?? new Date().toISOString(),
        pid: process.pid,
        request: `${wanted.method} ${new URL(wanted.url).pathname}`,
        headers: earlier?.kept.headers ?? remembered(headers),
        ...(wanted.subject === undefined ? {} : { subject: await this.#subjectId(wanted.baseUrl, wanted.subject) }),
      };
      const path = earlier?.path ?? join(folder, `${id}.${randomUUID()}.json`);
      await writePrivately(path, `${JSON.stringify(kept)}\n`);
      open.add(path);
      return {
        key: kept.key,
        startedAt: kept.startedAt,
        headers: kept.headers,
        resumed: earlier !== null && givenKey === undefined,
        end: async () => {
          open.delete(path);
          await rm(path, { force: true });
        },
      };
    });
  }

  /** Forgets what earlier processes have left behind on a subject. */
  async settle(baseUrl: string, subject: string): Promise<void> {
    const folder = join(this.#store.folder, 'pending');
    const wanted = await this.#subjectId(baseUrl, subject);
    await this.#store.locked(async () => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      for (const name of await readdir(folder)) {
        const path = join(folder, name);
        const kept = parseKept(await readFile(path, 'utf8'));
        if (kept?.subject === wanted && !alive(kept.pid)) await rm(path, { force: true });
      }
    });
  }

  async #subjectId(baseUrl: string, subject: string): Promise<string> {
    return idOf([baseUrl, await this.#person(), subject]);
  }

  /**
   * The request that an earlier process has left behind; with --no-resume it is forgotten. With a key of the user's own
   * only the request of this key counts.
   */
  async #unfinished(
    folder: string,
    id: string,
    givenKey: string | undefined,
  ): Promise<{ path: string; kept: Kept } | null> {
    for (const name of await readdir(folder)) {
      if (!name.startsWith(`${id}.`)) continue;
      const path = join(folder, name);
      const kept = parseKept(await readFile(path, 'utf8'));
      if (kept && givenKey !== undefined) {
        if (kept.key === givenKey) return { path, kept };
        continue;
      }
      if (!kept || !this.#resume) {
        if (!kept || !alive(kept.pid)) await rm(path, { force: true });
        continue;
      }
      if (alive(kept.pid))
        throw new Failure('CLIENT_IN_PROGRESS', EXIT.conflict, `Process ${kept.pid} is at this very request now.`, {
          hint: 'Wait for it, or do it a second time with --no-resume.',
        });
      if (Date.now() - Date.parse(kept.startedAt) > KEPT_MS)
        throw new Failure(
          'CLIENT_OUTCOME_UNKNOWN',
          EXIT.conflict,
          `The same request of ${kept.startedAt} ended without an answer, too long ago to be taken up again.`,
          { hint: 'Look whether it was done. To do it (again), add --no-resume.' },
        );
      return { path, kept };
    }
    return null;
  }
}

const idOf = (identity: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 32);

/** Age after which an unfinished request is dropped. */
async function forgetOld(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const found = await stat(join(folder, name)).catch(() => null);
    if (found && Date.now() - found.mtimeMs > FORGOTTEN_MS) await rm(join(folder, name), { force: true });
  }
}

const remembered = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => REMEMBERED.includes(name)));

const isKept = (value: unknown): value is Kept =>
  isObject(value) &&
  typeof value['key'] === 'string' &&
  typeof value['startedAt'] === 'string' &&
  typeof value['pid'] === 'number' &&
  typeof value['request'] === 'string' &&
  isObject(value['headers']);

function parseKept(text: string): Kept | null {
  try {
    const value: unknown = JSON.parse(text);
    return isKept(value) ? value : null;
  } catch {
    return null;
  }
}

function alive(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

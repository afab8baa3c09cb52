/**
 * The files of `erp` in ~/.config/erp: profiles (`config.json`), tokens (`credentials.json`), unfinished requests
 * (`pending/`). The folder and the files are their owner's alone. Changes happen under one lock, so that processes that
 * run at the same time lose nothing and use a refresh token once.
 */
import { chmod, mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import lockfile from 'proper-lockfile';
import writeFileAtomic from 'write-file-atomic';
import { isObject } from '../../lib/json/objects.ts';
import { EXIT, Failure } from '../failure.ts';

/** Platform and user of commands. */
export interface Profile {
  baseUrl: string;
  user: { id: string; username: string };
  tenant: { id: string; name: string };
}

export interface Config {
  current: string | null;
  profiles: Record<string, Profile>;
}

/** The tokens of a profile. */
export interface Credentials {
  accessToken: string;
  refreshToken: string | null;
  /** Seconds since 1970. */
  expiresAt: number;
  scopes: string[];
}

const OTHERS = 0o077;
/** A process that holds the lock renews it; after this long without that it is taken for dead. */
const LOCK_STALE_MS = 10_000;

/** Writes a file that only its owner can read, whole or not at all. */
export const writePrivately = (path: string, text: string): Promise<void> =>
  writeFileAtomic(path, text, { mode: 0o600 });

export class Store {
  readonly folder: string;
  readonly #warn: (text: string) => void;
  /** Work of this process that waits for the lock. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(folder: string, warn: (text: string) => void) {
    this.folder = folder;
    this.#warn = warn;
  }

  async config(): Promise<Config> {
    const { current = null, profiles = {} } = ((await this.#read('config.json')) ?? {}) as Partial<Config>;
    // Names such as "constructor" find nothing that a profile does not hold.
    return { current, profiles: Object.assign(Object.create(null), profiles) };
  }

  async saveConfig(config: Config): Promise<void> {
    await this.#prepare();
    await writePrivately(join(this.folder, 'config.json'), `${JSON.stringify(config, null, 2)}\n`);
  }

  async credentials(profile: string): Promise<Credentials | null> {
    const all = await this.#readSecrets();
    return Object.hasOwn(all, profile) ? (all[profile] as Credentials) : null;
  }

  /** null forgets them. Only under the lock. */
  async saveCredentials(profile: string, credentials: Credentials | null): Promise<void> {
    await this.#prepare();
    const { [profile]: _, ...others } = await this.#readSecrets();
    const all = credentials ? { ...others, [profile]: credentials } : others;
    await writePrivately(join(this.folder, 'credentials.json'), `${JSON.stringify(all, null, 2)}\n`);
  }

  /** Does the work under an exclusive lock on these files. Not to be nested. */
  locked<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#queue.then(() => this.#lockedNow(work));
    this.#queue = next.catch(() => undefined);
    return next;
  }

  async #lockedNow<T>(work: () => Promise<T>): Promise<T> {
    await this.#prepare();
    const release = await lockfile.lock(this.folder, {
      lockfilePath: join(this.folder, '.lock'),
      stale: LOCK_STALE_MS,
      retries: { retries: 60, minTimeout: 50, maxTimeout: 500, factor: 1.5, randomize: true },
    });
    try {
      return await work();
    } finally {
      await release();
    }
  }

  async #prepare(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const { mode } = await stat(this.folder);
    if (process.platform === 'win32' || (mode & OTHERS) === 0) return;
    await chmod(this.folder, 0o700);
    this.#warn(`${this.folder} was open to other users of this machine; now it is yours alone.`);
  }

  /** Tokens that others could read are used no more. */
  async #readSecrets(): Promise<Record<string, unknown>> {
    const path = join(this.folder, 'credentials.json');
    const found = await stat(path).catch(() => null);
    if (found && process.platform !== 'win32' && (found.mode & OTHERS) !== 0)
      throw new Failure(
        'CLIENT_CREDENTIALS_EXPOSED',
        EXIT.authentication,
        `${path} can be read by other users of this machine, so its tokens are not used.`,
        {
          hint: `If no one else has read it: chmod 600 ${path}. Otherwise delete it, sign in again and revoke the old sign-in.`,
        },
      );
    return (await this.#read('credentials.json')) ?? {};
  }

  async #read(name: string): Promise<Record<string, unknown> | null> {
    const path = join(this.folder, name);
    const text = await readFile(path, 'utf8').catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      throw new Failure('CLIENT_FILE', EXIT.error, `${path} cannot be read.`, { cause: error });
    });
    if (text === null) return null;
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return value;
    } catch {
      // Said below, without the text: it may hold tokens.
    }
    throw new Failure('CLIENT_FILE', EXIT.error, `${path} is damaged.`, { hint: 'Delete it and sign in anew.' });
  }
}

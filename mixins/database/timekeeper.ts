/** Keeps the time of the platform (lib/values/clock.ts) that of the database, however the clocks of the machines go. */
import type { Database } from './database.ts';

const EVERY_MS = 5_000;
/** The database is not asked more often: a call that is refused so soon was sent before. */
const AGAIN_MS = 500;

export class Timekeeper {
  readonly #database: Pick<Database, 'readTime'>;
  readonly #timer: NodeJS.Timeout;
  #agrees = true;
  #asked = Number.NEGATIVE_INFINITY;

  private constructor(database: Pick<Database, 'readTime'>) {
    this.#database = database;
    this.#timer = setInterval(() => this.#ask(), EVERY_MS).unref();
  }

  /** After the first look at the database's clock: nothing is stamped with a time before. */
  static async start(database: Pick<Database, 'readTime'>): Promise<Timekeeper> {
    await database.readTime();
    return new Timekeeper(database);
  }

  /** False from a call that was refused for its time until the database has told the time again. */
  get agrees(): boolean {
    return this.#agrees;
  }

  /**
   * A call was refused for its time, here or by another process: the clock of the database may have been set. Returns
   * whether the database is asked for that.
   */
  differs(): boolean {
    if (performance.now() - this.#asked < AGAIN_MS) return false;
    this.#agrees = false;
    this.#ask();
    return true;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #ask(): void {
    this.#asked = performance.now();
    this.#database.readTime().then(
      () => {
        this.#agrees = true;
      },
      () => {}, // asked again soon, and the monotonic clock goes on meanwhile
    );
  }
}

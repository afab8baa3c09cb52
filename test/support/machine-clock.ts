/**
 * The clock of a machine that tests may set, of which a process sees all that the clock shows: `Date`. The monotonic
 * clock goes on as it does on a machine whose clock is set. `environment` loads this module into the process.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const VARIABLE = 'TEST_MACHINE_CLOCK';
const READ_EVERY_MS = 20;

const file = process.env[VARIABLE];
if (file !== undefined) useClockOf(file);

function useClockOf(path: string): void {
  const RealDate = Date;
  const realNow = Date.now;
  let ahead = 0;
  let readAt = Number.NEGATIVE_INFINITY;
  const now = (): number => {
    const at = performance.now();
    if (at - readAt > READ_EVERY_MS) {
      readAt = at;
      ahead = Number(readFileSync(path, 'utf8'));
    }
    return realNow() + ahead;
  };
  const construct = (target: DateConstructor, given: unknown[]): object =>
    Reflect.construct(target, given.length === 0 ? [now()] : given);
  globalThis.Date = new Proxy(RealDate, { construct, apply: () => new RealDate(now()).toString() });
  Date.now = now;
}

export class MachineClock {
  readonly #folder = mkdtempSync(join(tmpdir(), 'erp-clock-'));
  readonly #file = join(this.#folder, 'ahead');

  constructor(aheadMs = 0) {
    this.set(aheadMs);
  }

  /** How far the clock is ahead from now on, in milliseconds. */
  set(aheadMs: number): void {
    writeFileSync(this.#file, String(aheadMs));
  }

  /** For a process of this machine. */
  get environment(): Record<string, string> {
    return { [VARIABLE]: this.#file, NODE_OPTIONS: `--import=${pathToFileURL(import.meta.filename).href}` };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/**
 * Refusals on their way to the audit trail, bounded: in each minute a tenant, and the caller who was refused there,
 * have so many entries; the others are counted, and the count is one more entry when the minute is over. So a flood in
 * one tenant neither fills its trail nor takes anything from another's. Source: docs/reference/audit.md.
 */
import { platformTime } from '../lib/values/clock.ts';
import { formatTimestamp } from '../lib/values/time.ts';
import { endsBefore } from './ends-before.ts';

const WINDOW_MS = 60_000;
/** Of one user, or of one network for anonymous callers. */
export const OF_ORIGIN_MAX = 30;
export const OF_TENANT_MAX = 300;
/** Calls that may be under way for one tenant: a database that is slow must not fill our memory. */
const UNDER_WAY_MAX = 20;
/** Users and networks of a tenant that are distinguished within a minute. */
const ORIGINS_MAX = 1_000;
/** Tenants with a refusal in the last minute; beyond that the oldest minute ends early. */
const TENANTS_MAX = 10_000;
const CLOSE_MAX_MS = 2_000;

export interface Suppressed {
  tenantId: string;
  count: number;
  /** RFC 3339. */
  since: string;
}

export interface DenialSink<Entry> {
  deny: (entry: Entry) => Promise<unknown>;
  suppress: (suppressed: Suppressed) => Promise<unknown>;
}

/** One minute of one tenant. */
interface Minute {
  readonly startedAt: number;
  /** The same on the clock that never jumps. */
  readonly started: number;
  entries: number;
  readonly ofOrigins: Map<string, number>;
  underWay: number;
  suppressed: number;
}

export class BoundedDenials<Entry> {
  readonly #sink: DenialSink<Entry>;
  readonly #now: () => number;
  readonly #minutes = new Map<string, Minute>();

  constructor(sink: DenialSink<Entry>, now: () => number = () => performance.now()) {
    this.#sink = sink;
    this.#now = now;
  }

  /** `origin`: identifies the refused caller within a tenant: the user or, for anonymous callers, the network. */
  record({ tenantId, origin }: { tenantId: string; origin: string }, entry: Entry): void {
    const minute = this.#minute(tenantId);
    const ofOrigin = minute.ofOrigins.get(origin) ?? 0;
    if (
      minute.entries >= OF_TENANT_MAX ||
      ofOrigin >= OF_ORIGIN_MAX ||
      minute.underWay >= UNDER_WAY_MAX ||
      (ofOrigin === 0 && minute.ofOrigins.size >= ORIGINS_MAX)
    ) {
      minute.suppressed++;
      return;
    }
    minute.entries++;
    minute.ofOrigins.set(origin, ofOrigin + 1);
    minute.underWay++;
    this.#sink
      .deny(entry)
      .catch(() => {
        this.#minute(tenantId).suppressed++;
      })
      .finally(() => {
        minute.underWay--;
      });
  }

  /** Ends the minutes that are over. */
  sweep(): void {
    const now = this.#now();
    for (const [tenantId, minute] of this.#minutes) if (now - minute.started >= WINDOW_MS) this.#end(tenantId, minute);
  }

  /** Ends all minutes, so that a stop loses no count. Waits for the database for a while. */
  async close(): Promise<void> {
    const ended = [...this.#minutes].map(([tenantId, minute]) => this.#end(tenantId, minute));
    await endsBefore(Promise.all(ended), performance.now() + CLOSE_MAX_MS);
  }

  #minute(tenantId: string): Minute {
    let minute = this.#minutes.get(tenantId);
    if (!minute) {
      const [oldest] = this.#minutes;
      if (oldest && this.#minutes.size >= TENANTS_MAX) void this.#end(...oldest);
      const [startedAt, started] = [platformTime(), this.#now()];
      minute = { startedAt, started, entries: 0, ofOrigins: new Map(), underWay: 0, suppressed: 0 };
      this.#minutes.set(tenantId, minute);
    }
    return minute;
  }

  async #end(tenantId: string, minute: Minute): Promise<void> {
    this.#minutes.delete(tenantId);
    if (minute.suppressed === 0) return;
    try {
      await this.#sink.suppress({
        tenantId,
        count: minute.suppressed,
        since: formatTimestamp(minute.startedAt),
      });
    } catch {
      // Reported with the next minute: a count takes no memory, however long data is away.
      this.#minute(tenantId).suppressed += minute.suppressed;
    }
  }
}

/**
 * The relay numbers the events of a tenant once they are committed. Writers insert them while they hold the locks of what
 * they change, so events of one record get their ids in the order of its versions, but transactions commit in any order.
 * Each process may relay: the head of the log is locked while events are numbered, and what was seen to be new is looked
 * up again under that lock. A process that dies leaves everything or nothing. Source: docs/decisions/event-log.md.
 */
import type { Database } from '../../../mixins/database/database.ts';
import {
  BATCH_ROWS,
  lockHeadStatement,
  type Numbered,
  numberStatement,
  type Oldest,
  oldestStatement,
} from './relay.sql.ts';

/** Numbers what is new; answers what that was. `late`: told for how many seconds the oldest of them has waited. */
export async function relayTenant(
  database: Database,
  tenantId: string,
  late: (seconds: number) => void = () => {},
): Promise<Numbered> {
  try {
    return await numberAll(database, tenantId, late);
  } catch (error) {
    // What could not be numbered becomes later with each round. Where the database does not answer, its own metrics say so.
    await database
      .tenant(tenantId, (tx) => tx.one<Oldest>(oldestStatement(tx.schema)))
      .then(
        ({ oldestSeconds }) => late(oldestSeconds),
        () => {},
      );
    throw error;
  }
}

async function numberAll(database: Database, tenantId: string, late: (seconds: number) => void): Promise<Numbered> {
  let all: Numbered = { count: 0, types: [], objects: [] };
  for (;;) {
    const batch = await database.tenantTransaction(tenantId, async (tx) => {
      const head = await tx.first<Oldest>(lockHeadStatement(tx.schema));
      if (!head) return null;
      late(head.oldestSeconds);
      // A statement of its own: it has to see what the relay that held the lock before has numbered.
      return tx.one<Numbered>(numberStatement(tx.schema));
    });
    if (!batch) return all;
    all = {
      count: all.count + batch.count,
      types: [...new Set([...all.types, ...batch.types])],
      objects: [...new Set([...all.objects, ...batch.objects])],
    };
    if (batch.count < BATCH_ROWS) return all;
  }
}

/** Tenants that one process relays at a time, on wake-ups. */
const AT_ONCE = 2;
/** Between two rounds of a tenant: what its writers commit meanwhile is numbered, told and delivered together. */
const REST_MS = 250;

interface RelayOptions {
  readonly relay: (tenantId: string) => Promise<Numbered>;
  /** Called after events were numbered. */
  readonly numbered: (tenantId: string, events: Numbered) => void;
  /** The next round of all tenants tries again. */
  readonly failed: (tenantId: string, error: unknown) => void;
}

/** Relays the tenants it is woken for, each once at a time, and once more when it is woken meanwhile. */
export class Relay {
  readonly #options: RelayOptions;
  readonly #waiting = new Set<string>();
  readonly #working = new Set<string>();
  readonly #resting = new Set<string>();
  /** Events that this process has numbered. */
  numbered = 0;

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  wake(tenantIds: readonly string[]): void {
    for (const tenantId of tenantIds) this.#waiting.add(tenantId);
    for (const tenantId of this.#waiting) {
      if (this.#working.size >= AT_ONCE) return;
      if (this.#working.has(tenantId) || this.#resting.has(tenantId)) continue;
      this.#waiting.delete(tenantId);
      this.#working.add(tenantId);
      void this.run(tenantId)
        .catch((error: unknown) => this.#options.failed(tenantId, error))
        .finally(() => {
          this.#working.delete(tenantId);
          this.#resting.add(tenantId);
          setTimeout(() => {
            this.#resting.delete(tenantId);
            this.wake([]);
          }, REST_MS).unref();
          this.wake([]);
        });
    }
  }

  async run(tenantId: string): Promise<void> {
    const events = await this.#options.relay(tenantId);
    this.numbered += events.count;
    if (events.count > 0) this.#options.numbered(tenantId, events);
  }
}

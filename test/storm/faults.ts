/** Faults done to a cluster, each with its end: what was there before is there again. */
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import type { Cluster, Member } from './cluster.ts';
import type { LinkState } from './link.ts';
import { isOverloaded } from './machine.ts';
import type { Fault, FaultKind } from './schedule.ts';

/** A fault that was done. Times are those of `performance.now()`. */
interface Done {
  readonly fault: Fault;
  readonly begun: number;
  /** When everything was there again; null as long as it is not. */
  ended: number | null;
  /** When the last answer that it explains was given. */
  lastFailure: number | null;
}

/** Runs statements as the owner of the database, beside all links; none when it cannot be reached. */
async function asOwner(cluster: Cluster, ...statements: readonly string[]): Promise<void> {
  const client = new Client({
    connectionString: cluster.database.url,
    connectionTimeoutMillis: 5_000,
    query_timeout: 5_000,
    application_name: 'storm',
  });
  client.on('error', () => {});
  try {
    await client.connect();
    for (const statement of ['SET default_transaction_read_only = off', ...statements]) await client.query(statement);
  } finally {
    await client.end().catch(() => {});
  }
}

/** As long as the database cannot be reached, which another fault may be the cause of. */
async function insistAsOwner(cluster: Cluster, ...statements: readonly string[]): Promise<void> {
  for (let left = 60; ; left--)
    try {
      return await asOwner(cluster, ...statements);
    } catch (error) {
      if (left === 0) throw error;
      await pause(1_000);
    }
}

/** More than the segments of the write-ahead log that are kept ready. */
const SEGMENTS = 100;

/** Ends segments of the write-ahead log until there is no other one: the server crashes then, and cannot start. */
async function useUpLog(cluster: Cluster): Promise<void> {
  const next = ["SELECT pg_logical_emit_message(false, 'storm', '')", 'SELECT pg_switch_wal()'];
  await asOwner(cluster, ...Array.from({ length: SEGMENTS }, () => next).flat()).catch(() => {});
}

const MOMENT_MS = 15_000;
const READ_ONLY = 'default_transaction_read_only';

/** `others`: whether another fault is there, or was a moment ago. */
type Way = (cluster: Cluster, fault: Fault, target: Member | undefined, others: () => boolean) => Promise<void>;

const WAYS: Readonly<Record<Exclude<FaultKind, 'restore'>, Way>> = {
  /** A process is killed as by a crash (kill -9), and started again. */
  async kill(_, { ms }, target) {
    await target!.kill();
    await pause(ms);
    await target!.start();
  },
  /** A process is stopped in good order (SIGTERM), and started again. */
  async terminate(cluster, { ms }, target, others) {
    const code = await target!.terminate();
    // Its work may have waited for another unavailable component.
    if (code !== 0 && !others() && !isOverloaded())
      cluster.crashes.push(`${target!.name} ended with exit code ${code} after SIGTERM`);
    await pause(ms);
    await target!.start();
  },
  /** A process does nothing for a while and goes on (SIGSTOP, SIGCONT), as on a machine that swaps. */
  async stall(_, { ms }, target) {
    target!.signal('SIGSTOP');
    await pause(ms);
    target!.signal('SIGCONT');
  },
  /** The connections of a process with database or bus. */
  async split(cluster, { target, way, ms }) {
    const [name, end] = target.split('/') as [string, 'database' | 'bus'];
    const link = cluster.member(name).links[end];
    link.set(way as LinkState);
    await pause(ms);
    link.set('whole');
  },
  /** The wall clock of a process is wrong for a while. */
  async clock(_, { way, ms }, target) {
    target!.setClock(Number(way) * 1_000);
    await pause(ms);
    target!.setClock(0);
  },
  /** The database server is killed, or stopped at once or in good order, and away for a while. */
  async database(cluster, { way, ms }) {
    cluster.setDatabaseLinks('reset');
    process.kill(
      cluster.database.pid,
      ({ kill: 'SIGKILL', immediate: 'SIGQUIT', fast: 'SIGINT' } as const)[way as 'kill'],
    );
    await pause(ms);
    cluster.setDatabaseLinks('whole');
    await insistAsOwner(cluster, 'SELECT 1');
  },
  /** The server ends some sessions, as an administrator does. */
  async sessions(cluster, { way }) {
    await asOwner(
      cluster,
      `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
       WHERE application_name LIKE 'erp %' ORDER BY md5(pid::text) LIMIT ${Number(way)}) chosen`,
    ).catch(() => {});
  },
  /** The server only reads for a while, as during a failover. */
  async readOnly(cluster, { ms }) {
    await insistAsOwner(cluster, `ALTER SYSTEM SET ${READ_ONLY} = on`, 'SELECT pg_reload_conf()');
    await pause(ms);
    await insistAsOwner(cluster, `ALTER SYSTEM RESET ${READ_ONLY}`, 'SELECT pg_reload_conf()');
  },
  /** There is no room left on the disk of the database. */
  async disk(cluster, { ms, way }) {
    cluster.fillDisk();
    if (way === 'wal') await useUpLog(cluster);
    await pause(ms);
    cluster.freeDisk();
    await insistAsOwner(cluster, 'SELECT 1');
  },
  /** NATS is killed and started again. */
  async bus(cluster, { ms }) {
    await cluster.nats.stop();
    await pause(ms);
    await cluster.nats.start();
  },
};

const textOf = ({ kind, target, way, ms }: Fault): string => `${kind} ${target}${way ? ` (${way})` : ''} for ${ms} ms`;

/** A gateway that is stopped in good order loses no connection. */
const BREAKING: readonly FaultKind[] = ['kill', 'stall', 'restore'];

/** Target of a fault; two simultaneous faults on one target would undo each other. */
const subjectOf = ({ kind, target }: Fault): string => (kind === 'split' ? target.split('/')[0]! : target);

/** Does faults and remembers when each began and ended. */
export class Faults {
  readonly done: Done[] = [];
  readonly skipped: Fault[] = [];
  readonly #cluster: Cluster;
  readonly #say: (text: string) => void;
  readonly #note: (text: string) => void;
  readonly #busy = new Set<string>();
  readonly #running = new Set<Promise<void>>();

  constructor(cluster: Cluster, say: (text: string) => void, note: (text: string) => void) {
    this.#note = note;
    this.#cluster = cluster;
    this.#say = say;
  }

  /** Begins a fault, or leaves it out while its target still has another one. */
  begin(fault: Fault): void {
    const subject = subjectOf(fault);
    if (this.#busy.has(subject)) {
      this.skipped.push(fault);
      this.#say(`left out: ${textOf(fault)}; ${subject} still has another fault`);
      return;
    }
    const target = this.#cluster.members.find(({ name }) => name === subject);
    const way = WAYS[fault.kind as Exclude<FaultKind, 'restore'>];
    const work = this.carryOut(fault, () => way(this.#cluster, fault, target, () => this.#others(fault)));
    this.#running.add(work);
    void work.then(() => this.#running.delete(work));
  }

  /** Does `work` as this fault. */
  async carryOut(fault: Fault, work: () => Promise<void>): Promise<void> {
    const subject = subjectOf(fault);
    const done: Done = { fault, begun: performance.now(), ended: null, lastFailure: null };
    this.#busy.add(subject);
    this.done.push(done);
    this.#say(textOf(fault));
    await work().catch((error: Error) => this.#say(`${textOf(fault)}: ${error.message}`));
    done.ended = performance.now();
    this.#note(`over: ${textOf(fault)}, after ${Math.round(done.ended - done.begun)} ms`);
    this.#busy.delete(subject);
  }

  #others(than: Fault): boolean {
    const long = performance.now() - MOMENT_MS;
    return this.done.some(({ fault, ended }) => fault !== than && (ended === null || ended > long));
  }

  /** Resolves when every fault has ended. */
  async over(): Promise<void> {
    await Promise.all(this.#running);
  }

  /**
   * The latest of the faults that were there at some time from `from` to now, or had ended at most `grace` ms before
   * `from`: one that goes on before one that has ended. With `broken`, of those that break connections to that process.
   */
  around(from: number, grace: number, broken?: string): Done | undefined {
    const last = ({ ended }: Done): number => ended ?? Number.MAX_VALUE;
    return this.done
      .filter((one) => last(one) >= from - grace)
      .filter(({ fault }) => !broken || (BREAKING.includes(fault.kind) && [broken, 'database'].includes(fault.target)))
      .sort((a, b) => last(a) - last(b) || a.begun - b.begun)
      .at(-1);
  }
}

/**
 * The one door to PostgreSQL of a process: a pool of pipelined connections, each of which remembers which role and
 * tenant it serves. Tenant work runs as the tenant's own PostgreSQL role, work on shared tables as the service's role
 * with row-level security bound to the tenant: the second lock behind our own checks. Pipelining lets statements that
 * need no answer from each other travel together.
 */

import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LRUCache } from 'lru-cache';
import pg from 'pg';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { asError, codeOf, messageOf } from '../../lib/errors/thrown.ts';
import type { RowSink } from '../../lib/json/row-writer.ts';
import { LIMITS } from '../../lib/limits.ts';
import { correctPlatformTime, platformTime } from '../../lib/values/clock.ts';
import { entryBound } from '../../lib/values/entry-bound.ts';
import { identifier } from '../../lib/values/sql-text.ts';
import { endsBefore } from '../ends-before.ts';
import type { Holder } from '../fair-queue.ts';
import { Outage } from '../outage.ts';
import { traceStatement, traceWait } from '../tracing/traced-statements.ts';
import { mark } from '../watchdog/work.ts';
import { ConnectionQueue, PLATFORM } from './connection-queue.ts';
import {
  DatabaseSilent,
  type Failure,
  type FailureKind,
  failureOf,
  isConnectionError,
  isRefusedLogin,
  isUnanswered,
} from './failures.ts';
import { LinkWatch } from './link-watch.ts';
import {
  type Answer,
  type FirstRows,
  jsonPage,
  PageClient,
  type PageRows,
  type PageSink,
  type PageStatement,
  runBounded,
  runPage,
  runStatement,
} from './page-client.ts';
import { LOGIN, type Role, serviceRole, tenantRole } from './roles.ts';
import { beginSession, isPooled, requireSessionMode } from './session.ts';
import type { Rows, Statement } from './statement.ts';
import { currentUse } from './use.ts';

export { isConnectionError, isRefusedLogin };

/** A connection in a transaction (or on loan), already in the right role. */
export interface Tx {
  /** Rows as objects. */
  query<R = Record<string, unknown>>(text: string | Statement, values?: readonly unknown[]): Promise<Rows<R>>;
  /** The rows of a statement, by the names of their columns. */
  all<R>(statement: Statement): Promise<R[]>;
  /**
   * The rows up to the one with which they reach `maxBytes`. When `more` follow, nothing else runs on the connection.
   */
  allUpTo<R>(statement: Statement, maxBytes: number): Promise<FirstRows<R>>;
  /** The first row; null when there is none. */
  first<R>(statement: Statement): Promise<R | null>;
  /** The first row of a statement that always has one; throws when it has none. */
  one<R>(statement: Statement): Promise<R>;
  /** Records straight from the wire into the JSON of an answer that begins with `head`. */
  page(statement: PageStatement, head: string): Promise<PageRows>;
  /** Records straight from the wire into a writer. */
  rows<Sink extends RowSink>(statement: PageStatement, sink: PageSink<Sink>): Promise<PageRows<Sink>>;
  /** Statements sent in one turn leave in one packet. */
  gather(): void;
  /** BEGIN, which travels with the next statement. The caller ends the transaction. */
  begin(statement?: string): void;
  /** Sends COMMIT, ROLLBACK or the like; resolves to what PostgreSQL did instead, such as ROLLBACK for COMMIT. */
  control(statement: 'COMMIT' | 'ROLLBACK' | 'SET CONSTRAINTS ALL IMMEDIATE'): Promise<string>;
  /**
   * The statements after this one run as `role`, until the next change of role or the end of the transaction. It
   * travels with the statement behind it and need not be awaited: when it fails, the transaction fails with its error.
   */
  actAs(role: Role): Promise<unknown>;
  /** Runs one piece of the transaction as the login, for tables that its role does not reach; then the role goes on. */
  asLogin<T>(work: () => Promise<T>): Promise<T>;
  /** Quoted schema of the tenant whose role the connection has; empty for other roles. */
  readonly schema: string;
  readonly client: pg.PoolClient;
  /** Rows of a statement were not read, so that the connection is closed when the work is done. */
  readonly isAbandoned: boolean;
}

interface SessionState {
  /** Of `performance.now()`. */
  openedAt?: number;
  platformRole?: string;
  /** Its statement_timeout; the one it began with when absent. */
  statementTimeoutMs?: number;
  /** Characters of the text of each, by name. */
  preparedNames?: Map<string, number>;
  preparedChars?: number;
  /** Why the connection must not go back to the pool, though it lives. */
  unusable?: Error;
}

interface Session extends PageClient, SessionState, Pick<pg.PoolClient, 'release'> {}

/**
 * Prepared statements kept per connection; the oldest are deallocated, or PostgreSQL's memory would grow with tenants.
 */
const PREPARED_MAX = 400;
/** Characters of their texts. A plan takes a hundred times as much memory as the text that it is made of, about. */
const PREPARED_CHARS_MAX = 2 * 1024 * 1024;
/** Longer statements are planned each time they run. */
const PREPARED_EACH_MAX_CHARS = 128 * 1024;
/** SQLSTATEs of a statement that was prepared before a table changed: its result, or a row that it only names. */
const OUTDATED: ReadonlySet<string | null> = new Set(['0A000', '42703', '42804']);

const ACCOUNTS_MAX = 10_000;
const CONNECT_MS = 5_000;
/** How old connections to a read-only database become: its address may lead to another server by now. */
const LEAVE_EVERY_MS = 2_000;
/** The disk of the database is taken for full for so long after it was. */
const FULL_MS = 30_000;
/** Minimum interval between log lines about a failure of one kind. */
const TELL_EVERY_MS = 30_000;
const CLOCK = 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now';

const IN_FAILED_TRANSACTION = '25P02';

// Numbers that JavaScript cannot hold exactly stay text; dates and times stay as PostgreSQL prints them.
const types = new pg.TypeOverrides();
for (const oid of [1082, 1083, 1114, 1184, 1186, 1700]) types.setTypeParser(oid, (text: string) => text);
types.setTypeParser(20, (text: string) => Number(text));

export interface DatabaseOptions {
  /** Connections of the pool. */
  readonly size: number;
  /** Connections that the records of one tenant may hold at a time; default: half of the pool. */
  readonly perTenant?: number | undefined;
  readonly applicationName: string;
  readonly onError?: (error: Error) => void;
  /** The server has begun to refuse the login. */
  readonly onRefused?: (error: Error) => void;
  /** Message and remedy for the operator. */
  readonly onTrouble?: (message: string) => void;
  /** Close all connections when the server answers neither on them nor on a new one; default: false. */
  readonly watchesLink?: boolean;
}

/** Functions that a reachable database does not offer at the moment. */
export type Degradation = 'databaseReadOnly' | 'databaseFull';

export class Database {
  readonly pool: pg.Pool;
  readonly url: string;
  readonly queue: ConnectionQueue;
  /** Milliseconds that connections were held since the start. */
  heldMs = 0;
  /** Statements sent since the start, those that begin and end transactions included. */
  statements = 0;
  /** Failures since the start, by kind. */
  readonly failures = new Map<FailureKind, number>();
  /** Of PostgreSQL, as the newest connection reported it; null: there was none yet. */
  serverVersion: string | null = null;
  /** Of the server, if it was verified, as the newest connection showed it, milliseconds since 1970; null: without TLS. */
  certificateExpiresAt: number | null = null;
  /** When each kind was told to the operator. */
  readonly #told = new Map<FailureKind, number>();
  readonly #onTrouble: (message: string) => void;
  /** The connection that was used last can only read. */
  readonly #readOnly = new Outage({
    began: () =>
      this.#onTrouble(
        'The database is read-only: changes are answered with 503 until its address leads to one that takes them.',
      ),
    ended: (seconds) => this.#onTrouble(`The database takes changes again, after ${seconds} s.`),
  });
  /** From a connection that could not be made or was lost to the next work that is done. */
  readonly #away = new Outage({
    began: (reason) => this.#onTrouble(reason),
    ended: (seconds) => this.#onTrouble(`The database answers again, after ${seconds} s.`),
  });
  #fullAt = Number.NEGATIVE_INFINITY;
  /** Connections that were opened before are not used any more. */
  #leaveBefore = Number.NEGATIVE_INFINITY;
  /** Role and share of each tenant, whose texts are the same for each request. */
  readonly #accounts = new LRUCache<string, { readonly role: Role; readonly holder: Holder }>(entryBound(ACCOUNTS_MAX));
  /** Roles of tenants that a connection of this process has taken. */
  readonly #taken = new Set<string>();
  readonly #onRefused: (error: Error) => void;
  readonly #onReplaced: (() => void)[] = [];
  readonly #onSilence: ((silent: boolean) => Promise<void>)[] = [];
  readonly #watch: LinkWatch | null;
  /** Server, database and timeline of the newest connection. */
  #place: string | null = null;
  /** The check that a pooler in between keeps sessions; null: none since a connection was lost, after which it may have changed. */
  #checked: Promise<void> | null = null;
  /** The server refused the last new connection, though those of the pool may go on. */
  #refused = false;

  constructor(url: string, options: DatabaseOptions) {
    const { size } = options;
    this.url = url;
    this.queue = new ConnectionQueue({ size, perTenant: options.perTenant ?? Math.max(1, Math.floor(size / 2)) });
    this.pool = new pg.Pool({
      Client: PageClient,
      connectionString: url,
      max: size,
      application_name: options.applicationName,
      idleTimeoutMillis: 60_000,
      connectionTimeoutMillis: CONNECT_MS,
      types,
      pipeline: true,
      keepAlive: true,
      verify: (client: pg.PoolClient, done: (error?: Error) => void) =>
        void this.#recognise(client).then(() => done(), done),
    });
    this.pool.on('error', (error) => {
      this.#checked = null;
      if (!this.pool.ending) options.onError?.(error);
    });
    this.pool.on('connect', (client: pg.PoolClient & SessionState) => {
      this.#refused = false;
      client.openedAt = performance.now();
      if (client instanceof PageClient) this.#meet(client);
    });
    this.#onTrouble = options.onTrouble ?? (() => {});
    this.#onRefused = options.onRefused ?? (() => {});
    this.#watch = options.watchesLink ? this.#watchLink() : null;
  }

  /** Functions that the reachable database does not offer at the moment. */
  get degraded(): readonly Degradation[] {
    return [
      ...(this.#readOnly.lasts ? (['databaseReadOnly'] as const) : []),
      ...(performance.now() - this.#fullAt < FULL_MS ? (['databaseFull'] as const) : []),
    ];
  }

  /**
   * `forget` drops what was remembered by versions: they are given again, for other content, in a database that is a copy
   * of the one before, such as a replica that has taken over. It runs before the first work on the copy.
   */
  onReplaced(forget: () => void): void {
    this.#onReplaced.push(forget);
  }

  /**
   * `changed` is called with true when the server has become silent, before the connections are closed, and with false
   * when it answers again.
   */
  onSilence(changed: (silent: boolean) => Promise<void>): void {
    this.#onSilence.push(changed);
  }

  #watchLink(): LinkWatch {
    // Also those that are being made.
    const streams = (): Socket[] => this.pool._clients.map(streamOf).filter((stream) => stream instanceof Socket);
    return new LinkWatch({
      inUse: () => this.pool.totalCount > this.pool.idleCount,
      received: () => streams().reduce((sum, { bytesRead }) => sum + bytesRead, 0),
      signIn: (limitMs) =>
        this.meet(limitMs).then(
          () => true,
          (error) => !isUnanswered(error),
        ),
      changed: async (silent) => {
        await Promise.allSettled(this.#onSilence.map((changed) => changed(silent)));
        if (silent) for (const stream of streams()) stream.destroy();
      },
    });
  }

  async #recognise(client: pg.PoolClient): Promise<void> {
    const found = await beginSession(client);
    if (isPooled(client, found)) await this.#requireSessionMode(client, found.pid);
    const { place } = found;
    const before = this.#place;
    this.#place = place;
    if (before !== null && before !== place) for (const forget of this.#onReplaced) forget();
  }

  /** Connections that are made at the same time share one check. */
  async #requireSessionMode(client: pg.PoolClient, pid: number): Promise<void> {
    this.#checked ??= requireSessionMode(client, pid, this.url);
    try {
      await this.#checked;
    } catch (error) {
      this.#checked = null;
      throw error;
    }
  }

  /** True while the database answers and, as far as is known, accepts new connections of this login. */
  async answers(): Promise<boolean> {
    try {
      if (this.#refused) await this.meet();
      await this.readTime();
      return true;
    } catch {
      return false;
    }
  }

  /** Puts the time of the platform right, which is that of the server. */
  async readTime(): Promise<void> {
    const asked = performance.now();
    const { now } = await this.login((tx) => tx.one<{ now: number }>({ text: CLOCK }));
    // It was read somewhere on the way: the server's time is by now at least this, and at most so much later.
    correctPlatformTime(now, now + performance.now() - asked);
  }

  #meet(client: PageClient): void {
    this.serverVersion = client.serverVersion;
    this.certificateExpiresAt = client.certificateExpiresAt;
  }

  /** Signs in on a connection of its own, because those of the pool were made under earlier circumstances. */
  async meet(limitMs = CONNECT_MS): Promise<void> {
    const client = new PageClient({ connectionString: this.url, connectionTimeoutMillis: limitMs });
    try {
      await client.connect();
      this.#refused = false;
      this.#meet(client);
    } finally {
      client.end().catch(() => {});
    }
  }

  async #connect(): Promise<Session> {
    try {
      if (this.#watch?.silent) throw new DatabaseSilent();
      for (;;) {
        const client = (await this.pool.connect()) as Session;
        const { openedAt = 0 } = client;
        const isOld = client.isReadOnly && performance.now() - openedAt > LEAVE_EVERY_MS;
        if (openedAt >= this.#leaveBefore && !isOld) return client;
        client.release(true);
      }
    } catch (error) {
      if (isRefusedLogin(error) && !this.#refused) {
        this.#refused = true;
        this.#onRefused(asError(error));
      }
      this.#note(error);
      throw error;
    }
  }

  /** Counts a failure of the database, and tells the operator of it where there is something to do. */
  #note(error: unknown): void {
    const failure = failureOf(error);
    if (!failure) return;
    const { kind, lost, remedy } = failure;
    if (lost) this.#checked = null;
    this.failures.set(kind, (this.failures.get(kind) ?? 0) + 1);
    const now = performance.now();
    if (kind === 'full') this.#fullAt = now;
    if (kind === 'readOnly') this.#leaveConnections();
    // Refused logins are logged elsewhere.
    if (remedy === null || kind === 'refusedLogin') return;
    if (kind === 'unreachable') {
      this.#away.begin(told(error, failure));
      return;
    }
    if (now - (this.#told.get(kind) ?? Number.NEGATIVE_INFINITY) < TELL_EVERY_MS) return;
    this.#told.set(kind, now);
    this.#onTrouble(told(error, failure));
  }

  /** The next work is on new connections: the address may lead to another server by now, which takes changes. */
  #leaveConnections(): void {
    const now = performance.now();
    if (now - this.#leaveBefore > LEAVE_EVERY_MS) this.#leaveBefore = now;
  }

  #noteAnswer({ isReadOnly }: PageClient): void {
    this.#away.end();
    if (isReadOnly) this.#readOnly.begin();
    else this.#readOnly.end();
  }

  /**
   * One statement without a tenant, as the login role. Only for tables that hold no tenant's data, and for boot work.
   */
  async query<R = Record<string, unknown>>(text: string | Statement, values?: readonly unknown[]): Promise<Rows<R>> {
    return this.#loan(null, PLATFORM, (tx) => tx.query<R>(text, values));
  }

  /** One or more statements as the login role, each its own transaction: look-ups that must find the tenant first. */
  login<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#loan(null, PLATFORM, work);
  }

  /** A transaction as the login role: migrations, provisioning, boot work. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#loan(null, PLATFORM, (loan) => inTransaction(loan, null, work));
  }

  /** One connection as `role`, for what PostgreSQL refuses to do in a transaction. */
  session<T>(role: Role, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#loan(role, PLATFORM, work);
  }

  /**
   * SQL of a library, as the login role: one statement, or several with a transaction of their own. Values are parsed
   * as `pg` does it, not as we do.
   */
  script(text: string, values: unknown[]): Promise<{ rows: unknown[] }> {
    return this.#loan(null, PLATFORM, async ({ client }) => {
      try {
        const results: pg.QueryResult | pg.QueryResult[] = await client.query({ text, values, types: pg.types });
        return { rows: [results].flat().flatMap(({ rows }) => rows) };
      } catch (error) {
        // The transaction of several statements stays open when one of them fails.
        if (!isConnectionError(error)) await client.query('ROLLBACK').catch(() => {});
        throw error;
      }
    });
  }

  /** One or more statements as the tenant's role, each its own transaction: the read path. */
  tenant<T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#records(tenantId, work);
  }

  /** A transaction as the tenant's role. */
  tenantTransaction<T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#records(tenantId, (loan) => inTransaction(loan, null, work));
  }

  /**
   * A transaction on a service's shared tables: role `svc_<service>`, row-level security sees `app.tenant_id`.
   * tenantId null: no tenant row is visible, only tables without row-level security.
   */
  async shared<T>(service: string, tenantId: string | null, work: (tx: Tx) => Promise<T>): Promise<T> {
    const role = serviceRole(service, tenantId);
    // Jobs may take minutes, and the requests of their tenant must go on meanwhile.
    const isPlatform = tenantId === null || currentUse() === undefined;
    const holder = isPlatform ? PLATFORM : this.queue.shared(`${role.name} ${tenantId}`);
    return this.#loan(null, holder, (loan) => inTransaction(loan, role, work));
  }

  /** Waits for work under way, of a process that ends up to `withinMs`: a connection may be dead without telling. */
  async close(withinMs?: number): Promise<void> {
    this.#watch?.stop();
    if (withinMs === undefined) return this.pool.end();
    await endsBefore(this.pool.end(), performance.now() + withinMs);
  }

  #records<T>(tenantId: string, work: (loan: Loan) => Promise<T>): Promise<T> {
    let account = this.#accounts.get(tenantId);
    if (!account) {
      const role = tenantRole(tenantId);
      this.#accounts.set(tenantId, (account = { role, holder: this.queue.tenant(role.name) }));
    }
    return this.#loan(account.role, account.holder, work);
  }

  async #loan<T>(role: Role | null, holder: Holder, work: (loan: Loan) => Promise<T>): Promise<T> {
    const use = currentUse();
    const asked = performance.now();
    const waiting = this.queue.enter(holder, use && remainingMs(use.deadline));
    if (waiting) await waiting;
    const began = performance.now();
    let waitedMs = 0;
    let client: Session | undefined;
    let loan: Loan | undefined;
    try {
      client = await this.#connect();
      traceWait(asked);
      const switched = this.#settle(client, role, use?.statementTimeoutMs ?? LIMITS.statement_timeout_ms);
      if (switched) await switched;
      loan = new Loan(client, role);
      const result = await work(loan);
      if (client.lost) throw client.lost;
      return result;
    } catch (error) {
      // It waited for another transaction, such as a deployment, and then did nothing.
      if (sqlState(error) === LOCK_TIMEOUT) waitedMs = LIMITS.idempotency_wait_ms;
      if (!client) throw error;
      if (isConnectionError(error)) client.lost ??= asError(error);
      this.#note(client.lost ?? error);
      throw client.lost ?? error;
    } finally {
      if (client) this.#takeBack(client);
      if (loan) this.statements += loan.statements;
      this.queue.leave(holder);
      const heldMs = performance.now() - began;
      this.heldMs += heldMs;
      if (use) use.heldMs += Math.max(0, heldMs - waitedMs);
    }
  }

  /** Gives the connection this role and time limit. A promise only for a role that was never taken before. */
  #settle(client: Session, role: Role | null, timeoutMs: number): Promise<void> | undefined {
    const name = role?.name ?? null;
    const settings = settingsFor(client, name, timeoutMs);
    if (settings === '') return undefined;
    const switched = client.query(settings).then(
      () => {
        if (name !== null) this.#taken.add(name);
      },
      (error) => {
        client.lost ??= error;
        throw error;
      },
    );
    // It travels with the first statement, which would run as the role before if this one failed. So a role is
    // waited for until it has been taken once: from then on there is no reason why it could not be.
    if (name !== null && !this.#taken.has(name)) return switched;
    switched.catch(() => {});
    return undefined;
  }

  #takeBack(client: Session): void {
    if (!client.lost) this.#noteAnswer(client);
    client.release(client.lost ?? client.unusable);
    // The server may still be sending unread rows.
    if (client.unusable) streamOf(client).destroy();
  }
}

const told = (error: unknown, { kind, remedy }: Failure): string =>
  `The database failed (${kind}: ${messageOf(error)}): ${remedy}.`;

const streamOf = ({ connection }: pg.Client): Duplex => connection.stream;

/** Milliseconds that a caller still waits. Throws when it has given up: its statements would be in vain. */
function remainingMs(deadline: number): number {
  const left = deadline - platformTime();
  if (left > 0) return left;
  throw new PlatformError('SERVICE_UNAVAILABLE', 'The time limit of the request has passed.', { retryAfterSeconds: 1 });
}

/** SET statements that give a connection this role and time limit; empty when it has them. Records them as sent. */
function settingsFor(client: Session, role: string | null, timeoutMs: number): string {
  const settings: string[] = [];
  if ((client.platformRole ?? null) !== role) {
    settings.push(role === null ? 'RESET ROLE' : `SET ROLE ${identifier(role)}`);
    if (role === null) delete client.platformRole;
    else client.platformRole = role;
  }
  if ((client.statementTimeoutMs ?? LIMITS.statement_timeout_ms) !== timeoutMs) {
    settings.push(`SET statement_timeout = ${timeoutMs}`);
    client.statementTimeoutMs = timeoutMs;
  }
  return settings.join('; ');
}

const whole = <R>(answer: Answer<R>): Answer<R> => answer;
const commandOf = ({ command }: Answer<unknown>): string => command;

function onlyRow<R>({ rows: [row] }: Answer<R>): R {
  if (row === undefined) throw new Error('The statement returned no row.');
  return row;
}

class Loan implements Tx {
  readonly client: Session;
  #role: Role | null;
  statements = 0;
  #inTransaction = false;
  /** Of the statements of the transaction, the last one that failed by itself: those behind it fail because of it. */
  #failure: unknown = null;

  constructor(client: Session, role: Role | null) {
    this.client = client;
    this.#role = role;
  }

  get schema(): string {
    return this.#role?.schema ?? '';
  }

  /** Why the transaction has failed; null when no statement has. */
  get failure(): unknown {
    return this.#failure;
  }

  begin(statement = 'BEGIN'): void {
    this.#inTransaction = true;
    void this.#send({ text: statement }, commandOf);
  }

  control(statement: string): Promise<string> {
    return this.#send({ text: statement }, commandOf);
  }

  actAs(role: Role): Promise<unknown> {
    // Outside a transaction PostgreSQL only warns, and the statements that follow run as the role before.
    if (!this.#inTransaction) throw new Error('A role is changed within a transaction only.');
    this.#role = role;
    return this.#send({ text: role.enter }, commandOf);
  }

  async asLogin<T>(work: () => Promise<T>): Promise<T> {
    const role = this.#role;
    this.actAs(LOGIN);
    try {
      return await work();
    } finally {
      if (role) this.actAs(role);
    }
  }

  query<R = Record<string, unknown>>(text: string | Statement, values?: readonly unknown[]): Promise<Rows<R>> {
    return this.#send<R, Rows<R>>(typeof text === 'string' ? { text, values } : text, whole);
  }

  all<R>(statement: Statement): Promise<R[]> {
    return this.#send<R, R[]>(statement, ({ rows }) => rows);
  }

  first<R>(statement: Statement): Promise<R | null> {
    return this.#send<R, R | null>(statement, ({ rows: [row] }) => row ?? null);
  }

  one<R>(statement: Statement): Promise<R> {
    return this.#send<R, R>(statement, onlyRow);
  }

  #send<R, T>(statement: Statement, pick: (answer: Answer<R>) => T): Promise<T> {
    return together(this.#run(statement, (asked) => runStatement(this.client, asked, pick)));
  }

  gather(): void {
    const stream = streamOf(this.client);
    stream.cork();
    process.nextTick(() => stream.uncork());
  }

  page(statement: PageStatement, head: string): Promise<PageRows> {
    return together(
      this.#run(statement, (asked) => runPage(this.client, asked, jsonPage(head), () => this.#abandon())),
    );
  }

  rows<Sink extends RowSink>(statement: PageStatement, sink: PageSink<Sink>): Promise<PageRows<Sink>> {
    // The connection is kept: the transaction goes on when all rows have come.
    return together(this.#run(statement, (asked) => runPage(this.client, asked, sink, () => {})));
  }

  allUpTo<R>(statement: Statement, maxBytes: number): Promise<FirstRows<R>> {
    return together(
      traceStatement(statement.text, () =>
        runBounded<R>(this.client, statement, maxBytes, () => this.#abandon()).catch(this.#fail),
      ),
    );
  }

  get isAbandoned(): boolean {
    return this.client.unusable !== undefined;
  }

  #abandon(): void {
    this.client.unusable ??= new Error('The rest of the rows was not read.');
  }

  #run<S extends Statement, T>(statement: S, run: (asked: S) => Promise<T>): Promise<T> {
    this.statements++;
    return traceStatement(statement.text, () => this.#runPrepared(statement, run));
  }

  /**
   * Rejects with the error of the transaction: behind a statement that failed, all others only say that the transaction
   * is aborted. So whichever of several statements is awaited first, the caller gets the reason.
   */
  readonly #fail = (error: unknown): never => {
    if (sqlState(error) === IN_FAILED_TRANSACTION) throw this.#failure ?? error;
    // Its stack leads to the socket; now it leads to the statement as well.
    if (error instanceof Error) Error.captureStackTrace(error);
    this.#failure = error;
    throw error;
  };

  #runPrepared<S extends Statement, T>(statement: S, run: (asked: S) => Promise<T>): Promise<T> {
    const { name, text } = statement;
    if (name === undefined) return run(statement).catch(this.#fail);
    if (text.length > PREPARED_EACH_MAX_CHARS) {
      const { name: _, ...unnamed } = statement;
      return run(unnamed as S).catch(this.#fail);
    }
    const { client } = this;
    const names = (client.preparedNames ??= new Map());
    client.preparedChars = (client.preparedChars ?? 0) + text.length - (names.get(name) ?? 0);
    names.delete(name);
    names.set(name, text.length);
    for (const oldest of names.keys()) {
      if (oldest === name || (names.size <= PREPARED_MAX && client.preparedChars <= PREPARED_CHARS_MAX)) break;
      this.#unprepare(oldest);
    }
    return run(statement).catch((error) => {
      // A deployment has changed a column: the statement is good, but must be prepared anew.
      if (OUTDATED.has(sqlState(error))) this.#unprepare(name);
      return this.#fail(error);
    });
  }

  #unprepare(name: string): void {
    const { connection, columns, shapes, preparedNames, preparedChars = 0 } = this.client;
    this.client.preparedChars = preparedChars - (preparedNames?.get(name) ?? 0);
    preparedNames?.delete(name);
    columns.delete(name);
    shapes.delete(name);
    const text = connection.parsedStatements[name];
    if (text === undefined) return;
    delete connection.parsedStatements[name];
    // An aborted transaction refuses it; then the connection goes, with all its statements.
    this.client.query(`DEALLOCATE ${identifier(name)}`).catch((error) => {
      this.client.unusable = asError(error);
    });
  }
}

/**
 * Pipelined statements fail together. Marks each promise as handled, so that later failures do not end the process;
 * COMMIT reports them.
 */
function together<T>(answer: Promise<T>): Promise<T> {
  answer.then(mark, mark); // the work that waited for it goes on
  return answer;
}

async function inTransaction<T>(loan: Loan, role: Role | null, work: (tx: Tx) => Promise<T>): Promise<T> {
  // Pipelined, in one packet: BEGIN and the role travel with the first statement of the work.
  loan.gather();
  loan.begin();
  if (role) loan.actAs(role);
  try {
    const result = await work(loan);
    // PostgreSQL answers the COMMIT of a transaction in which a statement failed with ROLLBACK, and with no error.
    if ((await loan.control('COMMIT')) !== 'COMMIT')
      throw loan.failure ?? new Error('Nothing was committed: a statement of the transaction failed.');
    return result;
  } catch (error) {
    if (isConnectionError(error)) throw error;
    await loan.control('ROLLBACK').catch(() => {});
    throw error;
  }
}

const LOCK_TIMEOUT = '55P03';

/** SQLSTATE of an error, or null. */
export const sqlState = (error: unknown): string | null => {
  const code = codeOf(error);
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) ? code : null;
};

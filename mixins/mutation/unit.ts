/**
 * A unit of work: one transaction of a mutation, with everything that its parts share. Any number of tasks may run in
 * one unit; all of them are committed together, or none.
 */
import type { RequestContext } from '../../lib/context.ts';
import { newRequestBudget, type RequestBudget } from '../../lib/expression/evaluate.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { uuidv7 } from '../../lib/values/ids.ts';
import { isConnectionError, type Tx } from '../database/database.ts';
import { serviceRole, tenantRole } from '../database/roles.ts';
import { Sql } from '../database/sql.ts';
import type { Statement } from '../database/statement.ts';
import { type AuditColumns, type AuditEntry, auditSql, CallerSql, type OutboxColumns, outboxSql } from './audit.ts';
import { type BasisFacts, newFacts } from './basis.ts';
import { claimKeySql, completeKeySql } from './key.sql.ts';
import { type IdempotencyKey, storedReply } from './key.ts';

/** Owner of the tables that statements use: the tenant (`t_<tenant>`), or a service's own (`svc_<service>`). */
export type DataRole = 'tenant' | { readonly service: string };

/** Changes that a dry run would make. */
export interface Effect {
  readonly kind: 'create' | 'update' | 'delete' | 'transition' | 'notification' | 'event';
  readonly objectApiName: string;
  /** null: the record does not exist yet, or the effect stands for several. */
  readonly id: string | null;
  readonly fields: readonly string[];
  /** Records that the effect stands for, when it names none of them. */
  readonly count?: number;
}

/**
 * Work of another service that belongs to the same decision, such as the approval that a change consumes. It runs in
 * the transaction of the mutation, after its work and before the commit; it throws to refuse the whole mutation.
 */
export interface Hook {
  /** Owner of the tables that it uses; the frame switches to this role and back. */
  readonly role: DataRole;
  readonly run: (unit: Unit) => Promise<void>;
  /** Runs behind the last statement of the work, as the tenant, before the commit. */
  readonly conclude?: (unit: Unit) => Promise<void>;
}

/** An event of a mutation; `data` is any JSON value. */
interface UnitEvent extends Pick<OutboxColumns, 'type' | 'objectApiName'> {
  readonly recordId?: string;
  readonly data: unknown;
  /** The agent run that it is about, when the request was not made under it. */
  readonly aboutRunId?: string;
}

/** An audit entry of a mutation; `changes` is any JSON value. */
interface UnitEntry extends Pick<AuditEntry, 'code' | 'objectApiName' | 'recordId' | 'kind'> {
  readonly changes?: unknown;
  /** The agent run that it is about, when the request was not made under it. */
  readonly aboutRunId?: string;
}

export interface Unit {
  readonly request: RequestContext;
  readonly call: OperationCall;
  readonly key: IdempotencyKey;
  /** The work is rolled back: it must do nothing that a rollback does not undo, such as taking a number. */
  readonly checkOnly: boolean;
  readonly tx: Tx;
  /** Remaining cost of expressions and patterns for this mutation, shared with its parts. */
  readonly budget: RequestBudget;
  /** Quoted schema of the tenant. */
  readonly schema: string;
  /** Names this transaction in its events. */
  readonly transactionId: string;
  /** Changes that a dry run would make, noted by the work. */
  readonly effects: Effect[];
  /** How many records the mutation changes, before it commits; the work says so when it is not one. */
  readonly tally: { records: number };
  /** Dependencies of an approval besides the effects; noted by the work before the commit. */
  readonly facts: BasisFacts;
  /**
   * Runs the hooks, then sends the last statement of the transaction, which has one row, together with COMMIT. Where
   * the statement may do nothing, `wrote` tells from its row whether it did: if not, nothing of the hooks is committed
   * either.
   */
  commit<R>(statement: Statement, wrote?: (row: R) => boolean): Promise<R>;
  /**
   * This unit as one part of a larger mutation sees it: the part neither claims the key nor commits, and has a tally of
   * its own.
   */
  part(): Unit;
  /** Claims the key. A reply: the key was used before, and there is nothing to do. Part of `mutate`. */
  claim(): Promise<OperationReply | null>;
  /** Adds an entry to the audit trail of the tenant, written before the commit whatever role the work has. */
  audit(entry: UnitEntry): void;
  /** Adds an event, written before the commit whatever role the work has. */
  emit(event: UnitEvent): void;
  /** The statements that follow run as `role`: they see its tables and no others. */
  actAs(role: DataRole): void;
  /** Writes audit entries and events, stores the outcome under the key and commits. Part of `mutate`. */
  complete(reply: OperationReply): Promise<OperationReply>;
}

export interface UnitOptions {
  readonly request: RequestContext;
  readonly call: OperationCall;
  readonly key: IdempotencyKey;
  readonly hooks: readonly Hook[];
}

/** Sends the last statement of the work, and what ends the transaction. */
type Commit = Unit['commit'];

/** A unit that is a single statement: PostgreSQL makes a transaction of it, and needs no BEGIN. */
export const singleStatementUnit = (tx: Tx, options: UnitOptions): Unit =>
  unitOf(tx, options, (statement) => tx.one(statement));

/**
 * Runs `work` in a unit that is a transaction. BEGIN travels with the first statement, COMMIT with the last one, which
 * the work sends through `unit.commit`. Work that never sends it is rolled back, and so is a dry run, which checks
 * deferred constraints instead. `cautious`: another transaction got in the way of an earlier attempt.
 */
export async function inTransaction<T>(
  tx: Tx,
  options: UnitOptions,
  cautious: boolean,
  work: (unit: Unit) => Promise<T>,
): Promise<T> {
  const { checkOnly } = options.key;
  tx.gather();
  tx.begin();
  let ended = false;
  const unit = unitOf(tx, options, async <R>(statement: Statement, wrote?: (row: R) => boolean): Promise<R> => {
    for (const hook of options.hooks) {
      unit.actAs(hook.role);
      await hook.run(unit);
      unit.actAs('tenant');
    }
    tx.gather();
    const last = tx.one<R>(statement);
    // Changes of the hooks are committed with the work or not at all, and COMMIT cannot be undone.
    if (wrote && options.hooks.length > 0 && !wrote(await last)) return last;
    for (const { conclude } of options.hooks) {
      if (!conclude) continue;
      // Deferred triggers are part of what was approved.
      await last;
      await tx.control('SET CONSTRAINTS ALL IMMEDIATE');
      await conclude(unit);
    }
    const end = tx.control(checkOnly ? 'SET CONSTRAINTS ALL IMMEDIATE' : 'COMMIT');
    const row = await last;
    const command = await end;
    ended = !checkOnly;
    // PostgreSQL answers the COMMIT of a transaction in which a statement failed with ROLLBACK, and with no error.
    if (ended && command !== 'COMMIT') throw new Error('Nothing was committed: an earlier statement had failed.');
    return row;
  });
  try {
    // A statement locks its tables before it runs. Waiting for a deployment while holding them would be a deadlock.
    if (cautious) await tx.query(`SELECT FROM ${tx.schema}._state FOR SHARE`);
    return await work(unit);
  } catch (error) {
    if (isConnectionError(error)) ended = true; // the connection is gone, and the transaction with it
    throw error;
  } finally {
    if (!ended && !tx.isAbandoned) await tx.control('ROLLBACK');
  }
}

function unitOf(tx: Tx, { request, call, key }: UnitOptions, commit: Commit): Unit {
  const { schema } = tx;
  const entries: UnitEntry[] = [];
  const events: UnitEvent[] = [];
  const unit: Unit = {
    request,
    call,
    key,
    checkOnly: key.checkOnly,
    tx,
    budget: newRequestBudget(),
    schema,
    transactionId: uuidv7(),
    effects: [],
    tally: { records: 1 },
    facts: newFacts(),
    commit,
    part: () => ({
      ...unit,
      key: { ...key, part: true },
      tally: { records: 1 },
      commit: (statement) => tx.one(statement),
      claim: async () => null,
      complete: async (reply) => reply,
    }),
    claim: async () => {
      const sql = new Sql();
      const claimed = await tx.first(sql.statement(claimKeySql(schema, key, sql.for(key).of, '', null)));
      return claimed ? null : storedReply(tx, key);
    },
    audit: (entry) => {
      entries.push(entry);
    },
    emit: (event) => {
      events.push(event);
    },
    actAs: (role) => {
      const { tenantId } = request;
      tx.actAs(role === 'tenant' ? tenantRole(tenantId) : serviceRole(role.service, tenantId));
    },
    complete: async (reply) => {
      unit.actAs('tenant');
      const sent = [
        ...entries.map((entry) => tx.query(entryStatement(unit, entry))),
        ...events.map((event) => tx.query(eventStatement(unit, event))),
      ];
      const body = bodyText(reply);
      const { status = 200, headers = {} } = reply;
      const sql = new Sql();
      const outcome = {
        status: String(status),
        headers: sql.bind(JSON.stringify(headers), 'jsonb'),
        body: sql.bind(reply.kept ? JSON.stringify(reply.kept) : body, 'text'),
      };
      try {
        await commit(sql.statement(completeKeySql(schema, key, sql.for(key).of, outcome)));
      } catch (error) {
        await Promise.all(sent); // the first failure says why the others failed as well
        throw error;
      }
      return { status, headers, body: body === null ? null : Buffer.from(body) };
    },
  };
  return unit;
}

function bodyText({ body }: OperationReply): string | null {
  if (body === null) return null;
  return Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body);
}

const about = (request: RequestContext, aboutRunId: string | undefined): RequestContext =>
  aboutRunId === undefined ? request : { ...request, aboutRunId };

function entryStatement({ schema, request, call, key }: Unit, { changes, aboutRunId, ...entry }: UnitEntry): Statement {
  const sql = new Sql();
  const columns: AuditColumns = changes === undefined ? {} : { changes: sql.bind(JSON.stringify(changes), 'jsonb') };
  const { operationId } = call;
  return sql.statement(
    auditSql(
      schema,
      sql,
      new CallerSql(sql.for(about(request, aboutRunId))),
      { ...entry, operationId, outcome: 'committed', idempotencyKey: key.key },
      columns,
    ),
  );
}

function eventStatement({ schema, request }: Unit, { data, recordId, aboutRunId, ...event }: UnitEvent): Statement {
  const sql = new Sql();
  return sql.statement(
    outboxSql(schema, new CallerSql(sql.for(about(request, aboutRunId))), {
      ...event,
      recordId: sql.bind(recordId ?? null, 'uuid'),
      data: sql.bind(JSON.stringify(data), 'jsonb'),
    }),
  );
}

/**
 * Rows of a tenant's audit trail and outbox. Everything that is written to either goes through auditSql and outboxSql.
 * Source: docs/reference/audit.md.
 */
import type { RequestContext } from '../../lib/context.ts';
import { literal } from '../../lib/values/sql-text.ts';
import type { Bind, Placeholders } from '../database/sql.ts';
import { randomRest, timeOrderedIdSql } from '../database/time-ordered-id.ts';

/** Actor of a row. Work of the platform itself has no user, or no client. */
export interface Caller {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly agentRunId: string | null;
  /** See RequestContext. */
  readonly aboutRunId?: string;
  readonly channel: RequestContext['channel'];
  readonly requestId: string;
  readonly ip: string | null;
}

/** The agent run that a row names: the one that its request is about, or was made under. */
export const runOf = ({ aboutRunId, agentRunId }: Pick<Caller, 'aboutRunId' | 'agentRunId'>): string | null =>
  aboutRunId ?? agentRunId;

/** A caller whose values are bound to a statement when they are first used, for any number of rows that it writes. */
export class CallerSql {
  readonly #of: Placeholders<Caller>['of'];
  readonly #bound = new Map<keyof Caller, string>();

  constructor({ of }: Pick<Placeholders<Caller>, 'of'>) {
    this.#of = of;
  }

  get userId(): string {
    return this.#bind('userId', 'uuid');
  }
  get clientId(): string {
    return this.#bind('clientId', 'text');
  }
  get agentRunId(): string {
    return this.#bind('agentRunId', 'uuid', runOf);
  }
  get channel(): string {
    return this.#bind('channel', 'text');
  }
  get requestId(): string {
    return this.#bind('requestId', 'text');
  }
  get ip(): string {
    return this.#bind('ip', 'text');
  }

  #bind(name: keyof Caller, type: string, value = (caller: Caller): unknown => caller[name]): string {
    let placeholder = this.#bound.get(name);
    if (placeholder === undefined) this.#bound.set(name, (placeholder = this.#of(value, type)));
    return placeholder;
  }
}

/** Work that the platform does by itself. */
export const platformCaller = (
  channel: Caller['channel'],
  requestId: string,
  userId: string | null = null,
): Caller => ({
  userId,
  clientId: null,
  agentRunId: null,
  channel,
  requestId,
  ip: null,
});

export interface AuditEntry {
  readonly operationId: string;
  readonly outcome: 'committed' | 'denied' | 'failed';
  /** Why nothing was committed. */
  readonly code?: string | null;
  readonly idempotencyKey?: string | null;
  readonly objectApiName?: string | null;
  readonly recordId?: string | null;
  /** The change to the record. */
  readonly kind?: string | null;
}

/**
 * SQL of columns that differ from row to row, or that are computed; `object`, `recordId` and `idempotencyKey` replace
 * those of the entry.
 */
export interface AuditColumns {
  readonly auditId?: string;
  readonly idempotencyKey?: string;
  readonly object?: string;
  readonly recordId?: string;
  readonly recordVersion?: string;
  /** jsonb: `{field: {from, to}}`. */
  readonly changes?: string;
}

/** SQL of a constant of the platform. It is part of the text, which costs less than a value bound by every request. */
const constant = (text: string | null | undefined): string => (text ? literal(text) : 'NULL');

/** `INSERT INTO _audit … SELECT …`: one entry, or one for each row of the FROM clause that may follow. */
export function auditSql(
  schema: string,
  { bind }: { readonly bind: Bind },
  caller: CallerSql,
  entry: AuditEntry,
  columns: AuditColumns = {},
): string {
  const { operationId, outcome, code, objectApiName = null, kind } = entry;
  const {
    auditId = timeOrderedIdSql(bind(randomRest(), 'text')),
    recordId = bind(entry.recordId ?? null, 'uuid'),
    idempotencyKey = bind(entry.idempotencyKey ?? null, 'text'),
  } = columns;
  // A refused request may name any object, and any number of texts would not be prepared statements any more.
  const object = columns.object ?? bind(objectApiName, 'text');
  return `INSERT INTO ${schema}._audit (audit_id, user_id, client_id, agent_run_id, channel, request_id, ip,
      operation_id, outcome, code, idempotency_key, object, kind, record_id, record_version, changes)
    SELECT ${auditId}, ${caller.userId}, ${caller.clientId}, ${caller.agentRunId}, ${caller.channel},
      ${caller.requestId}, ${caller.ip}, ${constant(operationId)}, ${constant(outcome)}, ${constant(code)},
      ${idempotencyKey}, ${object}, ${constant(kind)}, ${recordId},
      ${columns.recordVersion ?? 'NULL'}, ${columns.changes ?? 'NULL'}`;
}

export interface OutboxColumns {
  readonly type: string;
  readonly objectApiName?: string;
  /** SQL. */
  readonly recordId?: string;
  /** SQL. */
  readonly recordVersion?: string;
  /** SQL of jsonb. */
  readonly data: string;
}

/** `INSERT INTO _outbox … SELECT …`: one event, or one for each row of the FROM clause that may follow. */
export function outboxSql(schema: string, caller: CallerSql, event: OutboxColumns): string {
  return `INSERT INTO ${schema}._outbox
      (type, object, record_id, record_version, user_id, client_id, agent_run_id, request_id, data)
    SELECT ${constant(event.type)}, ${constant(event.objectApiName)}, ${event.recordId ?? 'NULL'},
      ${event.recordVersion ?? 'NULL'}, ${caller.userId}, ${caller.clientId}, ${caller.agentRunId}, ${caller.requestId},
      ${event.data}`;
}

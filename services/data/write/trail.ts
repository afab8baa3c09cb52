/**
 * What every committed change leaves behind, in its own transaction: history of the record, audit of the mutation, the
 * event to be told. Source: docs/reference/records.md.
 */

import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import type { Sql } from '../../../mixins/database/sql.ts';
import type { Write } from './write.ts';

type ChangeKind = 'create' | 'update' | 'delete' | 'restore' | 'transition';

const EVENT_OF: Readonly<Record<ChangeKind, string>> = {
  create: 'data.record.created',
  update: 'data.record.updated',
  delete: 'data.record.deleted',
  restore: 'data.record.restored',
  transition: 'data.record.transitioned',
};

export interface Trail {
  readonly kind: ChangeKind;
  /** The rows of this relation are what changed; see trailSql. */
  readonly from: string;
  /** Records that the whole transaction changes. */
  readonly transactionSize: number;
  /** Keeps the names of several trails in one statement apart. */
  readonly suffix?: string;
  /** Which transition or action it was. */
  readonly transition?: Transition;
}

export interface Transition {
  readonly executionId: string;
  readonly key: string;
  readonly fromState: string | null;
  readonly toState: string | null;
  readonly comment: string | null;
}

/** Where history and audit keep the transition, beside the changed fields: no field has such a name. */
export const TRANSITION_ENTRY = '@transition';

/**
 * CTEs that write history, audit and event of records of `object`, one for each row of the relation `from`, which has the
 * columns record_id uuid, record_version integer, changes jsonb (`{field: {from, to}}`), position integer, change_id
 * uuid, audit_id uuid. A dry run leaves none.
 */
export function trailSql(
  { request, key, schema, call, transactionId, checkOnly }: Write,
  sql: Sql,
  object: ObjectMeta,
  { kind, from, transactionSize, suffix = '', transition }: Trail,
): string[] {
  if (checkOnly) return [];
  const user = sql.bind(request.userId, 'uuid');
  const client = sql.bind(request.clientId, 'text');
  const run = sql.bind(request.agentRunId, 'uuid');
  const requestId = sql.bind(request.requestId, 'text');
  const name = sql.bind(object.apiName, 'text');
  const changes = transition
    ? `changes || jsonb_build_object('${TRANSITION_ENTRY}', ${sql.bind(JSON.stringify(transition), 'jsonb')})`
    : 'changes';
  const told = transition && { key: transition.key, fromState: transition.fromState, toState: transition.toState };
  const parts = [
    `audit${suffix} AS (INSERT INTO ${schema}._audit (audit_id, user_id, client_id, agent_run_id, channel, operation_id, outcome, request_id, idempotency_key, object, record_id, kind, record_version, changes, ip)
      SELECT audit_id, ${user}, ${client}, ${run}, ${sql.bind(request.channel, 'text')}, ${literal(call.operationId)}, 'committed', ${requestId}, ${sql.bind(key.key, 'text')}, ${name}, record_id, ${literal(kind)}, record_version, ${changes}, ${sql.bind(request.ip, 'text')} FROM ${from})`,
  ];
  if (object.features.history)
    parts.push(`history${suffix} AS (INSERT INTO ${schema}._history (change_id, object, record_id, record_version, operation, user_id, client_id, agent_run_id, request_id, changes)
      SELECT change_id, ${name}, record_id, record_version, ${literal(kind)}, ${user}, ${client}, ${run}, ${requestId}, ${changes} FROM ${from})`);
  if (object.features.events)
    parts.push(`event${suffix} AS (INSERT INTO ${schema}._outbox (type, object, record_id, record_version, user_id, client_id, agent_run_id, request_id, data)
      SELECT ${literal(EVENT_OF[kind])}, ${name}, record_id, record_version, ${user}, ${client}, ${run}, ${requestId},
        jsonb_build_object('changes', changes, 'transactionId', ${sql.bind(transactionId, 'text')}, 'transactionIndex', position, 'transactionSize', ${sql.bind(transactionSize, 'integer')})${told ? ` || jsonb_build_object('transition', ${sql.bind(JSON.stringify(told), 'jsonb')})` : ''} FROM ${from})`);
  return parts;
}

/** SQL columns change_id and audit_id for sets of records: made by the database, ordered by time like the ones made here. */
export const randomTrailIds = ['change_id', 'audit_id']
  .map(
    (name) =>
      `(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text || clock_timestamp()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid AS ${name}`,
  )
  .join(', ');

/** The same columns for a single changed record. */
export const newTrailIds = (sql: Sql): string =>
  `${sql.bind(uuidv7(), 'uuid')} AS change_id, ${sql.bind(uuidv7(), 'uuid')} AS audit_id`;

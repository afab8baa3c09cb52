/**
 * Companions of every committed change, in its own transaction: history of the record, audit of the mutation, the
 * event about it. Source: docs/reference/records.md.
 */

import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { type Placeholders, within } from '../../../mixins/database/sql.ts';
import { timeOrderedIdSql } from '../../../mixins/database/time-ordered-id.ts';
import { auditSql, CallerSql, outboxSql } from '../../../mixins/mutation/audit.ts';
import { keyTextOf, newId, newRest, requestOf, transactionOf } from './write.sql.ts';
import type { Write } from './write.ts';

export type ChangeKind = 'create' | 'update' | 'delete' | 'restore' | 'transition';

const EVENT_OF: Readonly<Record<ChangeKind, string>> = {
  create: 'data.record.created',
  update: 'data.record.updated',
  delete: 'data.record.deleted',
  restore: 'data.record.restored',
  transition: 'data.record.transitioned',
};

interface Trail {
  readonly kind: ChangeKind;
  /** The rows of this relation are what changed; see trailSql. */
  readonly from: string;
  /** Records that the whole transaction changes. */
  readonly transactionSize: number;
  /** Keeps the names of several trails in one statement apart. */
  readonly suffix?: string;
  /** Name of the transition or action. */
  readonly transition?: Transition;
}

export interface Transition {
  readonly executionId: string;
  readonly key: string;
  readonly fromState: string | null;
  readonly toState: string | null;
  readonly comment: string | null;
}

/** Key of the transition among the changed fields in history and audit; no field has such a name. */
export const TRANSITION_ENTRY = '@transition';

/**
 * CTEs that write history, audit and event of records of `object`, one for each row of the relation `from`, which has
 * the columns record_id uuid, record_version integer, changes jsonb (`{field: {from, to}}`), position integer,
 * change_id uuid, audit_id uuid. A dry run leaves none,
 * except under a run, where the trail is the basis of an approval until it is rolled back.
 */
export function trailSql(write: Write, placeholders: Placeholders<Write>, object: ObjectMeta, trail: Trail): string[] {
  const { request, schema, checkOnly } = write.unit;
  if (checkOnly && request.agentRunId === null) return [];
  const { kind, from, suffix = '', transition } = trail;
  const { of, constant } = placeholders;
  const caller = new CallerSql(within(placeholders, requestOf));
  const changes = transition
    ? `changes || jsonb_build_object('${TRANSITION_ENTRY}', ${constant(JSON.stringify(transition), 'jsonb')})`
    : 'changes';
  const entry = {
    operationId: write.call.operationId,
    outcome: 'committed',
    kind,
  } as const;
  const ofRow = {
    auditId: 'audit_id',
    idempotencyKey: of(keyTextOf, 'text'),
    object: literal(object.apiName),
    recordId: 'record_id',
    recordVersion: 'record_version',
    changes,
  };
  const parts = [`audit${suffix} AS (${auditSql(schema, { bind: constant }, caller, entry, ofRow)} FROM ${from})`];
  if (object.features.history)
    parts.push(`history${suffix} AS (${historySql(schema, caller, object, kind, changes)} FROM ${from})`);
  if (object.features.events)
    parts.push(`event${suffix} AS (${eventSql(write, placeholders, caller, object, trail)} FROM ${from})`);
  return parts;
}

const historySql = (schema: string, caller: CallerSql, object: ObjectMeta, kind: ChangeKind, changes: string): string =>
  `INSERT INTO ${schema}._history
      (change_id, object, record_id, record_version, operation, user_id, client_id, agent_run_id, request_id, changes)
    SELECT change_id, ${literal(object.apiName)}, record_id, record_version, ${literal(kind)},
      ${caller.userId}, ${caller.clientId}, ${caller.agentRunId}, ${caller.requestId}, ${changes}`;

function eventSql(
  { unit }: Write,
  { of, constant }: Placeholders<Write>,
  caller: CallerSql,
  object: ObjectMeta,
  { kind, transactionSize, transition }: Trail,
): string {
  // The fields that changed are in the audit entry of the same record and version.
  const parts = `'transactionId', ${of(transactionOf, 'text')},
        'transactionIndex', position, 'transactionSize', ${constant(transactionSize, 'integer')}`;
  const reported = transition && {
    key: transition.key,
    fromState: transition.fromState,
    toState: transition.toState,
  };
  return outboxSql(unit.schema, caller, {
    type: EVENT_OF[kind],
    objectApiName: object.apiName,
    recordId: 'record_id',
    recordVersion: 'record_version',
    data: `jsonb_build_object(${parts}${reported ? `, 'transition', ${constant(JSON.stringify(reported), 'jsonb')}` : ''})`,
  });
}

/** SQL columns change_id and audit_id for sets of records. */
export const randomTrailIds = `${timeOrderedIdSql()} AS change_id, ${timeOrderedIdSql()} AS audit_id`;

/** The same columns for a single changed record, whose changes are in the order of its versions. */
export const newTrailIds = ({ of }: Pick<Placeholders<Write>, 'of'>): string =>
  `${of(newId, 'uuid')} AS change_id, ${timeOrderedIdSql(of(newRest, 'text'))} AS audit_id`;

/** What it takes to execute an operation oneself: pure. Those who decide about it must be able to. */
import { LIMITS } from '../../../config/limits.ts';
import { OPERATIONS } from '../../../contracts/operations.ts';
import type { RecordOperation } from '../../../lib/access/decide.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import type { Operation } from '../../../lib/operation.ts';
import type { ApprovalRow } from './approval.sql.ts';

const ROWS: ReadonlyMap<string, Operation> = new Map(OPERATIONS.map((row) => [row.operationId, row]));

/** System permission that the operation needs as a whole; null: none. */
export const permissionOf = ({ operationId }: Pick<ApprovalRow, 'operationId'>): Operation['permission'] | null =>
  ROWS.get(operationId)?.permission ?? null;

const RECORD_OPERATIONS: Readonly<Record<string, readonly RecordOperation[]>> = {
  'data.records.create': ['create'],
  'data.records.update': ['update'],
  'data.records.upsert': ['create', 'update'],
  'data.records.delete': ['delete'],
  // The record is in the recycle bin, where nobody reaches it by itself.
  'data.records.restore': ['delete'],
  'data.transitions.execute': ['transition'],
  'data.shares.create': ['share'],
  'data.shares.delete': ['share'],
};

/** What is done with a record, and with which; null: the operation is on no object. */
export function recordQuestionOf({
  operationId,
  pathParameters,
}: Pick<ApprovalRow, 'operationId' | 'pathParameters'>): {
  readonly objectApiName: string;
  readonly recordId: string | null;
  readonly operations: readonly RecordOperation[];
  readonly transitionKey: string | null;
} | null {
  const { objectApiName, id, transitionKey } = pathParameters;
  if (objectApiName === undefined) return null;
  return {
    objectApiName,
    recordId: operationId === 'data.records.restore' ? null : (id ?? null),
    operations: RECORD_OPERATIONS[operationId] ?? ['read'],
    transitionKey: transitionKey ?? null,
  };
}

/** Whether the properties of the body are fields of the object. */
export const bodyHasFields = ({ operationId }: Pick<ApprovalRow, 'operationId'>): boolean =>
  ['data.records.create', 'data.records.update', 'data.records.upsert'].includes(operationId);

/** Names of the fields that the request sets, also of those that do not exist; null: its body was not kept. */
export function fieldsSetBy(row: ApprovalRow): readonly string[] | null {
  if (!bodyHasFields(row)) return [];
  if (row.bodyOmitted) return null;
  const body = row.body === null ? null : parseJson(row.body, LIMITS.json_depth_max);
  const { externalIdField } = row.pathParameters;
  return [
    ...(typeof body === 'object' && body !== null ? Object.keys(body) : []),
    ...(externalIdField === undefined ? [] : [externalIdField]),
  ];
}

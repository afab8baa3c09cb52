/** What it takes to execute an operation oneself: pure. Those who decide about it must be able to. */
import { LIMITS } from '../../../config/limits.ts';
import type { AskedRecord } from '../../../contracts/data.ts';
import { OPERATIONS } from '../../../contracts/operations.ts';
import type { RecordOperation } from '../../../lib/access/decide.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import type { Operation } from '../../../lib/operation.ts';
import { isReference } from '../../../lib/schema/field-types/registry.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import type { ApprovalRow } from './approval.sql.ts';

const ROWS: ReadonlyMap<string, Operation> = new Map(OPERATIONS.map((row) => [row.operationId, row]));

/** The row of an operation; undefined: there is none. */
export const operationRow = (operationId: string): Operation | undefined => ROWS.get(operationId);

/** System permission that the operation needs as a whole; null: none. */
export const permissionOf = ({ operationId }: Pick<ApprovalRow, 'operationId'>): Operation['permission'] | null =>
  ROWS.get(operationId)?.permission ?? null;

/** Whether the operation asks people for a recent sign-in with two factors. */
export function needsStepUp({
  operationId,
  pathParameters,
}: Pick<ApprovalRow, 'operationId' | 'pathParameters'>): boolean {
  const stepUp = ROWS.get(operationId)?.stepUp ?? [];
  return stepUp === true || stepUp.includes(pathParameters['objectApiName'] ?? '');
}

/** Whether the body of the operation is not read before it reaches its service. */
export const hasRawBody = (operationId: string): boolean => ROWS.get(operationId)?.requestBody?.raw === true;

const RECORD_OPERATIONS: Readonly<Record<string, readonly RecordOperation[]>> = {
  'data.records.create': ['create'],
  'data.records.update': ['update'],
  'data.records.upsert': ['create', 'update'],
  'data.records.delete': ['delete'],
  'data.records.restore': ['delete'],
  'data.transitions.execute': ['transition'],
  'data.shares.create': ['share'],
  'data.shares.delete': ['share'],
};

/** What is done with a record, and with which; null: the operation is on no record. */
export function recordQuestionOf({
  operationId,
  pathParameters,
  userId,
}: Pick<ApprovalRow, 'operationId' | 'pathParameters' | 'userId'>): {
  readonly objectApiName: string;
  readonly record: AskedRecord | null;
  readonly operations: readonly RecordOperation[];
  readonly transitionKey: string | null;
} | null {
  const { objectApiName, id, externalIdField, value, transitionKey = null } = pathParameters;
  const operations = RECORD_OPERATIONS[operationId];
  if (objectApiName === undefined || !operations) return null;
  const question = { objectApiName, operations, transitionKey };
  if (externalIdField !== undefined && value !== undefined)
    return { ...question, record: { externalIdField, value, foundBy: userId } };
  if (id === undefined) return { ...question, record: null };
  return { ...question, record: operationId === 'data.records.restore' ? { deletedId: id } : { id } };
}

/**
 * Takes no right of those who decide: it ends nothing but access of the user in whose name the agent acts, or a
 * deployment, for which the permission of the operation is all that it takes.
 */
export const takesNoRight = ({ operationId }: Pick<ApprovalRow, 'operationId'>): boolean =>
  operationId === 'me.connections.revoke' || operationId === 'metadata.deployments.cancel';

export const isDeployment = ({ operationId }: Pick<ApprovalRow, 'operationId'>): boolean =>
  operationId === 'metadata.deployments.create';

export const isOnDashboard = ({ operationId }: Pick<ApprovalRow, 'operationId'>): boolean =>
  operationId.startsWith('analytics.dashboards.');

/** Whether the properties of the body are fields of the object. */
export const bodyHasFields = ({ operationId }: Pick<ApprovalRow, 'operationId'>): boolean =>
  ['data.records.create', 'data.records.update', 'data.records.upsert'].includes(operationId);

/** Names of the fields that the request sets, also of those that do not exist; null: its body was not kept. */
export function fieldsSetBy(row: ApprovalRow): readonly string[] | null {
  if (!bodyHasFields(row)) return [];
  if (row.bodyOmitted) return null;
  const { externalIdField } = row.pathParameters;
  return [...Object.keys(bodyOf(row)), ...(externalIdField === undefined ? [] : [externalIdField])];
}

/** Values of fields as the request sets them. */
export const valuesSetBy = (row: ApprovalRow): Readonly<Record<string, unknown>> =>
  bodyHasFields(row) ? { ...bodyOf(row) } : {};

/** What a transition is executed with; empty for other operations. */
export function inputOf(row: ApprovalRow): Readonly<Record<string, unknown>> {
  if (row.operationId !== 'data.transitions.execute') return {};
  const input = Object.entries(bodyOf(row)).find(([name]) => name === 'input')?.[1];
  return isObject(input) ? input : {};
}

/** Values of the fields that refer to other records, as the request sets them. */
export function referencesSetBy(row: ApprovalRow, { fields }: ObjectMeta): Readonly<Record<string, unknown>> {
  const isSet = ([name]: readonly [string, unknown]): boolean => {
    const field = ownEntry(fields, name);
    return field !== undefined && isReference(field);
  };
  return Object.fromEntries(Object.entries(valuesSetBy(row)).filter(isSet));
}

export function bodyOf({ body }: ApprovalRow): object {
  const content = body === null ? null : parseJson(body, LIMITS.json_depth_max);
  return typeof content === 'object' && content !== null ? content : {};
}

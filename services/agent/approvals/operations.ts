/** Requirements for executing an operation: pure. Approvers must meet them. */

import type { AskedRecord } from '../../../contracts/data.ts';
import { operationRow } from '../../../contracts/operations.ts';
import type { RecordOperation } from '../../../lib/access/decide.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { type Operation, recordChangeOf } from '../../../lib/operation.ts';
import { isReference } from '../../../lib/schema/field-types/registry.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import type { ApprovalRow } from './approval.sql.ts';

/** The row of the operation, or of the one on records that the work carries out to which it belongs. */
export const carriedRow = ({
  operationId,
  pathParameters,
}: Pick<ApprovalRow, 'operationId' | 'pathParameters'>): Operation | undefined =>
  operationRow(pathParameters['carriesOut'] ?? operationId);

/** System permission that the operation needs as a whole; null: none. */
export const permissionOf = ({ operationId }: Pick<ApprovalRow, 'operationId'>): Operation['permission'] | null =>
  operationRow(operationId)?.permission ?? null;

/** True when the operation requires a recent sign-in with two factors. */
export function needsStepUp({
  operationId,
  pathParameters,
}: Pick<ApprovalRow, 'operationId' | 'pathParameters'>): boolean {
  const stepUp = operationRow(operationId)?.stepUp ?? [];
  return stepUp === true || stepUp.includes(pathParameters['objectApiName'] ?? '');
}

/** True when the operation's body is parsed by its service only. */
export const hasRawBody = (operationId: string): boolean => operationRow(operationId)?.requestBody?.kind === 'raw';

/** The change and its record; null: the operation is on no record. */
export function recordQuestionOf(row: Pick<ApprovalRow, 'operationId' | 'pathParameters' | 'userId'>): {
  readonly objectApiName: string;
  readonly record: AskedRecord | null;
  readonly operations: readonly RecordOperation[];
  readonly transitionKey: string | null;
} | null {
  const { pathParameters, userId } = row;
  const { objectApiName, id, externalIdField, value, transitionKey = null } = pathParameters;
  const change = recordChangeOf(carriedRow(row));
  if (objectApiName === undefined || !change) return null;
  const question = { objectApiName, operations: change.needs, transitionKey };
  if (externalIdField !== undefined && value !== undefined)
    return { ...question, record: { externalIdField, value, foundBy: userId } };
  if (id === undefined) return { ...question, record: null };
  return { ...question, record: change.deleted ? { deletedId: id } : { id } };
}

/** True when the operation executes transitions, with the `input` of its body. */
export const executesTransitions = (operationId: string): boolean =>
  recordChangeOf(operationRow(operationId))?.needs.includes('transition') === true;

/** True when the properties of the body are fields of the object. */
export const bodyHasFields = ({ operationId }: Pick<ApprovalRow, 'operationId'>): boolean =>
  recordChangeOf(operationRow(operationId))?.setsFields === true;

/** Names of the fields that the request sets, also of those that do not exist; null: its body was not kept. */
export function fieldsSetBy(row: ApprovalRow): readonly string[] | null {
  // The rows of files may set any.
  if (row.pathParameters['carriesOut'] !== undefined && recordChangeOf(carriedRow(row))?.setsFields) return null;
  if (!bodyHasFields(row)) return [];
  if (row.bodyOmitted) return null;
  const { externalIdField } = row.pathParameters;
  return [...Object.keys(bodyOf(row)), ...(externalIdField === undefined ? [] : [externalIdField])];
}

/** Values of fields as the request sets them. */
export const valuesSetBy = (row: ApprovalRow): Readonly<Record<string, unknown>> =>
  bodyHasFields(row) ? { ...bodyOf(row) } : {};

/** Parameters of a transition; empty for other operations. */
export function inputOf(row: ApprovalRow): Readonly<Record<string, unknown>> {
  if (!executesTransitions(row.operationId)) return {};
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

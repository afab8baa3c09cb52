/**
 * Checks whether a user could execute operations on a record themselves, for services that let people decide about what is
 * asked for in the name of others: by the rules of the execution, without scopes and without the state of the record.
 */
import type { DataActions } from '../../../contracts/data.ts';
import { decideSharing, NEEDS, permissionRefusal } from '../../../lib/access/decide.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { isReference } from '../../../lib/schema/field-types/registry.ts';
import { fieldOf, ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { recordNotFound, visibleObject } from '../object-access.ts';
import { checkedRow } from '../read/versions.ts';
import type { Tenants } from '../tenants.ts';
import { permissionsMissing, visibleTransitions } from '../transitions/transitions-and-actions.ts';
import type { View } from '../view.ts';
import { readReference } from '../write/body.ts';
import { requireReach } from '../write/sharing.ts';
import { standardObject } from '../write/standard-objects.ts';
import { idUnderKey } from '../write/upsert.ts';
import {
  type DeletedRow,
  deletedStatement,
  type ExplainedRow,
  explainedRecordStatement,
  type ReferencedRow,
  referencedStatement,
} from './record.sql.ts';

type Check = DataActions['data.access.check'];

export async function checkAccess(
  database: Database,
  tenants: Tenants,
  question: Check['params'],
): Promise<Check['result']> {
  const { tenantId, userId, objectApiName } = question;
  const named = await nameById(database, tenants, question);
  return tenants.withView(tenantId, userId, async (view) => {
    const { object } = visibleObject(view, objectApiName);
    const answer = async (readsRecord: boolean, refusal: PlatformError | null): Promise<Check['result']> => {
      const refused = refusal ?? (await referenceRefusal(database, view, question));
      return { readsRecord, refusal: refused?.toWire() ?? null };
    };
    const standard = standardObject(object);
    const contentRefusal = (id: string | null, stored: Readonly<Record<string, unknown>>): PlatformError | null =>
      standard?.changeRefusal(view.access, { id, stored, given: new Map(Object.entries(question.values)) }) ?? null;
    if (named === null) return answer(true, refusalOf(view, question, null) ?? contentRefusal(null, {}));
    const id = named.id.toLowerCase();
    if (!isUuid(id)) return answer(false, recordNotFound());
    if (named.deleted) {
      const deleted = deletedStatement(view, object, id);
      const { reached } = checkedRow(view, await database.tenant(tenantId, (tx) => tx.all<DeletedRow>(deleted)));
      if (reached === null) return answer(false, recordNotFound());
      return answer(true, refusalOf(view, question, null) ?? reachRefusal(reached));
    }
    const deciding = (standard?.fieldsOfChange ?? []).map((name) => requireField(object, name));
    const statement = explainedRecordStatement(view, object, id, deciding);
    const row = checkedRow(view, await database.tenant(tenantId, (tx) => tx.all<ExplainedRow>(statement)));
    if (row.record === null) return answer(false, recordNotFound());
    return answer(true, refusalOf(view, question, row.record) ?? contentRefusal(id, row.stored));
  });
}

/** The id of the record in question; null: none is named, or no record has the external id. */
async function nameById(
  database: Database,
  tenants: Tenants,
  { tenantId, objectApiName, record }: Check['params'],
): Promise<{ readonly id: string; readonly deleted: boolean } | null> {
  if (record === null) return null;
  if ('id' in record) return { id: record.id, deleted: false };
  if ('deletedId' in record) return { id: record.deletedId, deleted: true };
  const { foundBy, externalIdField, value } = record;
  try {
    const id = await tenants.withView(tenantId, foundBy, (view) =>
      idUnderKey(database, view, { objectApiName, externalIdField, value }),
    );
    return id === null ? null : { id, deleted: false };
  } catch (error) {
    // Records that they cannot find are not mentioned.
    if (error instanceof PlatformError && error.status < 500) return { id: '', deleted: false };
    throw error;
  }
}

/** Why a deleted record cannot be brought back, by the rule of the restore itself. */
function reachRefusal(reached: NonNullable<DeletedRow['reached']>): PlatformError | null {
  try {
    requireReach(reached, 'delete');
    return null;
  } catch (error) {
    if (error instanceof PlatformError) return error;
    throw error;
  }
}

/**
 * 404 when a field names a record that the user cannot read, or none: alike. What refers to nothing is no reference,
 * and of a field that the user cannot read nothing is said.
 */
async function referenceRefusal(
  database: Database,
  view: View,
  { objectApiName, references }: Check['params'],
): Promise<PlatformError | null> {
  const { object, fields } = visibleObject(view, objectApiName);
  const given = Object.entries(references).flatMap(([name, value]) => {
    const field = ownEntry(fields, name)?.read && value !== null ? fieldOf(object, name) : undefined;
    return field && isReference(field) ? [{ field, read: readReference(view, field, value, '') }] : [];
  });
  if (given.length === 0) return null;
  const named = given.flatMap(({ read }) => ('code' in read ? [] : [read]));
  const statement = referencedStatement(view, named);
  const row = checkedRow(view, await database.tenant(view.tenantId, (tx) => tx.all<ReferencedRow>(statement)));
  const seen = new Set(named.flatMap(({ field }, i) => (row.seen[i] ? [field] : [])));
  const unseen = given.flatMap(({ field }) => (seen.has(field) ? [] : [field.apiName]));
  if (unseen.length === 0) return null;
  return new PlatformError('RECORD_NOT_FOUND', 'The request refers to records that you cannot read.', {
    errors: unseen.map((field) =>
      violation('', 'REFERENCE_NOT_FOUND', `${field} refers to no record you can see.`, { field }),
    ),
  });
}

/** Why the user could not execute the operations; null: they could. Without a record only the object is asked about. */
function refusalOf(
  view: View,
  { objectApiName, operations, transitionKey }: Check['params'],
  record: ExplainedRow['record'],
): PlatformError | null {
  for (const operation of operations) {
    const permission = permissionRefusal(view.access, objectApiName, NEEDS[operation].permission);
    if (permission) return permission;
    if (record === null || operation === 'create') continue;
    const decision = decideSharing(view.access, objectApiName, operation, record);
    if (!decision.allowed) return notReached();
  }
  return transitionKey === null ? null : transitionRefusal(view, objectApiName, transitionKey);
}

const notReached = (): PlatformError =>
  new PlatformError('RECORD_ACCESS_DENIED', 'You can read the record, but sharing does not let you do this with it.', {
    details: { layer: 'sharing' },
  });

function transitionRefusal(view: View, objectApiName: string, key: string): PlatformError | null {
  const transition = visibleTransitions(visibleObject(view, objectApiName)).find(({ meta }) => meta.key === key);
  if (!transition)
    return new PlatformError('TRANSITION_NOT_ALLOWED', `There is no transition or action ${key} for you.`);
  return permissionsMissing(transition, view)[0] ?? null;
}

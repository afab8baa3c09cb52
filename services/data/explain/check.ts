/**
 * Checks whether a user could execute operations on a record themselves, for services that let people decide about what is
 * asked for in the name of others: by the rules of the execution, without scopes and without the state of the record.
 */
import type { DataActions } from '../../../contracts/data.ts';
import { decideSharing, NEEDS, permissionRefusal } from '../../../lib/access/decide.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { newRequestBudget } from '../../../lib/expression/evaluate.ts';
import { isReference } from '../../../lib/schema/field-types/registry.ts';
import { fieldOf, ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { recordNotFound, visibleObject } from '../object-access.ts';
import { checkedRow } from '../read/versions.ts';
import type { Tenants } from '../tenants.ts';
import { compiledEffects, valuesOf, withInput } from '../transitions/effects.ts';
import {
  permissionsMissing,
  storedFacts,
  type TransitionOrAction,
  visibleTransitions,
} from '../transitions/transitions-and-actions.ts';
import type { View } from '../view.ts';
import { readReference } from '../write/body.ts';
import { parentDenied, requireReach } from '../write/sharing.ts';
import { standardObject } from '../write/standard-objects.ts';
import { idUnderKey } from '../write/upsert.ts';
import {
  type DeletedRow,
  deletedStatement,
  type ExplainedRow,
  explainedRecordStatement,
  type GivenReferences,
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
    const access = visibleObject(view, objectApiName);
    const { object } = access;
    const transition = visibleTransitions(access).find(({ meta }) => meta.key === question.transitionKey) ?? null;
    const answer = async (
      readsRecord: boolean,
      refusal: PlatformError | null,
      record: FoundRecord | null = null,
    ): Promise<Check['result']> => {
      const refused =
        refusal ?? (await referenceRefusal(database, view, referencesOf(view, question, transition, record)));
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
    const read = transition ? [...deciding, ...compiledEffects(transition).reads] : deciding;
    const statement = explainedRecordStatement(view, object, id, [...new Set(read)]);
    const row = checkedRow(view, await database.tenant(tenantId, (tx) => tx.all<ExplainedRow>(statement)));
    if (row.record === null) return answer(false, recordNotFound());
    return answer(true, refusalOf(view, question, row.record) ?? contentRefusal(id, row.stored), {
      id,
      stored: row.stored,
    });
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

interface FoundRecord {
  readonly id: string;
  readonly stored: Readonly<Record<string, unknown>>;
}

/** The references that the request sets, in its body or by the effects of its transition. */
function referencesOf(
  view: View,
  { objectApiName, references, input = {} }: Check['params'],
  transition: TransitionOrAction | null,
  record: FoundRecord | null,
): GivenReferences[] {
  const { object, fields } = visibleObject(view, objectApiName);
  const id = record?.id ?? null;
  if (!transition || !record) {
    // Of a field that the user cannot read nothing is said.
    const shown = Object.entries(references).filter(([name]) => ownEntry(fields, name)?.read);
    return [{ object, id, given: givenReferences(view, object, Object.fromEntries(shown)) }];
  }
  const effects = compiledEffects(transition);
  // Such an input has no effects.
  if (effects.input && effects.input(input).length > 0) return [];
  const facts = withInput(storedFacts(view, object, record.stored, newRequestBudget()), effects, input);
  const created = effects.creates.map((effect) => ({
    object: visibleObject(view, effect.objectApiName).object,
    id: null,
    fields: effect.fields,
  }));
  return [{ object, id, fields: effects.updates }, ...created].map(({ fields: set, ...on }) => ({
    ...on,
    given: givenReferences(view, on.object, valuesOf(set, facts, [])),
  }));
}

/** Null and unresolved values are no references. */
function givenReferences(
  view: View,
  object: ObjectMeta,
  values: Readonly<Record<string, unknown>>,
): GivenReferences['given'] {
  return Object.entries(values).flatMap(([name, value]) => {
    const field = value === null ? undefined : fieldOf(object, name);
    if (!field || !isReference(field)) return [];
    const read = readReference(view, field, value, '');
    return [{ field, named: 'code' in read ? null : read }];
  });
}

/**
 * 404 when a field names a record that the user cannot read, or none: alike. 403 when it names a parent that controls the
 * record and that the user may not change.
 */
async function referenceRefusal(
  database: Database,
  view: View,
  references: readonly GivenReferences[],
): Promise<PlatformError | null> {
  if (references.every(({ given }) => given.length === 0)) return null;
  const statement = referencedStatement(view, references);
  const row = checkedRow(view, await database.tenant(view.tenantId, (tx) => tx.all<ReferencedRow>(statement)));
  const set = references.flatMap(({ object, given }) => given.map(({ field }) => ({ object, field: field.apiName })));
  const unseen = set.filter((_, at) => !row.seen[at]);
  if (unseen.length === 0) return row.misplaced ? parentDenied() : null;
  return new PlatformError('RECORD_NOT_FOUND', 'The request refers to records that you cannot read.', {
    errors: unseen
      .filter(({ object, field }) => ownEntry(visibleObject(view, object.apiName).fields, field)?.read)
      .map(({ field }) => violation('', 'REFERENCE_NOT_FOUND', `${field} refers to no record you can see.`, { field })),
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

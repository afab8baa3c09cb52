/**
 * Validation rules: the record as it would be stored is held to every active rule of its object.
 * Source: docs/reference/records.md#validation-rules.
 */

import { type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { checkExpression } from '../../../lib/expression/check.ts';
import { evaluate, type Facts, isSameValue } from '../../../lib/expression/evaluate.ts';
import { storedFieldsOf, withFormulas } from '../../../lib/expression/formulas.ts';
import type { Expression, Value } from '../../../lib/expression/types.ts';
import { schemaOfObject, valueOfField } from '../../../lib/expression/values.ts';
import { valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import { ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import { emptyRollup } from '../../../lib/schema/rollups.ts';
import type { FieldMeta, ObjectMeta, ValidationRuleMeta } from '../../../lib/schema/snapshot.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { callerFacts, failureOf } from '../evaluation.ts';
import { assertFresh } from '../tenants.ts';
import { VERSION_COLUMNS, type Versions } from '../view.ts';
import { lookupSql } from './references.ts';
import { pointerTo } from './violations.ts';
import type { Write } from './write.ts';

interface Rule extends ValidationRuleMeta {
  readonly expression: Expression;
  /** Stored fields that it depends on. */
  readonly reads: ReadonlySet<string>;
}

/** The active rules of an object, ready to run. */
const rulesOf = memoize((object: ObjectMeta): readonly Rule[] => {
  const schema = schemaOfObject(object);
  return object.validationRules
    .filter((rule) => rule.active)
    .map((rule) => {
      const expression = checkExpression(rule.condition, schema, ['boolean']);
      return { ...rule, expression, reads: new Set(storedFieldsOf(object, expression)) };
    });
});

export const hasRules = (object: ObjectMeta): boolean => rulesOf(object).length > 0;

/** Stored fields that the rules of an object depend on; none when it has no active rules. */
export const ruleFields = memoize((object: ObjectMeta): readonly FieldMeta[] => {
  const names = new Set(rulesOf(object).flatMap((rule) => [...rule.reads]));
  return [...names].map((name) => requireField(object, name));
});

/** Step of create and update: adds a violation for each rule that refuses the record. */
export async function checkRules(write: Write): Promise<void> {
  const rules = rulesOf(write.object);
  if (rules.length === 0) return;
  const unreadable = invalidFields(write.invalid);
  const runnable = rules.filter((rule) => rule.reads.isDisjointFrom(unreadable));
  if (runnable.length === 0) return;
  const facts = factsOf(write, await referredIds(write));
  for (const rule of runnable) {
    const found = apply(write, rule, facts);
    if (found) write.invalid.push(found);
  }
}

/**
 * Fields whose new values are no values: what a rule would say about them means nothing. A field that does not exist
 * for the caller is not among them, or its rules would tell that it does exist.
 */
function invalidFields(violations: readonly Violation[]): ReadonlySet<string> {
  return new Set(violations.flatMap(({ code, field }) => (field !== null && code !== 'FIELD_UNKNOWN' ? [field] : [])));
}

function apply({ object, access }: Write, rule: Rule, facts: Facts): Violation | null {
  const ruleApiName = `${object.apiName}.${rule.apiName}`;
  // A field the caller cannot read is not named.
  const field = rule.errorField !== null && ownEntry(access.fields, rule.errorField)?.read ? rule.errorField : null;
  const refuse = (message: string, params: Record<string, unknown> = {}): Violation =>
    violation(field === null ? '' : pointerTo(field), 'VALIDATION_RULE', message, { field, ruleApiName, params });
  try {
    return evaluate(rule.expression, facts) === true ? refuse(rule.message) : null;
  } catch (error) {
    // A rule that cannot be evaluated refuses the write.
    const { message, reason } = failureOf(error, 'The validation rules could not be evaluated in time.');
    return refuse(`The rule ${ruleApiName} cannot be evaluated: ${message}.`, { reason });
  }
}

/** Values of the rules' variables in this write. */
function factsOf(write: Write, referred: ReadonlyMap<string, unknown>): Facts {
  const { object, view, given, unit } = write;
  const { request } = unit;
  const isCreate = write.recordVersion === 0;
  const now = platformTime();
  const values = new Map<string, unknown>(given.map((item) => [item.field.apiName, item.value]));
  for (const [name, id] of referred) values.set(name, id);
  const kept: Record<string, unknown> = {
    updatedAt: new Date(now).toISOString(),
    updatedById: request.userId,
    recordVersion: write.recordVersion + 1,
  };
  if (isCreate) {
    Object.assign(kept, { id: write.id, createdAt: kept['updatedAt'], createdById: request.userId });
    if (!values.has('ownerId')) kept['ownerId'] = request.userId;
    for (const field of ruleFields(object)) if (field.rollup && emptyRollup(field) === '0') kept[field.apiName] = 0;
  }
  for (const [name, value] of Object.entries(kept)) values.set(name, value);
  const stored = (name: string): unknown => ownEntry(write.stored, name) ?? null;
  const changed = new Set(write.changed.map((item) => item.field.apiName));
  const toValue = (name: string, raw: unknown): Value => valueOfField(valueTypeName(requireField(object, name)), raw);
  const caller = callerFacts(view, now, unit.budget);
  const record = withFormulas(
    object,
    (name) => toValue(name, values.has(name) ? values.get(name) : stored(name)),
    caller,
  );
  const old = withFormulas(object, (name) => toValue(name, stored(name)), caller);
  return {
    record,
    old: isCreate ? null : old,
    isChanged: (name) =>
      requireField(object, name).formula ? !isSameValue(record(name), old(name)) : changed.has(name),
    ...caller,
  };
}

/**
 * Ids of the records that a create refers to by an external id, when a rule reads such a field: the statement that
 * looks them up otherwise is the one that stores the record.
 */
async function referredIds(write: Write): Promise<ReadonlyMap<string, unknown>> {
  const read = new Set(ruleFields(write.object).map((field) => field.apiName));
  const open = write.given.filter((item) => item.lookup && item.value === null && read.has(item.field.apiName));
  if (open.length === 0) return new Map();
  const { view, unit } = write;
  const sql = new Sql();
  const row = await unit.tx.one<Versions & { ids: (string | null)[] }>(
    sql.statement(`SELECT ${VERSION_COLUMNS},
        ARRAY[${open.map((item) => lookupSql(view, unit.schema, sql.for(item), item)).join(', ')}]::uuid[] AS ids
      FROM ${unit.schema}._state state`),
  );
  assertFresh(view, row.metadataVersion, row.accessVersion);
  return new Map(open.map((item, index) => [item.field.apiName, row.ids[index]]));
}

/**
 * From the body of a create or update to typed values: which fields exist for this user, which may be written, what
 * the values mean. Pure. Collects the violations that an answer shows; a field the user cannot read is answered like
 * one that is not there.
 */

import type { ObjectAccess } from '../../../lib/access/types.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { VIOLATIONS_MAX } from '../../../lib/errors/violation-list.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { isBlank } from '../../../lib/schema/field-types/blank.ts';
import { externalReference } from '../../../lib/schema/field-types/reference-family.ts';
import { isReference, typeOf } from '../../../lib/schema/field-types/registry.ts';
import { fieldOf, objectOf, ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import { isWritable } from '../../../lib/schema/record-types.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import type { PatternBudget } from '../../../lib/values/pattern.ts';
import { LongWork } from '../../../mixins/long-work.ts';
import type { View } from '../view.ts';
import { typeGiven, typeTakes, withDefaultType } from './record-types.ts';
import { pointerTo, unseenValue } from './violations.ts';
import type { FieldValue, Lookup } from './write.ts';

interface Body {
  readonly given: readonly FieldValue[];
  /** 422: collected in VALIDATION_FAILED. */
  readonly invalid: readonly Violation[];
  /** 403: readable fields this user may not edit. */
  readonly denied: readonly Violation[];
}

const required = (field: FieldMeta): Violation =>
  violation(pointerTo(field.apiName), 'FIELD_REQUIRED', `${field.apiName} is required.`, { field: field.apiName });

const unknown = (name: string): Violation =>
  violation(pointerTo(name), 'FIELD_UNKNOWN', 'There is no such field for this connection.', {
    field: name.length <= 80 ? name : null,
  });

/** A body must be one JSON object; anything else is 400. */
export function bodyObject(body: unknown): Record<string, unknown> {
  if (body === undefined || body === null)
    throw new PlatformError('BODY_REQUIRED', 'The record must be sent as a JSON object.');
  if (!isObject(body))
    throw new PlatformError('REQUEST_MALFORMED', 'The body must be a JSON object keyed by field apiName.');
  return body;
}

/** Reads what a body says, in pieces when that takes long; `access` is the user's access to the object. */
export async function readBody(
  view: View,
  object: ObjectMeta,
  access: ObjectAccess,
  body: Record<string, unknown>,
  how: 'create' | 'update',
  budget: PatternBudget,
): Promise<Body> {
  const work = new LongWork();
  const given: FieldValue[] = [];
  const invalid: Violation[] = [];
  const denied: Violation[] = [];
  for (const name of Object.keys(body)) {
    if (work.isLong) await work.turn();
    const field = ownEntry(access.fields, name)?.read ? fieldOf(object, name) : undefined;
    if (!field) {
      // One more than an answer shows, so that it says that there are more.
      if (invalid.length <= VIOLATIONS_MAX) invalid.push(unknown(name));
      continue;
    }
    const pointer = pointerTo(name);
    if (!isWritable(object, field)) {
      invalid.push(violation(pointer, 'FIELD_READ_ONLY', `${name} is kept by the platform.`, { field: name }));
      continue;
    }
    if (how === 'create' ? isOtherThanInitialState(object, field, body[name]) : isChangedByTransitions(object, field)) {
      invalid.push(violation(pointer, 'FIELD_READ_ONLY', `${name} is changed by transitions.`, { field: name }));
      continue;
    }
    if (!access.fields[name]?.edit) {
      denied.push(violation(pointer, 'FIELD_PERMISSION_DENIED', `You may not edit ${name}.`, { field: name }));
      continue;
    }
    const result = readValue(view, field, body[name], pointer, budget);
    if ('code' in result) invalid.push(result);
    else given.push(result);
  }
  return { given, invalid, denied };
}

/** A new record can only be created in the initial state. */
const isOtherThanInitialState = ({ stateModel }: ObjectMeta, field: FieldMeta, value: unknown): boolean =>
  stateModel?.field === field.apiName && value !== stateModel.initial;

/** The state of a record, where only transitions change it. */
export const isChangedByTransitions = ({ stateModel }: ObjectMeta, field: FieldMeta): boolean =>
  stateModel?.field === field.apiName && !stateModel.allowDirectEdit;

/** One value of a body, or the first violation in it. */
export function readValue(
  view: View,
  field: FieldMeta,
  value: unknown,
  pointer: string,
  budget: PatternBudget,
): FieldValue | Violation {
  if (value === null || value === undefined) {
    if (field.required || field.apiName === 'ownerId') return required(field);
    return { field, value: null, lookup: null };
  }
  if (isReference(field)) return readReference(view, field, value, pointer);
  const parsed = typeOf(field).parseInput(value, field, pointer, budget);
  if (!parsed.ok) return parsed.violation;
  if (field.required && isBlank(field, parsed.value)) return required(field);
  return { field, value: parsed.value, lookup: null };
}

/** An external id need not be unique, and a reference names one record. */
export const mayBeSeveral = (by: FieldMeta): boolean => by.externalId && !by.unique;

export function referenceNotFound({ field, lookup }: FieldValue): Violation {
  const several = lookup?.targets.some(({ by }) => mayBeSeveral(by)) ? ', or to more than one' : '';
  const message = `${field.apiName} refers to no record you can see${several}.`;
  return violation(pointerTo(field.apiName), 'REFERENCE_NOT_FOUND', message, { field: field.apiName });
}

/** The record that a value names by id or external id, to be looked up; or what is wrong with its form. */
export function readReference(view: View, field: FieldMeta, value: unknown, pointer: string): FieldValue | Violation {
  const readable = field.referenceTo.flatMap((apiName) => {
    const object = ownEntry(view.access.objects, apiName)?.permission.read
      ? objectOf(view.snapshot, apiName)
      : undefined;
    return object ? [object] : [];
  });
  const params = { referenceTo: readable.map((object) => object.apiName) };
  const external = externalReference(value);
  if (external) {
    const targets: Lookup['targets'][number][] = [];
    for (const object of readable) {
      const by = ownEntry(view.access.objects[object.apiName]?.fields ?? {}, external.field)?.read
        ? fieldOf(object, external.field)
        : undefined;
      if (!by?.externalId) continue;
      const parsed = typeOf(by).parseFilter(external.value, by, `${pointer}${pointerTo(external.field)}`);
      if (!parsed.ok) return { ...parsed.violation, field: field.apiName };
      targets.push({ object, by, value: parsed.value });
    }
    if (targets.length === 0)
      return violation(
        pointer,
        'REFERENCE_TYPE_INVALID',
        `${field.apiName} takes an id, or {externalIdField: value} with one external id field of the record referred to.`,
        { field: field.apiName, params },
      );
    return { field, value: null, lookup: { targets } };
  }
  if (typeof value !== 'string')
    return violation(
      pointer,
      'REFERENCE_TYPE_INVALID',
      `${field.apiName} takes an id, or {externalIdField: value} with exactly one field.`,
      { field: field.apiName, params },
    );
  const parsed = typeOf(field).parseInput(value, field, pointer);
  if (!parsed.ok) return parsed.violation;
  return {
    field,
    value: parsed.value,
    lookup: { targets: readable.map((object) => ({ object, by: requireField(object, 'id'), value: parsed.value })) },
  };
}

/** Values that a create gets without being asked, by field: what describe calls `defaultedOnCreate`. */
export function defaultOf(field: FieldMeta): unknown {
  if (field.defaultValue !== null && field.defaultValue !== undefined) return field.defaultValue;
  const values = field.picklistValues?.filter((value) => value.default && value.active).map((value) => value.value);
  if (!values?.length) return null;
  return typeOf(field).choices === 'many' ? values : values[0];
}

/**
 * Completes a create: defaults for what the body left out, and violations for what is required and still missing. A
 * body leaves out what its sender cannot see, also when it names that: what is answered must not depend on a lucky
 * guess.
 */
export function completeCreate(
  view: View,
  object: ObjectMeta,
  access: ObjectAccess,
  body: Record<string, unknown>,
  read: Body,
  budget: PatternBudget,
): Body {
  const given = [...read.given, ...withDefaultType(object, body)];
  const invalid = [...read.invalid];
  const type = typeGiven(object, given);
  const values = new Map<string, unknown>(given.map((item) => [item.field.apiName, item.value]));
  for (const field of controllersFirst(object)) {
    const isRead = ownEntry(access.fields, field.apiName)?.read === true;
    if (field.system || (isRead && Object.hasOwn(body, field.apiName)) || !typeOf(field).writable) continue;
    const value = applicableDefault(
      defaultOf(field),
      (item) => typeTakes(type, field, item) && controllerTakes(field, item, values.get(field.controllingField ?? '')),
    );
    if (value !== null) {
      const result = readValue(view, field, value, pointerTo(field.apiName), budget);
      if (!('code' in result)) {
        given.push(result);
        values.set(field.apiName, result.value);
        continue;
      }
      if (budget.steps < 0 && isRead) invalid.push(result);
    }
    if (!field.required) continue;
    // A hidden field is not named: the caller could not have sent it.
    invalid.push(
      isRead
        ? required(field)
        : violation('', 'FIELD_REQUIRED', 'A required value is missing that this connection cannot set.'),
    );
  }
  return { given, invalid, denied: read.denied };
}

/** The part of a default value that the new record may have; null: none of it. */
function applicableDefault(value: unknown, takes: (item: unknown) => boolean): unknown {
  if (value === null) return null;
  if (!Array.isArray(value)) return takes(value) ? value : null;
  const kept = value.filter(takes);
  return kept.length > 0 ? kept : null;
}

/** A field after the one that its values depend on. */
const controllersFirst = memoize((object: ObjectMeta): readonly FieldMeta[] => {
  const depth = ({ controllingField }: FieldMeta): number => {
    const controller = controllingField === null ? undefined : ownEntry(object.fields, controllingField);
    return controller ? 1 + depth(controller) : 0;
  };
  return Object.values(object.fields).toSorted((a, b) => depth(a) - depth(b));
});

/**
 * A value of a picklist goes together with the value of the field that controls it; a field that none controls takes
 * all.
 */
function controllerTakes(field: FieldMeta, value: unknown, controlling: unknown): boolean {
  if (field.controllingField === null) return true;
  const validFor = field.picklistValues?.find((item) => item.value === value)?.validFor;
  if (!validFor) return true;
  return controlling !== null && controlling !== undefined && validFor.includes(String(controlling));
}

/** Fields whose stored values decide whether a new value of a dependent picklist is allowed. */
export function controlledFields(object: ObjectMeta, given: readonly Pick<FieldValue, 'field'>[]): FieldMeta[] {
  const touched = new Set(given.map((item) => item.field.apiName));
  return Object.values(object.fields).filter(
    (field) =>
      field.controllingField !== null &&
      field.picklistValues !== null &&
      (touched.has(field.apiName) || touched.has(field.controllingField)),
  );
}

/**
 * A dependent picklist takes only the values that are valid for its controlling field, after the write. Of the two only
 * those that the caller can read are named.
 */
export function checkDependentPicklists(
  { object, fields }: ObjectAccess,
  given: readonly FieldValue[],
  stored: Readonly<Record<string, unknown>> = {},
): Violation[] {
  const violations: Violation[] = [];
  const values = new Map(given.map((item) => [item.field.apiName, item.value]));
  const after = (name: string): unknown => (values.has(name) ? values.get(name) : ownEntry(stored, name));
  for (const field of controlledFields(object, given)) {
    const controlling = after(field.controllingField ?? '');
    if ([after(field.apiName)].flat().every((value) => controllerTakes(field, value, controlling))) continue;
    const isNamed = ownEntry(fields, field.controllingField ?? '')?.read === true;
    const place = isNamed ? `together with the value of ${field.controllingField}` : 'in this record';
    violations.push(
      ownEntry(fields, field.apiName)?.read
        ? violation(
            pointerTo(field.apiName),
            'DEPENDENT_PICKLIST_INVALID',
            `${field.apiName} does not take this value ${place}.`,
            { field: field.apiName, params: isNamed ? { controllingField: field.controllingField } : {} },
          )
        : unseenValue('DEPENDENT_PICKLIST_INVALID'),
    );
  }
  return violations;
}

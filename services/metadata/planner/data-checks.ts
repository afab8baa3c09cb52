/**
 * Questions that a plan has for the tenant's records: changes that only these can allow or forbid. It asks none of
 * them; the data-checks.ts above this folder turns them into SQL and runs them.
 */
import { fieldType, isMasterDetail } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { CUSTOM_FIELD, type FieldComponent } from '../kinds/bodies/custom-field.ts';
import { STATE_MODEL } from '../kinds/bodies/state-model.ts';
import { changedFields } from '../kinds/changes.ts';
import { compileField } from '../kinds/compile-field.ts';
import { type RollupComponent, resultOf, rollupsOf } from '../kinds/compile-rollup.ts';
import { type Component, componentKey, componentsOf, findComponent, type State } from '../kinds/component.ts';
import { isRollup } from '../kinds/field-attributes.ts';
import type { CheckContext } from '../kinds/kind.ts';
import { SYSTEM_FIELD_NAMES } from '../kinds/system-fields.ts';
import { narrowing } from '../physical/conversions.ts';
import { aggregateSql } from '../physical/rollups.ts';
import { type Alteration, alterations, isConvertible, timezoneIn, valuesSql } from './alterations.ts';
import { isRestoredObject, restoredField } from './restored.ts';

/** A condition on the records of an object; `records` that meet it stand against the change. */
export interface DataCheck {
  readonly component: Component;
  readonly position: { readonly line: number | null; readonly column: number | null };
  readonly object: string;
  readonly question:
    | { readonly kind: 'anyRecord' }
    | { readonly kind: 'blank'; readonly field: FieldMeta }
    | { readonly kind: 'duplicates'; readonly field: FieldMeta }
    /** Records without a value, or that refer to a record which does not exist. */
    | { readonly kind: 'orphans'; readonly field: string; readonly target: string }
    /** Records with a value. */
    | { readonly kind: 'filled'; readonly field: string }
    /** Records whose value is lost with `values`, SQL of what the column holds afterwards; those that then share one. */
    | { readonly kind: 'emptied'; readonly field: FieldMeta; readonly values: string }
    | { readonly kind: 'alike'; readonly field: FieldMeta; readonly values: string }
    | { readonly kind: 'longerThan'; readonly field: string; readonly length: number }
    | { readonly kind: 'notFitting'; readonly field: string; readonly precision: number; readonly scale: number }
    /** Parents whose figure over the children that exist is too great for its field. */
    | {
        readonly kind: 'tooGreat';
        readonly child: string;
        readonly referenceField: string;
        readonly aggregate: string;
        readonly precision: number;
        readonly scale: number;
      }
    /** Values, or items of a list, among these, and others than these. */
    | { readonly kind: 'anyOf'; readonly field: string; readonly values: readonly string[]; readonly list: boolean }
    | { readonly kind: 'outside'; readonly field: string; readonly values: readonly string[]; readonly list: boolean }
    | { readonly kind: 'noneOf'; readonly field: string; readonly values: readonly string[] }
    /** Records of a deleted object, and records with a value of a deleted field; deleted records among them. */
    | { readonly kind: 'keptRecords' }
    | { readonly kind: 'keptValues'; readonly field: string; readonly list: boolean };
  /** STATE_MODEL_INVALID is only worth a warning. */
  readonly code:
    | 'DATA_INCOMPATIBLE'
    | 'DEPENDENT_EXISTS'
    | 'DESTRUCTIVE_MANIFEST_REQUIRED'
    | 'NAME_RESERVED'
    | 'STATE_MODEL_INVALID';
  readonly message: string;
  readonly remedy: string | null;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** A question that a component raises; `pointer` is the part of its file that does. */
interface RecordQuestion extends Pick<DataCheck, 'question' | 'code' | 'message' | 'remedy'> {
  readonly pointer: string;
}

/** `sound`: no problem was found in the plan, so that its expressions can be compiled. */
export function dataChecks(changed: readonly Component[], context: CheckContext, sound: boolean): DataCheck[] {
  const checks = [...strandedRecords(changed, context), ...(sound ? rollupsToBe(changed, context) : [])];
  for (const component of changedFields(changed, context.after)) {
    const { object } = component.body;
    const restored = restoredField(component, context);
    // Without the object before there are no records.
    if (!restored && !context.before.has(componentKey('CustomObject', object))) continue;
    const old = findComponent(context.before, CUSTOM_FIELD, component.fullName);
    const field = compileField(component, context.after);
    const raised = restored
      ? comesBack(component, compileField(restored, context.after), field, context)
      : old
        ? changedField(component, compileField(old, context.before), field, context)
        : [becomesRequiredAtOnce(field)];
    for (const one of raised) {
      if (one === null) continue;
      const { pointer, ...asked } = one;
      checks.push({ component, object, position: context.position(component, pointer), ...asked });
    }
  }
  return checks;
}

/** A field whose values come back: records have come, changed and gone without it. */
function comesBack(
  component: FieldComponent,
  kept: FieldMeta,
  field: FieldMeta,
  context: CheckContext,
): (RecordQuestion | null)[] {
  const isWhole = isRestoredObject(component.body.object, context);
  const [target] = field.referenceTo;
  if (target !== undefined) {
    // Of a restored object the details without a master are removed, which was impossible before.
    const removed = isWhole && isMasterDetail(field) && field.onDelete === 'cascade';
    if (!field.required || removed) return [];
    return [
      {
        question: { kind: 'orphans', field: field.apiName, target },
        code: 'DATA_INCOMPATIBLE',
        pointer: '',
        message: `The field is required, and records refer to no ${target} that exists.`,
        remedy: 'Delete these records first.',
      },
    ];
  }
  return isWhole ? [] : changedField(component, { ...kept, required: false, unique: false }, field, context);
}

function becomesRequiredAtOnce(field: FieldMeta): RecordQuestion | null {
  if (!field.required || fillsRecords(field)) return null;
  return {
    question: { kind: 'anyRecord' },
    code: 'DATA_INCOMPATIBLE',
    pointer: '/required',
    message: 'The field is required, and records exist that would have no value.',
    remedy: isMasterDetail(field) ? 'Add a reference field, fill it, and require it then.' : remedyOf(field),
  };
}

/** The default value is given to the records that have none, unless no two may have the same. */
export const fillsRecords = (field: FieldMeta): boolean =>
  field.defaultValue !== null && !field.unique && !isMasterDetail(field);

const remedyOf = ({ fieldType: type, unique }: FieldMeta): string => {
  if (unique) return 'Fill the values first: a default value would be the same for all.';
  if (!fieldType(type).attributes.includes('defaultValue')) return 'Fill the values first, and require it then.';
  return 'Give it a defaultValue, or require it after the values are there.';
};

/** Records in none of the states of a model that changes, or whose field does: no transition leads out of that. */
function strandedRecords(changed: readonly Component[], context: CheckContext): DataCheck[] {
  const touched = new Set<Component>([...changed, ...changedFields(changed, context.after)]);
  return componentsOf(context.after, STATE_MODEL).flatMap((component): DataCheck[] => {
    const { object, field: name, states, active, allowDirectEdit } = component.body;
    const field = context.fieldsOf(object).get(name);
    if (!field || active === false || allowDirectEdit || !(touched.has(component) || touched.has(field))) return [];
    if (!context.before.has(componentKey('CustomObject', object))) return [];
    const { required, picklistValues, fieldType: type } = compileField(field, context.after);
    const old = findComponent(context.before, CUSTOM_FIELD, field.fullName);
    const isNew = old === undefined;
    // A field that is no picklist is refused and needs no count.
    if (fieldType(type).choices !== 'one' || (old && old.body.fieldType !== type)) return [];
    // It is filled with its default.
    if (isNew && required) return [];
    const values =
      states?.map(({ value }) => value) ??
      (picklistValues ?? []).filter((item) => item.active).map((item) => item.value);
    return [
      {
        component,
        object,
        question: isNew ? { kind: 'anyRecord' } : { kind: 'noneOf', field: name, values },
        code: 'STATE_MODEL_INVALID',
        position: context.position(component, '/field'),
        message: `Records are in none of the states of ${component.fullName}, and no transition leads out of that.`,
        remedy:
          'Keep their states and a transition from each, or let people set the state with allowDirectEdit: true for a while.',
      },
    ];
  });
}

/**
 * Rollups over many children that are given fewer digits than they would have by themselves, when they come or their
 * values will be others: they say something else, or a formula that they read does.
 */
function rollupsToBe(changed: readonly Component[], context: CheckContext): DataCheck[] {
  if (!changed.some(({ type }) => type === 'CustomField' || type === 'TenantSettings')) return [];
  return rollupsOf(context.after).flatMap((component) => narrowRollup(component, context) ?? []);
}

function narrowRollup(component: RollupComponent, { before, after, position }: CheckContext): DataCheck | null {
  const { body, fullName } = component;
  const field = compileField(component, after);
  const { precision, scale, rollup } = field;
  if (!rollup || precision === null || scale === null || body.precision === undefined) return null;
  const digits = resultOf({ rollup: body.rollup, scale }, after);
  if (!digits || (digits.precision ?? 0) <= precision) return null;
  const { childObject, referenceField, reads } = rollup;
  // A field of this deployment has no values yet.
  const isThere = (name: string): boolean =>
    SYSTEM_FIELD_NAMES.has(name) || before.has(componentKey('CustomField', `${childObject}.${name}`));
  if (!before.has(componentKey('CustomObject', childObject)) || !reads.every(isThere)) return null;
  const old = findComponent(before, CUSTOM_FIELD, fullName);
  if (old && isRollup(old.body) && rollupValues(compileField(old, before), before) === rollupValues(field, after))
    return null;
  return {
    component,
    object: childObject,
    question: {
      kind: 'tooGreat',
      child: childObject,
      referenceField,
      aggregate: aggregateSql(rollup, after),
      precision,
      scale,
    },
    code: 'DATA_INCOMPATIBLE',
    position: position(component, '/precision'),
    message:
      `The ${rollup.function} of the records that exist has more digits ` +
      `than precision ${precision} and scale ${scale} leave.`,
    remedy: `Leave precision away, or use ${digits.precision}.`,
  };
}

/** Two rollups of the same text have the same values. */
function rollupValues({ rollup, precision, scale }: FieldMeta, state: State): string | null {
  if (!rollup) return null;
  const { childObject, referenceField } = rollup;
  return JSON.stringify([childObject, referenceField, aggregateSql(rollup, state), precision, scale]);
}

/** Requirements of a field's change on its records; a change that is not possible is reported as a problem. */
function changedField(
  component: Component,
  old: FieldMeta,
  field: FieldMeta,
  context: CheckContext,
): (RecordQuestion | null)[] {
  // The platform's own templates may compute what was typed in before: their tenants have no say in those values.
  if (context.platform && (field.rollup || field.formula)) return [];
  const impossible = (pointer: string, message: string): [] => {
    context.problem('FIELD_TYPE_CHANGE_UNSUPPORTED', component, pointer, message, {
      remedy: 'Make a new field and deprecate this one.',
    });
    return [];
  };
  const loses = narrowing(old, field);
  if (loses === 'fieldType' && !isConvertible(old, field))
    return impossible('/fieldType', `The field is ${old.fieldType} and cannot become ${field.fieldType}.`);
  if (JSON.stringify(old.referenceTo) !== JSON.stringify(field.referenceTo))
    return impossible('/referenceTo', `The field points to ${old.referenceTo.join(', ')} and stays so.`);
  // Computed anew, from the children or from the record.
  if (field.rollup || field.formula) return [];
  const [altered] = loses === null ? [] : alterations([component], context);
  if (altered?.listed) return losesOnPurpose(altered, timezoneIn(context));
  if (loses === 'fieldType') return [convertsValues(old, field), old.required ? null : becomesRequiredAtOnce(field)];
  return [
    becomesRequired(old, field),
    becomesUnique(old, field),
    becomesShorter(old, field),
    losesDigits(old, field),
    losesValues(old, field),
  ];
}

/** Accepted data loss must still not break the rules of the field. */
function losesOnPurpose({ old, field }: Alteration, timezone: string): (RecordQuestion | null)[] {
  const values = valuesSql({ old, field }, identifier(field.apiName), timezone);
  const raised = (kind: 'emptied' | 'alike', pointer: string, message: string, remedy: string): RecordQuestion => ({
    question: { kind, field, values },
    code: 'DATA_INCOMPATIBLE',
    pointer,
    message,
    remedy,
  });
  return [
    field.required
      ? raised('emptied', '/required', 'The field is required, and records would have no value.', CHANGE_FIRST)
      : null,
    field.unique
      ? raised('alike', '/unique', 'The field is unique, and records would share a value.', CHANGE_FIRST)
      : null,
  ];
}

const CHANGE_FIRST = 'Change the values of these records first.';

const LIST_IT = 'or list the component under alters in the destructive manifest.';

function convertsValues(old: FieldMeta, field: FieldMeta): RecordQuestion {
  return {
    question: { kind: 'filled', field: field.apiName },
    code: 'DESTRUCTIVE_MANIFEST_REQUIRED',
    pointer: '/fieldType',
    message: `Values would be converted from ${old.fieldType} to ${field.fieldType}, and those that do not convert lost.`,
    remedy: `Empty the field first, ${LIST_IT}`,
  };
}

function becomesRequired(old: FieldMeta, field: FieldMeta): RecordQuestion | null {
  if (!field.required || old.required || fillsRecords(field)) return null;
  return {
    question: { kind: 'blank', field },
    code: 'DATA_INCOMPATIBLE',
    pointer: '/required',
    message: 'The field becomes required, and records have no value.',
    remedy: remedyOf(field),
  };
}

function becomesUnique(old: FieldMeta, field: FieldMeta): RecordQuestion | null {
  if (!field.unique || (old.unique && old.caseSensitive === field.caseSensitive)) return null;
  return {
    question: { kind: 'duplicates', field },
    code: 'DATA_INCOMPATIBLE',
    pointer: '/unique',
    message: 'The field becomes unique, and records share a value.',
    remedy: 'Make the values differ first.',
  };
}

function becomesShorter(old: FieldMeta, { apiName, length }: FieldMeta): RecordQuestion | null {
  if (length === null || old.length === null || length >= old.length) return null;
  return {
    question: { kind: 'longerThan', field: apiName, length },
    code: 'DESTRUCTIVE_MANIFEST_REQUIRED',
    pointer: '/length',
    message: `Values are longer than ${length} characters.`,
    remedy: `Shorten the values first, ${LIST_IT}`,
  };
}

function losesDigits(old: FieldMeta, { apiName, precision, scale }: FieldMeta): RecordQuestion | null {
  if (precision === null || scale === null || old.precision === null || old.scale === null) return null;
  if (scale >= old.scale && precision - scale >= old.precision - old.scale) return null;
  return {
    question: { kind: 'notFitting', field: apiName, precision, scale },
    code: 'DESTRUCTIVE_MANIFEST_REQUIRED',
    pointer: '/precision',
    message: `Values do not fit precision ${precision} and scale ${scale}.`,
    remedy: `Change the values first, ${LIST_IT}`,
  };
}

function losesValues(old: FieldMeta, field: FieldMeta): RecordQuestion | null {
  if (!field.restrictedPicklist || !field.picklistValues) return null;
  const values = field.picklistValues.map(({ value }) => value);
  const list = fieldType(field.fieldType).choices === 'many';
  const raised = (question: DataCheck['question'], message: string): RecordQuestion => ({
    question,
    code: 'DESTRUCTIVE_MANIFEST_REQUIRED',
    pointer: '/picklist',
    message,
    remedy: `Keep the values with active: false, ${LIST_IT}`,
  });
  const named = { field: field.apiName, list };
  if (!old.restrictedPicklist)
    return raised({ kind: 'outside', ...named, values }, 'Records hold values that are none of the picklist.');
  // A restored record may hold a value that was removed before: nothing comes of that now.
  const gone = (old.picklistValues ?? []).map(({ value }) => value).filter((value) => !values.includes(value));
  if (gone.length === 0) return null;
  const message = `Records hold values that would be gone: ${gone.slice(0, 5).join(', ')}.`;
  return raised({ kind: 'anyOf', ...named, values: gone }, message);
}

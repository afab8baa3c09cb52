/** Changes that only the tenant's records can allow or forbid. */
import { fieldType, isMasterDetail } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { compileField, type PicklistBody } from '../kinds/compile-field.ts';
import { resultOf, rollupsOf } from '../kinds/compile-rollup.ts';
import { type CheckContext, type Component, componentKey, type State } from '../kinds/kind.ts';
import type { StateModelBody } from '../kinds/state-model.ts';
import { SYSTEM_FIELD_NAMES } from '../kinds/system-fields.ts';
import { aggregateSql } from '../physical/rollups.ts';

/** A condition on the records of an object; `records` that meet it stand against the change. */
export interface DataCheck {
  readonly component: Component;
  readonly position: { readonly line: number | null; readonly column: number | null };
  readonly object: string;
  readonly question:
    | { readonly kind: 'anyRecord' }
    | { readonly kind: 'blank'; readonly field: FieldMeta }
    | { readonly kind: 'duplicates'; readonly field: FieldMeta }
    | { readonly kind: 'longerThan'; readonly field: string; readonly length: number }
    | { readonly kind: 'notFitting'; readonly field: string; readonly precision: number; readonly scale: number }
    /** Parents whose figure over the children that exist is too great for its field. */
    | { readonly kind: 'tooGreat'; readonly field: FieldMeta; readonly aggregate: string }
    /** Values, or items of a list, among these, and others than these. */
    | { readonly kind: 'anyOf'; readonly field: string; readonly values: readonly string[]; readonly list: boolean }
    | { readonly kind: 'outside'; readonly field: string; readonly values: readonly string[]; readonly list: boolean }
    | { readonly kind: 'noneOf'; readonly field: string; readonly values: readonly string[] };
  /** STATE_MODEL_INVALID is only worth a warning. */
  readonly code: 'DATA_INCOMPATIBLE' | 'DESTRUCTIVE_MANIFEST_REQUIRED' | 'LARGE_TABLE' | 'STATE_MODEL_INVALID';
  readonly message: string;
  readonly remedy: string | null;
}

/** `sound`: nothing else stands against the plan, so that what expressions say can be asked. */
export function dataChecks(changed: readonly Component[], context: CheckContext, sound: boolean): DataCheck[] {
  const checks = [...strandedRecords(changed, context), ...(sound ? figuresToBe(changed, context) : [])];
  for (const component of withFieldsOfValueSets(changed, context)) {
    const object = String(component.body['object']);
    // Without the object before there are no records.
    if (!context.before.has(componentKey('CustomObject', object))) continue;
    const old = context.before.get(componentKey('CustomField', component.fullName));
    const field = compileField(component, context.after);
    const add = (
      question: DataCheck['question'],
      code: DataCheck['code'],
      pointer: string,
      message: string,
      remedy: string | null,
    ): void => {
      checks.push({
        component,
        object,
        question,
        code,
        position: context.position(component, pointer),
        message,
        remedy,
      });
    };
    if (old) changedField(component, compileField(old, context.before), field, context, add);
    else if (field.required && !fillsRecords(field))
      add(
        { kind: 'anyRecord' },
        'DATA_INCOMPATIBLE',
        '/required',
        'The field is required, and records exist that would have no value.',
        isMasterDetail(field) ? 'Add a reference field, fill it, and require it then.' : remedyOf(field),
      );
  }
  return checks;
}

/** The default value is given to the records that have none, unless no two may have the same. */
const fillsRecords = (field: FieldMeta): boolean =>
  field.defaultValue !== null && !field.unique && !isMasterDetail(field);

const remedyOf = ({ fieldType: type, unique }: FieldMeta): string => {
  if (unique) return 'Fill the values first: a default value would be the same for all.';
  if (!fieldType(type).attributes.includes('defaultValue')) return 'Fill the values first, and require it then.';
  return 'Give it a defaultValue, or require it after the values are there.';
};

/** Records in none of the states of a model that changes, or whose field does: no transition leads out of that. */
function strandedRecords(changed: readonly Component[], context: CheckContext): DataCheck[] {
  const touched = new Set<Component>([...changed, ...withFieldsOfValueSets(changed, context)]);
  return [...context.after.values()].flatMap((component): DataCheck[] => {
    if (component.type !== 'StateModel') return [];
    const { object, field: name, states, active, allowDirectEdit } = component.body as StateModelBody;
    const field = context.fieldsOf(object).get(name);
    if (!field || active === false || allowDirectEdit || !(touched.has(component) || touched.has(field))) return [];
    if (!context.before.has(componentKey('CustomObject', object))) return [];
    const { required, picklistValues, fieldType: type } = compileField(field, context.after);
    const old = context.before.get(componentKey('CustomField', field.fullName));
    const isNew = old === undefined;
    // What is no picklist is refused, and has nothing to be asked for.
    if (fieldType(type).choices !== 'one' || (old && old.body['fieldType'] !== type)) return [];
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

/** Changed fields, and those whose values stand in a ValueSet that changed. */
export function withFieldsOfValueSets(changed: readonly Component[], context: CheckContext): Component[] {
  const fields = changed.filter((component) => component.type === 'CustomField');
  const sets = new Set(changed.filter((c) => c.type === 'ValueSet').map((c) => c.fullName));
  if (sets.size === 0) return fields;
  const own = new Set(fields.map((field) => field.fullName));
  for (const component of context.after.values())
    if (
      component.type === 'CustomField' &&
      !own.has(component.fullName) &&
      sets.has((component.body['picklist'] as PicklistBody | undefined)?.valueSet ?? '')
    )
      fields.push(component);
  return fields;
}

/**
 * Figures over many children that are given fewer digits than they would have by themselves, when they come or will be
 * others: they say something else, or a formula that they read does.
 */
function figuresToBe(changed: readonly Component[], context: CheckContext): DataCheck[] {
  const { before, after } = context;
  if (!changed.some(({ type }) => type === 'CustomField' || type === 'TenantSettings')) return [];
  const figure = ({ rollup, precision, scale }: FieldMeta, state: State): string =>
    JSON.stringify([rollup!.childObject, rollup!.referenceField, aggregateSql(rollup!, state), precision, scale]);
  return rollupsOf(after).flatMap((component): DataCheck[] => {
    const { body, fullName } = component;
    const field = compileField(component, after);
    const { precision, scale } = field;
    const { childObject, reads, function: what } = field.rollup!;
    if (precision === null || scale === null || body['precision'] === undefined) return [];
    const { precision: _given, ...free } = body;
    const digits = resultOf({ ...free, scale }, after);
    if (!digits || digits.precision! <= precision) return [];
    // What comes with this deployment has no values yet.
    const isThere = (name: string): boolean =>
      SYSTEM_FIELD_NAMES.has(name) || before.has(componentKey('CustomField', `${childObject}.${name}`));
    if (!before.has(componentKey('CustomObject', childObject)) || !reads.every(isThere)) return [];
    const old = before.get(componentKey('CustomField', fullName));
    if (old?.body['rollup'] && figure(compileField(old, before), before) === figure(field, after)) return [];
    return [
      {
        component,
        object: childObject,
        question: { kind: 'tooGreat', field, aggregate: aggregateSql(field.rollup!, after) },
        code: 'DATA_INCOMPATIBLE',
        position: context.position(component, '/precision'),
        message: `The ${what} of the records that exist has more digits than precision ${precision} and scale ${scale} leave.`,
        remedy: `Leave precision away, or use ${digits.precision}.`,
      },
    ];
  });
}

type Add = (
  question: DataCheck['question'],
  code: DataCheck['code'],
  pointer: string,
  message: string,
  remedy: string | null,
) => void;

function changedField(component: Component, old: FieldMeta, field: FieldMeta, context: CheckContext, add: Add): void {
  const name = field.apiName;
  // The platform's own templates may work out what was typed in before: their tenants have no say in those values.
  if (context.platform && (field.rollup || field.formula)) return;
  if (old.fieldType !== field.fieldType && !fieldType(old.fieldType).becomes?.includes(field.fieldType)) {
    context.problem(
      'FIELD_TYPE_CHANGE_UNSUPPORTED',
      component,
      '/fieldType',
      `The field is ${old.fieldType} and cannot become ${field.fieldType}.`,
      { remedy: 'Make a new field and deprecate this one.' },
    );
    return;
  }
  if (JSON.stringify(old.referenceTo) !== JSON.stringify(field.referenceTo)) {
    context.problem(
      'FIELD_TYPE_CHANGE_UNSUPPORTED',
      component,
      '/referenceTo',
      `The field points to ${old.referenceTo.join(', ')} and stays so.`,
      { remedy: 'Make a new field and deprecate this one.' },
    );
    return;
  }
  // Worked out anew, from the children or from the record.
  if (field.rollup || field.formula) return;
  if (field.required && !old.required && !fillsRecords(field))
    add(
      { kind: 'blank', field },
      'DATA_INCOMPATIBLE',
      '/required',
      'The field becomes required, and records have no value.',
      remedyOf(field),
    );
  if (field.unique && (!old.unique || old.caseSensitive !== field.caseSensitive))
    add(
      { kind: 'duplicates', field },
      'DATA_INCOMPATIBLE',
      '/unique',
      'The field becomes unique, and records share a value.',
      'Make the values differ first.',
    );
  if (field.length !== null && old.length !== null && field.length < old.length)
    add(
      { kind: 'longerThan', field: name, length: field.length },
      'DESTRUCTIVE_MANIFEST_REQUIRED',
      '/length',
      `Values are longer than ${field.length} characters.`,
      'Shorten the values first, or keep the length.',
    );
  if (field.precision !== null && field.scale !== null && old.precision !== null && old.scale !== null) {
    const narrower = field.scale < old.scale || field.precision - field.scale < old.precision - old.scale;
    if (narrower)
      add(
        { kind: 'notFitting', field: name, precision: field.precision, scale: field.scale },
        'DESTRUCTIVE_MANIFEST_REQUIRED',
        '/precision',
        `Values do not fit precision ${field.precision} and scale ${field.scale}.`,
        'Change the values first, or keep precision and scale.',
      );
  }
  if (field.restrictedPicklist && field.picklistValues) {
    const values = field.picklistValues.map((v) => v.value);
    const list = fieldType(field.fieldType).choices === 'many';
    const gone = (old.picklistValues ?? []).map((v) => v.value).filter((value) => !values.includes(value));
    if (!old.restrictedPicklist)
      add(
        { kind: 'outside', field: name, values, list },
        'DATA_INCOMPATIBLE',
        '/picklist',
        'Records hold values that are none of the picklist.',
        'Keep the values with active: false.',
      );
    // A restored record may hold a value that went before: nothing comes of that now.
    else if (gone.length > 0)
      add(
        { kind: 'anyOf', field: name, values: gone, list },
        'DATA_INCOMPATIBLE',
        '/picklist',
        `Records hold values that would be gone: ${gone.slice(0, 5).join(', ')}.`,
        'Keep the values with active: false.',
      );
  }
}

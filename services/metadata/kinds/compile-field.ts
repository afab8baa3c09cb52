/** A CustomField as the snapshot has it. */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { FieldType } from '../../../lib/schema/field-types/types.ts';
import type { FieldMeta, PicklistValue } from '../../../lib/schema/snapshot.ts';
import type { FieldBody, FieldComponent, PicklistBody } from './bodies/custom-field.ts';
import { VALUE_SET } from './bodies/value-set.ts';
import { compileFormula } from './compile-formula.ts';
import { compileRollup } from './compile-rollup.ts';
import { findComponent, type State } from './component.ts';
import { digitsOf, isFormula, isRollup, onDelete } from './field-attributes.ts';
import { fieldMeta } from './field-meta.ts';
import { isCustom } from './names.ts';
import { compileValues } from './value-set.ts';

/** The field as records are read and written by. */
export function compileField({ body }: Pick<FieldComponent, 'body'>, state: State): FieldMeta {
  const { picklist } = body;
  const type = fieldType(body.fieldType);
  const digits = digitsOf(type, body);
  return fieldMeta({
    apiName: body.apiName,
    fieldType: body.fieldType,
    label: body.label,
    description: body.description ?? null,
    helpText: body.helpText ?? null,
    custom: isCustom(body.apiName),
    required: type.relation === 'master' || (body.required ?? false),
    unique: body.unique ?? false,
    externalId: body.externalId ?? false,
    caseSensitive: body.caseSensitive ?? false,
    length: body.length ?? type.chars?.default ?? null,
    precision: body.precision ?? digits?.precision ?? null,
    scale: body.scale ?? digits?.scale ?? null,
    minimum: body.minimum ?? null,
    maximum: body.maximum ?? null,
    pattern: body.pattern ?? null,
    defaultValue: body.defaultValue ?? (picklist ? defaultOf(picklist, type, state) : null),
    format: body.format ?? null,
    picklistValues: picklist ? picklistValues(picklist, state) : null,
    restrictedPicklist: picklist?.restricted ?? false,
    controllingField: picklist?.controllingField ?? null,
    referenceTo: body.referenceTo ?? [],
    relationshipName: type.relation ? relationshipName(body) : null,
    onDelete: type.relation ? onDelete(body) : null,
    currencyField: body.currencyField ?? null,
    formula: null,
    rollup: null,
    dataClassification: body.dataClassification ?? null,
    semantics: body.semantics ?? null,
    deprecated: body.deprecated ?? false,
    example: body.example ?? null,
    ...(picklist?.valueSet === undefined ? {} : { valueSet: picklist.valueSet }),
    ...(isFormula(body) ? compileFormula(body) : {}),
    ...(isRollup(body) ? compileRollup(body, state) : {}),
  });
}

function picklistValues(picklist: PicklistBody, state: State): PicklistValue[] {
  if (!picklist.valueSet) return compileValues(picklist.values ?? []);
  const set = findComponent(state, VALUE_SET, picklist.valueSet)?.body;
  return set ? compileValues(set.values, set.sorted) : [];
}

function defaultOf(picklist: PicklistBody, { choices }: FieldType, state: State): unknown {
  const [first, ...others] = picklistValues(picklist, state).flatMap(({ value, active, default: isDefault }) =>
    isDefault && active ? [value] : [],
  );
  if (first === undefined) return null;
  return choices === 'many' ? [first, ...others] : first;
}

/**
 * Name of the list of children on the object pointed to: the child's apiName in the plural, with `__r` when the child
 * or the field is custom. It follows names and not labels, so that it never changes by itself.
 */
export function relationshipName({ relationshipName: given, object, apiName }: FieldBody): string {
  if (given !== undefined) return given;
  const base = object.replace(/__c$/, '');
  const plural = /[^aeiou]y$/i.test(base)
    ? `${base.slice(0, -1)}ies`
    : /(?:s|x|z|ch|sh)$/i.test(base)
      ? `${base}es`
      : `${base}s`;
  return isCustom(object) || isCustom(apiName) ? `${plural}__r` : plural;
}

/** A CustomField as the snapshot has it. */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta, FieldTypeName, PicklistValue } from '../../../lib/schema/snapshot.ts';
import { compileFormula } from './compile-formula.ts';
import { compileRollup } from './compile-rollup.ts';
import { digitsOf, fieldTypeOf } from './field-attributes.ts';
import { fieldMeta } from './field-meta.ts';
import { type Body, type Component, componentKey, type State } from './kind.ts';
import { isCustom } from './names.ts';
import { compileValues } from './value-set.ts';

export interface PicklistBody {
  restricted: boolean;
  controllingField?: string;
  valueSet?: string;
  values?: { value: string; label?: string; active?: boolean; default?: boolean; validFor?: string[] }[];
}

export interface FieldBody extends Body {
  readonly apiName: string;
  readonly object: string;
  readonly label: string;
  readonly fieldType: Exclude<FieldTypeName, 'id'>;
}

/** The field as records are read and written by. */
export function compileField(component: Component, state: State): FieldMeta {
  const body = component.body as FieldBody;
  const type = body.fieldType;
  const picklist = body['picklist'] as PicklistBody | undefined;
  const { relation, chars, calculated } = fieldType(type);
  const digits = digitsOf(fieldType(type), body);
  const get = <T>(key: string, fallback: T): T => (body[key] as T | undefined) ?? fallback;
  return fieldMeta({
    apiName: body.apiName,
    fieldType: type,
    label: body.label,
    description: get('description', null),
    helpText: get('helpText', null),
    custom: isCustom(body.apiName),
    required: relation === 'master' || get('required', false),
    unique: get('unique', false),
    externalId: get('externalId', false),
    caseSensitive: get('caseSensitive', false),
    length: get('length', chars?.default ?? null),
    precision: get('precision', digits?.precision ?? null),
    scale: get('scale', digits?.scale ?? null),
    minimum: get('minimum', null),
    maximum: get('maximum', null),
    pattern: get('pattern', null),
    defaultValue: get<unknown>('defaultValue', null) ?? defaultOf(picklist, type, state),
    format: get('format', null),
    picklistValues: picklist ? picklistValues(picklist, state) : null,
    restrictedPicklist: picklist ? picklist.restricted : false,
    controllingField: picklist?.controllingField ?? null,
    referenceTo: get<string[]>('referenceTo', []),
    relationshipName: relation ? relationshipName(component) : null,
    onDelete: relation ? onDelete(body) : null,
    currencyField: get('currencyField', null),
    formula: null,
    rollup: null,
    dataClassification: get('dataClassification', null),
    semantics: get('semantics', null),
    deprecated: get('deprecated', false),
    example: get<unknown>('example', null),
    ...(calculated === 'formula' && body['formula'] ? compileFormula(body) : {}),
    ...(calculated === 'rollup' && body['rollup'] ? compileRollup(body, state) : {}),
  });
}

/** A required reference cannot be emptied, so its default is to keep the record it points to. */
export function onDelete(body: Body): 'setNull' | 'restrict' | 'cascade' {
  const given = body['onDelete'] as 'setNull' | 'restrict' | 'cascade' | undefined;
  if (given) return given;
  if (fieldTypeOf({ body }).relation === 'master') return 'cascade';
  return body['required'] ? 'restrict' : 'setNull';
}

function picklistValues(picklist: PicklistBody, state: State): PicklistValue[] {
  if (!picklist.valueSet) return compileValues(picklist.values ?? []);
  const set = state.get(componentKey('ValueSet', picklist.valueSet));
  return set ? compileValues((set.body['values'] as never) ?? [], set.body['sorted'] === true) : [];
}

function defaultOf(picklist: PicklistBody | undefined, type: FieldTypeName, state: State): unknown {
  if (!picklist) return null;
  const defaults = picklistValues(picklist, state).filter((v) => v.default && v.active);
  if (defaults.length === 0) return null;
  return fieldType(type).choices === 'many' ? defaults.map((v) => v.value) : defaults[0]!.value;
}

/**
 * Name of the list of children on the object pointed to: the child's apiName in the plural, with `__r` when the child
 * or the field is custom. It follows names and not labels, so that it never changes by itself.
 */
export function relationshipName(component: Component): string {
  const given = component.body['relationshipName'];
  if (typeof given === 'string') return given;
  const object = String(component.body['object']);
  const base = object.replace(/__c$/, '');
  const plural = /[^aeiou]y$/i.test(base)
    ? `${base.slice(0, -1)}ies`
    : /(?:s|x|z|ch|sh)$/i.test(base)
      ? `${base}es`
      : `${base}s`;
  return isCustom(object) || isCustom(String(component.body['apiName'])) ? `${plural}__r` : plural;
}

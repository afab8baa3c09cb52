/**
 * JSON Schema 2020-12 of what a connection may send of an object, and of what it gets: hidden fields are in none of
 * them. Of bodies it says what can be said of a field alone; rules, dependent picklists and record types are held by the
 * write. Pure. Source: docs/reference/records.md#schemas-of-bodies.
 */
import { addressOf } from '../../../contracts/operations.ts';
import { capabilities } from '../../../lib/access/decide.ts';
import type { Access, ObjectAccess, ScopeSet } from '../../../lib/access/types.ts';
import { isReference, typeOf } from '../../../lib/schema/field-types/registry.ts';
import type { Labels } from '../../../lib/schema/labels.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { isWritable, RECORD_TYPE_FIELD } from '../../../lib/schema/record-types.ts';
import { emptyRollup } from '../../../lib/schema/rollups.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { defaultOf, isChangedByTransitions } from '../write/body.ts';
import { isNillable } from './describe.ts';

type Schema = Record<string, unknown>;

/** `create` and `update` are `false` where the connection may not do that. */
export function schemaOfObject(access: Access, object: ObjectAccess, scopes: ScopeSet, labels: Labels): Schema {
  const meta = object.object;
  const able = capabilities(access, meta.apiName, scopes);
  const editable = object.readable.filter(
    (field) => isWritable(meta, field) && object.fields[field.apiName]?.edit === true,
  );
  const properties = (fields: readonly FieldMeta[], schemaOf: (field: FieldMeta) => Schema): Schema =>
    Object.fromEntries(
      fields.map((field) => [field.apiName, { ...annotations(access, meta, field, labels), ...schemaOf(field) }]),
    );
  const required = editable.filter((field) => field.required && defaultOf(field) === null);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: addressOf('schema.objects.getSchema', { objectApiName: meta.apiName }),
    title: meta.apiName,
    ...(meta.description ? { description: meta.description } : {}),
    $ref: '#/$defs/read',
    $defs: {
      create: able.creatable && {
        type: 'object',
        additionalProperties: false,
        properties: properties(editable, (field) => written(access, meta, field, 'create')),
        ...(required.length > 0 ? { required: required.map(({ apiName }) => apiName) } : {}),
      },
      update: able.updateable && {
        type: 'object',
        additionalProperties: false,
        minProperties: 1,
        properties: properties(
          editable.filter((field) => !isChangedByTransitions(meta, field)),
          (field) => written(access, meta, field, 'update'),
        ),
      },
      read: {
        type: 'object',
        properties: properties(object.readable, (field) =>
          orNull(!isAlwaysThere(field), valueSchema(withoutBounds(field))),
        ),
      },
    },
  };
}

/** Texts for people in the language of the answer, and the field's configuration. */
function annotations(access: Access, object: ObjectMeta, field: FieldMeta, labels: Labels): Schema {
  const targets = field.referenceTo.filter((name) => Object.hasOwn(access.objects, name));
  const { precision, scale } = field;
  const said = [
    field.description,
    targets.length > 0 && `Id of a record of ${targets.join(' or ')}.`,
    precision !== null &&
      scale !== null &&
      `At most ${precision - scale} digits before the decimal point and ${scale} after it.`,
  ].filter((text) => typeof text === 'string' && text !== '');
  return {
    title: labels.ofField(object.apiName, field),
    ...(said.length > 0 ? { description: said.join(' ') } : {}),
    ...(field.deprecated ? { deprecated: true } : {}),
  };
}

const valueSchema = (field: FieldMeta): Schema => typeOf(field).jsonSchema(field);

/** A value that a body may have. */
function written(access: Access, object: ObjectMeta, field: FieldMeta, how: 'create' | 'update'): Schema {
  const mayBeNull = isNillable(field);
  if (field.apiName === RECORD_TYPE_FIELD)
    return orNull(mayBeNull, {
      type: 'string',
      // A record may keep a type that is not active any more.
      enum: object.recordTypes.filter(({ active }) => how === 'update' || active).map(({ apiName }) => apiName),
    });
  if (how === 'create' && object.stateModel?.field === field.apiName)
    return { type: 'string', enum: [object.stateModel.initial] };
  const value = { ...valueSchema(field), ...notBlank(field) };
  if (!isReference(field)) return orNull(mayBeNull, value);
  const [external, ...others] = externalIds(access, field);
  return orNull(mayBeNull, external ? { anyOf: [value, external, ...others] } : value);
}

/** Minimum of a required value. */
function notBlank(field: FieldMeta): Schema {
  const { blank } = typeOf(field);
  if (!field.required || blank === 'null') return {};
  return blank === 'emptyList' ? { minItems: 1 } : { minLength: 1 };
}

/** The other forms of a reference: an external id of the record referred to. */
function externalIds(access: Access, { referenceTo }: FieldMeta): Schema[] {
  const byName = new Map<string, Schema>();
  for (const apiName of referenceTo) {
    const target = ownEntry(access.objects, apiName);
    for (const field of target?.readable ?? [])
      if (field.externalId && !byName.has(field.apiName))
        byName.set(field.apiName, {
          type: 'object',
          additionalProperties: false,
          properties: { [field.apiName]: valueSchema(withoutBounds(field)) },
          required: [field.apiName],
        });
  }
  return [...byName.values()];
}

/**
 * The field as records hold it: they keep their values when its bounds are narrowed, and those of a picklist that are
 * not active any more.
 */
const withoutBounds = (field: FieldMeta): FieldMeta => ({
  ...field,
  minimum: null,
  maximum: null,
  pattern: null,
  picklistValues: field.picklistValues?.map((value) => ({ ...value, active: true })) ?? null,
});

/** No record is without it. */
const isAlwaysThere = (field: FieldMeta): boolean =>
  field.required || (field.system && field.apiName !== RECORD_TYPE_FIELD) || emptyRollup(field) === '0';

const orNull = (mayBeNull: boolean, schema: Schema): Schema =>
  mayBeNull ? { anyOf: [schema, { type: 'null' }] } : schema;

/**
 * Describes an object for one connection: its fields as this user may read and write them. Pure. Only the labels
 * are for people; everything else is contract. Source: docs/reference/records.md.
 */

import { hash } from 'node:crypto';
import { capabilities } from '../../../lib/access/decide.ts';
import type { Access, Capabilities, ObjectAccess, ScopeSet } from '../../../lib/access/types.ts';
import {
  aggregationsOf,
  filterable,
  groupable,
  operatorsFor,
  searchable,
  searchedByDefault,
  sortable,
} from '../../../lib/query/capabilities.ts';
import { fieldType, isNumbered, typeOf, valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import { type Labels, PLURAL } from '../../../lib/schema/labels.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { defaultRecordType, isWritable, RECORD_TYPE_FIELD } from '../../../lib/schema/record-types.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { visibleModel } from '../transitions/transitions-and-actions.ts';
import { defaultOf, isChangedByTransitions } from '../write/body.ts';
import { hasDuplicateRules } from '../write/duplicate-rules.ts';
import { describeLayouts, describeListViews } from './screens.ts';

/** Items of GET /objects, by apiName. */
export function describeObjects(access: Access, scopes: ScopeSet, labels: Labels): { records: object[] } {
  return {
    records: Object.values(access.objects)
      .map(({ object: { apiName, label, labelPlural, features } }) => ({
        apiName,
        label: labels.of('CustomObject', apiName, label),
        labelPlural: labels.of('CustomObject', apiName, labelPlural, PLURAL),
        searchable: features.search,
        capabilities: capabilities(access, apiName, scopes),
      }))
      .sort((a, b) => (a.apiName < b.apiName ? -1 : 1)),
  };
}

/** Kept by the platform and given to every new record. */
const PLATFORM_DEFAULTS: ReadonlySet<string> = new Set([
  'id',
  'ownerId',
  'createdAt',
  'createdById',
  'updatedAt',
  'updatedById',
  'recordVersion',
]);

export function describeObject(
  access: Access,
  object: ObjectAccess,
  scopes: ScopeSet,
  labels: Labels,
): Record<string, unknown> & { readonly schemaVersion: string } {
  const meta = object.object;
  const able = capabilities(access, meta.apiName, scopes);
  const isReadable = (name: string): boolean => ownEntry(object.fields, name)?.read === true;
  const description = {
    apiName: meta.apiName,
    label: labels.of('CustomObject', meta.apiName, meta.label),
    labelPlural: labels.of('CustomObject', meta.apiName, meta.labelPlural, PLURAL),
    description: meta.description,
    custom: meta.custom,
    nameField: meta.nameField,
    ownerField: isReadable('ownerId') ? 'ownerId' : null,
    searchable: meta.features.search,
    defaultSearchFields: searchedByDefault(object).map((field) => field.apiName),
    stateModel: visibleModel(object)?.apiName ?? null,
    recordTypes: meta.recordTypes.map(({ apiName, label, default: isDefault, active, picklistValues }) => ({
      apiName,
      label: labels.of('RecordType', `${meta.apiName}.${apiName}`, label),
      default: isDefault,
      active,
      picklistValues: Object.fromEntries(Object.entries(picklistValues).filter(([name]) => isReadable(name))),
    })),
    childRelationships: meta.childRelationships
      .filter(({ objectApiName, field }) => {
        const child = Object.hasOwn(access.objects, objectApiName) ? access.objects[objectApiName] : undefined;
        return child !== undefined && Object.hasOwn(child.fields, field);
      })
      .map(({ relationshipName, objectApiName, field, onDelete }) => ({
        relationshipName,
        objectApiName,
        field,
        onDelete,
      })),
    duplicateRulesActive: hasDuplicateRules(object),
    sharingDefault: meta.sharingDefault,
    fields: object.readable.map((field) => describeField(access, object, field, able, scopes, labels)),
    layouts: describeLayouts(access, object, labels),
    listViews: describeListViews(access, object, labels),
    capabilities: able,
  };
  return { ...description, schemaVersion: versionOf(description) };
}

/** Changes whenever the description does. */
export const versionOf = (description: object): string =>
  hash('sha256', JSON.stringify(description), 'base64url').slice(0, 22);

function describeField(
  access: Access,
  object: ObjectAccess,
  field: FieldMeta,
  able: Capabilities,
  scopes: ScopeSet,
  labels: Labels,
): Record<string, unknown> {
  const type = typeOf(field);
  const editable = isWritable(object.object, field) && object.fields[field.apiName]?.edit === true;
  const creatable = editable && able.creatable;
  const updateable = editable && able.updateable && !isChangedByTransitions(object.object, field);
  const { controllingField: controlling } = field;
  const controllingField = controlling !== null && Object.hasOwn(object.fields, controlling) ? controlling : null;
  const calculated = fieldType(field.fieldType).calculated !== undefined;
  const isType = field.apiName === RECORD_TYPE_FIELD;
  const fallback = isType ? (defaultRecordType(object.object)?.apiName ?? null) : defaultOf(field);
  return {
    apiName: field.apiName,
    fieldType: field.fieldType,
    valueType: valueTypeName(field),
    readable: true,
    editable: creatable || updateable,
    label: labels.ofField(object.object.apiName, field),
    description: field.description,
    helpText: field.helpText,
    custom: field.custom,
    system: field.system,
    creatable,
    updateable,
    required: field.required,
    nillable: isNillable(field),
    ...limitsOf(field),
    defaultValue: fallback,
    defaultedOnCreate: fallback !== null || isNumbered(field) || isPlatformDefault(field),
    calculated,
    formula: scopes.includes('setup:read') ? shownExpression(access, object, field) : null,
    ...queriesOf(field),
    picklistValues: picklistValuesOf(object.object.apiName, field, controllingField !== null, labels),
    restrictedPicklist: field.restrictedPicklist,
    controllingField,
    referenceTo: field.referenceTo.filter((name) => Object.hasOwn(access.objects, name)),
    relationshipName: field.relationshipName,
    onDelete: field.onDelete,
    currencyField:
      field.currencyField !== null && Object.hasOwn(object.fields, field.currencyField) ? field.currencyField : null,
    stateField: field.stateField,
    dataClassification: field.dataClassification,
    semantics: field.semantics,
    deprecated: field.deprecated,
    example: isType ? (object.object.recordTypes[0]?.apiName ?? null) : (field.example ?? type.example(field) ?? null),
  };
}

/** Constraints of every value of a field. */
const limitsOf = ({
  unique,
  externalId,
  caseSensitive,
  length,
  precision,
  scale,
  minimum,
  maximum,
  pattern,
}: FieldMeta) => ({ unique, externalId, caseSensitive, length, precision, scale, minimum, maximum, pattern });

/** Query capabilities of a field. */
const queriesOf = (field: FieldMeta) => ({
  filterable: filterable(field),
  filterOperators: operatorsFor(field),
  sortable: sortable(field),
  groupable: groupable(field),
  aggregations: aggregationsOf(field),
  searchable: searchable(field),
});

/** `dependent`: the caller reads the controlling field; otherwise `validFor` is not shown. */
const picklistValuesOf = (object: string, field: FieldMeta, dependent: boolean, labels: Labels) =>
  field.picklistValues?.map(({ value, label, active, default: isDefault, validFor }) => ({
    value,
    label: labels.ofValue(object, field, value, label),
    active,
    isDefault,
    validFor: dependent ? validFor : null,
  })) ?? null;

/** The expression; null when it names a field that the user cannot read and the configuration is hidden from them. */
function shownExpression({ system }: Access, { fields }: ObjectAccess, { formula }: FieldMeta): string | null {
  if (!formula) return null;
  const readsAll = system.has('metadataRead') || system.has('metadataManage');
  return readsAll || Object.keys(formula.reads).every((name) => ownEntry(fields, name)?.read)
    ? formula.expression
    : null;
}

/** A write may empty it. A record always has an owner, and its record type may be none. */
export const isNillable = (field: FieldMeta): boolean =>
  !field.required && (!field.system || field.apiName === RECORD_TYPE_FIELD) && !isNumbered(field);

const isPlatformDefault = (field: FieldMeta): boolean => field.system && PLATFORM_DEFAULTS.has(field.apiName);

/** The public operations that describe objects. */
import { Type } from 'typebox';
import { defineOperation, nullable } from '../../lib/operation.ts';
import { Aggregation, FieldTypeSchema, FiltersSchema, Operator } from './query.ts';
import { acceptLanguage, contentLanguage, ifNoneMatch, objectApiName } from './rows.ts';

const Capabilities = Type.Object(
  {
    creatable: Type.Boolean(),
    updateable: Type.Boolean(),
    deletable: Type.Boolean(),
    editable: Type.Boolean({ description: 'creatable or updateable' }),
  },
  {
    title: 'ObjectCapabilities',
    description: "What this connection may do: its scopes, the user's permissions and the object's publication.",
  },
);

const ObjectDescriptor = Type.Object(
  {
    apiName: Type.String(),
    label: Type.String({ description: 'For people, in the language of the answer.' }),
    labelPlural: Type.String({ description: 'For people as well: several of its records.' }),
    searchable: Type.Boolean({ description: 'Lists are meant to be searched: there are indexes for `search`.' }),
    capabilities: Capabilities,
  },
  { title: 'ObjectSummary' },
);

const PicklistValueSchema = Type.Object(
  {
    value: Type.String(),
    label: Type.String(),
    active: Type.Boolean(),
    isDefault: Type.Boolean(),
    validFor: nullable(Type.Array(Type.String())),
  },
  { title: 'PicklistValue' },
);

const OnDelete = Type.Enum(['setNull', 'restrict', 'cascade'], { title: 'DeleteBehavior' });

const FieldDescription = Type.Object(
  {
    apiName: Type.String(),
    fieldType: FieldTypeSchema,
    valueType: FieldTypeSchema,
    readable: Type.Boolean(),
    editable: Type.Boolean({ description: 'creatable or updateable' }),
    label: Type.String(),
    description: nullable(Type.String()),
    helpText: nullable(Type.String()),
    custom: Type.Boolean(),
    system: Type.Boolean(),
    creatable: Type.Boolean(),
    updateable: Type.Boolean(),
    required: Type.Boolean(),
    nillable: Type.Boolean(),
    unique: Type.Boolean(),
    externalId: Type.Boolean(),
    caseSensitive: Type.Boolean(),
    length: nullable(Type.Integer()),
    precision: nullable(Type.Integer()),
    scale: nullable(Type.Integer()),
    minimum: nullable(Type.Number()),
    maximum: nullable(Type.Number()),
    pattern: nullable(Type.String()),
    defaultValue: Type.Unknown(),
    defaultedOnCreate: Type.Boolean({ description: 'The platform fills it in when a create leaves it out.' }),
    calculated: Type.Boolean(),
    formula: nullable(
      Type.String({
        description: 'Only with setup:read, and where the user reads all fields that it names, or the configuration.',
      }),
    ),
    filterable: Type.Boolean(),
    filterOperators: Type.Array(Operator),
    sortable: Type.Boolean(),
    groupable: Type.Boolean(),
    aggregations: Type.Array(Aggregation),
    searchable: Type.Boolean(),
    picklistValues: nullable(Type.Array(PicklistValueSchema)),
    restrictedPicklist: Type.Boolean(),
    controllingField: nullable(Type.String()),
    referenceTo: Type.Array(Type.String()),
    relationshipName: nullable(Type.String()),
    onDelete: nullable(OnDelete),
    currencyField: nullable(Type.String({ description: 'Field that holds the ISO 4217 code of this amount.' })),
    stateField: Type.Boolean(),
    dataClassification: Type.Union([
      Type.Literal('public'),
      Type.Literal('internal'),
      Type.Literal('confidential'),
      Type.Literal('restricted'),
      Type.Null(),
    ]),
    semantics: nullable(Type.String({ description: 'Meaning of the value.' })),
    deprecated: Type.Boolean(),
    example: Type.Unknown(),
  },
  { title: 'FieldDescription' },
);

const LayoutDescription = Type.Object(
  {
    apiName: Type.String(),
    label: Type.String(),
    default: Type.Boolean({ description: 'For all records but those of the record types of other layouts.' }),
    recordTypes: Type.Array(Type.String(), { description: 'The record types whose records are shown in it.' }),
    sections: Type.Array(
      Type.Object({
        label: Type.String(),
        columns: Type.Array(Type.Array(Type.String()), {
          description: 'From left to right, each with the apiNames of its fields from top to bottom.',
        }),
      }),
      { description: 'From top to bottom; one of which the user reads no field is left out.' },
    ),
    relatedLists: Type.Array(
      Type.Object({
        relationshipName: Type.String(),
        label: Type.String(),
        objectApiName: Type.String({ description: 'The object whose records are listed.' }),
        field: Type.String({ description: 'Its field that refers to the record.' }),
        columns: Type.Array(Type.String(), { description: 'apiNames of its fields, from left to right.' }),
      }),
    ),
  },
  { title: 'LayoutDescription', description: 'Fields of a record on a screen.' },
);

const ListViewDescription = Type.Object(
  {
    apiName: Type.String(),
    label: Type.String(),
    columns: Type.Array(Type.String(), { description: 'apiNames of fields, from left to right.' }),
    filters: nullable(FiltersSchema),
    sort: Type.Array(Type.Object({ id: Type.String(), desc: Type.Boolean() })),
  },
  {
    title: 'ListViewDescription',
    description: 'A list of records that has a name; `filters` and `sort` are as lists of records take them.',
  },
);

const ObjectDescription = Type.Object(
  {
    apiName: Type.String(),
    label: Type.String(),
    labelPlural: Type.String(),
    description: nullable(Type.String()),
    custom: Type.Boolean(),
    nameField: Type.String(),
    ownerField: nullable(Type.String()),
    searchable: Type.Boolean(),
    defaultSearchFields: Type.Array(Type.String()),
    stateModel: nullable(Type.String()),
    recordTypes: Type.Array(
      Type.Object({
        apiName: Type.String(),
        label: Type.String(),
        default: Type.Boolean(),
        active: Type.Boolean(),
        picklistValues: Type.Record(Type.String(), Type.Array(Type.String()), {
          description:
            'By apiName of a field: the values that it takes in records of this type; others take all of theirs.',
        }),
      }),
    ),
    childRelationships: Type.Array(
      Type.Object({
        relationshipName: Type.String(),
        objectApiName: Type.String(),
        field: Type.String(),
        onDelete: OnDelete,
      }),
    ),
    duplicateRulesActive: Type.Boolean(),
    sharingDefault: Type.Union([
      Type.Literal('private'),
      Type.Literal('read'),
      Type.Literal('readWrite'),
      Type.Literal('controlledByParent'),
    ]),
    fields: Type.Array(FieldDescription),
    layouts: Type.Array(LayoutDescription, {
      description: "Layouts of the user's profile, the default first; empty: no layout applies.",
    }),
    listViews: Type.Array(ListViewDescription, { description: 'List views of the user, by apiName.' }),
    capabilities: Capabilities,
    schemaVersion: Type.String({ description: 'Changes whenever this description does; also its ETag.' }),
  },
  { title: 'ObjectDescription' },
);

const BodySchema = Type.Object(
  { type: Type.Literal('object'), properties: Type.Record(Type.String(), Type.Unknown()) },
  { title: 'BodySchema', additionalProperties: true, description: 'A JSON Schema, with a property per field.' },
);

const WrittenBody = Type.Union([BodySchema, Type.Literal(false, { description: 'The connection may not do it.' })]);

export const OBJECT_OPERATIONS = [
  defineOperation({
    operationId: 'schema.objects.list',
    method: 'GET',
    path: '/objects',
    tag: 'schema',
    summary: 'List the objects the user can read',
    description: 'Objects and fields differ per tenant; nothing else may be assumed to exist.',
    scopes: ['data:read'],
    headerParameters: [acceptLanguage],
    response: {
      status: 200,
      description: 'All published objects the user can read, by apiName.',
      schema: Type.Object({ records: Type.Array(ObjectDescriptor) }, { title: 'ObjectList' }),
      headers: contentLanguage,
      example: {
        records: [
          {
            apiName: 'Account',
            label: 'Account',
            labelPlural: 'Accounts',
            searchable: true,
            capabilities: { creatable: true, updateable: true, deletable: false, editable: true },
          },
        ],
      },
    },
    errors: [],
    action: 'data.objects.list',
  }),
  defineOperation({
    operationId: 'schema.objects.describe',
    method: 'GET',
    path: '/objects/{objectApiName}/describe',
    tag: 'schema',
    summary: 'Describe an object and its readable fields',
    description:
      'Fields of an object with types, limits, picklist values and filter operators; record types, state model, layouts and list views, as far as the user may read them. A missing field is hidden or does not exist.',
    scopes: ['data:read'],
    pathParameters: [objectApiName],
    headerParameters: [ifNoneMatch, acceptLanguage],
    response: {
      status: 200,
      description: 'The object with every field the user can read.',
      schema: ObjectDescription,
      headers: {
        ETag: { description: 'schemaVersion; honours If-None-Match.', schema: Type.String() },
        ...contentLanguage,
      },
    },
    errors: ['OBJECT_NOT_FOUND'],
    action: 'data.objects.describe',
  }),
  defineOperation({
    operationId: 'schema.objects.getSchema',
    method: 'GET',
    path: '/objects/{objectApiName}/schema.json',
    tag: 'schema',
    summary: "JSON Schema of an object's bodies",
    description: 'JSON Schema 2020-12 of the create, update and read bodies, as this user may send and receive them.',
    scopes: ['data:read'],
    pathParameters: [objectApiName],
    headerParameters: [ifNoneMatch, acceptLanguage],
    response: {
      status: 200,
      description: 'A JSON Schema with the definitions `create`, `update` and `read`.',
      schema: Type.Object(
        {
          $schema: Type.String(),
          $id: Type.String(),
          title: Type.String(),
          description: Type.Optional(Type.String()),
          $ref: Type.String(),
          $defs: Type.Object({ create: WrittenBody, update: WrittenBody, read: BodySchema }),
        },
        { title: 'ObjectSchema', additionalProperties: true },
      ),
      headers: {
        ETag: { description: 'Changes with the schema; honours If-None-Match.', schema: Type.String() },
        ...contentLanguage,
      },
    },
    errors: ['OBJECT_NOT_FOUND'],
    action: 'data.objects.getSchema',
  }),
] as const;

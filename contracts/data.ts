/** Public operations and internal actions of data. */
import { Type } from 'typebox';
import { LIMITS } from '../config/limits.ts';
import { type ActionsOf, defineOperation, defineParameter, nullable } from '../lib/operation.ts';
import { FIELD_TYPE_NAMES } from '../lib/schema/field-types/registry.ts';
import { OPERATORS } from '../lib/schema/field-types/types.ts';
import { EXPLAIN_OPERATIONS } from './data/explain.ts';
import { effectiveTake, id, KEY_ERRORS, objectApiName, READ, WRITE } from './data/rows.ts';
import { SHARE_OPERATIONS } from './data/shares.ts';
import { TRAIL_OPERATIONS, type Verification, type VerifyRequest } from './data/trail.ts';

export interface UserIdentity {
  id: string;
  username: string;
  displayName: string;
  email: string | null;
  active: boolean;
  locale: string | null;
  timezone: string | null;
  profileApiName: string;
  roleApiName: string | null;
  apiEnabled: boolean;
  systemPermissions: string[];
}

export interface DataActions extends ActionsOf<typeof DATA_OPERATIONS> {
  /** The user behind a token, with what decides about access; null when absent. */
  'data.users.get': { params: { tenantId: string; userId: string }; result: UserIdentity | null };
  /** User by username, for sign-in; null when absent. */
  'data.users.find': { params: { tenantId: string; username: string }; result: UserIdentity | null };
  /** Creates User records (administrator of a new tenant, demo users) as the platform, idempotent by username. */
  'data.users.provision': {
    params: {
      tenantId: string;
      users: {
        username: string;
        email: string;
        displayName: string;
        profileApiName: string;
        roleApiName?: string | null;
        permissionSetApiNames?: string[];
        managerUsername?: string | null;
        password?: string;
      }[];
    };
    result: { userIds: Record<string, string> };
  };
  /** Loads generated rows of one object as the platform: ids given, no history or events. Only for templates' sample data. */
  'data.samples.load': {
    params: { tenantId: string; objectApiName: string; columns: string[]; rows: unknown[][] };
    result: { inserted: number };
  };
  /** Records a mutation of the request's user that was refused before it reached its service. */
  'data.audit.deny': {
    params: {
      operationId: string;
      code: string;
      objectApiName: string | null;
      recordId: string | null;
      idempotencyKey: string | null;
    };
    result: null;
  };
  /** Puts all committed audit rows of a tenant into its chain now; a background job does the same. */
  'data.audit.seal': { params: { tenantId: string }; result: { sealed: number } };
  /** Checks a part of a tenant's audit trail against its chain; `next` of the result is `from` of the next part. */
  'data.audit.verify': { params: VerifyRequest; result: Verification };
}

const EXAMPLE_RECORD = {
  id: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
  ownerId: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
  createdAt: '2026-11-21T00:01:22.123+00:00',
  createdById: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
  updatedAt: '2026-11-21T00:01:22.123+00:00',
  updatedById: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
  recordVersion: 1,
  recordTypeApiName: null,
  name: 'Acme GmbH',
  city: 'Berlin',
  creditLimit: 25000.5,
};

const Capabilities = Type.Object(
  {
    creatable: Type.Boolean(),
    updateable: Type.Boolean(),
    deletable: Type.Boolean(),
    editable: Type.Boolean({ description: 'creatable or updateable' }),
  },
  { description: "What this connection may do: its scopes, the user's permissions and the object's publication." },
);

const ObjectDescriptor = Type.Object({
  apiName: Type.String(),
  label: Type.String({ description: 'For people; may be translated.' }),
  capabilities: Capabilities,
});

const PicklistValueSchema = Type.Object({
  value: Type.String(),
  label: Type.String(),
  active: Type.Boolean(),
  isDefault: Type.Boolean(),
  validFor: nullable(Type.Array(Type.String())),
});

const OnDelete = Type.Union([Type.Literal('setNull'), Type.Literal('restrict'), Type.Literal('cascade'), Type.Null()]);

const FieldDescription = Type.Object({
  apiName: Type.String(),
  fieldType: Type.Union(FIELD_TYPE_NAMES.map((name) => Type.Literal(name))),
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
  filterOperators: Type.Array(Type.String()),
  sortable: Type.Boolean(),
  groupable: Type.Boolean(),
  aggregations: Type.Array(Type.String()),
  searchable: Type.Boolean(),
  picklistValues: nullable(Type.Array(PicklistValueSchema)),
  restrictedPicklist: Type.Boolean(),
  controllingField: nullable(Type.String()),
  referenceTo: Type.Array(Type.String()),
  relationshipName: nullable(Type.String()),
  onDelete: OnDelete,
  currencyField: nullable(Type.String({ description: 'Field that holds the ISO 4217 code of this amount.' })),
  stateField: Type.Boolean(),
  dataClassification: Type.Union([
    Type.Literal('public'),
    Type.Literal('internal'),
    Type.Literal('confidential'),
    Type.Literal('restricted'),
    Type.Null(),
  ]),
  semantics: nullable(Type.String({ description: 'What the value means and what it does not mean.' })),
  deprecated: Type.Boolean(),
  example: Type.Unknown(),
});

const ObjectDescription = Type.Object({
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
  capabilities: Capabilities,
  schemaVersion: Type.String({ description: 'Changes whenever this description does; also its ETag.' }),
});

const RecordSchema = Type.Object(
  {},
  {
    $id: 'Record',
    additionalProperties: true,
    description:
      'A record keyed by field apiName; describe tells the fields of an object. A field that is absent is hidden or was not asked for; null is stored empty.',
  },
);

const checkOnly = defineParameter({
  name: 'checkOnly',
  description: 'Dry run: everything is checked, nothing is changed; 200 with the verdict.',
  schema: Type.Boolean({ default: false }),
  example: true,
});

const CheckResult = Type.Object(
  {
    checkOnly: Type.Literal(true),
    valid: Type.Boolean({ description: 'The same request without checkOnly would be carried out at this moment.' }),
    record: nullable(RecordSchema),
    errors: Type.Array(Type.Object({}, { additionalProperties: true }), { description: 'As in an error answer.' }),
    duplicates: Type.Array(Type.Object({}, { additionalProperties: true }), {
      description: 'Duplicate rules that matched, as in `details.rules` of DUPLICATE_RULE.',
    }),
    effects: Type.Array(
      Type.Object({
        kind: Type.Union(
          (['create', 'update', 'delete', 'transition', 'notification', 'event'] as const).map((kind) =>
            Type.Literal(kind),
          ),
        ),
        objectApiName: Type.String(),
        id: nullable(Type.String()),
        fields: Type.Array(Type.String()),
        count: Type.Optional(Type.Integer({ description: 'Records, when the effect names none of them.' })),
      }),
    ),
    approvalRequired: Type.Boolean(),
  },
  { $id: 'CheckResult', description: 'Verdict of a dry run.' },
);

/** What every mutation that can be tried out says about it. */
const CHECKED = {
  queryParameters: [checkOnly],
  alternatives: [
    {
      status: 200,
      description: 'With `checkOnly=true`: the verdict; nothing was changed.',
      schema: CheckResult,
      example: {
        checkOnly: true,
        valid: true,
        record: { ...EXAMPLE_RECORD, id: null },
        errors: [],
        duplicates: [],
        effects: [{ kind: 'create', objectApiName: 'Account', id: null, fields: ['city', 'creditLimit', 'name'] }],
        approvalRequired: false,
      },
    },
  ],
} as const;

const RecordPage = Type.Object({
  records: Type.Array(RecordSchema),
  total: Type.Optional(Type.Integer({ description: 'With includeTotal=true: all matching records.' })),
  nextCursor: nullable(Type.String({ description: 'null marks the last page.' })),
});

const FiltersSchema = Type.Object(
  {
    logic: Type.Union([Type.Literal('and'), Type.Literal('or')]),
    conditions: Type.Array(
      Type.Object(
        {
          id: Type.String({ minLength: 1, maxLength: 64 }),
          field: Type.String(),
          operator: Type.Union(OPERATORS.map((name) => Type.Literal(name))),
          value: Type.Optional(Type.Unknown()),
          valueTo: Type.Optional(Type.Unknown()),
        },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: LIMITS.filter_conditions_max },
    ),
  },
  { additionalProperties: false },
);

const WhereSchema = Type.Record(Type.String(), Type.Unknown());
const WhereInSchema = Type.Record(
  Type.String(),
  Type.Array(Type.Unknown(), { minItems: 1, maxItems: LIMITS.in_values_max }),
);
const SortSchema = Type.Array(
  Type.Object({ id: Type.String(), desc: Type.Optional(Type.Boolean()) }, { additionalProperties: false }),
  { maxItems: LIMITS.sort_max },
);

const EXAMPLE_FILTERS = {
  logic: 'and',
  conditions: [{ id: 'c1', field: 'creditLimit', operator: 'between', value: 1000, valueTo: 50000 }],
};

const fields = defineParameter({
  name: 'fields',
  description: `Comma-separated field apiNames, at most ${LIMITS.fields_max}; default: all readable fields.`,
  schema: Type.String(),
  example: 'id,name,city',
});

const listParameters = [
  {
    name: 'take',
    description: `Page size; more than ${LIMITS.take_max} is answered with ${LIMITS.take_max} records and \`X-Effective-Take\`.`,
    schema: Type.Integer({ minimum: 1, default: LIMITS.take_default }),
    example: 20,
  },
  {
    name: 'skip',
    description: `Records to skip, at most ${LIMITS.skip_max}; never together with \`cursor\`.`,
    schema: Type.Integer({ minimum: 0, default: 0 }),
    example: 0,
  },
  {
    name: 'includeTotal',
    description: 'Count all matching records into `total`.',
    schema: Type.Boolean({ default: false }),
    example: true,
  },
  {
    name: 'includeEtag',
    description: 'Give each record its ETag under `_etag`.',
    schema: Type.Boolean({ default: false }),
    example: true,
  },
  fields,
  {
    name: 'where',
    description: 'Field equality; null means blank.',
    schema: WhereSchema,
    json: true,
    example: { city: 'Berlin' },
  },
  {
    name: 'whereIn',
    description: 'Field in a list of values.',
    schema: WhereInSchema,
    json: true,
    example: { city: ['Berlin', 'Hamburg'] },
  },
  {
    name: 'filters',
    description: 'One group of conditions, joined by `logic`; groups cannot be nested.',
    schema: FiltersSchema,
    json: true,
    example: EXAMPLE_FILTERS,
  },
  {
    name: 'sort',
    description: 'Order of the records; default: newest first.',
    schema: SortSchema,
    json: true,
    example: [{ id: 'name', desc: false }],
  },
  {
    name: 'orderBy',
    description: 'One field apiName; alternative to `sort`.',
    schema: Type.String(),
    example: 'name',
  },
  {
    name: 'orderDirection',
    description: 'Direction of `orderBy`.',
    schema: Type.Union([Type.Literal('asc'), Type.Literal('desc')], { default: 'asc' }),
    example: 'asc',
  },
  {
    name: 'search',
    description: `Words that must all occur, as prefixes, ${LIMITS.search_min_chars} to ${LIMITS.search_max_chars} characters.`,
    schema: Type.String(),
    example: 'acme',
  },
  {
    name: 'searchFields',
    description: "Comma-separated field apiNames to search; default: the object's default search fields.",
    schema: Type.String(),
    example: 'name',
  },
  {
    name: 'cursor',
    description: 'The unmodified `nextCursor` of the previous page; every other parameter stays as it was.',
    schema: Type.String(),
  },
] as const;

const QueryBody = Type.Object(
  {
    take: Type.Optional(Type.Integer({ minimum: 1 })),
    skip: Type.Optional(Type.Integer({ minimum: 0 })),
    includeTotal: Type.Optional(Type.Boolean()),
    includeEtag: Type.Optional(Type.Boolean()),
    fields: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    where: Type.Optional(WhereSchema),
    whereIn: Type.Optional(WhereInSchema),
    filters: Type.Optional(FiltersSchema),
    sort: Type.Optional(SortSchema),
    orderBy: Type.Optional(Type.String()),
    orderDirection: Type.Optional(Type.Union([Type.Literal('asc'), Type.Literal('desc')])),
    search: Type.Optional(Type.String()),
    searchFields: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    cursor: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

/** Of reads that answer 304. */
const ifNoneMatch = defineParameter({
  name: 'If-None-Match',
  description: 'ETag of an earlier answer; 304 when nothing changed.',
  schema: Type.String(),
});

const etagHeader = {
  ETag: { description: 'Version of the record; send it back as If-Match.', schema: Type.String() },
};

const QUERY_ERRORS = [
  'PARAMETER_INVALID',
  'PARAMETER_UNKNOWN',
  'PARAMETER_REQUIRED',
  'PARAMETER_CONFLICT',
  'CURSOR_WITH_SKIP',
  'CURSOR_INVALID',
  'CURSOR_EXPIRED',
  'CURSOR_QUERY_MISMATCH',
  'SKIP_TOO_DEEP',
  'FILTER_INVALID',
  'FILTER_TOO_MANY_CONDITIONS',
  'FILTER_NESTED_GROUP',
  'FILTER_FIELD_UNKNOWN',
  'FILTER_FIELD_NOT_FILTERABLE',
  'FILTER_OPERATOR_UNSUPPORTED',
  'FILTER_VALUE_INVALID',
  'SORT_INVALID',
  'SORT_TOO_MANY',
  'SEARCH_FIELD_INVALID',
  'OBJECT_NOT_FOUND',
] as const;

const MUTATION_ERRORS = [
  ...KEY_ERRORS,
  'OBJECT_NOT_FOUND',
  'OBJECT_PERMISSION_DENIED',
  'RECORD_ACCESS_DENIED',
] as const;

const FIELD_ERRORS = [
  'BODY_REQUIRED',
  'FIELD_PERMISSION_DENIED',
  'UNIQUE_VALUE_CONFLICT',
  'VALIDATION_FAILED',
] as const;

const DUPLICATE_ERRORS = ['CONFIRMATION_TOKEN_INVALID', 'DUPLICATE_RULE'] as const;

/** On operations that store the values of a record. */
const duplicateConfirmation = defineParameter({
  name: 'X-Duplicate-Confirmation',
  description:
    'The `confirmationToken` of a 409 `DUPLICATE_RULE`, after the matches were shown to somebody who wants the record all the same. The repeated request has a new Idempotency-Key.',
  schema: Type.String(),
});

const IF_MATCH_ERRORS = ['IF_MATCH_REQUIRED', 'IF_MATCH_INVALID', 'ETAG_MISMATCH', 'RECORD_NOT_FOUND'] as const;

export const DATA_OPERATIONS = [
  defineOperation({
    ...READ,
    operationId: 'schema.objects.list',
    method: 'GET',
    path: '/objects',
    tag: 'schema',
    summary: 'List the objects the user can read',
    description: 'Objects and fields differ per tenant; nothing else may be assumed to exist.',
    scopes: ['data:read'],
    response: {
      status: 200,
      description: 'All published objects the user can read, by apiName.',
      schema: Type.Object({ records: Type.Array(ObjectDescriptor) }),
      example: {
        records: [
          {
            apiName: 'Account',
            label: 'Account',
            capabilities: { creatable: true, updateable: true, deletable: false, editable: true },
          },
        ],
      },
    },
    errors: [],
    action: 'data.objects.list',
  }),
  defineOperation({
    ...READ,
    operationId: 'schema.objects.describe',
    method: 'GET',
    path: '/objects/{objectApiName}/describe',
    tag: 'schema',
    summary: 'Describe an object and its readable fields',
    description:
      'What this user may read of an object and do with it: fields with types, limits, picklist values and filter operators, record types, the state model. A field that is not there is hidden or does not exist.',
    scopes: ['data:read'],
    pathParameters: [objectApiName],
    headerParameters: [ifNoneMatch],
    response: {
      status: 200,
      description: 'The object with every field the user can read.',
      schema: ObjectDescription,
      headers: { ETag: { description: 'schemaVersion; honours If-None-Match.', schema: Type.String() } },
    },
    errors: ['OBJECT_NOT_FOUND'],
    action: 'data.objects.describe',
  }),
  defineOperation({
    ...READ,
    operationId: 'schema.objects.getSchema',
    method: 'GET',
    path: '/objects/{objectApiName}/schema.json',
    tag: 'schema',
    summary: "JSON Schema of an object's bodies",
    description: 'JSON Schema 2020-12 of the create, update and read bodies, as this user may send and receive them.',
    scopes: ['data:read'],
    pathParameters: [objectApiName],
    headerParameters: [ifNoneMatch],
    response: {
      status: 200,
      description: 'A JSON Schema with the definitions `create`, `update` and `read`.',
      schema: Type.Object(
        {
          $schema: Type.String(),
          $id: Type.String(),
          title: Type.String(),
          $ref: Type.String(),
          $defs: Type.Object({ create: RecordSchema, update: RecordSchema, read: RecordSchema }),
        },
        { additionalProperties: true },
      ),
      headers: { ETag: { description: 'Changes with the schema; honours If-None-Match.', schema: Type.String() } },
    },
    errors: ['OBJECT_NOT_FOUND'],
    action: 'data.objects.getSchema',
  }),
  defineOperation({
    ...READ,
    operationId: 'data.records.list',
    method: 'GET',
    path: '/data/{objectApiName}',
    tag: 'data',
    summary: 'List records',
    description:
      'Answers the records the user can see. `where`, `whereIn`, `filters` and `search` must all hold. An empty list does not prove that no such records exist.',
    scopes: ['data:read'],
    pathParameters: [objectApiName],
    queryParameters: listParameters,
    response: {
      status: 200,
      description: 'One page of records.',
      schema: RecordPage,
      headers: effectiveTake,
      example: { records: [EXAMPLE_RECORD], total: 1, nextCursor: null },
    },
    errors: QUERY_ERRORS,
    action: 'data.records.list',
  }),
  defineOperation({
    ...WRITE,
    ...CHECKED,
    operationId: 'data.records.create',
    method: 'POST',
    path: '/data/{objectApiName}',
    tag: 'data',
    summary: 'Create a record',
    description:
      'Defaults, automatic numbers and the initial state are added, and the rules of the object are kept: all violations come at once. The caller becomes the owner unless the body gives the record to somebody else.',
    scopes: ['data:write'],
    risk: 'medium',
    precondition: 'none',
    pathParameters: [objectApiName],
    headerParameters: [duplicateConfirmation],
    requestBody: {
      required: true,
      schema: RecordSchema,
      description: 'Editable fields by apiName. A reference takes an id, or `{<externalIdField>: <value>}`.',
      maxBytes: LIMITS.body_max_bytes,
      validate: false,
      example: { name: 'Acme GmbH', city: 'Berlin', creditLimit: 25000.5 },
    },
    response: {
      status: 201,
      description: 'The created record.',
      schema: RecordSchema,
      headers: { ...etagHeader, Location: { description: 'Path of the record.', schema: Type.String() } },
      example: EXAMPLE_RECORD,
    },
    errors: [...MUTATION_ERRORS, ...FIELD_ERRORS, ...DUPLICATE_ERRORS],
    action: 'data.records.create',
  }),
  defineOperation({
    ...READ,
    operationId: 'data.records.get',
    method: 'GET',
    path: '/data/{objectApiName}/{id}',
    tag: 'data',
    summary: 'Read a record',
    description:
      'The fields that the user can read. A record that is absent, deleted or not shared with the user is 404, in one answer for all three.',
    scopes: ['data:read'],
    pathParameters: [objectApiName, id],
    queryParameters: [fields],
    headerParameters: [ifNoneMatch],
    response: {
      status: 200,
      description: 'The record; 304 without a body when If-None-Match names its ETag.',
      schema: RecordSchema,
      headers: etagHeader,
      example: EXAMPLE_RECORD,
    },
    errors: ['PARAMETER_INVALID', 'OBJECT_NOT_FOUND', 'RECORD_NOT_FOUND'],
    action: 'data.records.get',
  }),
  defineOperation({
    ...WRITE,
    ...CHECKED,
    operationId: 'data.records.update',
    method: 'PATCH',
    path: '/data/{objectApiName}/{id}',
    tag: 'data',
    summary: 'Change a record',
    description:
      'Only the fields of the body change; null clears one, a list replaces the whole list. When nothing differs, nothing is committed and the ETag stays.',
    scopes: ['data:write'],
    risk: 'medium',
    precondition: 'ifMatch',
    pathParameters: [objectApiName, id],
    headerParameters: [duplicateConfirmation],
    requestBody: {
      required: true,
      schema: RecordSchema,
      description: 'The fields to change, by apiName.',
      contentTypes: ['application/merge-patch+json'],
      maxBytes: LIMITS.body_max_bytes,
      validate: false,
      example: { city: 'Hamburg' },
    },
    response: {
      status: 200,
      description: 'The changed record.',
      schema: RecordSchema,
      headers: etagHeader,
      example: { ...EXAMPLE_RECORD, city: 'Hamburg', recordVersion: 2 },
    },
    errors: [...MUTATION_ERRORS, ...IF_MATCH_ERRORS, ...FIELD_ERRORS, ...DUPLICATE_ERRORS],
    action: 'data.records.update',
  }),
  defineOperation({
    ...WRITE,
    ...CHECKED,
    operationId: 'data.records.delete',
    method: 'DELETE',
    path: '/data/{objectApiName}/{id}',
    tag: 'data',
    summary: 'Delete a record',
    description: 'The record moves to the recycle bin, together with the records that depend on it.',
    scopes: ['data:delete'],
    risk: 'high',
    precondition: 'ifMatch',
    pathParameters: [objectApiName, id],
    response: {
      status: 200,
      description: 'What was deleted, and until when it can be restored.',
      schema: Type.Object({
        id: Type.String(),
        objectApiName: Type.String(),
        deleted: Type.Literal(true),
        deletedAt: Type.String({ format: 'date-time' }),
        restorableUntil: Type.String({ format: 'date-time' }),
        cascaded: Type.Array(Type.Object({ objectApiName: Type.String(), count: Type.Integer() })),
      }),
      example: {
        id: EXAMPLE_RECORD.id,
        objectApiName: 'Account',
        deleted: true,
        deletedAt: '2026-11-21T00:01:22.123+00:00',
        restorableUntil: '2026-12-21T00:01:22.123+00:00',
        cascaded: [{ objectApiName: 'Contact', count: 2 }],
      },
    },
    errors: [...MUTATION_ERRORS, ...IF_MATCH_ERRORS, 'DELETE_RESTRICTED', 'TOO_MANY_ITEMS'],
    action: 'data.records.delete',
  }),
  defineOperation({
    ...WRITE,
    ...CHECKED,
    operationId: 'data.records.upsert',
    method: 'PUT',
    path: '/data/{objectApiName}/by/{externalIdField}/{value}',
    tag: 'data',
    summary: 'Create or update a record by an external id',
    description:
      'The record with this external id is updated as by PATCH; when there is none, it is created as by POST. If-Match allows the update only, `If-None-Match: *` the create only.',
    scopes: ['data:write'],
    risk: 'medium',
    precondition: 'none',
    pathParameters: [
      objectApiName,
      {
        name: 'externalIdField',
        required: true,
        description: 'apiName of a field that is an external id.',
        schema: Type.String(),
        example: 'accountNumber',
      },
      {
        name: 'value',
        required: true,
        description: 'Value of the external id, percent-encoded.',
        schema: Type.String(),
        example: 'ACC-0042',
      },
    ],
    headerParameters: [
      {
        name: 'If-Match',
        description: 'Update only, and only these versions.',
        schema: Type.String(),
        example: '"k7"',
      },
      {
        name: 'If-None-Match',
        description: '`*`: create only.',
        schema: Type.String({ pattern: '^\\*$' }),
        example: '*',
      },
      duplicateConfirmation,
    ],
    requestBody: {
      required: true,
      schema: RecordSchema,
      description: 'Fields by apiName; the external id itself may be left out.',
      maxBytes: LIMITS.body_max_bytes,
      validate: false,
      example: { name: 'Acme GmbH', city: 'Hamburg' },
    },
    response: {
      status: 201,
      description: 'There was no record with this external id: the created record.',
      schema: RecordSchema,
      headers: { ...etagHeader, Location: { description: 'Path of the record.', schema: Type.String() } },
      example: EXAMPLE_RECORD,
    },
    alternatives: [
      {
        status: 200,
        description: 'The updated record.',
        schema: RecordSchema,
        headers: etagHeader,
        example: EXAMPLE_RECORD,
      },
      ...CHECKED.alternatives,
    ],
    errors: [
      ...MUTATION_ERRORS,
      ...FIELD_ERRORS,
      ...DUPLICATE_ERRORS,
      'IF_MATCH_INVALID',
      'ETAG_MISMATCH',
      'PARAMETER_CONFLICT',
    ],
    action: 'data.records.upsert',
  }),
  defineOperation({
    ...WRITE,
    ...CHECKED,
    operationId: 'data.records.restore',
    method: 'POST',
    path: '/data/{objectApiName}/{id}/restore',
    tag: 'data',
    summary: 'Restore a deleted record',
    description: `Brings a record back that was deleted in the last ${LIMITS.recycle_bin_days} days, with the records that were deleted along with it.`,
    scopes: ['data:delete'],
    risk: 'medium',
    precondition: 'none',
    pathParameters: [objectApiName, id],
    response: {
      status: 201,
      description: 'The record, one version after the one that was deleted.',
      schema: RecordSchema,
      headers: { ...etagHeader, Location: { description: 'Path of the record.', schema: Type.String() } },
      example: { ...EXAMPLE_RECORD, recordVersion: 2 },
    },
    errors: [...MUTATION_ERRORS, 'RECORD_NOT_FOUND', 'UNIQUE_VALUE_CONFLICT', 'VALIDATION_FAILED'],
    action: 'data.records.restore',
  }),
  defineOperation({
    ...READ,
    operationId: 'data.records.query',
    method: 'POST',
    path: '/data/{objectApiName}/query',
    tag: 'data',
    summary: 'List records with a query in the body',
    description: 'The same as the list, for queries that do not fit an address: its parameters as JSON values.',
    scopes: ['data:read'],
    pathParameters: [objectApiName],
    requestBody: {
      required: true,
      schema: QueryBody,
      maxBytes: LIMITS.body_max_bytes,
      validate: false,
      example: { take: 20, filters: EXAMPLE_FILTERS, sort: [{ id: 'name', desc: false }] },
    },
    response: {
      status: 200,
      description: 'One page of records.',
      schema: RecordPage,
      headers: effectiveTake,
      example: { records: [EXAMPLE_RECORD], nextCursor: null },
    },
    errors: [...QUERY_ERRORS, 'BODY_REQUIRED', 'BODY_PROPERTY_UNKNOWN'],
    action: 'data.records.query',
  }),
  defineOperation({
    ...READ,
    operationId: 'data.transitions.list',
    method: 'GET',
    path: '/data/{objectApiName}/{id}/transitions',
    tag: 'data',
    summary: 'List the transitions and actions of a record',
    description:
      'Everything that exists for the caller, available or not: transitions in the order of the state model, then actions by name.',
    scopes: ['actions:read'],
    pathParameters: [objectApiName, id],
    response: {
      status: 200,
      description: 'The transitions, with reasons for those that are unavailable.',
      schema: Type.Object({
        records: Type.Array(
          Type.Object({
            transitionKey: Type.String({ description: 'Names it in the address that executes it.' }),
            label: Type.String(),
            description: nullable(Type.String()),
            fromState: nullable(
              Type.String({
                description:
                  'The current state where it starts there; otherwise the state that it starts from, null when there are several.',
              }),
            ),
            toState: nullable(
              Type.String({ description: 'The state that it leads to; of an action, the current one.' }),
            ),
            kind: Type.Union([Type.Literal('transition'), Type.Literal('action')]),
            available: Type.Boolean({ description: 'The caller could execute it now.' }),
            unavailableReasons: Type.Array(Type.Object({ code: Type.String(), message: Type.String() }), {
              description: 'All that stands against it, in the order in which executing would find it.',
            }),
            risk: Type.Union([Type.Literal('low'), Type.Literal('medium'), Type.Literal('high')]),
            requiresComment: Type.Boolean(),
            requiresApproval: Type.Boolean(),
            input: nullable(
              Type.Object({}, { additionalProperties: true, description: 'JSON Schema of what is sent along.' }),
            ),
          }),
        ),
        nextCursor: Type.Null(),
        currentState: nullable(
          Type.String({ description: 'null without a state model, and for those who cannot read the state.' }),
        ),
        etag: Type.String({ description: 'To be sent as If-Match with what is chosen.' }),
      }),
      headers: etagHeader,
      example: {
        records: [
          {
            transitionKey: 'send',
            label: 'Send',
            description: 'The customer gets the invoice.',
            fromState: 'draft',
            toState: 'sent',
            kind: 'transition',
            available: false,
            unavailableReasons: [
              { code: 'GUARD_NOT_MET', message: 'An invoice is sent when its lines add up to its amount.' },
            ],
            risk: 'medium',
            requiresComment: false,
            requiresApproval: false,
            input: null,
          },
        ],
        nextCursor: null,
        currentState: 'draft',
        etag: '"1"',
      },
    },
    errors: ['OBJECT_NOT_FOUND', 'RECORD_NOT_FOUND'],
    action: 'data.transitions.list',
  }),
  defineOperation({
    ...WRITE,
    ...CHECKED,
    operationId: 'data.transitions.execute',
    method: 'POST',
    path: '/data/{objectApiName}/{id}/transitions/{transitionKey}',
    tag: 'data',
    summary: 'Execute a transition or action of a record',
    description:
      'The new state, what the effects set and create, history, audit and events are one transaction. It takes the permission to change the record and the one that the transition names.',
    scopes: ['actions:execute'],
    risk: 'high',
    cost: 3,
    precondition: 'ifMatch',
    pathParameters: [
      objectApiName,
      id,
      {
        name: 'transitionKey',
        required: true,
        description: '`transitionKey` of the list.',
        schema: Type.String(),
        example: 'submit',
      },
    ],
    headerParameters: [duplicateConfirmation],
    requestBody: {
      required: false,
      schema: Type.Object(
        {
          input: Type.Optional(
            Type.Object({}, { additionalProperties: true, description: 'As the `input` schema of the list says.' }),
          ),
          comment: Type.Optional(
            Type.String({ maxLength: LIMITS.comment_max_chars, description: 'Why; it stays in the history.' }),
          ),
        },
        { additionalProperties: false },
      ),
      maxBytes: LIMITS.transition_body_max_bytes,
      example: { comment: 'Agreed with the customer by telephone.' },
    },
    response: {
      status: 201,
      description: 'What was done, and the record as it is now.',
      schema: Type.Object({
        executionId: Type.String(),
        transitionKey: Type.String(),
        fromState: nullable(Type.String()),
        toState: nullable(Type.String()),
        executedAt: Type.String({ format: 'date-time' }),
        record: RecordSchema,
        sideEffects: Type.Array(
          Type.Object({
            kind: Type.Union((['create', 'notification', 'event'] as const).map((kind) => Type.Literal(kind))),
            objectApiName: Type.String(),
            id: Type.String({ description: 'The created record, or the one that the message is about.' }),
          }),
        ),
      }),
      headers: etagHeader,
      example: {
        executionId: '0193d3a8-5d2f-7c11-8e4b-2a6f9d0c7b15',
        transitionKey: 'submit',
        fromState: 'draft',
        toState: 'submitted',
        executedAt: '2026-11-21T00:01:22.123+00:00',
        record: { ...EXAMPLE_RECORD, recordVersion: 2 },
        sideEffects: [
          {
            kind: 'notification',
            objectApiName: 'SalesOrder__c',
            id: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
          },
        ],
      },
    },
    errors: [
      ...MUTATION_ERRORS,
      ...IF_MATCH_ERRORS,
      'FIELD_PERMISSION_DENIED',
      'CONFIRMATION_TOKEN_INVALID',
      'DUPLICATE_RULE',
      'TRANSITION_NOT_FOUND',
      'TRANSITION_NOT_ALLOWED',
      'TRANSITION_INPUT_INVALID',
      'STATE_CONFLICT',
      'UNIQUE_VALUE_CONFLICT',
      'VALIDATION_FAILED',
    ],
    action: 'data.transitions.execute',
  }),
  ...TRAIL_OPERATIONS,
  ...SHARE_OPERATIONS,
  ...EXPLAIN_OPERATIONS,
] as const;

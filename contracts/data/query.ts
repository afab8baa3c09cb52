/** Parameters of a list of records, in the query string or as a body. */
import { type TSchema, Type } from 'typebox';
import { LIMITS } from '../../lib/limits.ts';
import { defineParameter, nullable } from '../../lib/operation.ts';
import { FIELD_TYPE_NAMES } from '../../lib/schema/field-types/registry.ts';
import { AGGREGATIONS, OPERATORS } from '../../lib/schema/field-types/types.ts';

export const Operator = Type.Enum([...OPERATORS], { title: 'FilterOperator' });
export const Aggregation = Type.Enum([...AGGREGATIONS], { title: 'Aggregation' });
export const FieldTypeSchema = Type.Enum([...FIELD_TYPE_NAMES], { title: 'FieldType' });

/** One condition of a filter. */
export const ConditionSchema = Type.Object(
  {
    id: Type.String({ minLength: 1, maxLength: 64 }),
    field: Type.String(),
    operator: Operator,
    value: Type.Optional(Type.Unknown()),
    valueTo: Type.Optional(Type.Unknown()),
  },
  { title: 'FilterCondition', additionalProperties: false },
);

export const FiltersSchema = Type.Object(
  {
    logic: Type.Enum(['and', 'or']),
    conditions: Type.Array(ConditionSchema, { minItems: 1, maxItems: LIMITS.filter_conditions_max }),
  },
  { title: 'FilterGroup', additionalProperties: false },
);

const WhereSchema = Type.Record(Type.String(), Type.Unknown(), { title: 'FieldValues' });
const WhereInSchema = Type.Record(
  Type.String(),
  Type.Array(Type.Unknown(), { minItems: 1, maxItems: LIMITS.in_values_max }),
  { title: 'FieldValueLists' },
);
const SortSchema = Type.Array(
  Type.Object({ id: Type.String(), desc: Type.Optional(Type.Boolean()) }, { additionalProperties: false }),
  { title: 'SortOrder', maxItems: LIMITS.sort_max },
);

const ExpandSchema = Type.Record(
  Type.String(),
  Type.Array(Type.String(), { minItems: 1, maxItems: LIMITS.expand_fields_max }),
  { maxProperties: LIMITS.expand_max },
);

export const EXAMPLE_FILTERS = {
  logic: 'and',
  conditions: [{ id: 'c1', field: 'creditLimit', operator: 'between', value: 1000, valueTo: 50000 }],
};

export const fields = defineParameter({
  name: 'fields',
  description: `Comma-separated field apiNames, at most ${LIMITS.fields_max}; default: all readable fields.`,
  schema: Type.String(),
  example: 'id,name,city',
});

export const expand = defineParameter({
  name: 'expand',
  description: `References, each with the fields to answer of the record that it points to, under \`_expanded\`: at most ${LIMITS.expand_max} of ${LIMITS.expand_fields_max} fields each. Each reference costs one unit more.`,
  schema: Type.String(),
  example: 'ownerId(displayName)',
});

export const listParameters = [
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
  expand,
  {
    name: 'where',
    description: 'Equality of fields, or of `<reference>.<field>`; null means blank.',
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
    description:
      'One group of conditions, joined by `logic`; groups cannot be nested. `field` is an apiName, or `<reference>.<field>` of the record that is referred to.',
    schema: FiltersSchema,
    json: true,
    example: EXAMPLE_FILTERS,
  },
  {
    name: 'sort',
    description: 'Order of the records, by fields or `<reference>.<field>`; default: newest first.',
    schema: SortSchema,
    json: true,
    example: [{ id: 'name', desc: false }],
  },
  {
    name: 'orderBy',
    description: 'One field apiName, or `<reference>.<field>`; alternative to `sort`.',
    schema: Type.String(),
    example: 'name',
  },
  {
    name: 'orderDirection',
    description: 'Direction of `orderBy`, which it requires; default: ascending.',
    schema: Type.Enum(['asc', 'desc']),
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
    description: 'Unmodified `nextCursor` of the previous page, with all other parameters unchanged.',
    schema: Type.String(),
  },
] as const;

/** In a body null stands for what is not given: `cursor` takes every `nextCursor`, `filters` those of a list view. */
const optional = <T extends TSchema>(schema: T) => Type.Optional(nullable(schema));

export const QueryBody = Type.Object(
  {
    take: optional(Type.Integer({ minimum: 1 })),
    skip: optional(Type.Integer({ minimum: 0 })),
    includeTotal: optional(Type.Boolean()),
    includeEtag: optional(Type.Boolean()),
    fields: optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    expand: optional(Type.Union([Type.String(), ExpandSchema])),
    where: optional(WhereSchema),
    whereIn: optional(WhereInSchema),
    filters: optional(FiltersSchema),
    sort: optional(SortSchema),
    orderBy: optional(Type.String()),
    orderDirection: optional(Type.Enum(['asc', 'desc'])),
    search: optional(Type.String()),
    searchFields: optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    cursor: optional(Type.String()),
  },
  {
    title: 'RecordQuery',
    additionalProperties: false,
    description: 'Parameters of a list as JSON values; null: not given.',
  },
);

export const QUERY_ERRORS = [
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

/** Parameters of a list of records, in the query string or as a body. */
import { Type } from 'typebox';
import { LIMITS } from '../../config/limits.ts';
import { defineParameter } from '../../lib/operation.ts';
import { OPERATORS } from '../../lib/schema/field-types/types.ts';

/** One condition of a filter. */
export const ConditionSchema = Type.Object(
  {
    id: Type.String({ minLength: 1, maxLength: 64 }),
    field: Type.String(),
    operator: Type.Enum([...OPERATORS]),
    value: Type.Optional(Type.Unknown()),
    valueTo: Type.Optional(Type.Unknown()),
  },
  { additionalProperties: false },
);

export const FiltersSchema = Type.Object(
  {
    logic: Type.Enum(['and', 'or']),
    conditions: Type.Array(ConditionSchema, { minItems: 1, maxItems: LIMITS.filter_conditions_max }),
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
    schema: Type.Enum(['asc', 'desc'], { default: 'asc' }),
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

export const QueryBody = Type.Object(
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
    orderDirection: Type.Optional(Type.Enum(['asc', 'desc'])),
    search: Type.Optional(Type.String()),
    searchFields: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    cursor: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
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

/** What the platform knows about a field type. One file per type; `registry.ts` lists them. Pure. */

import type { Violation } from '../../errors/platform-error.ts';
import type { FieldMeta, FieldTypeName } from '../snapshot.ts';

export const OPERATORS = [
  'eq',
  'neq',
  'contains',
  'not_contains',
  'starts_with',
  'is_blank',
  'is_not_blank',
  'gt',
  'gte',
  'lt',
  'lte',
  'between',
  'in',
  'not_in',
  'in_related',
] as const;

export type Operator = (typeof OPERATORS)[number];

export type Aggregation = 'count' | 'countDistinct' | 'sum' | 'avg' | 'min' | 'max';

/** A value as it is bound to SQL. Decimals and big numbers travel as text; lists become PostgreSQL arrays. */
export type SqlValue = string | number | boolean | null | readonly (string | number)[];

export type Parsed =
  | { readonly ok: true; readonly value: SqlValue }
  | { readonly ok: false; readonly violation: Violation };

export interface FieldType {
  readonly name: FieldTypeName;
  /** False: no caller ever writes it (id, autoNumber, formula, rollup). */
  readonly writable: boolean;
  /** PostgreSQL type that a bound value is cast to, such as `uuid`. */
  readonly bindType: string;
  /** What counts as blank besides null. */
  readonly blank: 'null' | 'whiteSpace' | 'emptyList';
  /** Values that PostgreSQL calls equal may be shown differently, such as PT24H and P1D: only their text tells them apart. */
  readonly toldApartByText?: true;
  /** PostgreSQL column type, such as `numeric(18,2)`; null when nothing is stored (formula). */
  columnType(field: FieldMeta): string | null;
  /** A value of a create or update body (never null) → what is stored, or one violation at `pointer`. */
  parseInput(value: unknown, field: FieldMeta, pointer: string): Parsed;
  /** A value of a filter condition → what is compared; violations become FILTER_VALUE_INVALID. */
  parseFilter(value: unknown, field: FieldMeta, pointer: string): Parsed;
  readonly operators: readonly Operator[];
  readonly sortable: boolean;
  readonly groupable: boolean;
  readonly searchable: boolean;
  readonly aggregations: readonly Aggregation[];
  /** SQL that yields the JSON value of the column; `column` is a quoted identifier, possibly qualified. */
  outputSql(column: string, field: FieldMeta, ieee754Compatible: boolean): string;
  /** JSON Schema 2020-12 of a value (not of null). */
  jsonSchema(field: FieldMeta): Record<string, unknown>;
  /** Attributes of a CustomField component that this type uses, beyond those every type has. */
  readonly attributes: readonly (
    | 'length'
    | 'precision'
    | 'scale'
    | 'minimum'
    | 'maximum'
    | 'pattern'
    | 'picklist'
    | 'referenceTo'
    | 'onDelete'
    | 'relationshipName'
    | 'currencyField'
    | 'format'
    | 'formula'
    | 'rollup'
    | 'unique'
    | 'externalId'
    | 'caseSensitive'
    | 'defaultValue'
    | 'required'
    | 'controllingField'
  )[];
  /** An example value for documents. */
  example(field: FieldMeta): unknown;
}

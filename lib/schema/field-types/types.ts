/** Everything that the platform knows about a field type. One file per type; `registry.ts` lists them. Pure. */

import type { Violation } from '../../errors/platform-error.ts';
import type { PatternBudget } from '../../values/pattern.ts';

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

export const AGGREGATIONS = ['count', 'countDistinct', 'sum', 'avg', 'min', 'max'] as const;

export type Aggregation = (typeof AGGREGATIONS)[number];

/** A value as it is bound to SQL. Decimals and big numbers travel as text; lists become PostgreSQL arrays. */
export type SqlValue = string | number | boolean | null | readonly (string | number)[];

export type Parsed<T extends SqlValue = SqlValue> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly violation: Violation };

export interface PicklistValue {
  readonly value: string;
  readonly label: string;
  readonly active: boolean;
  readonly default: boolean;
  /** Values of the controlling field for which this one may be chosen; null: for all. */
  readonly validFor: readonly string[] | null;
}

/** Properties of a field that its values depend on; a subset of the snapshot's FieldMeta. */
export interface FieldAttributes {
  readonly apiName: string;
  readonly length: number | null;
  readonly precision: number | null;
  readonly scale: number | null;
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly pattern: string | null;
  /** autoNumber: text with one `{0…}` run of zeros that gives the least number of digits, such as `INV-{00000}`. */
  readonly format: string | null;
  readonly picklistValues: readonly PicklistValue[] | null;
  readonly restrictedPicklist: boolean;
}

/** `text` stands for everything kept as one text: picklist values, references, e-mail addresses. */
export type ScalarType = 'text' | 'number' | 'boolean' | 'date' | 'dateTime' | 'time';

/** Type of a field's value in an expression. `opaque`: only blank or not, changed or not. */
export type ValueType = ScalarType | 'list:text' | 'address' | 'geolocation' | 'opaque';

/** Attributes of a CustomField component that not every type has. */
type Attribute =
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
  | 'controllingField';

/** Everything that the platform knows about a field type; nothing else asks for a type by its name. */
export interface FieldType {
  readonly name: string;

  // Values
  /** False: no caller ever writes it (id, autoNumber, formula, rollup). */
  readonly writable: boolean;
  /** Values that count as blank, in addition to null. */
  readonly blank: 'null' | 'whiteSpace' | 'emptyList';
  /**
   * A value of a create or update body (never null) → what is stored, or one violation at `pointer`. `budget` is what
   * the patterns of all fields may still cost; absent: this one is read alone.
   */
  parseInput(value: unknown, field: FieldAttributes, pointer: string, budget?: PatternBudget): Parsed;
  /** SQL that yields the JSON value of the column; `column` is a quoted identifier, possibly qualified. */
  outputSql(column: string, field: FieldAttributes, ieee754Compatible: boolean): string;
  /** JSON Schema 2020-12 of a value (not of null). */
  jsonSchema(field: FieldAttributes): Record<string, unknown>;
  /** An example value for documents. */
  example(field: FieldAttributes): unknown;
  /** One choice or several of a list of values; absent: values are not chosen. */
  readonly choices?: 'one' | 'many';
  /** The platform counts the records: each new one gets the next number. */
  readonly numbered?: true;
  /** Computed from other fields: of the record, when it is read, or of child records, when they are written. */
  readonly calculated?: 'formula' | 'rollup';
  /** Holds the id of a record of another object; `master`: of the one that it is a part of. */
  readonly relation?: 'reference' | 'master';

  /** Holds the id of a file: its user must be able to read the file. */
  readonly holdsFile?: true;

  // Storage
  /** PostgreSQL type that a bound value is cast to, such as `uuid`. */
  readonly bindType: string;
  /** PostgreSQL column type, such as `numeric(18,2)`; null when nothing is stored (formula). */
  columnType(field: FieldAttributes): string | null;

  // Queries
  /** A value of a filter condition → what is compared; violations become FILTER_VALUE_INVALID. */
  parseFilter(value: unknown, field: FieldAttributes, pointer: string): Parsed;
  readonly operators: readonly Operator[];
  readonly sortable: boolean;
  readonly groupable: boolean;
  readonly searchable: boolean;
  readonly aggregations: readonly Aggregation[];
  /** Filters take words such as `today`, which stand for days or for the moments of these days. */
  readonly relativeDates?: 'days' | 'moments';

  // Comparison
  /**
   * How keys and duplicate rules compare values: as they are, or as texts of which case, form and length may differ.
   * Absent: they cannot be compared.
   */
  readonly comparison?: 'value' | 'text';
  /** Texts: SQL function that gives one form to what people write in several ways. */
  readonly normalForm?: string;
  /** Many records have the same value: nothing is looked up by it while there is something better. */
  readonly fewValues?: true;
  /** Values that PostgreSQL calls equal may be shown differently, such as PT24H and P1D: only their text differs. */
  readonly needsTextComparison?: true;

  // Expressions, formulas and rollups
  /** Type of a value in an expression; null: that of the field's result (formula, rollup). */
  readonly expressionType: ValueType | null;
  /** Most characters of a text in an expression, where the field declares no fewer; absent: 4,000. */
  readonly maxChars?: number;
  /** A formula may have a result of this type. */
  readonly formulaResult?: true;
  /** Rollups that the type supports: `numbers` are added and compared, an `order` is only compared. */
  readonly rollup?: 'numbers' | 'order';

  // Configuration
  /** Kept by the platform alone: no component defines a field of this type. */
  readonly systemOnly?: true;
  /** Attributes of a CustomField component that this type uses, beyond those every type has. */
  readonly attributes: readonly Attribute[];
  /** Those of them without which a field of the type makes no sense. */
  readonly needs?: readonly Attribute[];
  /** Digits of a field that does not declare them. */
  readonly digits?: { readonly precision: number; readonly scale: number };
  /** Characters: of a field that does not declare them, and the most that one can declare. */
  readonly chars?: { readonly default: number; readonly max: number };
  /** Types that a field of this type can become, because they take over its values as they are. */
  readonly becomes?: readonly string[];
  /** Values by which this field can control a dependent picklist, null: any. Absent: it controls none. */
  controllingValues?(field: FieldAttributes): readonly string[] | null;
  /** Can hold the ISO 4217 code of a currency field. */
  readonly holdsCurrencyCode?: true;
}

/**
 * Questions that group records, as other services ask them for a user: what a widget of a dashboard shows. Source:
 * docs/reference/aggregation.md.
 */
import type { Granularity } from '../../lib/query/types.ts';
import type { Aggregation } from '../../lib/schema/field-types/types.ts';
import type { FieldTypeName } from '../../lib/schema/snapshot.ts';

export type { AggregateQuery } from '../../lib/query/types.ts';

export interface AggregateColumn {
  readonly key: string;
  readonly label: string;
  readonly role: 'dimension' | 'measure';
  /** The type of the values: `date` of a period, of a calculated field that of its result. */
  readonly fieldType: FieldTypeName;
  /** ISO 4217 code of all amounts of the column; null: there are several, or none. */
  readonly currency: string | null;
  /** Of amounts of several currencies: key of the column with the currency of each. */
  readonly currencyKey?: string;
}

export interface AccessNote {
  readonly code: 'FIELD_HIDDEN' | 'ROWS_RESTRICTED';
  readonly field: string | null;
  readonly message: string;
}

export interface AggregateResult {
  /** For amounts of several currencies, with a column for their currency behind the dimensions. */
  readonly columns: readonly AggregateColumn[];
  /** JSON text of the list of rows, each a list of values in the order of the columns. */
  readonly rowsJson: string;
  /** JSON text of an object: by key of a measure its value over all rows, those of other pages included. */
  readonly totalsJson: string;
  /** Rows of all pages. */
  readonly rowCount: number;
  /** There are rows beyond those of this page and the pages before it. */
  readonly truncated: boolean;
  readonly nextCursor: string | null;
  readonly computedAt: string;
  /** Everything that was committed before this moment is counted. */
  readonly dataAsOf: string;
  readonly accessNotes: readonly AccessNote[];
  /** Display names of a dimension's values, by its key and the value: names of records, labels of choices. */
  readonly labels: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Aggregations that an object offers, as GET /analytics/catalog/{objectApiName} answers it. */
export interface ObjectCatalog {
  /** Of the labels. */
  readonly language: string;
  readonly objectApiName: string;
  readonly label: string;
  readonly dimensions: readonly {
    readonly field: string;
    readonly label: string;
    readonly fieldType: FieldTypeName;
    readonly granularities: readonly Granularity[];
    /** Of a picklist, in its order; else null. */
    readonly choices: readonly { readonly value: string; readonly label: string }[] | null;
    readonly filterOperators: readonly string[];
  }[];
  readonly measures: readonly {
    readonly field: string;
    readonly label: string;
    readonly fieldType: FieldTypeName;
    readonly aggregations: readonly Aggregation[];
    readonly semantics: string | null;
  }[];
  readonly relationships: readonly { readonly relationshipName: string; readonly objectApiName: string }[];
  readonly limits: { readonly maxDimensions: number; readonly maxMeasures: number; readonly maxRows: number };
}

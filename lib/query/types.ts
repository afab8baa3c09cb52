/**
 * The stages of a query, each a pure function from one named type to the next:
 * parse (closed grammar) → plan (names resolved to fields the user may read) → constrain (lib/access: sharing joined by
 * AND) → compile (SQL text and bound values). Only `constrain` can make a ConstrainedPlan, and only a ConstrainedPlan
 * compiles.
 */
import type { Predicate } from '../access/predicate.ts';
import type { Access } from '../access/types.ts';
import type { Aggregation, Operator, SqlValue } from '../schema/field-types/types.ts';
import type { FieldMeta, ObjectMeta, Snapshot } from '../schema/snapshot.ts';

/** Query parameters of a list after JSON parsing, still untrusted. GET /data/{o} and POST /data/{o}/query share it. */
export type RawListQuery = Record<string, unknown>;

export interface Condition {
  /** Client's id of the condition, for error details; null for where and whereIn. */
  readonly id: string | null;
  /** Pointer of the condition for errors, such as `query:filters/conditions/0` or `/filters/conditions/0`. */
  readonly pointer: string;
  readonly field: string;
  readonly operator: Operator;
  readonly value?: unknown;
  readonly valueTo?: unknown;
}

export interface ListRequest {
  /** Decides how errors point at a parameter: `query:take` or `/take`. */
  readonly source: 'query' | 'body';
  readonly take: number;
  /** The caller asked for more than the maximum. */
  readonly takeClamped: boolean;
  readonly skip: number;
  readonly includeTotal: boolean;
  readonly includeEtag: boolean;
  /** null: all readable fields. */
  readonly fields: readonly string[] | null;
  readonly where: readonly Condition[];
  readonly whereIn: readonly Condition[];
  readonly filters: { readonly logic: 'and' | 'or'; readonly conditions: readonly Condition[] } | null;
  readonly sort: readonly { readonly field: string; readonly desc: boolean; readonly pointer: string }[] | null;
  readonly search: { readonly text: string; readonly fields: readonly string[] | null } | null;
  readonly expand: readonly ExpandRequest[];
  readonly cursor: string | null;
}

/** A reference whose record is answered along, with these of its fields. */
export interface ExpandRequest {
  readonly reference: string;
  readonly pointer: string;
  readonly fields: readonly { readonly name: string; readonly pointer: string }[];
}

/** Resolves the names and values of a query. */
export interface NamingView {
  readonly access: Pick<Access, 'objects'>;
  /** Milliseconds since 1970; determines TODAY. */
  readonly now: number;
  /** IANA name, such as `Europe/Berlin`: where TODAY begins. */
  readonly timezone: string;
}

/** The user for whom a query is planned. */
export interface QueryView extends NamingView {
  readonly access: Access;
  readonly snapshot: Snapshot;
}

export interface PlanOptions {
  readonly ieee754Compatible?: boolean;
}

/** A reference of a record with what is answered of the record that it points to. */
export interface Expansion {
  readonly reference: FieldMeta;
  readonly object: ObjectMeta;
  /** Output, in order; `id` comes first. */
  readonly fields: readonly FieldMeta[];
}

/** A reference of a record whose record is filtered or sorted by. */
export interface Followed {
  readonly reference: FieldMeta;
  readonly object: ObjectMeta;
}

export interface SortKey {
  readonly field: FieldMeta;
  readonly desc: boolean;
  /** The field is one of the record that this reference points to; null: of the record itself. */
  readonly through: Followed | null;
}

export interface Plan {
  readonly object: ObjectMeta;
  /** Output, in order. */
  readonly fields: readonly FieldMeta[];
  readonly expand: readonly Expansion[];
  readonly filter: Predicate | null;
  /** Always ends with id. */
  readonly sort: readonly SortKey[];
  readonly take: number;
  readonly skip: number;
  readonly includeTotal: boolean;
  readonly includeEtag: boolean;
  readonly ieee754Compatible: boolean;
  /** Sort values of the last record of the previous page as PostgreSQL prints them, one per sort key. */
  readonly after: readonly (string | null)[] | null;
}

/** A statement whose text depends on the shape of the plan alone; every value is bound. */
export interface CompiledQuery {
  readonly text: string;
  readonly values: readonly SqlValue[];
  /** Name for a prepared statement; absent when the shape does not recur. */
  readonly name?: string;
}

/** Lengths of the periods that dates and moments are grouped into. A week begins on Monday (ISO 8601). */
export const GRANULARITIES = ['day', 'week', 'month', 'quarter', 'year'] as const;

export type Granularity = (typeof GRANULARITIES)[number];

export interface AggregateQuery {
  objectApiName: string;
  dimensions?: readonly {
    field: string;
    /** Of dates and moments alone; absent: each of their values is a group. */
    granularity?: Granularity;
  }[];
  measures: readonly {
    /** Key of the column. */
    key: string;
    aggregation: Aggregation;
    /** Absent with `count`: records are counted, whatever they hold. */
    field?: string;
  }[];
  /** One group of conditions `{logic, conditions}`, as in a list of records. */
  filters?: unknown;
  /** Conditions that hold in addition, from elsewhere than the query. Their ids are apart from those of `filters`. */
  conditions?: readonly unknown[];
  /** By keys of columns; the dimensions follow, in ascending order. */
  sort?: readonly { id: string; desc?: boolean }[];
  limit?: number;
  cursor?: string;
  /** IANA name; default: the zone of the user. */
  timezone?: string;
  /** Decimals as JSON strings. */
  ieee754Compatible?: boolean;
}

export interface Dimension {
  /** Of its column. */
  readonly key: string;
  readonly field: FieldMeta;
  readonly granularity: Granularity | null;
}

export interface Measure {
  readonly key: string;
  readonly aggregation: Aggregation;
  /** The name that was asked for; null: records are counted. */
  readonly named: string | null;
  /** null when it is hidden, too. */
  readonly field: FieldMeta | null;
  /** Its values are amounts of one currency each. */
  readonly isAmount: boolean;
  /** The field with the currency of an amount; null: that of the tenant. */
  readonly currency: FieldMeta | null;
  /** There is no such field, or the caller cannot read it or the currency of its amounts: it has no values. */
  readonly hidden: boolean;
}

/** Records in groups. */
export interface AggregatePlan {
  readonly object: ObjectMeta;
  readonly dimensions: readonly Dimension[];
  /** Fields by which groups are split beside the dimensions, so that amounts of different currencies stay apart. */
  readonly currencies: readonly FieldMeta[];
  readonly measures: readonly Measure[];
  readonly filter: Predicate | null;
  /** Sort of the dimensions and currencies, ascending. */
  readonly sort: readonly { readonly column: Dimension | Measure; readonly desc: boolean }[];
  readonly limit: number;
  /** IANA name: where periods begin. */
  readonly timezone: string;
  readonly ieee754Compatible: boolean;
  /** Values of the columns that the last group of the previous page was sorted by, as PostgreSQL prints them. */
  readonly after: readonly (string | null)[] | null;
}

declare const constrained: unique symbol;

/** A plan that carries the caller's record access. Made by lib/query/constrain.ts alone. */
export type Constrained<P> = P & { readonly sharing: Predicate | null; readonly [constrained]: true };

interface ConstrainedSortKey extends SortKey {
  readonly through: Constrained<Followed> | null;
}

export type ConstrainedPlan = Constrained<
  Omit<Plan, 'expand' | 'sort'> & {
    readonly expand: readonly Constrained<Expansion>[];
    readonly sort: readonly ConstrainedSortKey[];
  }
>;

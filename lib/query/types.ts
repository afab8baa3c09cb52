/**
 * The stages of a query, each a pure function from one named type to the next:
 * parse (closed grammar) → plan (names resolved to fields the user may read) → constrain (lib/access: sharing joined by
 * AND) → compile (SQL text and bound values). Only `constrain` can make a ConstrainedPlan, and only a ConstrainedPlan
 * compiles.
 */
import type { Predicate } from '../access/predicate.ts';
import type { Access } from '../access/types.ts';
import type { Operator, SqlValue } from '../schema/field-types/types.ts';
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
  readonly cursor: string | null;
}

/** The user for whom a query is planned. */
export interface QueryView {
  readonly access: Access;
  readonly snapshot: Snapshot;
  /** Milliseconds since 1970; determines TODAY. */
  readonly now: number;
  /** IANA name, such as `Europe/Berlin`: where TODAY begins. */
  readonly timezone: string;
}

export interface PlanOptions {
  readonly ieee754Compatible?: boolean;
}

export interface SortKey {
  readonly field: FieldMeta;
  readonly desc: boolean;
}

export interface Plan {
  readonly object: ObjectMeta;
  /** Output, in order. */
  readonly fields: readonly FieldMeta[];
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

declare const constrained: unique symbol;

/** A plan that carries the caller's record access. Made by lib/query/constrain.ts alone. */
export type ConstrainedPlan = Plan & { readonly sharing: Predicate | null; readonly [constrained]: true };

/**
 * A checked expression: a tree of typed nodes that says which functions run on what.
 * Source: docs/reference/expressions.md.
 */
import type { ScalarType, ValueType } from '../schema/field-types/types.ts';
import type { FieldTypeName, SystemPermission } from '../schema/snapshot.ts';
import type { Exact } from '../values/decimal.ts';

export type { ScalarType };

/** `list:null` is the empty list. */
export type Type =
  | ValueType
  | `list:${ScalarType}`
  | 'list:null'
  | 'null'
  | 'record'
  | 'user'
  /** Of a part with a mistake that has been reported; fits everything, so that one mistake is one message. */
  | 'mistaken';

const SCALARS: ReadonlySet<Type> = new Set(['text', 'number', 'boolean', 'date', 'dateTime', 'time'] as const);
export const isScalar = (type: Type): type is ScalarType => SCALARS.has(type);

const ITEMS: Readonly<Partial<Record<Type, ScalarType>>> = {
  'list:text': 'text',
  'list:number': 'number',
  'list:boolean': 'boolean',
  'list:date': 'date',
  'list:dateTime': 'dateTime',
  'list:time': 'time',
};

/** The type of the items of a list; any would do for the empty list. */
export const itemOf = (list: Type): ScalarType => ITEMS[list] ?? 'text';

/** A moment, so that it is never taken for a number. */
export interface Instant {
  readonly ms: number;
}

/** Dates are `2026-11-21`, times `09:30:00`. */
export type Value = null | string | boolean | Exact | Instant | readonly Value[] | Parts;

type Parts = { readonly [part: string]: string | Exact | null };

const isObject = (value: Value): value is Exact | Instant | readonly Value[] | Parts =>
  typeof value === 'object' && value !== null;
export const isExact = (value: Value): value is Exact => isObject(value) && 'units' in value;
export const isInstant = (value: Value): value is Instant => isObject(value) && 'ms' in value;
export const isListValue = (value: Value | undefined): value is readonly Value[] => Array.isArray(value);
/** An address or a position. */
export const hasParts = (value: Value): value is Parts =>
  isObject(value) && !isListValue(value) && !isExact(value) && !isInstant(value);

/** The functions of functions.ts; the last seven are written as operators alone. */
export type FunctionName =
  | 'contains'
  | 'startsWith'
  | 'endsWith'
  | 'matches'
  | 'lower'
  | 'upper'
  | 'trim'
  | 'replace'
  | 'substring'
  | 'size'
  | 'abs'
  | 'floor'
  | 'ceil'
  | 'round'
  | 'min'
  | 'max'
  | 'date'
  | 'dateTime'
  | 'time'
  | 'addDays'
  | 'addMonths'
  | 'daysBetween'
  | 'year'
  | 'month'
  | 'day'
  | 'weekday'
  | 'join'
  | 'add'
  | 'subtract'
  | 'multiply'
  | 'divide'
  | 'remainder'
  | 'negate';

/** Offset in the text of the expression, in UTF-16 units from 0. */
interface Place {
  readonly start: number;
}

export type Node = Place &
  (
    | { readonly op: 'literal'; readonly value: Value }
    | { readonly op: 'field'; readonly of: 'record' | 'old'; readonly field: string }
    | { readonly op: 'user'; readonly property: string }
    /** Input of a transition or action. */
    | { readonly op: 'input'; readonly name: string }
    | { readonly op: 'now' }
    | { readonly op: 'today' }
    | { readonly op: 'isCreate' }
    /** The item that the enclosing `exists`, `all` or `filter` is looking at. */
    | { readonly op: 'item'; readonly slot: number }
    | { readonly op: 'part'; readonly value: Node; readonly part: string }
    | { readonly op: 'list'; readonly items: readonly Node[] }
    | { readonly op: 'not'; readonly value: Node }
    | { readonly op: 'and' | 'or'; readonly left: Node; readonly right: Node }
    | { readonly op: 'if'; readonly condition: Node; readonly yes: Node; readonly no: Node }
    | { readonly op: 'equal' | 'unequal'; readonly left: Node; readonly right: Node }
    | { readonly op: 'less' | 'lessOrEqual' | 'greater' | 'greaterOrEqual'; readonly left: Node; readonly right: Node }
    | { readonly op: 'in'; readonly value: Node; readonly list: Node }
    | { readonly op: 'changed'; readonly field: string }
    | { readonly op: 'permission'; readonly name: SystemPermission }
    | { readonly op: 'group'; readonly name: string }
    | { readonly op: 'isBlank'; readonly value: Node }
    | { readonly op: 'coalesce'; readonly items: readonly Node[] }
    | {
        readonly op: 'each';
        readonly how: 'exists' | 'all' | 'filter';
        readonly list: Node;
        readonly slot: number;
        readonly condition: Node;
      }
    /** A function of functions.ts, which sees no null: with a null among its arguments the result is `onNull`. */
    | { readonly op: 'call'; readonly fn: FunctionName; readonly args: readonly Node[]; readonly onNull: null | false }
  );

/** An expression that passed its check. */
export interface Expression {
  readonly root: Node;
  readonly type: Type;
  /** Fields that it reads of `record` or `old`, or asks about with isChanged. */
  readonly fields: readonly string[];
}

/** One thing that is wrong with an expression. */
export interface Mistake extends Place {
  readonly message: string;
  readonly remedy: string | null;
}

export class ExpressionError extends Error {
  override readonly name = 'ExpressionError';
  readonly mistakes: readonly Mistake[];

  constructor(mistakes: readonly Mistake[]) {
    super(mistakes.map((mistake) => mistake.message).join(' '));
    this.mistakes = mistakes;
  }
}

/** Names that an expression may use. */
export type VariableName = 'record' | 'old' | 'user' | 'now' | 'today';

/** Schema that an expression is checked against. */
export interface Schema {
  readonly object: string;
  /** Of a formula field, the type of its result. */
  fieldType(name: string): FieldTypeName | undefined;
  /** Types of the parts of `input`; absent: there is no such variable. */
  readonly input?: Readonly<Record<string, Type>>;
  /** Absent: any name is taken, as where an expression runs that a deployment has checked. */
  hasGroup?(name: string): boolean;
  /** Variables that the expression may use; default: all. `user` is the caller, with permissions and groups. */
  readonly variables?: readonly VariableName[];
  /** Most characters of a text field, when it has fewer than its type allows. */
  length?(name: string): number | null;
  /** Most units that a formula field costs, where one is computed in its place. */
  cost?(name: string): number;
}

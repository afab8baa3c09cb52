/**
 * Runs a checked expression. It always ends: its work is counted in units and its time is measured, and it stops at
 * 10,000 units or 50 ms. Source: docs/reference/expressions.md#limits.
 */
import { isBlankText } from '../schema/field-types/common.ts';
import type { SystemPermission } from '../schema/snapshot.ts';
import { byCodePoint } from '../values/code-points.ts';
import { compare } from '../values/decimal.ts';
import { newPatternBudget, type PatternBudget } from '../values/pattern.ts';
import { dayOf, EvaluationError, type FailureReason, FUNCTIONS, type Runtime } from './functions.ts';
import { type Expression, hasParts, isExact, isInstant, isListValue, type Node, type Value } from './types.ts';

export const COST_MAX = 10_000;
const TIME_MAX_MS = 50;
/** These are no property of what is evaluated, and stop what it is part of as well. */
const STOPPING: ReadonlySet<FailureReason> = new Set(['COST_EXCEEDED', 'TIME_EXCEEDED'] as const);

/** An expression fails; what asked for it goes on. */
export const isFailure = (error: unknown): error is EvaluationError =>
  error instanceof EvaluationError && !STOPPING.has(error.reason);

/** How often the clock is looked at, in units. */
const CLOCK_EVERY = 50;

/** Values of the variables. */
export interface Facts {
  record(field: string): Value;
  /** Null while a record is being created. */
  readonly old: ((field: string) => Value) | null;
  isChanged(field: string): boolean;
  readonly user: Readonly<Record<string, Value>>;
  /** Absent where an expression cannot name `input`. */
  readonly input?: (name: string) => Value;
  hasPermission(name: SystemPermission): boolean;
  inGroup(name: string): boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** IANA zone in which `today` and `date(moment)` are days. */
  readonly timezone: string;
  /** Budget shared by all expressions of one record; absent: each has its own bound. */
  readonly budget?: Budget | undefined;
}

export interface Budget {
  units: number;
}

/** For all that a request asks: rules, guards, effects, and the formulas that they name, of all records together. */
export const BUDGET_UNITS = 10 * COST_MAX;

/** Cost that a tenant's configuration may add to one request. */
export interface RequestBudget extends Budget, PatternBudget {}

export const newRequestBudget = (): RequestBudget => ({ units: BUDGET_UNITS, ...newPatternBudget() });

/** The variables of an expression about a record alone, whichever user asks. */
export const recordFacts = (
  record: Facts['record'],
  { now, timezone, budget }: Pick<Facts, 'now' | 'timezone' | 'budget'>,
): Facts => ({
  record,
  old: null,
  isChanged: () => false,
  user: {},
  hasPermission: () => false,
  inGroup: () => false,
  now,
  timezone,
  budget,
});

/**
 * The value of an expression. Throws EvaluationError: it divides by zero, leaves the range of a type, or costs too
 * much. `clock` gives milliseconds.
 */
export function evaluate(expression: Expression, facts: Facts, clock: () => number = workOfThread): Value {
  return new Evaluation(facts, clock).value(expression.root);
}

/** Milliseconds that this thread has worked: waiting for a busy machine is no cost of an expression. */
const workOfThread = (): number => process.threadCpuUsage().user / 1_000;

class Evaluation implements Runtime {
  readonly timezone: string;
  readonly #facts: Facts;
  readonly #clock: () => number;
  /** Set at the first look at the clock: most expressions never come so far. */
  #deadline: number | null = null;
  readonly #items: Value[] = [];
  #today: string | null = null;
  #cost = 0;
  #nextLook = CLOCK_EVERY;

  constructor(facts: Facts, clock: () => number) {
    this.#facts = facts;
    this.#clock = clock;
    this.timezone = facts.timezone;
  }

  spend(units: number): void {
    this.#cost += units;
    if (this.#cost > COST_MAX) throw new EvaluationError('COST_EXCEEDED', `it costs more than ${COST_MAX} units`);
    const { budget } = this.#facts;
    if (budget) {
      budget.units -= units;
      if (budget.units < 0)
        throw new EvaluationError('COST_EXCEEDED', `with those before it, it costs more than ${BUDGET_UNITS} units`);
    }
    if (this.#cost < this.#nextLook) return;
    this.#nextLook = this.#cost + CLOCK_EVERY;
    const time = this.#clock();
    this.#deadline ??= time + TIME_MAX_MS;
    if (time > this.#deadline) throw new EvaluationError('TIME_EXCEEDED', `it takes longer than ${TIME_MAX_MS} ms`);
  }

  /** Null counts as false. */
  #holds(node: Node): boolean {
    return this.value(node) === true;
  }

  value(node: Node): Value {
    this.spend(1);
    switch (node.op) {
      case 'literal':
        return node.value;
      case 'field':
        return node.of === 'record' ? this.#facts.record(node.field) : (this.#facts.old?.(node.field) ?? null);
      case 'user':
        return this.#facts.user[node.property] ?? null;
      case 'input':
        return this.#facts.input?.(node.name) ?? null;
      case 'now':
        return { ms: this.#facts.now };
      case 'today':
        return (this.#today ??= dayOf(this.#facts.now, this.timezone));
      case 'isCreate':
        return this.#facts.old === null;
      case 'item':
        return this.#items[node.slot] ?? null;
      case 'part': {
        const whole = this.value(node.value);
        return hasParts(whole) ? (whole[node.part] ?? null) : null;
      }
      case 'list':
        // A null has no place in a list: nothing is equal to it there.
        return node.items.map((item) => this.value(item)).filter((item) => item !== null);
      case 'not':
        return !this.#holds(node.value);
      case 'and':
        return this.#decided(node.left, node.right, false);
      case 'or':
        return this.#decided(node.left, node.right, true);
      case 'if':
        return this.value(this.#holds(node.condition) ? node.yes : node.no);
      case 'equal':
        return isSameValue(this.value(node.left), this.value(node.right));
      case 'unequal':
        return !isSameValue(this.value(node.left), this.value(node.right));
      case 'less':
        return this.#inOrder(node.left, node.right, (order) => order < 0);
      case 'lessOrEqual':
        return this.#inOrder(node.left, node.right, (order) => order <= 0);
      case 'greater':
        return this.#inOrder(node.left, node.right, (order) => order > 0);
      case 'greaterOrEqual':
        return this.#inOrder(node.left, node.right, (order) => order >= 0);
      case 'in': {
        const [value, list] = this.#operands([node.value, node.list]) ?? [];
        if (value === undefined || !isListValue(list)) return false;
        this.spend(list.length);
        return list.some((item) => isSameValue(item, value));
      }
      case 'changed':
        return this.#facts.old !== null && this.#facts.isChanged(node.field);
      case 'permission':
        return this.#facts.hasPermission(node.name);
      case 'group':
        return this.#facts.inGroup(node.name);
      case 'isBlank':
        return this.#isBlank(this.value(node.value));
      case 'coalesce': {
        for (const item of node.items) {
          const value = this.value(item);
          if (value !== null) return value;
        }
        return null;
      }
      case 'each':
        return this.#each(node);
      case 'call': {
        const args = this.#operands(node.args);
        return args === null ? node.onNull : FUNCTIONS[node.fn].run(args, this);
      }
    }
  }

  /** The result of `work`, or its failure. Errors that stop the whole evaluation pass through. */
  #attempt<T>(work: () => T): T | EvaluationError {
    try {
      return work();
    } catch (error) {
      if (isFailure(error)) return error;
      throw error;
    }
  }

  /** False for `&&`, true for `||`: the value that decides, whatever becomes of the other side. */
  #decided(left: Node, right: Node, by: boolean): boolean {
    const first = this.#attempt(() => this.#holds(left));
    if (first === by) return by;
    const second = this.#holds(right);
    if (second !== by && first instanceof EvaluationError) throw first;
    return second;
  }

  /** The values of operands that need one; null when one of them is null, also where another one fails. */
  #operands(nodes: readonly Node[]): Value[] | null {
    let failure: EvaluationError | null = null;
    const values: Value[] = [];
    for (const node of nodes) {
      const value = this.#attempt(() => this.value(node));
      if (value === null) return null;
      if (value instanceof EvaluationError) failure ??= value;
      else values.push(value);
    }
    if (failure) throw failure;
    return values;
  }

  #each({ how, list, slot, condition }: Node & { op: 'each' }): Value {
    const items = this.value(list);
    if (!isListValue(items)) return how === 'filter' ? null : how === 'all';
    const kept: Value[] = [];
    let failure: EvaluationError | null = null;
    for (const item of items) {
      this.#items[slot] = item;
      const holds = this.#attempt(() => this.#holds(condition));
      if (holds instanceof EvaluationError) failure ??= holds;
      else if (how === 'exists' && holds) return true;
      else if (how === 'all' && !holds) return false;
      else if (holds) kept.push(item);
    }
    if (failure) throw failure;
    return how === 'filter' ? kept : how === 'all';
  }

  #isBlank(value: Value): boolean {
    if (typeof value === 'string') {
      this.spend(value.length / 100);
      return isBlankText(value);
    }
    return value === null || (Array.isArray(value) && value.length === 0);
  }

  #inOrder(left: Node, right: Node, decide: (order: number) => boolean): boolean {
    const [a, b] = this.#operands([left, right]) ?? [];
    return a !== undefined && b !== undefined && decide(this.#compare(a, b));
  }

  #compare(a: Value, b: Value): number {
    if (typeof a === 'string' && typeof b === 'string') {
      this.spend(Math.min(a.length, b.length) / 100);
      return byCodePoint(a, b);
    }
    return compareObjects(a, b);
  }
}

/** Both null, or both the same value: 1.50 is 1.5, and "a" is not "A". */
export function isSameValue(a: Value, b: Value): boolean {
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return a === b;
  return compareObjects(a, b) === 0;
}

function compareObjects(a: Value, b: Value): number {
  if (isInstant(a) && isInstant(b)) return a.ms - b.ms;
  if (isExact(a) && isExact(b)) return compare(a, b);
  throw new Error('Assertion failed: the check lets two moments or two numbers be compared');
}

/**
 * A checked expression becomes SQL that gives what evaluate() gives, for every row, and never raises an error: where
 * evaluate() fails it is null. The text names no parameter: what the expression says stands in it as constants, so that
 * it may be part of a trigger or an index as well as of a statement.
 *
 * Inside, a failure is a value that no field can have (see FAILED): null is taken, since an expression may ask for it.
 * A condition has true, false and, for a failure, null; AND, OR and NOT of SQL then do what those of the language do.
 * No operand is written twice, so the text grows with the expression and not faster.
 * Source: docs/reference/expressions.md.
 */

import { TEXT_MAX_CHARS } from '../schema/field-types/common.ts';
import { fieldType } from '../schema/field-types/registry.ts';
import type { FieldTypeName } from '../schema/snapshot.ts';
import { readInstant, readTime } from '../values/calendar.ts';
import { type Exact, exactText, integerOf, QUOTIENT_SCALE } from '../values/decimal.ts';
import { DIGITS_MAX } from '../values/decimal-text.ts';
import { patternSize, patternSql } from '../values/pattern.ts';
import { literal } from '../values/sql-text.ts';
import { DAY_COST } from './functions.ts';
import {
  type Expression,
  type FunctionName,
  isExact,
  isScalar,
  itemOf,
  type Node,
  type Type,
  type Value,
} from './types.ts';
import { requireTypeOfField } from './values.ts';

/** Context of a compilation. */
export interface SqlContext {
  /** SQL of a field's column, such as `r."Amount__c"`; what it says is repeated for each time the field is named. */
  column(field: string): string;
  /** Of a formula field, the type of its result. */
  fieldType(field: string): FieldTypeName | undefined;
  /** Most characters of a text field, when it has fewer than its type allows. */
  length?(field: string): number | null | undefined;
  /** Most units that reading the field costs in addition to the one for its name, when it is calculated. */
  cost?(field: string): number;
  /** The tenant's zone: where `today` and `date(moment)` are days. */
  readonly timezone: string;
  /** SQL of the moment that `now` stands for; by default that at which the statement began. */
  readonly now?: string;
}

export interface CompiledExpression {
  readonly sql: string;
  /** False: it asks what time it is, or looks at the items of a list one by one, so that no index can hold it. */
  readonly indexable: boolean;
  /** Most units that evaluate() can spend on it. */
  readonly cost: number;
  /** Most characters of a text. */
  readonly chars: number;
}

/** SQL of the expression's value, of the PostgreSQL type that fields of its type have; null where evaluate() fails. */
export function expressionSql(expression: Expression, context: SqlContext): CompiledExpression {
  const compiler = new Compiler(context);
  const part = compiler.part(expression.root);
  return {
    sql: compiler.result(part, expression.type),
    indexable: compiler.indexable,
    cost: part.cost,
    chars: part.chars,
  };
}

/**
 * SQL of a condition, for WHERE, FILTER and ON: true where the expression is true. False and null, which includes
 * failure, are the same, so it must not be negated; an index on a column that it compares with a constant can be used.
 */
export function conditionSql(expression: Expression, context: SqlContext): CompiledExpression {
  const compiler = new Compiler(context);
  const part = compiler.part(expression.root);
  return { sql: part.holds(true), indexable: compiler.indexable, cost: part.cost, chars: part.chars };
}

const PG: Readonly<Partial<Record<Type, string>>> = {
  text: 'text',
  number: 'numeric',
  // As numbers: 1, 0 or null.
  boolean: 'integer',
  date: 'date',
  dateTime: 'timestamptz',
  time: 'time',
  address: 'jsonb',
  geolocation: 'jsonb',
  // 1 or null.
  opaque: 'integer',
};

const FAILED_PARTS = ['street', 'city', 'state', 'postalCode', 'country'].map((part) => `"${part}":"\\u0958"`);

/** Fields and constants are in NFC, which writes this letter as two; no function puts them together. */
const FAILED_TEXT = `E'\\u0958'::text`;

/** By type, the value that stands for a failure. */
const FAILED: Readonly<Partial<Record<Type, string>>> = {
  text: FAILED_TEXT,
  number: `'NaN'::numeric`,
  boolean: '-1',
  date: `'infinity'::date`,
  dateTime: `'infinity'::timestamptz`,
  time: `'24:00:00'::time`,
  address: `'{${FAILED_PARTS.join(',')}}'::jsonb`,
  geolocation: `'{"latitude":"NaN","longitude":"NaN"}'::jsonb`,
  opaque: '-1',
};

const isList = (type: Type): boolean => type.startsWith('list:');
const listOf = (item: Type | undefined): Type => (item && isScalar(item) ? `list:${item}` : 'list:null');
const pgType = (type: Type): string => (isList(type) ? `${PG[itemOf(type)]}[]` : (PG[type] ?? 'text'));

function failed(type: Type): string {
  if (isList(type)) return `ARRAY[${failed(itemOf(type))}]`;
  return FAILED[type] ?? FAILED_TEXT;
}

/** One node: its SQL in both forms, and what is known of its value beforehand. */
interface Part {
  readonly type: Type;
  readonly fails: boolean;
  readonly nullable: boolean;
  /** SQL of the value. */
  value(): string;
  /** Of a boolean: SQL of "it is true", null for a failure. `loose`: null may stand for false as well. */
  holds(loose: boolean): string;
  /** Most units. */
  readonly cost: number;
  /** Numbers: most digits before and after the point. */
  readonly whole: number;
  readonly scale: number;
  /** Most characters of a text or of an item, most items of a list. */
  readonly chars: number;
  readonly items: number;
  /**
   * Characters of a text before upper() and lower() made more of them: a character becomes three at most, however often
   * its case is changed.
   */
  readonly letters: number;
  /** Of a number or text that the expression spells out. */
  readonly constant?: Exact | string;
}

type Known = Partial<Omit<Part, 'type' | 'value' | 'holds'>>;

const FIELD_ITEMS_MAX = 200;
const OTHER_CHARS = 4_000;

function part(type: Type, value: () => string, known: Known = {}): Part {
  const self: Part = {
    type,
    fails: false,
    nullable: false,
    cost: 1,
    whole: DIGITS_MAX,
    scale: DIGITS_MAX,
    chars: 0,
    items: 0,
    letters: known.chars ?? 0,
    ...known,
    value,
    holds(loose) {
      if (self.fails) return `(CASE ${value()} WHEN 1 THEN true WHEN -1 THEN NULL ELSE false END)`;
      return loose || !self.nullable ? `(${value()} = 1)` : `coalesce(${value()} = 1, false)`;
    },
  };
  return self;
}

/** A boolean that is never null, by its SQL as a condition. */
function condition(holds: (loose: boolean) => string, known: Known): Part {
  const self: Part = {
    ...part('boolean', () => ''),
    ...known,
    nullable: false,
    holds,
    value: () =>
      self.fails
        ? `(CASE ${holds(false)} WHEN true THEN 1 WHEN false THEN 0 ELSE -1 END)`
        : `(${holds(false)})::integer`,
  };
  return self;
}

class Compiler {
  indexable = true;
  readonly #context: SqlContext;
  readonly #items: Part[] = [];

  constructor(context: SqlContext) {
    this.#context = context;
  }

  /** The value as the outermost level shows it: a failure is null, a boolean is one. */
  result(root: Part, type: Type): string {
    if (type !== 'boolean') {
      const value = this.#as(root, type);
      return root.fails ? `nullif(${value}, ${failed(type)})` : value;
    }
    if (root.type === 'null') return 'NULL::boolean';
    if (!root.nullable) return root.holds(false);
    return `(CASE ${root.value()} WHEN 1 THEN true WHEN 0 THEN false END)`;
  }

  part(node: Node): Part {
    switch (node.op) {
      case 'literal':
        return this.#literal(node.value);
      case 'field':
        if (node.of === 'record') return this.#field(node.field);
        break;
      case 'now':
        this.indexable = false;
        return part('dateTime', () => `date_trunc('milliseconds', ${this.#now})`);
      case 'today':
        this.indexable = false;
        return part('date', () => `(${this.#now} AT TIME ZONE ${this.#zone})::date`);
      case 'item':
        return operand(this.#items[node.slot]);
      case 'part':
        return this.#member(this.part(node.value), node.part);
      case 'list':
        return this.#list(node.items.map((item) => this.part(item)));
      case 'not': {
        const value = this.part(node.value);
        return condition(() => `(NOT ${value.holds(false)})`, { fails: value.fails, cost: 1 + value.cost });
      }
      case 'and':
      case 'or': {
        const [left, right] = [this.part(node.left), this.part(node.right)];
        const operator = node.op === 'and' ? 'AND' : 'OR';
        return condition((loose) => `(${left.holds(loose)} ${operator} ${right.holds(loose)})`, together(left, right));
      }
      case 'if':
        return this.#choice(this.part(node.condition), this.part(node.yes), this.part(node.no));
      case 'equal':
        return this.#equal(this.part(node.left), this.part(node.right));
      case 'unequal': {
        const equal = this.#equal(this.part(node.left), this.part(node.right));
        return condition(() => `(NOT ${equal.holds(false)})`, { fails: equal.fails, cost: equal.cost });
      }
      case 'less':
      case 'lessOrEqual':
      case 'greater':
      case 'greaterOrEqual':
        return this.#order(node.op, this.part(node.left), this.part(node.right));
      case 'in':
        return this.#membership(this.part(node.value), this.part(node.list));
      case 'isBlank':
        return this.#isBlank(this.part(node.value));
      case 'coalesce':
        return this.#coalesce(node.items.map((item) => this.part(item)));
      case 'each':
        return this.#each(node);
      case 'call':
        return this.#call(node);
    }
    throw new Error(`Assertion failed: ${node.op} is not checked away`);
  }

  get #now(): string {
    return this.#context.now ?? 'statement_timestamp()';
  }

  get #zone(): string {
    return `erp.expr_zone(${literal(this.#context.timezone)})`;
  }

  /** The value where one of `type` is needed: null and the empty list take any. */
  #as(value: Part, type: Type): string {
    if (value.type === type) return value.value();
    if (value.type === 'null')
      return value.fails
        ? `(CASE WHEN ${value.value()} IS NOT NULL THEN ${failed(type)} END)`
        : `NULL::${pgType(type)}`;
    if (value.type === 'list:null') {
      const empty = `'{}'::${pgType(type)}`;
      if (!value.fails && !value.nullable) return empty;
      return `(CASE cardinality(${value.value()}) WHEN 0 THEN ${empty} WHEN 1 THEN ${failed(type)} END)`;
    }
    return value.value();
  }

  #literal(value: Value): Part {
    if (value === null) return part('null', () => 'NULL', { nullable: true });
    if (typeof value === 'string')
      return part('text', () => `${literal(value)}::text`, { chars: value.length, constant: value });
    if (typeof value === 'boolean') return condition(() => String(value), {});
    if (!isExact(value)) throw new Error('Assertion failed: an expression spells out texts, numbers, true and false');
    const text = exactText(value);
    const [whole = '', fraction = ''] = text.replace('-', '').split('.');
    return part('number', () => `'${text}'::numeric`, { whole: whole.length, scale: fraction.length, constant: value });
  }

  #field(name: string): Part {
    const { column } = this.#context;
    const stored = this.#context.fieldType(name);
    if (!stored) throw new Error(`Assertion failed: the check knows no field ${name}`);
    const type = requireTypeOfField(stored);
    const { bindType, maxChars } = fieldType(stored);
    const cast = type === 'text' && bindType !== 'text' ? '::text' : '';
    const known = { nullable: true, cost: 1 + (this.#context.cost?.(name) ?? 0) };
    switch (type) {
      case 'number':
        return bindType === 'bigint'
          ? part(type, () => `${column(name)}::numeric`, { ...known, whole: 19, scale: 0 })
          : part(type, () => column(name), { ...known, ...DECIMAL });
      case 'boolean':
        return {
          ...part(type, () => `${column(name)}::integer`, known),
          holds: (loose) => (loose ? column(name) : `coalesce(${column(name)}, false)`),
        };
      case 'opaque':
        return part(type, () => `(CASE WHEN ${column(name)} IS NOT NULL THEN 1 END)`, known);
      default: {
        const most = maxChars ?? OTHER_CHARS;
        const chars = Math.min(this.#context.length?.(name) ?? most, most);
        return part(type, () => column(name) + cast, { ...known, chars, items: FIELD_ITEMS_MAX });
      }
    }
  }

  #member(whole: Part, name: string): Part {
    const { fails, cost } = whole;
    const text = (): string => `(${whole.value()} ->> ${literal(name)})`;
    const known = { fails, nullable: true, cost: 1 + cost };
    if (whole.type === 'address') return part('text', text, { ...known, chars: OTHER_CHARS });
    return part('number', () => `${text()}::numeric`, { ...known, whole: 3 });
  }

  #list(items: readonly Part[]): Part {
    const type = listOf(items[0]?.type);
    const known = together(...items);
    const value = (): string => {
      const list = `ARRAY[${items.map((item) => item.value()).join(', ')}]::${pgType(type)}`;
      if (known.fails) return `erp.expr_list(${list}, ${failed(itemOf(type))})`;
      return items.some((item) => item.nullable) ? `array_remove(${list}, NULL)` : list;
    };
    const most = { items: items.length, chars: Math.max(0, ...items.map((item) => item.chars)) };
    return part(type, value, { ...known, nullable: false, ...most });
  }

  #choice(test: Part, yes: Part, no: Part): Part {
    const type = commonType(yes.type, no.type);
    const known: Known = {
      ...widest(yes, no),
      fails: test.fails || yes.fails || no.fails,
      nullable: yes.nullable || no.nullable,
      cost: 1 + test.cost + Math.max(yes.cost, no.cost),
    };
    const otherwise = test.fails
      ? ` WHEN false THEN ${this.#as(no, type)} ELSE ${failed(type)}`
      : ` ELSE ${this.#as(no, type)}`;
    const value = (): string => `(CASE ${test.holds(false)} WHEN true THEN ${this.#as(yes, type)}${otherwise} END)`;
    if (type !== 'boolean') return part(type, value, known);
    const truth = (item: Part, loose: boolean): string => (item.type === 'null' ? 'false' : item.holds(loose));
    return {
      ...part(type, value, known),
      holds: (loose) =>
        `(CASE ${test.holds(false)} WHEN true THEN ${truth(yes, loose)} WHEN false THEN ${truth(no, loose)} END)`,
    };
  }

  #equal(left: Part, right: Part): Part {
    const known = together(left, right);
    const type = commonType(left.type, right.type);
    const nothing = [left, right].find((side) => side.type === 'null' && !side.fails);
    if (nothing) return condition(() => this.#isNull(nothing === left ? right : left), known);
    return condition((loose) => {
      if (known.fails && !(loose && !(left.nullable && right.nullable)))
        return `erp.expr_equal(${this.#as(left, type)}, ${this.#as(right, type)}, ${failed(type)})`;
      const [a, b] = [firm(left), firm(right)];
      if (left.nullable && right.nullable) return `(${a} IS NOT DISTINCT FROM ${b})`;
      return loose || !known.nullable ? `(${a} = ${b})` : `coalesce(${a} = ${b}, false)`;
    }, known);
  }

  #isNull(value: Part): string {
    if (value.fails) return `erp.expr_is_null(${value.value()}, ${failed(value.type)})`;
    return value.nullable ? `(${value.value()} IS NULL)` : 'false';
  }

  #order(op: keyof typeof ORDERS, left: Part, right: Part): Part {
    const known = together(left, right);
    const cost = known.cost + (left.type === 'text' ? Math.min(left.chars, right.chars) / 50 : 0);
    const { sign, found } = ORDERS[op];
    // On both sides: one of them may be a formula, which says its own.
    const collate = left.type === 'text' ? ' COLLATE "C"' : '';
    return condition(
      (loose) => {
        if (known.fails && !loose)
          return `(erp.expr_order(${left.value()}${collate}, ${right.value()}${collate}, ${failed(left.type)}) ${found})`;
        const [a, b] = [firm(left) + collate, firm(right) + collate];
        return loose || !known.nullable ? `(${a} ${sign} ${b})` : `coalesce(${a} ${sign} ${b}, false)`;
      },
      { ...known, cost },
    );
  }

  #membership(value: Part, list: Part): Part {
    const known = together(value, list);
    const type = value.type;
    return condition(
      (loose) => {
        const [a, items] = [this.#as(value, type), this.#as(list, listOf(type))];
        if (known.fails) return `erp.expr_in(${a}, ${items}, ${failed(type)})`;
        return loose || !known.nullable
          ? `(${a} = ANY ((${items})::${pgType(type)}[]))`
          : `coalesce(${a} = ANY ((${items})::${pgType(type)}[]), false)`;
      },
      { ...known, cost: known.cost + list.items },
    );
  }

  #isBlank(value: Part): Part {
    const known = { fails: value.fails, cost: 1 + value.cost + value.chars / 50 };
    if (value.type === 'text')
      return condition(() => {
        const text = value.value();
        if (value.fails) return `erp.expr_is_blank(${text})`;
        return value.nullable ? `coalesce(erp.expr_is_white(${text}), true)` : `erp.expr_is_white(${text})`;
      }, known);
    if (isList(value.type))
      return condition(() => {
        const list = `cardinality(${this.#as(value, value.type)})`;
        if (value.fails) return `erp.expr_equal(coalesce(${failableSize(value)}, 0), 0::numeric, 'NaN'::numeric)`;
        return value.nullable ? `(coalesce(${list}, 0) = 0)` : `(${list} = 0)`;
      }, known);
    return condition(() => this.#isNull(value), known);
  }

  #coalesce(items: readonly Part[]): Part {
    const type = items.map((item) => item.type).reduce(commonType);
    const known: Known = {
      ...together(...items),
      ...items.reduce<Known>((all, item) => widest(all, item), {}),
      nullable: items.every((item) => item.nullable),
    };
    return part(type, () => `coalesce(${items.map((item) => this.#as(item, type)).join(', ')})`, known);
  }

  #each({ how, list: listNode, slot, condition: test }: Node & { op: 'each' }): Part {
    this.indexable = false;
    const list = this.part(listNode);
    const type: Type = list.type === 'list:null' ? 'list:text' : list.type;
    const [item, alias] = [`i${slot}.v`, `i${slot}`];
    this.#items[slot] = part(itemOf(type), () => item, { chars: list.chars });
    const holds = this.part(test);
    const known = {
      fails: list.fails || holds.fails,
      cost: 1 + list.cost + list.items * (1 + holds.cost),
      nullable: how === 'filter' && list.nullable,
      items: list.items,
      chars: list.chars,
    };
    // The list is named once and its name used: a list within a list would else be written for every use. OFFSET 0
    // keeps the planner from doing just that.
    const named = (make: (name: string) => string): string =>
      `(SELECT ${make(`l${slot}.v`)} FROM (SELECT ${this.#as(list, type)} AS v OFFSET 0) l${slot})`;
    const guarded = (failure: string, make: (name: string) => string): string =>
      named((name) => `CASE WHEN ${name} = ${failed(type)} THEN ${failure} ELSE ${make(name)} END`);
    if (how === 'filter') {
      const rows = (name: string): string => `unnest(${name}) WITH ORDINALITY AS ${alias}(v, n)`;
      const kept = (name: string): string => {
        if (!holds.fails)
          return `ARRAY(SELECT ${item} FROM ${rows(name)} WHERE ${holds.holds(true)} ORDER BY ${alias}.n)`;
        const tried = `SELECT ${item}, ${alias}.n, ${holds.holds(false)} AS c FROM ${rows(name)} OFFSET 0`;
        const marked = `SELECT CASE WHEN c IS NULL THEN ${failed(itemOf(type))} ELSE v END`;
        return `erp.expr_list(ARRAY(${marked} FROM (${tried}) t WHERE c IS NOT false ORDER BY n), ${failed(itemOf(type))})`;
      };
      const orNull = (name: string): string => `CASE WHEN ${name} IS NOT NULL THEN ${kept(name)} END`;
      return part(list.type, () => (list.fails ? guarded(failed(type), orNull) : named(orNull)), known);
    }
    const decided = how === 'exists';
    const over = (name: string): string => {
      const rows = `unnest(${name}) AS ${alias}(v)`;
      if (!holds.fails)
        return decided
          ? `EXISTS (SELECT FROM ${rows} WHERE ${holds.holds(true)})`
          : `NOT EXISTS (SELECT FROM ${rows} WHERE NOT ${holds.holds(false)})`;
      const tried = `(SELECT ${holds.holds(false)} AS c FROM ${rows} OFFSET 0) t`;
      return `(SELECT CASE WHEN bool_or(${decided ? 'c' : 'NOT c'}) THEN ${decided} WHEN bool_or(c IS NULL) THEN NULL ELSE ${!decided} END FROM ${tried})`;
    };
    return condition(() => (list.fails ? guarded('NULL', over) : `(${over(this.#as(list, type))})`), known);
  }

  #call({ fn, args: nodes }: Node & { op: 'call' }): Part {
    const args = nodes.map((node) => this.part(node));
    const known = together(...args);
    const chars = args.reduce((sum, arg) => sum + (arg.type === 'text' ? arg.chars : 0), 0);
    // Texts are charged by their UTF-16 units, of which a character has two at most.
    const charged = { ...known, cost: known.cost + chars / 50 };
    return CALLS[fn](args, {
      known,
      charged,
      chars,
      zone: () => this.#zone,
      as: (value, type) => this.#as(value, type),
    });
  }
}

/** A call as its function compiles it. */
interface Call {
  /** Properties of the result that follow from the arguments. */
  readonly known: Known & { readonly cost: number };
  /** The same, with the cost of reading the texts among the arguments. */
  readonly charged: Known & { readonly cost: number };
  /** Most characters of the texts among the arguments. */
  readonly chars: number;
  /** SQL of the time zone of the tenant. */
  readonly zone: () => string;
  /** SQL of a value as one of a type that it fits. */
  readonly as: (value: Part, type: Type) => string;
}

/** The arguments, as many as the check has found the function to have, become one part. */
type CompileCall = (args: readonly Part[], call: Call) => Part;

function operand(found: Part | undefined): Part {
  if (!found) throw new Error('Assertion failed: the check counts the arguments and knows the items');
  return found;
}

const unary =
  (compile: (a: Part, call: Call) => Part): CompileCall =>
  ([a], call) =>
    compile(operand(a), call);
const binary =
  (compile: (a: Part, b: Part, call: Call) => Part): CompileCall =>
  ([a, b], call) =>
    compile(operand(a), operand(b), call);
const ternary =
  (compile: (a: Part, b: Part, c: Part, call: Call) => Part): CompileCall =>
  ([a, b, c], call) =>
    compile(operand(a), operand(b), operand(c), call);

/** SQL of a function of the schema `erp`. */
const erp = (name: string, ...values: readonly Part[]): string =>
  `erp.expr_${name}(${values.map((value) => value.value()).join(', ')})`;

/** A condition on texts: `failing` where an argument can fail, else `sql`. */
const textTest = ({ known, charged }: Call, failing: string, sql: string): Part =>
  condition((loose) => {
    if (known.fails) return failing;
    return loose || !known.nullable ? sql : `coalesce(${sql}, false)`;
  }, charged);

const changedCase = (name: 'lower' | 'upper'): CompileCall =>
  unary((a, { charged }) =>
    part('text', () => erp(name, a), {
      ...charged,
      cost: charged.cost + CASE_COST_PER_CHAR * a.chars,
      chars: Math.min(3 * a.letters, 6 * TEXT_MAX_CHARS),
      letters: a.letters,
    }),
  );

/**
 * Worst-case cost of finding one text in another: each character of the one is compared with each of
 * the other wherever it could begin.
 */
const searchCost = (text: Part, sought: Part): number => {
  const compared = Math.min(sought.chars, text.chars / 2);
  return SEARCH_COST_PER_PAIR * compared * (text.chars - compared);
};

const sum = (sign: '+' | '-'): CompileCall =>
  binary((a, b, { known }) =>
    number(known, `(${a.value()} ${sign} ${b.value()})`, {
      whole: Math.max(a.whole, b.whole) + 1,
      scale: Math.max(a.scale, b.scale),
    }),
  );

const toWhole = (name: 'floor' | 'ceil'): CompileCall =>
  unary((a, { known }) => part('number', () => `${name}(${a.value()})`, { ...known, whole: a.whole + 1, scale: 0 }));

const extreme = (name: 'min' | 'max'): CompileCall =>
  binary((a, b, { known }) => part('number', () => erp(name, a, b), { ...known, ...widest(a, b) }));

const datePart = (name: 'year' | 'month' | 'day' | 'isodow'): CompileCall =>
  unary((a, { known }) => {
    const sql = (): string =>
      known.fails ? `erp.expr_date_part('${name}', ${a.value()})` : `extract(${name} FROM ${a.value()})`;
    return part('number', sql, { ...known, ...COUNT });
  });

/** Every function of lib/expression/functions.ts that a call can name, and the operators of arithmetic. */
const CALLS: Readonly<Record<FunctionName, CompileCall>> = {
  contains: binary((a, b, call) => {
    const charged = { ...call.charged, cost: call.charged.cost + searchCost(a, b) };
    const found = `(strpos(${a.value()}, ${b.value()}) > 0)`;
    return textTest({ ...call, charged }, erp('contains', a, b), found);
  }),
  startsWith: binary((a, b, call) =>
    textTest(call, erp('starts_with', a, b), `starts_with(${a.value()}, ${b.value()})`),
  ),
  endsWith: binary((a, b, call) => textTest(call, erp('ends', a, b), erp('ends_with', a, b))),
  matches: binary((a, b, { charged }) => matchesSql(a, b, charged)),
  lower: changedCase('lower'),
  upper: changedCase('upper'),
  trim: unary((a, { charged, chars }) => part('text', () => erp('trim', a), { ...charged, chars })),
  replace: ternary((a, b, c, { charged }) => {
    const most = Math.min(a.chars * Math.max(1, c.chars), TEXT_MAX_CHARS);
    // Sought twice: the result is counted before it is made.
    const cost = charged.cost + (a.chars + 1) / 100 + 2 * searchCost(a, b);
    return part('text', () => erp('replace', a, b, c), { ...charged, cost, chars: most, fails: true });
  }),
  substring: (args, { charged }) =>
    part('text', () => erp('substring', ...args), { ...charged, chars: operand(args[0]).chars, fails: true }),
  join: binary((a, b, { known, charged, chars }) => {
    if (known.fails || chars > TEXT_MAX_CHARS)
      return part('text', () => erp('join', a, b), {
        ...charged,
        chars: Math.min(chars, TEXT_MAX_CHARS),
        fails: true,
      });
    return part('text', () => `(${a.value()} || ${b.value()})`, { ...charged, chars });
  }),
  size: unary((a, { known, charged, as }) => {
    if (a.type === 'text')
      return part('number', () => (a.fails ? erp('size', a) : `length(${a.value()})::numeric`), {
        ...charged,
        ...COUNT,
      });
    return part('number', () => `${a.fails ? failableSize(a) : `cardinality(${as(a, a.type)})`}::numeric`, {
      ...known,
      ...COUNT,
    });
  }),
  add: sum('+'),
  subtract: sum('-'),
  multiply: binary((a, b, { known }) =>
    number(known, `(${a.value()} * ${b.value()})`, { whole: a.whole + b.whole, scale: a.scale + b.scale }),
  ),
  divide: binary((a, b, { known }) => {
    const safe = !known.fails && isNonZero(b) && a.whole + b.scale + QUOTIENT_SCALE <= DIGITS_MAX;
    const digits = { whole: Math.min(a.whole + b.scale, DIGITS_MAX), scale: QUOTIENT_SCALE };
    return part('number', () => erp('divide', a, b), { ...counted(known), fails: !safe, ...digits });
  }),
  remainder: binary((a, b, { known }) => {
    const [whole, scale] = [Math.min(a.whole, b.whole), Math.max(a.scale, b.scale)];
    const safe = !known.fails && isNonZero(b) && whole + scale <= DIGITS_MAX;
    return part('number', () => erp('remainder', a, b), { ...counted(known), fails: !safe, whole, scale });
  }),
  negate: unary((a, { known }) =>
    part('number', () => `(- ${a.value()})`, { ...known, whole: a.whole, scale: a.scale }),
  ),
  abs: unary((a, { known }) => part('number', () => `abs(${a.value()})`, { ...known, whole: a.whole, scale: a.scale })),
  floor: toWhole('floor'),
  ceil: toWhole('ceil'),
  round: ([a, b], { known }) => roundSql(operand(a), b, known),
  min: extreme('min'),
  max: extreme('max'),
  date: unary((a, { known, zone }) => {
    if (a.type === 'text') return part('date', () => `${literal(literalOf(a))}::date`, known);
    const cost = known.cost + DAY_COST;
    return part('date', () => `erp.expr_day(${a.value()}, ${zone()})`, { ...known, cost, fails: true });
  }),
  dateTime: unary((a, { known }) =>
    part('dateTime', () => `'${momentOf(literalOf(a)).toISOString()}'::timestamptz`, known),
  ),
  time: unary((a, { known }) => part('time', () => `'${readTime(literalOf(a))}'::time`, known)),
  addDays: binary((a, b, { known }) => part(a.type, () => erp('add_days', a, b), { ...known, fails: true })),
  addMonths: binary((a, b, { known }) => part('date', () => erp('add_months', a, b), { ...known, fails: true })),
  daysBetween: binary((a, b, { known }) =>
    part('number', () => (known.fails ? erp('days_between', a, b) : `(${b.value()} - ${a.value()})::numeric`), {
      ...known,
      ...COUNT,
    }),
  ),
  year: datePart('year'),
  month: datePart('month'),
  day: datePart('day'),
  weekday: datePart('isodow'),
};

function matchesSql(text: Part, pattern: Part, known: Known): Part {
  const source = literalOf(pattern);
  const size = patternSize(source);
  // The database prepares a pattern before it matches, in more than proportion to its size: for 300 in a quarter
  // second.
  const cost = 2 + text.cost + Math.ceil((2 * text.chars * size) / 200) + (size * size) / 8;
  const sql = `${text.value()} ~ ${literal(patternSql(source))}`;
  return condition(
    (loose) => {
      if (known.fails) return `erp.expr_matches(${text.value()}, ${literal(patternSql(source))})`;
      return loose || !text.nullable ? `(${sql})` : `coalesce(${sql}, false)`;
    },
    { ...known, cost },
  );
}

function roundSql(value: Part, digits: Part | undefined, known: Known & { cost: number }): Part {
  const literal = digits === undefined ? 0 : typeof digits.constant === 'object' ? integerOf(digits.constant) : null;
  if (literal !== null && Math.abs(literal) <= 100) {
    const scale = Math.min(value.scale, Math.max(literal, 0));
    return number(known, `round(${value.value()}, ${literal})`, { whole: value.whole + 1, scale });
  }
  const sql = (): string => erp('round', value, operand(digits));
  return part('number', sql, { ...known, fails: true, whole: value.whole + 1, scale: value.scale });
}

/**
 * Prices of what takes the database longer than its evaluation in memory, in units of one microsecond at worst
 * (docs/decisions/expressions-in-the-database.md has the measurements).
 */
const CASE_COST_PER_CHAR = 1.1;
const SEARCH_COST_PER_PAIR = 1 / 400;

/** More than a field of its own can have: a rollup adds them up. */
const DECIMAL = { whole: 40, scale: 30 };
const COUNT = { whole: 16, scale: 0 };

const ORDERS = {
  less: { sign: '<', found: '= -1' },
  lessOrEqual: { sign: '<=', found: 'IN (-1, 0)' },
  greater: { sign: '>', found: '= 1' },
  greaterOrEqual: { sign: '>=', found: 'IN (0, 1)' },
} as const;

/** The type of a value that has one of two, which the check has found to fit. */
function commonType(a: Type, b: Type): Type {
  if (a === 'null') return b;
  return a === 'list:null' && b !== 'null' ? b : a;
}

/** Properties of a result whose operands are all evaluated. */
const together = (...parts: readonly Part[]): { fails: boolean; nullable: boolean; cost: number } => ({
  fails: parts.some((item) => item.fails),
  nullable: parts.some((item) => item.nullable),
  cost: parts.reduce((sum, item) => sum + item.cost, 1),
});

/** Properties of a value that is one of two. */
function widest(a: Known, b: Known): Known {
  const most = (name: 'whole' | 'scale' | 'chars' | 'items'): number => Math.max(a[name] ?? 0, b[name] ?? 0);
  return { whole: most('whole'), scale: most('scale'), chars: most('chars'), items: most('items') };
}

/** Long numbers cost more than the one unit that a part does. */
const LONG_NUMBER_COST = Math.ceil(DIGITS_MAX / 20);
const counted = <T extends { cost: number }>(known: T): T => ({ ...known, cost: known.cost + LONG_NUMBER_COST });

/** The result of arithmetic that is exact on both sides, but that could have too many digits. */
function number(known: Known & { cost: number }, sql: string, digits: { whole: number; scale: number }): Part {
  // As evaluate() charges for digits after the point.
  const cost = known.cost + digits.scale / 20;
  if (digits.whole + digits.scale <= DIGITS_MAX) return part('number', () => sql, { ...known, cost, ...digits });
  return part('number', () => `erp.expr_number(${sql})`, { ...counted(known), fails: true });
}

/** Null in place of a failure, where the two mean the same: an index can still be asked about the other side. */
const firm = (value: Part): string => (value.fails ? `nullif(${value.value()}, ${failed(value.type)})` : value.value());

const failableSize = (list: Part): string => `erp.expr_size(${list.value()}, ${failed(itemOf(list.type))})`;

const isNonZero = ({ constant }: Part): boolean => typeof constant === 'object' && constant.units !== 0n;

function momentOf(text: string): Date {
  const ms = readInstant(text);
  if (ms === null) throw new Error('Assertion failed: the check reads every moment');
  return new Date(ms);
}

const literalOf = ({ constant }: Part): string => {
  if (typeof constant !== 'string') throw new Error('Assertion failed: the check asks for a literal here');
  return constant;
};

/**
 * Resolves names to fields that the user may read, values to the field's type, relative dates to points in time. A
 * hidden field is handled exactly like one that does not exist: one lookup, one answer. Source:
 * docs/reference/querying.md.
 */

import type { Predicate } from '../access/predicate.ts';
import type { ObjectAccess } from '../access/types.ts';
import { isReference, typeOf } from '../schema/field-types/registry.ts';
import type { Operator, SqlValue } from '../schema/field-types/types.ts';
import { requireField } from '../schema/lookup.ts';
import type { FieldMeta, ObjectMeta } from '../schema/snapshot.ts';
import { dateOfDay } from '../values/calendar.ts';
import { RELATIVE_DATES, relativeDays, startOfDay } from '../values/relative-dates.ts';
import { filterable, operatorsFor, searchable, searchedByDefault, sortable } from './capabilities.ts';
import { quoted, type RelatedValue } from './conditions.ts';
import { LIST_LIMITS, searchTokens } from './parse.ts';
import type {
  Condition,
  Expansion,
  Followed,
  ListRequest,
  NamingView,
  Plan,
  PlanOptions,
  QueryView,
  SortKey,
} from './types.ts';
import { Violations } from './violations.ts';

type CompareOperator = Extract<Predicate, { kind: 'compare' }>['operator'];

/** Operators that hold for an empty field, each with the one that holds when it does not. */
const OPPOSITES: Partial<Record<Operator, CompareOperator>> = {
  neq: 'eq',
  not_in: 'in',
  not_contains: 'contains',
  is_blank: 'is_not_blank',
};

/**
 * The plan of a list, still without record access (lib/query/constrain.ts adds it). The caller has checked that the
 * user may read the object.
 * @throws PlatformError 400 with all violations: FILTER_FIELD_UNKNOWN, FILTER_FIELD_NOT_FILTERABLE,
 *   FILTER_OPERATOR_UNSUPPORTED, FILTER_VALUE_INVALID, SORT_INVALID, SEARCH_FIELD_INVALID, PARAMETER_INVALID.
 */
export function planList(request: ListRequest, object: ObjectMeta, view: QueryView, options: PlanOptions = {}): Plan {
  const planner = new Planner(object, view, request.source);
  planner.follows = true;
  const plan: Plan = {
    object,
    fields: planner.fields(request.fields),
    expand: planner.expand(request.expand),
    filter: planner.filter(request),
    sort: planner.sort(request.sort),
    take: request.take,
    skip: request.skip,
    includeTotal: request.includeTotal,
    includeEtag: request.includeEtag,
    ieee754Compatible: options.ieee754Compatible ?? false,
    after: null,
  };
  planner.problems.throwIfAny();
  return plan;
}

/**
 * The plan of one record by id (lower case UUID), with all readable fields or those named.
 * @throws PlatformError 400 PARAMETER_INVALID for a name that is not a readable field.
 */
export function planGet(
  id: string,
  fields: readonly string[] | null,
  object: ObjectMeta,
  view: QueryView,
  options: PlanOptions & Partial<Pick<ListRequest, 'expand'>> = {},
): Plan {
  const planner = new Planner(object, view, 'query');
  const plan: Plan = {
    object,
    fields: planner.fields(fields),
    expand: planner.expand(options.expand ?? []),
    filter: { kind: 'compare', field: requireField(object, 'id'), operator: 'eq', values: [id] },
    sort: [],
    take: 1,
    skip: 0,
    includeTotal: false,
    includeEtag: false,
    ieee754Compatible: options.ieee754Compatible ?? false,
    after: null,
  };
  planner.problems.throwIfAny();
  return plan;
}

/** The filter of a plan: a group of conditions, and others that hold as well. Violations are added to `problems`. */
export function planConditions(
  group: ListRequest['filters'],
  conditions: readonly Condition[],
  object: ObjectMeta,
  view: NamingView,
  problems: Violations,
): Predicate | null {
  const planner = new Planner(object, view, 'body', problems);
  return planner.filter({ where: conditions, whereIn: [], filters: group, search: null });
}

class Planner {
  readonly problems: Violations;
  /** Conditions and order may lead along one reference. */
  follows = false;
  readonly #followed = new Set<string>();
  readonly #object: ObjectMeta;
  readonly #view: NamingView;
  readonly #source: ListRequest['source'];

  constructor(object: ObjectMeta, view: NamingView, source: ListRequest['source'], problems = new Violations()) {
    this.problems = problems;
    this.#object = object;
    this.#view = view;
    this.#source = source;
  }

  /** The fields of an answer: all readable ones, or those named and the id. */
  fields(names: readonly string[] | null): readonly FieldMeta[] {
    const readable = this.#view.access.objects[this.#object.apiName]?.readable ?? [];
    if (names === null) return readable;
    const wanted = new Set(['id', ...names]);
    const chosen = readable.filter((field) => wanted.delete(field.apiName));
    for (const name of wanted)
      this.problems.add(this.#pointer('fields'), 'PARAMETER_INVALID', `There is no field ${quoted(name)}.`, {
        field: name,
      });
    return chosen;
  }

  expand(asked: ListRequest['expand']): readonly Expansion[] {
    return asked.flatMap(({ reference: name, pointer, fields }): Expansion[] => {
      const invalid = (at: string, field: string, message: string): [] => {
        this.problems.add(at, 'PARAMETER_INVALID', message, { field });
        return [];
      };
      const reference = this.#readable(this.#object, name);
      if (!reference) return invalid(pointer, name, `There is no field ${quoted(name)}.`);
      const target = this.#target(reference);
      if (!target)
        return invalid(pointer, name, `${name} cannot be expanded: it does not refer to records that you can read.`);
      const { object, readable } = target;
      for (const field of fields)
        if (!this.#readable(object, field.name))
          invalid(field.pointer, field.name, `The records that ${name} refers to have no field ${quoted(field.name)}.`);
      const wanted = new Set(['id', ...fields.map((field) => field.name)]);
      return [{ reference, object, fields: readable.filter(({ apiName }) => wanted.has(apiName)) }];
    });
  }

  filter(request: Pick<ListRequest, 'where' | 'whereIn' | 'filters' | 'search'>): Predicate | null {
    const nodes: Predicate[] = [];
    const put = (node: Predicate | null): void => {
      if (node) nodes.push(node);
    };
    for (const condition of request.where) put(this.#condition(condition, this.#object));
    for (const condition of request.whereIn) put(this.#condition(condition, this.#object));
    if (request.filters) put(this.#group(request.filters.logic, request.filters.conditions, this.#object));
    if (request.search) put(this.#search(request.search));
    return join('and', nodes);
  }

  sort(keys: ListRequest['sort']): readonly SortKey[] {
    const sorted: SortKey[] = [];
    let total = false; // with id the order is total
    for (const { field: name, desc, pointer } of keys ?? []) {
      const { field, through } = this.#named(name, this.#object, pointer);
      if (!field || !sortable(field)) {
        this.problems.add(pointer, 'SORT_INVALID', `Records cannot be sorted by ${quoted(name)}.`, { field: name });
        continue;
      }
      if (!total) sorted.push({ field, desc, through });
      total ||= name === 'id';
    }
    if (total) return sorted;
    const id = requireField(this.#object, 'id');
    const last = sorted.at(-1);
    if (last) return [...sorted, { field: id, desc: last.desc, through: null }];
    const createdAt = this.#object.fields.createdAt;
    const newest = createdAt ? [{ field: createdAt, desc: true, through: null }] : [];
    return [...newest, { field: id, desc: true, through: null }];
  }

  #pointer(name: string): string {
    return this.#source === 'query' ? `query:${name}` : `/${name}`;
  }

  #readable(object: ObjectMeta, name: string): FieldMeta | undefined {
    return this.#view.access.objects[object.apiName]?.fields[name] ? object.fields[name] : undefined;
  }

  /** The object that a reference leads to, when the user can read it. */
  #target(reference: FieldMeta): ObjectAccess | undefined {
    const [to] = isReference(reference) ? reference.referenceTo : [];
    return to === undefined ? undefined : this.#view.access.objects[to];
  }

  /**
   * The field that a condition or the order names, of the record or, as `<reference>.<field>`, of one that it refers to;
   * without a field there is none that the user can read.
   */
  #named(
    name: string,
    object: ObjectMeta,
    pointer: string,
  ): { readonly field: FieldMeta | undefined; readonly through: Followed | null } {
    const dot = name.indexOf('.');
    if (dot < 0 || !this.follows || object !== this.#object)
      return { field: this.#readable(object, name), through: null };
    const reference = this.#readable(object, name.slice(0, dot));
    const target = reference && this.#target(reference);
    const field = target && this.#readable(target.object, name.slice(dot + 1));
    if (!reference || !target || !field) return { field: undefined, through: null };
    this.#follow(reference.apiName, pointer);
    return { field, through: { reference, object: target.object } };
  }

  #follow(reference: string, pointer: string): void {
    const max = LIST_LIMITS.expand_max;
    this.#followed.add(reference);
    if (this.#followed.size === max + 1)
      this.problems.add(pointer, 'PARAMETER_INVALID', `Filters and order may lead along at most ${max} references.`, {
        details: { max },
      });
  }

  #group(logic: 'and' | 'or', conditions: readonly Condition[], object: ObjectMeta): Predicate | null {
    const nodes = conditions.map((condition) => this.#condition(condition, object));
    return join(
      logic,
      nodes.filter((node) => node !== null),
    );
  }

  #condition(condition: Condition, object: ObjectMeta): Predicate | null {
    const { id: conditionId, pointer, operator } = condition;
    const at = conditionId === null ? pointer : `${pointer}/field`;
    const { field, through } = this.#named(condition.field, object, at);
    const about = { field: condition.field, conditionId };
    if (!field) {
      this.problems.add(at, 'FILTER_FIELD_UNKNOWN', `There is no field ${quoted(condition.field)}.`, about);
      return null;
    }
    if (!filterable(field)) {
      this.problems.add(at, 'FILTER_FIELD_NOT_FILTERABLE', `${condition.field} cannot be used in filters.`, about);
      return null;
    }
    const allowed = operatorsFor(field);
    if (!allowed.includes(operator)) {
      this.problems.add(
        conditionId === null ? pointer : `${pointer}/operator`,
        'FILTER_OPERATOR_UNSUPPORTED',
        `The operator ${operator} is not supported for ${condition.field}, a ${field.fieldType} field. Supported: ${allowed.join(', ')}.`,
        { ...about, details: { allowed } },
      );
      return null;
    }
    const opposite = through ? OPPOSITES[operator] : undefined;
    const node = this.#asked(condition, field, opposite ?? operator);
    return through && node
      ? { kind: 'referenced', ...through, node, negated: opposite !== undefined, sharing: null }
      : node;
  }

  /** Makes the predicate of a condition on the field; `operator`: its own, or the opposite. */
  #asked(condition: Condition, field: FieldMeta, operator: Operator): Predicate | null {
    if (operator === 'in_related') return this.#related(condition, field);
    const values = this.#values(condition, field);
    return values && this.#compare(field, operator, values);
  }

  /** One entry per operand: a bound value, or the range of times or days of a relative date. */
  #values(condition: Condition, field: FieldMeta): readonly Operand[] | null {
    const { pointer, operator } = condition;
    const at = (name: string): string => (condition.id === null ? pointer : `${pointer}/${name}`);
    switch (operator) {
      case 'is_blank':
      case 'is_not_blank':
        return [];
      case 'between':
        return this.#all([
          this.#operand(condition.value, condition, field, at('value')),
          this.#operand(condition.valueTo, condition, field, at('valueTo')),
        ]);
      case 'in':
      case 'not_in':
        return this.#list(condition.value as unknown[], condition, field, at('value'));
      default:
        if (typeOf(field).choices === 'many' && (operator === 'eq' || operator === 'neq')) {
          if (!Array.isArray(condition.value) || condition.value.length > LIST_LIMITS.in_values_max) {
            this.#wrongValue(
              at('value'),
              `The value for ${field.apiName} must be a list of at most ${LIST_LIMITS.in_values_max} values.`,
              condition,
            );
            return null;
          }
          const list = this.#list(condition.value, condition, field, at('value'));
          return list && [{ value: list.map((operand) => (operand as { value: SqlValue }).value) as string[] }];
        }
        return this.#all([this.#operand(condition.value, condition, field, at('value'))]);
    }
  }

  #list(list: readonly unknown[], condition: Condition, field: FieldMeta, pointer: string): readonly Operand[] | null {
    return this.#all(list.map((item, index) => this.#operand(item, condition, field, `${pointer}/${index}`)));
  }

  #all(operands: readonly (Operand | null)[]): readonly Operand[] | null {
    return operands.every((operand) => operand !== null) ? operands : null;
  }

  #operand(value: unknown, condition: Condition, field: FieldMeta, pointer: string): Operand | null {
    const { relativeDates } = typeOf(field);
    if (relativeDates && typeof value === 'string') {
      const { now, timezone } = this.#view;
      const days = relativeDays(value, now, timezone);
      if (days && relativeDates === 'days') return { from: dateOfDay(days.from), to: dateOfDay(days.to) };
      if (days) return { from: instant(startOfDay(days.from, timezone)), to: instant(startOfDay(days.to, timezone)) };
    }
    const result = typeOf(field).parseFilter(value, field, pointer);
    if (result.ok) return { value: result.value };
    const hint = relativeDates ? ` Relative dates are allowed: ${RELATIVE_DATES.join(', ')}.` : '';
    this.#wrongValue(pointer, result.violation.message + hint, condition);
    return null;
  }

  #wrongValue(pointer: string, message: string, { field, id }: Condition): void {
    this.problems.add(pointer, 'FILTER_VALUE_INVALID', message, { field, conditionId: id });
  }

  /** Relative dates become comparisons with the beginning and end of their range. */
  #compare(field: FieldMeta, operator: CompareOperator, operands: readonly Operand[]): Predicate {
    const plain = operands.filter((operand) => 'value' in operand);
    const node = (op: CompareOperator, ...values: SqlValue[]): Predicate => ({
      kind: 'compare',
      field,
      operator: op,
      values,
    });
    const [range, ...ranges] = operands.filter(isRange);
    if (!range) return node(operator, ...plain.map((operand) => operand.value));
    switch (operator) {
      case 'in':
      case 'not_in': {
        const single = operator === 'in' ? 'eq' : 'neq';
        const others = ranges.map((operand) => this.#compare(field, single, [operand]));
        if (plain.length > 0) others.push(node(operator, ...plain.map((operand) => operand.value)));
        return join(operator === 'in' ? 'or' : 'and', [this.#compare(field, single, [range]), ...others]);
      }
      case 'between':
        return join('and', [
          this.#compare(field, 'gte', operands.slice(0, 1)),
          this.#compare(field, 'lte', operands.slice(1)),
        ]);
    }
    const { from, to } = range;
    switch (operator) {
      case 'eq':
        return join('and', [node('gte', from), node('lt', to)]);
      case 'neq':
        return join('or', [node('is_blank'), node('lt', from), node('gte', to)]);
      case 'gt':
        return node('gte', to);
      case 'gte':
        return node('gte', from);
      case 'lt':
        return node('lt', from);
      default:
        return node('lt', to);
    }
  }

  #related(condition: Condition, field: FieldMeta): Predicate | null {
    const related = condition.value as RelatedValue;
    const pointer = `${condition.pointer}/value`;
    const object = this.#view.access.objects[related.objectApiName]?.object;
    if (!object) {
      this.#wrongValue(`${pointer}/objectApiName`, `There is no object ${quoted(related.objectApiName)}.`, condition);
      return null;
    }
    const relatedField = this.#readable(object, related.field);
    if (!relatedField)
      this.problems.add(`${pointer}/field`, 'FILTER_FIELD_UNKNOWN', `There is no field ${quoted(related.field)}.`, {
        field: related.field,
        conditionId: condition.id,
      });
    else if (!operatorsFor(relatedField).includes('in_related'))
      this.#wrongValue(
        `${pointer}/field`,
        `${relatedField.apiName} is not a field with the id of a record.`,
        condition,
      );
    const node = this.#group(related.logic, related.conditions, object);
    return relatedField ? { kind: 'related', field, object, relatedField, node, sharing: null } : null;
  }

  #search(search: NonNullable<ListRequest['search']>): Predicate | null {
    const { fields: names } = search;
    const access = this.#view.access.objects[this.#object.apiName];
    const byDefault = access ? searchedByDefault(access) : [];
    const fields = names === null ? byDefault : names.flatMap((name) => this.#searched(name) ?? []);
    if (fields.length === 0) return { kind: 'false' };
    return { kind: 'search', fields, tokens: searchTokens(search.text) };
  }

  #searched(name: string): FieldMeta | null {
    const field = this.#readable(this.#object, name);
    if (field && searchable(field)) return field;
    const at = this.#pointer('searchFields');
    if (field) this.problems.add(at, 'SEARCH_FIELD_INVALID', `${name} cannot be searched.`, { field: name });
    else this.problems.add(at, 'PARAMETER_INVALID', `There is no field ${quoted(name)}.`, { field: name });
    return null;
  }
}

interface DateRange {
  readonly from: string;
  readonly to: string;
}

type Operand = { readonly value: SqlValue } | DateRange;

const isRange = (operand: Operand): operand is DateRange => !('value' in operand);

const instant = (time: number): string => new Date(time).toISOString();

function join(kind: 'and' | 'or', nodes: readonly [Predicate, ...Predicate[]]): Predicate;
function join(kind: 'and' | 'or', nodes: readonly Predicate[]): Predicate | null;
function join(kind: 'and' | 'or', nodes: readonly Predicate[]): Predicate | null {
  if (nodes.length <= 1) return nodes[0] ?? null;
  return { kind, nodes };
}

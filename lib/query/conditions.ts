/**
 * The closed grammar of conditions, without knowledge of any object: one group, or a list that is joined by AND.
 * Source: docs/reference/querying.md.
 */

import { pointerPart } from '../errors/pointer.ts';
import { isObject } from '../json/objects.ts';
import { LIMITS } from '../limits.ts';
import { countChars } from '../schema/field-types/common.ts';
import { OPERATORS, type Operator } from '../schema/field-types/types.ts';
import type { Condition, ListRequest } from './types.ts';
import type { Violations } from './violations.ts';

export const CONDITION_LIMITS = {
  filter_conditions_max: LIMITS.filter_conditions_max,
  in_values_max: LIMITS.in_values_max,
  condition_id_max_chars: 64,
  pattern_max_chars: LIMITS.pattern_max_chars,
} as const;

/** Operators that look for a text within another: the database compares each place in the one with all of the other. */
const SEEKING: ReadonlySet<string> = new Set<Operator>(['contains', 'not_contains', 'starts_with']);

const OPERATOR_SET: ReadonlySet<unknown> = new Set(OPERATORS);
const isOperator = (text: unknown): text is Operator => OPERATOR_SET.has(text);
/** Operators without a value. */
export const UNARY: ReadonlySet<Operator> = new Set(['is_blank', 'is_not_blank']);

/**
 * Reads the conditions of one parameter; their ids are unique within it, and their number is counted over all of it.
 */
export class ConditionReader {
  readonly #problems: Violations;
  readonly #max: number;
  readonly #ids = new Set<string>();
  #count = 0;

  /** `max`: conditions, including those inside in_related. */
  constructor(problems: Violations, max: number = CONDITION_LIMITS.filter_conditions_max) {
    this.#problems = problems;
    this.#max = max;
  }

  /** `{logic, conditions}`; null when nothing of it can be used. */
  group(value: unknown, pointer: string): ListRequest['filters'] {
    if (!isObject(value)) {
      this.#problems.add(pointer, 'FILTER_INVALID', 'filters must be an object {logic, conditions}.');
      return null;
    }
    this.#onlyKeys(value, ['logic', 'conditions'], pointer, null);
    const logic = this.#logic(value.logic, pointer, null);
    if (!Array.isArray(value.conditions) || value.conditions.length === 0) {
      this.#problems.add(`${pointer}/conditions`, 'FILTER_INVALID', 'conditions must be a list of 1 to 10 conditions.');
      return null;
    }
    const conditions = this.#conditions(value.conditions, `${pointer}/conditions`, true);
    if (this.#count > this.#max) this.#tooMany(pointer, 'filters');
    return { logic, conditions };
  }

  /** A list of conditions that are joined by AND. */
  list(value: unknown, pointer: string): readonly Condition[] {
    if (!Array.isArray(value)) {
      this.#problems.add(pointer, 'FILTER_INVALID', 'conditions must be a list.');
      return [];
    }
    const conditions = this.#conditions(value, pointer, true);
    if (this.#count > this.#max) this.#tooMany(pointer, 'conditions');
    return conditions;
  }

  #tooMany(pointer: string, name: string): void {
    this.#problems.add(
      pointer,
      'FILTER_TOO_MANY_CONDITIONS',
      `${name} must not have more than ${this.#max} conditions, including those inside in_related.`,
      { details: { max: this.#max } },
    );
  }

  #logic(value: unknown, pointer: string, conditionId: string | null): 'and' | 'or' {
    if (value === 'and' || value === 'or') return value;
    this.#problems.add(`${pointer}/logic`, 'FILTER_INVALID', 'logic must be "and" or "or".', { conditionId });
    return 'and';
  }

  #onlyKeys(
    value: Record<string, unknown>,
    allowed: readonly string[],
    pointer: string,
    conditionId: string | null,
  ): void {
    for (const key of Object.keys(value)) {
      if (allowed.includes(key)) continue;
      this.#problems.add(
        `${pointer}/${pointerPart(key)}`,
        'FILTER_INVALID',
        `${quoted(key)} is not allowed here. Allowed: ${allowed.join(', ')}.`,
        { conditionId },
      );
    }
  }

  #conditions(list: readonly unknown[], pointer: string, outer: boolean): Condition[] {
    this.#count += list.length;
    if (this.#count > this.#max) return [];
    const conditions: Condition[] = [];
    for (const [index, item] of list.entries()) {
      const condition = this.#condition(item, `${pointer}/${index}`, outer);
      if (condition) conditions.push(condition);
    }
    return conditions;
  }

  #condition(item: unknown, pointer: string, outer: boolean): Condition | null {
    if (!isObject(item)) {
      this.#problems.add(
        pointer,
        'FILTER_INVALID',
        'A condition must be an object {id, field, operator, value, valueTo}.',
      );
      return null;
    }
    if ('conditions' in item || 'logic' in item) {
      this.#problems.add(pointer, 'FILTER_NESTED_GROUP', 'Groups of conditions cannot be nested.');
      return null;
    }
    const id = this.#conditionId(item.id, pointer);
    this.#onlyKeys(item, ['id', 'field', 'operator', 'value', 'valueTo'], pointer, id);
    const { field, operator } = item;
    if (typeof field !== 'string' || field === '') {
      this.#problems.add(`${pointer}/field`, 'FILTER_INVALID', 'field must be the apiName of a field.', {
        conditionId: id,
      });
      return null;
    }
    if (!isOperator(operator)) {
      this.#problems.add(
        `${pointer}/operator`,
        'FILTER_OPERATOR_UNSUPPORTED',
        `Unknown operator. Allowed: ${OPERATORS.join(', ')}.`,
        {
          field,
          conditionId: id,
          details: { allowed: OPERATORS },
        },
      );
      return null;
    }
    return this.#operands({ id, pointer, field, operator }, item, outer);
  }

  #conditionId(id: unknown, pointer: string): string | null {
    if (typeof id !== 'string' || id === '' || countChars(id) > CONDITION_LIMITS.condition_id_max_chars) {
      this.#problems.add(
        `${pointer}/id`,
        'FILTER_INVALID',
        `Every condition needs an id of 1 to ${CONDITION_LIMITS.condition_id_max_chars} characters.`,
      );
      return null;
    }
    if (this.#ids.has(id))
      this.#problems.add(`${pointer}/id`, 'FILTER_INVALID', 'The ids of conditions must be unique.', {
        conditionId: id,
      });
    this.#ids.add(id);
    return id;
  }

  #operands(condition: Condition, item: Record<string, unknown>, outer: boolean): Condition | null {
    const { id, pointer, field, operator } = condition;
    const value = item.value ?? undefined;
    const valueTo = item.valueTo ?? undefined;
    const wrong = (at: string, message: string, details?: Record<string, unknown>): null => {
      this.#problems.add(`${pointer}/${at}`, 'FILTER_VALUE_INVALID', message, {
        field,
        conditionId: id,
        ...(details && { details }),
      });
      return null;
    };
    if (valueTo !== undefined && operator !== 'between')
      return wrong('valueTo', 'valueTo is only allowed with the operator between.');
    if (UNARY.has(operator))
      return value === undefined ? condition : wrong('value', `The operator ${operator} does not take a value.`);
    if (value === undefined)
      return wrong('value', `The operator ${operator} needs a value. Use is_blank to find empty fields.`);
    if (operator === 'between')
      return valueTo === undefined
        ? wrong('valueTo', 'The operator between needs valueTo.')
        : { ...condition, value, valueTo };
    if (operator === 'in' || operator === 'not_in')
      return this.valueList(value, `${pointer}/value`, field, id) ? { ...condition, value } : null;
    const { pattern_max_chars: max } = CONDITION_LIMITS;
    if (SEEKING.has(operator) && typeof value === 'string' && countChars(value) > max)
      return wrong('value', `The operator ${operator} takes a text of at most ${max} characters.`, { max });
    if (operator !== 'in_related') return { ...condition, value };
    if (!outer) {
      this.#problems.add(pointer, 'FILTER_NESTED_GROUP', 'in_related conditions cannot be nested.', {
        field,
        conditionId: id,
      });
      return null;
    }
    return this.#related(condition, value);
  }

  /** `{objectApiName, field, logic?, conditions?}`; without conditions any related record matches. */
  #related(condition: Condition, value: unknown): Condition | null {
    const { id } = condition;
    const pointer = `${condition.pointer}/value`;
    const invalid = (at: string, message: string): null => {
      this.#problems.add(at, 'FILTER_INVALID', message, { field: condition.field, conditionId: id });
      return null;
    };
    if (!isObject(value))
      return invalid(pointer, 'The value of in_related must be an object {objectApiName, field, logic, conditions}.');
    this.#onlyKeys(value, ['objectApiName', 'field', 'logic', 'conditions'], pointer, id);
    if (typeof value.objectApiName !== 'string' || value.objectApiName === '')
      return invalid(`${pointer}/objectApiName`, 'objectApiName must be the apiName of an object.');
    if (typeof value.field !== 'string' || value.field === '')
      return invalid(`${pointer}/field`, 'field must be the apiName of a field of the related object.');
    const logic = value.logic === undefined ? 'and' : this.#logic(value.logic, pointer, id);
    const list = value.conditions ?? [];
    if (!Array.isArray(list)) return invalid(`${pointer}/conditions`, 'conditions must be a list.');
    const related: RelatedValue = {
      objectApiName: value.objectApiName,
      field: value.field,
      logic,
      conditions: this.#conditions(list, `${pointer}/conditions`, false),
    };
    return { ...condition, value: related };
  }

  /** Checks the values of `in` and `not_in`; problems become violations. */
  valueList(value: unknown, pointer: string, field: string, conditionId: string | null): value is readonly unknown[] {
    if (Array.isArray(value) && value.length >= 1 && value.length <= CONDITION_LIMITS.in_values_max) return true;
    this.#problems.add(
      pointer,
      'FILTER_VALUE_INVALID',
      `The value must be a list of 1 to ${CONDITION_LIMITS.in_values_max} values.`,
      {
        field,
        conditionId,
        details: { max: CONDITION_LIMITS.in_values_max },
      },
    );
    return false;
  }
}

/** A name of the caller in a message; long ones are cut. */
export const quoted = (name: string): string => JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);

/** The objects that `in_related` leads to in a filter that has not been checked yet: a group, or a list of conditions. */
export function relatedObjectsIn(filter: unknown): readonly string[] {
  const conditions = isObject(filter) ? filter['conditions'] : filter;
  if (!Array.isArray(conditions)) return [];
  const names = conditions.flatMap((condition: unknown) => {
    if (!isObject(condition) || condition['operator'] !== 'in_related' || !isObject(condition['value'])) return [];
    const { objectApiName } = condition['value'];
    return typeof objectApiName === 'string' ? [objectApiName] : [];
  });
  return [...new Set(names)];
}

/** The value of an in_related condition after parsing. */
export interface RelatedValue {
  readonly objectApiName: string;
  readonly field: string;
  readonly logic: 'and' | 'or';
  readonly conditions: readonly Condition[];
}

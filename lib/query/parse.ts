/**
 * The closed grammar of a list query: shapes, counts and conflicts, without knowledge of any object. The result has
 * exactly the members of ListRequest; no input of the caller passes through unchecked. Source:
 * docs/reference/querying.md.
 */
import { pointerPart } from '../errors/pointer.ts';
import { countChars, isTooLongForNfc, textProblem } from '../schema/field-types/common.ts';
import { OPERATORS, type Operator } from '../schema/field-types/types.ts';
import type { Condition, ListRequest, RawListQuery } from './types.ts';
import { Violations } from './violations.ts';

/** The same values as in config/limits.ts; a test compares them. */
export const LIST_LIMITS = {
  take_default: 50,
  take_max: 200,
  skip_max: 10_000,
  filter_conditions_max: 10,
  sort_max: 2,
  in_values_max: 200,
  fields_max: 100,
  search_min_chars: 2,
  search_max_chars: 200,
  search_words_max: 20,
  /** Entries of `where`, and of `whereIn`. */
  where_max: 50,
  condition_id_max_chars: 64,
  pattern_max_chars: 1_000,
} as const;

/** Operators that look for a text within another: the database compares each place in the one with all of the other. */
const SEEKING: ReadonlySet<string> = new Set<Operator>(['contains', 'not_contains', 'starts_with']);

const PARAMETERS = new Set([
  'take',
  'skip',
  'includeTotal',
  'includeEtag',
  'fields',
  'where',
  'whereIn',
  'filters',
  'sort',
  'orderBy',
  'orderDirection',
  'search',
  'searchFields',
  'cursor',
]);

const OPERATOR_SET: ReadonlySet<unknown> = new Set(OPERATORS);
const UNARY: ReadonlySet<Operator> = new Set(['is_blank', 'is_not_blank']);

/** The source of a value decides how errors point at it and whether it may still be text. */
export type QuerySource = 'query' | 'body';

type JsonObject = Record<string, unknown>;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Reads the parameters of `GET /data/{objectApiName}` (source `query`, with `where`, `whereIn`, `filters` and `sort`
 * already read as JSON) or the body of `POST /data/{objectApiName}/query` (source `body`).
 * @throws PlatformError 400 with all violations; the code is that of the first.
 */
export function parseListQuery(raw: RawListQuery, source: QuerySource): ListRequest {
  return new Parser(raw, source).parse();
}

class Parser {
  readonly #raw: RawListQuery;
  readonly #source: QuerySource;
  readonly #problems = new Violations();
  readonly #conditionIds = new Set<string>();
  #conditionCount = 0;

  constructor(raw: RawListQuery, source: QuerySource) {
    this.#raw = raw;
    this.#source = source;
  }

  parse(): ListRequest {
    if (!isObject(this.#raw)) {
      this.#problems.add('', 'PARAMETER_INVALID', 'The query must be a JSON object.');
      this.#problems.throwIfAny();
    }
    this.#refuseUnknown();
    const { take, takeClamped } = this.#take();
    const skip = this.#skip();
    const cursor = this.#cursor();
    const request: ListRequest = {
      source: this.#source,
      take,
      takeClamped,
      skip,
      includeTotal: this.#boolean('includeTotal'),
      includeEtag: this.#boolean('includeEtag'),
      fields: this.#names('fields'),
      where: this.#where(),
      whereIn: this.#whereIn(),
      filters: this.#filters(),
      sort: this.#sort(),
      search: this.#search(),
      cursor,
    };
    this.#problems.throwIfAny();
    return request;
  }

  /** Absent, or null in a body, where clients send null for "not given". */
  #given(name: string): unknown {
    const value = Object.hasOwn(this.#raw, name) ? this.#raw[name] : undefined;
    return value === null && this.#source === 'body' ? undefined : value;
  }

  #pointer(name: string): string {
    return this.#source === 'query' ? `query:${name}` : `/${pointerPart(name)}`;
  }

  #invalid(name: string, message: string): void {
    this.#problems.add(this.#pointer(name), 'PARAMETER_INVALID', message);
  }

  #refuseUnknown(): void {
    for (const name of Object.keys(this.#raw)) {
      if (PARAMETERS.has(name)) continue;
      if (this.#source === 'query')
        this.#problems.add(this.#pointer(name), 'PARAMETER_UNKNOWN', `A list has no parameter ${quoted(name)}.`);
      else this.#problems.add(this.#pointer(name), 'BODY_PROPERTY_UNKNOWN', `A query has no property ${quoted(name)}.`);
    }
  }

  #integer(name: string): number | null | undefined {
    const value = this.#given(name);
    if (value === undefined) return undefined;
    if (this.#source === 'query' && typeof value === 'string') return /^-?\d{1,15}$/.test(value) ? Number(value) : null;
    return typeof value === 'number' && Number.isSafeInteger(value) ? value : null;
  }

  #take(): { take: number; takeClamped: boolean } {
    const take = this.#integer('take');
    if (take === undefined) return { take: LIST_LIMITS.take_default, takeClamped: false };
    if (take === null || take < 1) {
      this.#invalid('take', 'take must be an integer of at least 1.');
      return { take: LIST_LIMITS.take_default, takeClamped: false };
    }
    return { take: Math.min(take, LIST_LIMITS.take_max), takeClamped: take > LIST_LIMITS.take_max };
  }

  #skip(): number {
    const skip = this.#integer('skip');
    if (skip === undefined) return 0;
    if (skip === null || skip < 0) this.#invalid('skip', 'skip must be an integer of at least 0.');
    else if (skip > LIST_LIMITS.skip_max)
      this.#problems.add(
        this.#pointer('skip'),
        'SKIP_TOO_DEEP',
        `skip must not exceed ${LIST_LIMITS.skip_max}. Use nextCursor to read further.`,
        { details: { max: LIST_LIMITS.skip_max } },
      );
    else return skip;
    return 0;
  }

  #cursor(): string | null {
    const cursor = this.#given('cursor');
    if (cursor === undefined) return null;
    if (typeof cursor !== 'string') {
      this.#invalid('cursor', 'cursor must be the unmodified nextCursor of the previous page.');
      return null;
    }
    if (this.#given('skip') !== undefined)
      this.#problems.add(
        this.#pointer('cursor'),
        'CURSOR_WITH_SKIP',
        'cursor and skip cannot be combined. Send one of them.',
      );
    return cursor;
  }

  #boolean(name: string): boolean {
    const value = this.#given(name);
    if (value === undefined) return false;
    if (typeof value === 'boolean') return value;
    if (this.#source === 'query' && (value === 'true' || value === 'false')) return value === 'true';
    this.#invalid(name, `${name} must be true or false.`);
    return false;
  }

  /** Comma-separated names, or a list of names in a body; each once, in the order given. */
  #names(name: string): string[] | null {
    const value = this.#given(name);
    if (value === undefined) return null;
    const list =
      typeof value === 'string' ? value.split(',') : this.#source === 'body' && Array.isArray(value) ? value : null;
    if (!list || list.length === 0 || !list.every((item) => typeof item === 'string' && item !== '')) {
      this.#invalid(
        name,
        `${name} must be a list of field apiNames${this.#source === 'query' ? ', separated by commas' : ''}.`,
      );
      return null;
    }
    if (list.length > LIST_LIMITS.fields_max) {
      this.#invalid(name, `${name} must not have more than ${LIST_LIMITS.fields_max} names.`);
      return null;
    }
    return [...new Set(list as string[])];
  }

  #where(): Condition[] {
    return this.#fieldMap('where').map(([field, value, pointer]) =>
      value === null
        ? { id: null, pointer, field, operator: 'is_blank' }
        : { id: null, pointer, field, operator: 'eq', value },
    );
  }

  #whereIn(): Condition[] {
    return this.#fieldMap('whereIn').map(([field, value, pointer]) => {
      this.#valueList(value, pointer, field, null);
      return { id: null, pointer, field, operator: 'in', value };
    });
  }

  #fieldMap(name: string): [field: string, value: unknown, pointer: string][] {
    const value = this.#given(name);
    if (value === undefined) return [];
    if (!isObject(value)) {
      this.#problems.add(this.#pointer(name), 'FILTER_INVALID', `${name} must be an object keyed by field apiName.`);
      return [];
    }
    const entries = Object.entries(value);
    if (entries.length > LIST_LIMITS.where_max) {
      this.#problems.add(
        this.#pointer(name),
        'FILTER_TOO_MANY_CONDITIONS',
        `${name} must not have more than ${LIST_LIMITS.where_max} fields.`,
        { details: { max: LIST_LIMITS.where_max } },
      );
      return [];
    }
    return entries.map(([field, item]) => [field, item, `${this.#pointer(name)}/${pointerPart(field)}`]);
  }

  #filters(): ListRequest['filters'] {
    const value = this.#given('filters');
    if (value === undefined) return null;
    const pointer = this.#pointer('filters');
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
    if (this.#conditionCount > LIST_LIMITS.filter_conditions_max)
      this.#problems.add(
        pointer,
        'FILTER_TOO_MANY_CONDITIONS',
        `filters must not have more than ${LIST_LIMITS.filter_conditions_max} conditions, including those inside in_related.`,
        { details: { max: LIST_LIMITS.filter_conditions_max } },
      );
    return { logic, conditions };
  }

  #logic(value: unknown, pointer: string, conditionId: string | null): 'and' | 'or' {
    if (value === 'and' || value === 'or') return value;
    this.#problems.add(`${pointer}/logic`, 'FILTER_INVALID', 'logic must be "and" or "or".', { conditionId });
    return 'and';
  }

  #onlyKeys(value: JsonObject, allowed: readonly string[], pointer: string, conditionId: string | null): void {
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
    this.#conditionCount += list.length;
    if (this.#conditionCount > LIST_LIMITS.filter_conditions_max) return [];
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
    if (!OPERATOR_SET.has(operator)) {
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
    return this.#operands({ id, pointer, field, operator: operator as Operator }, item, outer);
  }

  #conditionId(id: unknown, pointer: string): string | null {
    if (typeof id !== 'string' || id === '' || countChars(id) > LIST_LIMITS.condition_id_max_chars) {
      this.#problems.add(
        `${pointer}/id`,
        'FILTER_INVALID',
        `Every condition needs an id of 1 to ${LIST_LIMITS.condition_id_max_chars} characters.`,
      );
      return null;
    }
    if (this.#conditionIds.has(id))
      this.#problems.add(`${pointer}/id`, 'FILTER_INVALID', 'The ids of conditions must be unique.', {
        conditionId: id,
      });
    this.#conditionIds.add(id);
    return id;
  }

  #operands(condition: Condition, item: JsonObject, outer: boolean): Condition | null {
    const { id, pointer, field, operator } = condition;
    const value = item.value ?? undefined;
    const valueTo = item.valueTo ?? undefined;
    const wrong = (at: string, message: string, details?: JsonObject): null => {
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
    if (operator === 'in' || operator === 'not_in') {
      this.#valueList(value, `${pointer}/value`, field, id);
      return { ...condition, value };
    }
    const { pattern_max_chars: max } = LIST_LIMITS;
    if (SEEKING.has(operator) && typeof value === 'string' && countChars(value) > max)
      return wrong('value', `The operator ${operator} takes a text of ${max} characters at most.`, { max });
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

  #valueList(value: unknown, pointer: string, field: string, conditionId: string | null): void {
    if (Array.isArray(value) && value.length >= 1 && value.length <= LIST_LIMITS.in_values_max) return;
    this.#problems.add(
      pointer,
      'FILTER_VALUE_INVALID',
      `The value must be a list of 1 to ${LIST_LIMITS.in_values_max} values.`,
      {
        field,
        conditionId,
        details: { max: LIST_LIMITS.in_values_max },
      },
    );
  }

  #sort(): ListRequest['sort'] {
    const sort = this.#given('sort');
    const orderBy = this.#given('orderBy');
    const direction = this.#given('orderDirection');
    if (sort !== undefined && (orderBy !== undefined || direction !== undefined))
      this.#problems.add(
        this.#pointer('sort'),
        'PARAMETER_CONFLICT',
        'sort cannot be combined with orderBy and orderDirection.',
      );
    if (direction !== undefined && direction !== 'asc' && direction !== 'desc')
      this.#invalid('orderDirection', 'orderDirection must be asc or desc.');
    if (sort !== undefined) return this.#sortList(sort);
    if (orderBy === undefined) {
      if (direction !== undefined)
        this.#problems.add(this.#pointer('orderBy'), 'PARAMETER_REQUIRED', 'orderBy is required with orderDirection.');
      return null;
    }
    if (typeof orderBy === 'string' && orderBy !== '')
      return [{ field: orderBy, desc: direction === 'desc', pointer: this.#pointer('orderBy') }];
    this.#invalid('orderBy', 'orderBy must be the apiName of a field.');
    return null;
  }

  #sortList(sort: unknown): ListRequest['sort'] {
    const pointer = this.#pointer('sort');
    const invalid = (at: string, message: string): null => {
      this.#problems.add(at, 'SORT_INVALID', message);
      return null;
    };
    if (!Array.isArray(sort)) return invalid(pointer, 'sort must be a list of objects {id, desc}.');
    if (sort.length > LIST_LIMITS.sort_max) {
      this.#problems.add(pointer, 'SORT_TOO_MANY', `sort must not have more than ${LIST_LIMITS.sort_max} fields.`, {
        details: { max: LIST_LIMITS.sort_max },
      });
      return null;
    }
    const keys: { field: string; desc: boolean; pointer: string }[] = [];
    for (const [index, item] of sort.entries()) {
      const at = `${pointer}/${index}`;
      const good =
        isObject(item) &&
        typeof item.id === 'string' &&
        item.id !== '' &&
        (item.desc === undefined || typeof item.desc === 'boolean') &&
        Object.keys(item).every((key) => key === 'id' || key === 'desc');
      if (!good) invalid(at, 'An item of sort must be an object {id, desc}: the apiName of a field and a boolean.');
      else if (keys.some((key) => key.field === item.id)) invalid(at, 'A field can be named only once in sort.');
      else keys.push({ field: item.id as string, desc: item.desc === true, pointer: at });
    }
    return keys.length > 0 ? keys : null;
  }

  #search(): ListRequest['search'] {
    const text = this.#given('search');
    const fields = this.#names('searchFields');
    if (text === undefined) {
      if (this.#given('searchFields') !== undefined)
        this.#problems.add(this.#pointer('search'), 'PARAMETER_REQUIRED', 'search is required with searchFields.');
      return null;
    }
    const { search_min_chars: min, search_max_chars: max } = LIST_LIMITS;
    const problem = typeof text === 'string' && !isTooLongForNfc(text, max) ? textProblem(text) : null;
    if (problem !== null) {
      this.#invalid('search', `search ${problem}`);
      return null;
    }
    const nfc = typeof text === 'string' && !isTooLongForNfc(text, max) ? text.normalize('NFC') : '';
    const chars = countChars(nfc);
    if (chars < min || chars > max) {
      this.#invalid('search', `search must be a text of ${min} to ${max} characters.`);
      return null;
    }
    const words = searchTokens(nfc).length;
    if (words === 0 || words > LIST_LIMITS.search_words_max) {
      this.#invalid('search', `search must contain 1 to ${LIST_LIMITS.search_words_max} words.`);
      return null;
    }
    return { text: nfc, fields };
  }
}

/** A name of the caller in a message; long ones are cut. */
export const quoted = (name: string): string => JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);

/** The different words of a search text, which is in NFC: runs of letters, marks and digits. */
export const searchTokens = (text: string): string[] => [
  ...new Set(text.split(/[^\p{L}\p{N}\p{M}]+/u).filter((token) => /[\p{L}\p{N}]/u.test(token))),
];

/** The value of an in_related condition after parsing. */
export interface RelatedValue {
  readonly objectApiName: string;
  readonly field: string;
  readonly logic: 'and' | 'or';
  readonly conditions: readonly Condition[];
}

/**
 * The closed grammar of a list query: shapes, counts and conflicts, without knowledge of any object. The result has
 * exactly the members of ListRequest; no input of the caller passes through unchecked. Source:
 * docs/reference/querying.md.
 */

import { pointerPart } from '../errors/pointer.ts';
import { isObject } from '../json/objects.ts';
import { LIMITS } from '../limits.ts';
import { countChars, isTooLongForNfc, textProblem } from '../schema/field-types/common.ts';
import { parameterAdvice } from '../values/parameter-advice.ts';
import { CONDITION_LIMITS, ConditionReader, quoted } from './conditions.ts';
import { EXPAND_LIMITS, readExpand } from './expand.ts';
import type { Condition, ListRequest, RawListQuery } from './types.ts';
import { Violations } from './violations.ts';

export const LIST_LIMITS = {
  take_default: LIMITS.take_default,
  take_max: LIMITS.take_max,
  skip_max: LIMITS.skip_max,
  ...CONDITION_LIMITS,
  ...EXPAND_LIMITS,
  sort_max: LIMITS.sort_max,
  fields_max: LIMITS.fields_max,
  search_min_chars: LIMITS.search_min_chars,
  search_max_chars: LIMITS.search_max_chars,
  search_words_max: 20,
  /** Entries of `where`, and of `whereIn`. */
  where_max: 50,
} as const;

const PARAMETERS = new Set([
  'take',
  'skip',
  'includeTotal',
  'includeEtag',
  'fields',
  'expand',
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

/** The source of a value decides how errors point at it and whether it may still be text. */
type QuerySource = 'query' | 'body';

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
  readonly #conditions = new ConditionReader(this.#problems);

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
      expand: this.#expand(),
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
        this.#problems.add(
          this.#pointer(name),
          'PARAMETER_UNKNOWN',
          `A list has no parameter ${quoted(name)}.${parameterAdvice(name, PARAMETERS)}`,
        );
      else
        this.#problems.add(
          this.#pointer(name),
          'BODY_PROPERTY_UNKNOWN',
          `A query has no property ${quoted(name)}.${parameterAdvice(name, PARAMETERS)}`,
        );
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
    if (!list || list.length === 0 || !list.every((item) => typeof item === 'string') || list.includes('')) {
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
    return [...new Set(list)];
  }

  #expand(): ListRequest['expand'] {
    const value = this.#given('expand');
    return value === undefined ? [] : readExpand(value, this.#source, this.#pointer('expand'), this.#problems);
  }

  #where(): Condition[] {
    return this.#fieldMap('where').map(([field, value, pointer]) =>
      value === null
        ? { id: null, pointer, field, operator: 'is_blank' }
        : { id: null, pointer, field, operator: 'eq', value },
    );
  }

  #whereIn(): Condition[] {
    return this.#fieldMap('whereIn').flatMap(([field, value, pointer]): Condition[] =>
      this.#conditions.valueList(value, pointer, field, null)
        ? [{ id: null, pointer, field, operator: 'in', value }]
        : [],
    );
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
    return value === undefined ? null : this.#conditions.group(value, this.#pointer('filters'));
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
      const { id, desc = false, ...others }: Record<string, unknown> = isObject(item) ? item : {};
      if (typeof id !== 'string' || id === '' || typeof desc !== 'boolean' || Object.keys(others).length > 0)
        invalid(at, 'An item of sort must be an object {id, desc}: the apiName of a field and a boolean.');
      else if (keys.some((key) => key.field === id)) invalid(at, 'A field can be named only once in sort.');
      else keys.push({ field: id, desc, pointer: at });
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

/** The different words of a search text, which is in NFC: runs of letters, marks and digits. */
export const searchTokens = (text: string): string[] => [
  ...new Set(text.split(/[^\p{L}\p{N}\p{M}]+/u).filter((token) => /[\p{L}\p{N}]/u.test(token))),
];

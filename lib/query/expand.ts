/**
 * The grammar of `expand`: references, each with the fields that are answered of the record that it points to. As text
 * `ownerId(displayName),accountId(name,city)`, in a body also `{"ownerId": ["displayName"]}`. Source:
 * docs/reference/querying.md.
 */

import { pointerPart } from '../errors/pointer.ts';
import { isObject } from '../json/objects.ts';
import { LIMITS } from '../limits.ts';
import { quoted } from './conditions.ts';
import type { ExpandRequest, ListRequest } from './types.ts';
import type { Violations } from './violations.ts';

export const EXPAND_LIMITS = {
  expand_max: LIMITS.expand_max,
  expand_fields_max: LIMITS.expand_fields_max,
} as const;

const FORMS = {
  query: 'references with the fields of their records, such as ownerId(displayName),accountId(name,city)',
  body: 'an object of references with the fields of their records, such as {"ownerId": ["displayName"]}',
} as const;

/** Parses `expand`; violations are added to `problems`. */
export function readExpand(
  value: unknown,
  source: ListRequest['source'],
  pointer: string,
  problems: Violations,
): readonly ExpandRequest[] {
  const invalid = (at: string, message: string, max?: number): void =>
    problems.add(at, 'PARAMETER_INVALID', message, max === undefined ? {} : { details: { max } });
  const asked = entriesOf(value);
  if (!asked) {
    invalid(pointer, `expand must be ${FORMS[source]}.`);
    return [];
  }
  const { expand_max: max, expand_fields_max: fieldsMax } = EXPAND_LIMITS;
  if (asked.length > max) {
    invalid(pointer, `expand must not have more than ${max} references.`, max);
    return [];
  }
  const requests: ExpandRequest[] = [];
  for (const [reference, names] of asked) {
    // In a text there is no pointer to a part of it.
    const at = isObject(value) ? `${pointer}/${pointerPart(reference)}` : pointer;
    if (requests.some((one) => one.reference === reference)) invalid(at, `expand has ${quoted(reference)} twice.`);
    else if (!isListOfNames(names)) invalid(at, `expand needs a list of field apiNames for ${quoted(reference)}.`);
    else if (names.length > fieldsMax)
      invalid(at, `expand must not have more than ${fieldsMax} fields for ${quoted(reference)}.`, fieldsMax);
    else
      requests.push({
        reference,
        pointer: at,
        fields: names.map((name, index) => ({ name, pointer: isObject(value) ? `${at}/${index}` : at })),
      });
  }
  return requests;
}

/**
 * The references along which a query leads that has not been checked yet, by `expand`, filters or order: those of each
 * no more than may be asked for.
 */
export function referencesIn(query: Readonly<Record<string, unknown>>): readonly string[] {
  const { expand, where, whereIn, filters, sort, orderBy } = query;
  // Most requests name nothing of these, and every request for records comes here.
  if ((expand ?? where ?? whereIn ?? filters ?? sort ?? orderBy) === undefined) return [];
  const expanded = (entriesOf(expand) ?? []).map(([reference]) => reference);
  const conditions = isObject(filters) ? filters['conditions'] : [];
  const names = [
    ...[where, whereIn].flatMap((one) => (isObject(one) ? Object.keys(one) : [])),
    ...membersOf(conditions, 'field'),
    ...membersOf(sort, 'id'),
    orderBy,
  ];
  const followed = names.flatMap((name) => {
    const dot = typeof name === 'string' ? name.indexOf('.') : -1;
    return dot < 0 ? [] : [String(name).slice(0, dot)];
  });
  const upTo = (found: readonly string[]): string[] => [...new Set(found)].slice(0, EXPAND_LIMITS.expand_max);
  return [...new Set([...upTo(expanded), ...upTo(followed)])];
}

const membersOf = (list: unknown, name: string): unknown[] =>
  Array.isArray(list) ? list.map((one: unknown) => (isObject(one) ? one[name] : undefined)) : [];

const isListOfNames = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string' && name !== '');

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] | null {
  if (isObject(value)) return Object.entries(value);
  return typeof value === 'string' ? entriesOfText(value) : null;
}

/** Stops behind the first reference that is too many. */
function entriesOfText(text: string): readonly (readonly [string, unknown])[] | null {
  const entries: [string, string[]][] = [];
  let at = 0;
  do {
    const open = text.indexOf('(', at);
    const close = text.indexOf(')', at);
    const reference = text.slice(at, open);
    if (open <= at || close < open || reference.includes(',')) return null;
    entries.push([reference, text.slice(open + 1, close).split(',')]);
    if (close === text.length - 1) return entries;
    if (text[close + 1] !== ',') return null;
    at = close + 2;
  } while (entries.length <= EXPAND_LIMITS.expand_max);
  return entries;
}

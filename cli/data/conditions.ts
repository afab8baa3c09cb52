/** `--where 'creditLimit >= 1000'`: conditions as people write them, as the filters of the API. */
import { LIMITS } from '../../lib/limits.ts';
import { usage } from '../failure.ts';
import { typed } from './assignments.ts';
import type { Field } from './objects.ts';

interface Condition {
  id: string;
  field: string;
  operator: string;
  value?: unknown;
  valueTo?: unknown;
}

export interface Filters {
  logic: 'and' | 'or';
  conditions: Condition[];
}

const SIGNS: Record<string, string> = {
  '=': 'eq',
  '!=': 'neq',
  '>': 'gt',
  '>=': 'gte',
  '<': 'lt',
  '<=': 'lte',
  '~': 'contains',
  '!~': 'not_contains',
  '^=': 'starts_with',
};
const FIELD = /^\s*([\w.]+)\s*/;
const SIGN = /^(!=|>=|<=|!~|\^=|=|>|<|~)\s*/;
const WORD = /^(is not blank|is blank|not in|in|between)(?:\s+|$)/i;

/** The filters of all conditions; `any`: one of them is enough. */
export function readConditions(
  texts: readonly string[],
  any: boolean,
  fieldOf: (apiName: string) => Field | undefined,
): Filters {
  if (texts.length > LIMITS.filter_conditions_max)
    throw usage(`--where may be given at most ${LIMITS.filter_conditions_max} times.`);
  const conditions = texts.map((text, at) => ({ id: `where${at + 1}`, ...readCondition(text, fieldOf) }));
  return { logic: any ? 'or' : 'and', conditions };
}

function readCondition(text: string, fieldOf: (apiName: string) => Field | undefined): Omit<Condition, 'id'> {
  const name = FIELD.exec(text);
  const rest = name ? text.slice(name[0].length) : '';
  const field = name?.[1] ?? '';
  const about = fieldOf(field);
  const one = (value: string): unknown =>
    // A list is compared as a whole, and its single values by ~ and in.
    about?.fieldType === 'multiPicklist' ? value : typed(value, about, field);
  const sign = SIGN.exec(rest);
  if (sign) {
    const value = unquoted(rest.slice(sign[0].length).trim());
    const operator = SIGNS[sign[1] ?? ''] ?? '';
    if (value === '' && operator === 'eq') return { field, operator: 'is_blank' };
    if (value === '' && operator === 'neq') return { field, operator: 'is_not_blank' };
    const list = about?.fieldType === 'multiPicklist' && (operator === 'eq' || operator === 'neq');
    return { field, operator, value: list ? typed(value, about, field) : one(value) };
  }
  const word = WORD.exec(rest);
  if (!word) throw usage(`--where ${JSON.stringify(text)} is no condition.`, HELP);
  const values = split(rest.slice(word[0].length)).map(one);
  switch (word[1]?.toLowerCase()) {
    case 'is blank':
    case 'is not blank':
      return { field, operator: /not/i.test(word[1]) ? 'is_not_blank' : 'is_blank' };
    case 'between':
      if (values.length !== 2) throw usage(`--where ${JSON.stringify(text)}: between takes two values.`, HELP);
      return { field, operator: 'between', value: values[0], valueTo: values[1] };
    default:
      return { field, operator: /^not/i.test(word[1] ?? '') ? 'not_in' : 'in', value: values };
  }
}

const HELP =
  'Write for example: city=Berlin, city!=Berlin, creditLimit>=1000, name~acme (contains), name^=Ac (begins with), "city in Berlin,Hamburg", "dueDate between 2026-01-01,2026-01-31", "city is blank".';

/** Values between commas; a value in double quotes may hold commas. */
const split = (text: string): string[] =>
  [...text.matchAll(/\s*("(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)/g)]
    .map(([, item = '']) => unquoted(item.trim()))
    .filter((item) => item !== '');

function unquoted(text: string): string {
  return /^"(?:[^"\\]|\\.)*"$/.test(text) ? text.slice(1, -1).replace(/\\(.)/g, '$1') : text;
}

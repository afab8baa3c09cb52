import { ExactNumber } from '../../json/exact-number.ts';
import { readDecimal } from '../../values/decimal-text.ts';
import { BLANK, countChars, isStorable, parsed, refused, TEXT_MAX_CHARS } from './common.ts';
import type { FieldType } from './types.ts';

const JSON_DEPTH_MAX = 32;

/** The reason why a value cannot be stored as jsonb; null when it can. */
function jsonProblem(value: unknown, depth = 1): string | null {
  if (value === null || typeof value === 'boolean') return null;
  if (typeof value === 'string')
    return isStorable(value) ? null : 'contains a character that cannot be stored (NUL or half of a surrogate pair).';
  if (typeof value === 'number') return Number.isFinite(value) ? null : 'contains a number that is not finite.';
  if (value instanceof ExactNumber)
    return readDecimal(value) ? null : 'contains a number with more digits than can be stored.';
  if (typeof value !== 'object') return 'must be a JSON value.';
  if (depth > JSON_DEPTH_MAX) return `is nested deeper than ${JSON_DEPTH_MAX} levels.`;
  if (Array.isArray(value)) {
    for (const item of value) {
      const problem = jsonProblem(item, depth + 1);
      if (problem) return problem;
    }
    return null;
  }
  for (const [key, item] of Object.entries(value)) {
    const problem = jsonProblem(key) ?? jsonProblem(item, depth + 1);
    if (problem) return problem;
  }
  return null;
}

/** Any JSON value, as it came: numbers exact, strings untouched; the order of members is not kept. */
export const json: FieldType = {
  name: 'json',
  writable: true,
  maxChars: TEXT_MAX_CHARS,
  bindType: 'jsonb',
  blank: 'null',
  needsTextComparison: true,
  columnType: () => 'jsonb',
  parseInput(value, field, pointer) {
    const problem = jsonProblem(value);
    if (problem) return refused(field, pointer, 'FIELD_FORMAT_INVALID', `${field.apiName} ${problem}`);
    const text = JSON.stringify(value);
    if (text.length > TEXT_MAX_CHARS && countChars(text) > TEXT_MAX_CHARS)
      return refused(
        field,
        pointer,
        'FIELD_TOO_LONG',
        `${field.apiName} is longer than ${TEXT_MAX_CHARS} characters.`,
        {
          max: TEXT_MAX_CHARS,
        },
      );
    return parsed(text);
  },
  parseFilter: (_value, field, pointer) =>
    refused(field, pointer, 'FIELD_TYPE_INVALID', `${field.apiName} cannot be compared.`),
  operators: BLANK,
  sortable: false,
  groupable: false,
  searchable: false,
  aggregations: ['count'],
  expressionType: 'opaque',
  outputSql: (column) => column,
  jsonSchema: () => ({}),
  attributes: ['defaultValue', 'required'],
  example: () => ({ color: 'blue', sizes: [1, 2] }),
};

/** The types that are stored as one text. They differ in length, form and what can be asked of them. */

import { matchesPattern, type PatternBudget, PatternBudgetError } from '../../values/pattern.ts';
import {
  BLANK,
  CONTENT,
  EQUALITY,
  ORDER,
  parsed,
  parseText,
  refused,
  TEXT_COLLATION,
  TEXT_MAX_CHARS,
} from './common.ts';
import type { FieldAttributes, FieldType } from './types.ts';

interface TextOptions {
  name: string;
  /** Most characters when the field declares no length. */
  length: number;
  /** Short enough to be compared, sorted and grouped by. */
  short: boolean;
  searchable: boolean;
  attributes: FieldType['attributes'];
  /** Of a field that declares no length, and the most that one can declare. */
  chars?: FieldType['chars'];
  maxChars?: number;
  /** Short texts that keys and duplicate rules compare: see FieldType. */
  normalForm?: string;
  becomes?: readonly string[];
  /** The problem with the form of a text; null when it is valid. */
  problem?: (text: string) => string | null;
  schema?: Record<string, unknown>;
  example: unknown;
}

/** The problem of a text that fails a pattern, as the end of a sentence; null when it matches. */
function patternProblem(pattern: string, text: string, budget: PatternBudget | undefined): string | null {
  try {
    return matchesPattern(pattern, text, budget) ? null : `does not match the pattern ${pattern}.`;
  } catch (error) {
    if (!(error instanceof PatternBudgetError)) throw error;
    return `cannot be compared with its pattern: ${error.message}`;
  }
}

export function textType(options: TextOptions): FieldType {
  const max = (field: FieldAttributes): number => Math.min(field.length ?? options.length, TEXT_MAX_CHARS);
  return {
    name: options.name,
    writable: true,
    bindType: 'text',
    blank: 'whiteSpace',
    columnType: () => `text COLLATE "${TEXT_COLLATION}"`,
    parseInput(value, field, pointer, budget) {
      const result = parseText(value, field, pointer, max(field));
      if (!result.ok) return result;
      const text = result.value;
      const problem = options.problem?.(text);
      if (problem) return refused(field, pointer, 'FIELD_FORMAT_INVALID', `${field.apiName} ${problem}`);
      const mismatch = field.pattern === null ? null : patternProblem(field.pattern, text, budget);
      if (mismatch !== null)
        return refused(field, pointer, 'FIELD_FORMAT_INVALID', `${field.apiName} ${mismatch}`, {
          pattern: field.pattern,
        });
      return parsed(text);
    },
    parseFilter: (value, field, pointer) => parseText(value, field, pointer, TEXT_MAX_CHARS),
    operators: options.short ? [...EQUALITY, ...CONTENT, ...ORDER, ...BLANK] : ['eq', 'neq', ...CONTENT, ...BLANK],
    sortable: options.short,
    groupable: options.short,
    searchable: options.searchable,
    expressionType: 'text',
    ...(options.normalForm ? { comparison: 'text', normalForm: options.normalForm } : {}),
    ...(options.chars ? { chars: options.chars } : {}),
    ...(options.maxChars ? { maxChars: options.maxChars } : {}),
    ...(options.becomes ? { becomes: options.becomes } : {}),
    aggregations: options.short ? ['count', 'countDistinct', 'min', 'max'] : ['count'],
    outputSql: (column) => column,
    jsonSchema: (field) => ({
      type: 'string',
      maxLength: max(field),
      ...(field.pattern === null ? {} : { pattern: `^(?:${field.pattern})$` }),
      ...options.schema,
    }),
    attributes: options.attributes,
    example: () => options.example,
  };
}

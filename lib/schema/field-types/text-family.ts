/** The types that are stored as one text. They differ in length, form and what can be asked of them. */

import { matchesPattern } from '../../values/pattern.ts';
import type { FieldMeta, FieldTypeName } from '../snapshot.ts';
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
import type { FieldType } from './types.ts';

interface TextOptions {
  name: FieldTypeName;
  /** Most characters when the field declares no length. */
  length: number;
  /** Short enough to be compared, sorted and grouped by. */
  short: boolean;
  searchable: boolean;
  attributes: FieldType['attributes'];
  /** What the text must look like besides; null when it does. */
  problem?: (text: string) => string | null;
  schema?: Record<string, unknown>;
  example: unknown;
}

export function textType(options: TextOptions): FieldType {
  const max = (field: FieldMeta): number => Math.min(field.length ?? options.length, TEXT_MAX_CHARS);
  return {
    name: options.name,
    writable: true,
    bindType: 'text',
    blank: 'whiteSpace',
    columnType: () => `text COLLATE "${TEXT_COLLATION}"`,
    parseInput(value, field, pointer) {
      const result = parseText(value, field, pointer, max(field));
      if (!result.ok) return result;
      const text = result.value as string;
      const problem = options.problem?.(text);
      if (problem) return refused(field, pointer, 'FIELD_FORMAT_INVALID', `${field.apiName} ${problem}`);
      if (field.pattern !== null && !matchesPattern(field.pattern, text))
        return refused(field, pointer, 'FIELD_FORMAT_INVALID', `${field.apiName} does not match its pattern.`, {
          pattern: field.pattern,
        });
      return parsed(text);
    },
    parseFilter: (value, field, pointer) => parseText(value, field, pointer, TEXT_MAX_CHARS),
    operators: options.short ? [...EQUALITY, ...CONTENT, ...ORDER, ...BLANK] : ['eq', 'neq', ...CONTENT, ...BLANK],
    sortable: options.short,
    groupable: options.short,
    searchable: options.searchable,
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

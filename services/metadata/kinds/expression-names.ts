/** The fields and groups that the text of an expression names, before it is checked and also when it has mistakes. */
import { fieldsOfExpression } from '../../../lib/expression/check.ts';
import type { Reference } from './kind.ts';
import { SYSTEM_FIELD_NAMES } from './system-fields.ts';

/** Components that an expression over records of `object` needs; its own check says which are missing. */
export function expressionReferences(object: string, source: string, pointer: string): Reference[] {
  const needs = (type: string, fullName: string): Reference => ({ type, fullName, pointer, ownCheck: true });
  const reads = (name: string): Reference => ({ ...needs('CustomField', `${object}.${name}`), access: 'read' });
  return [
    ...[...fieldsNamed(source)].filter((name) => !SYSTEM_FIELD_NAMES.has(name)).map(reads),
    ...[...groupsNamed(source)].map((name) => needs('Group', name)),
  ];
}

/** Fields that an expression names; of one that is not well-formed, those that it seems to. */
export const fieldsNamed = (source: string): ReadonlySet<string> =>
  fieldsOfExpression(source) ?? named(source, /\b(?:record|old)\s*\.\s*([A-Za-z]\w*)(\s*\()?/g);

const groupsNamed = (source: string): Set<string> => named(source, /\binGroup\s*\(\s*["']([A-Za-z]\w*)["']/g);

const named = (source: string, pattern: RegExp): Set<string> =>
  new Set([...source.matchAll(pattern)].flatMap(([, name, call]) => (name && !call ? name : [])));

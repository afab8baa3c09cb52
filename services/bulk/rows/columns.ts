/** What the columns of a file stand for. Pure. Source: docs/reference/bulk.md#columns. */
import type { BulkOperation, CreateBody } from '../../../contracts/bulk.ts';
import type { Column, ObjectColumns } from '../../../contracts/data/columns.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { invalidData } from './invalid.ts';

export const ID = 'id';
export const ETAG = '_etag';
export const CONFIRMATION = '_duplicateConfirmation';

/** `key`: the column finds the record of a reference by this field. null: the column is left out. */
export type Target =
  | { readonly special: typeof ID | typeof ETAG | typeof CONFIRMATION }
  | { readonly field: Column; readonly key: string | null }
  | null;

type Work = Pick<CreateBody, 'operation' | 'columns' | 'conflictPolicy' | 'externalIdField'>;

/** Columns besides those of fields, by operation. */
const SPECIAL: Readonly<Record<BulkOperation, readonly string[]>> = {
  create: [CONFIRMATION],
  update: [ID, ETAG, CONFIRMATION],
  upsert: [ETAG, CONFIRMATION],
  delete: [ID, ETAG],
  export: [],
};

const SHOWN_MAX = 50;
const SHOWN_CHARS = 100;

/**
 * What each column stands for. Throws BULK_DATA_INVALID with the names of columns that are unknown or cannot be written (which
 * look the same), stand for the same as another one, or are missing.
 */
export function planColumns(header: readonly string[], work: Work, object: ObjectColumns): readonly Target[] {
  if (header.length > LIMITS.bulk_columns_max)
    throw invalidData(`The file has ${header.length} columns; at most ${LIMITS.bulk_columns_max} are allowed.`);
  const fields = new Map(object.columns.map((column) => [column.apiName, column]));
  const seen = new Set<string>();
  const unknown: string[] = [];
  const repeated: string[] = [];
  const targets = header.map((given): Target => {
    const name = nameOf(given, work);
    if (name === null) return null;
    const target = targetOf(name, work.operation, fields);
    if (!target) unknown.push(given);
    // A reference by its id and by a key are one field.
    const identity = target && 'field' in target ? target.field.apiName : name;
    if (seen.has(identity)) repeated.push(given);
    seen.add(identity);
    return target;
  });
  const missing = requiredOf(work).filter((name) => !seen.has(name));
  refuse(
    [
      [unknown, 'do not exist, or cannot be written by this operation'],
      [repeated, 'stand for the same as another column'],
      [missing, 'are missing'],
    ],
    unknown.length === 1 ? otherDelimiter(header) : '',
  );
  return targets;
}

/** Tells of a name whether it is a column that the operation can write. */
export function writable(
  { operation }: Pick<Work, 'operation'>,
  { columns }: ObjectColumns,
): (name: string) => boolean {
  const fields = new Map(columns.map((column) => [column.apiName, column]));
  return (name) => targetOf(name, operation, fields) !== null;
}

/** The name that a column stands for; null: it is left out. */
export function nameOf(given: string, { columns }: Pick<Work, 'columns'>): string | null {
  const name = given.trim();
  return columns && Object.hasOwn(columns, name) ? (columns[name] ?? null) : name;
}

function targetOf(name: string, operation: BulkOperation, fields: ReadonlyMap<string, Column>): Target {
  if (name === ID || name === ETAG || name === CONFIRMATION)
    return SPECIAL[operation].includes(name) ? { special: name } : null;
  if (operation === 'delete') return null;
  const dot = name.indexOf('.');
  const field = fields.get(dot < 0 ? name : name.slice(0, dot));
  if (!field?.edit) return null;
  const key = dot < 0 ? null : name.slice(dot + 1);
  return key === null || field.keys.includes(key) ? { field, key } : null;
}

function requiredOf({ operation, conflictPolicy = 'requireEtag', externalIdField }: Work): string[] {
  if (operation === 'upsert') return externalIdField === undefined ? [] : [externalIdField];
  if (operation === 'create') return [];
  return conflictPolicy === 'requireEtag' ? [ID, ETAG] : [ID];
}

/** A hint where the line of headers is one cell, because the file has another delimiter than the job. */
function otherDelimiter([only = '', ...others]: readonly string[]): string {
  const found = others.length === 0 ? [';', '\t', '|', ','].find((delimiter) => only.includes(delimiter)) : undefined;
  return found === undefined
    ? ''
    : ` If ${JSON.stringify(found)} is the delimiter of the file, csv.delimiter must say so.`;
}

/** Throws one error for all columns that are wrong. */
function refuse(problems: readonly (readonly [names: readonly string[], why: string])[], hint: string): void {
  const found = problems
    .filter(([names]) => names.length > 0)
    .map(([names, why]) => ({ why, shown: names.slice(0, SHOWN_MAX).map((name) => name.slice(0, SHOWN_CHARS)) }));
  if (found.length === 0) return;
  const sentences = found.map(
    ({ why, shown }) => `Columns ${why}: ${shown.map((it) => JSON.stringify(it)).join(', ')}.`,
  );
  throw invalidData(sentences.join(' ') + hint, { columns: found.flatMap(({ shown }) => shown) });
}

/**
 * The tenant's schema that a configuration requires: tables, columns, indexes, foreign keys, sequences. DDL
 * is the difference between two of these, so that every change of a component finds its way by itself. Pure. Source:
 * docs/reference/metadata.md#storage.
 */

import { createHash } from 'node:crypto';
import { checkExpression } from '../../../lib/expression/check.ts';
import { conditionSql } from '../../../lib/expression/sql.ts';
import { ExpressionError } from '../../../lib/expression/types.ts';
import {
  fieldType,
  isFile,
  isMasterDetail,
  isNumbered,
  isReference,
  valueTypeName,
} from '../../../lib/schema/field-types/registry.ts';
import { fuzzyClass, keyForm, matchForm } from '../../../lib/schema/matching.ts';
import type { FieldMeta, FieldTypeName, MatchMethod, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { isUserObject } from '../../../lib/schema/user-object.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { CUSTOM_FIELD } from '../kinds/bodies/custom-field.ts';
import { CUSTOM_OBJECT } from '../kinds/bodies/custom-object.ts';
import { compileField } from '../kinds/compile-field.ts';
import { compileObject } from '../kinds/compile-object.ts';
import { type ComponentOf, componentsByObject, componentsOf, type State } from '../kinds/component.ts';
import { duplicateRule } from '../kinds/duplicate-rule.ts';
import { fieldMeta } from '../kinds/field-meta.ts';
import { sharingRule } from '../kinds/sharing-rule.ts';
import { systemFields } from '../kinds/system-fields.ts';
import { columnType } from './column-type.ts';

type DuplicateRule = ComponentOf<typeof duplicateRule>;
type SharingRule = ComponentOf<typeof sharingRule>;

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly notNull: boolean;
  /** The field, when it is one of the configuration's. */
  readonly field: FieldMeta | null;
}

export interface Table {
  readonly name: string;
  readonly columns: ReadonlyMap<string, Column>;
  /** Name of the index → everything after `CREATE … INDEX name ON table`. */
  readonly indexes: ReadonlyMap<string, { readonly unique: boolean; readonly on: string }>;
  /** Name of the constraint → column and the table it points to. */
  readonly foreignKeys: ReadonlyMap<string, { readonly column: string; readonly to: string }>;
  /** Sequences of autoNumber columns, by name. */
  readonly sequences: ReadonlyMap<string, NumberedColumn>;
}

export interface NumberedColumn {
  readonly column: string;
  /** Of the autoNumber field. */
  readonly format: string | null;
}

export type Model = ReadonlyMap<string, Table>;

const SYSTEM_COLUMNS: readonly Column[] = (
  [
    ['id', 'uuid', true],
    ['ownerId', 'uuid', true],
    ['createdAt', 'timestamptz(3)', true],
    ['createdById', 'uuid', true],
    ['updatedAt', 'timestamptz(3)', true],
    ['updatedById', 'uuid', true],
    ['recordVersion', 'integer', true],
    ['recordTypeApiName', 'text', false],
  ] as const
).map(([name, type, notNull]) => ({ name, type, notNull, field: null }));

/** An index of a duplicate rule, by method. */
type MatchIndexKind = 'de' | 'dn' | 'df';

/**
 * Names of indexes and constraints: what it is, the object in eight characters (names are limited to 63), the column.
 * The column can be read back from the name in an error of PostgreSQL.
 */
const physicalName = (kind: 'u' | 'i' | 's' | 'f' | 'r' | MatchIndexKind, object: string, column: string): string =>
  `_${kind}_${createHash('sha256').update(object).digest('hex').slice(0, 8)}_${column}`;

const sequenceName = (object: string, field: string): string => `_seq_${object}_${field}`;

/** Columns that an index keeps unique, in parentheses. */
export const keyExpression = (field: FieldMeta): string => `(${keyForm(field, identifier(field.apiName))})`;

/** The index that keeps the values of a unique field apart. */
export const uniqueIndex = (object: string, field: FieldMeta): { name: string; unique: true; on: string } => ({
  name: physicalName('u', object, field.apiName),
  unique: true,
  on: keyExpression(field),
});

/** True for records that have no value where the field is required, as writes see it. */
export function blankSql(field: FieldMeta): string {
  const column = identifier(field.apiName);
  const { blank } = fieldType(field.fieldType);
  if (blank === 'whiteSpace') return `coalesce(erp.expr_is_white(${column}), true)`;
  return blank === 'emptyList' ? `coalesce(cardinality(${column}), 0) = 0` : `${column} IS NULL`;
}

/** The table of an object; `fields` are those that are not of the platform. */
function tableOf(object: ObjectMeta, fields: readonly FieldMeta[], rules: readonly DuplicateRule[]): Table {
  const { apiName } = object;
  const columns = new Map(SYSTEM_COLUMNS.map((column) => [column.name, column]));
  const indexes = new Map<string, { unique: boolean; on: string }>();
  const foreignKeys = new Map<string, { column: string; to: string }>();
  const sequences = new Map<string, NumberedColumn>();
  indexes.set(physicalName('i', apiName, 'createdAt'), { unique: false, on: '("createdAt" DESC, id DESC)' });
  for (const field of fields) {
    const type = columnType(field);
    if (type === null) continue;
    const column = field.apiName;
    columns.set(column, { name: column, type, notNull: isMasterDetail(field), field });
    const { name, ...unique } = uniqueIndex(apiName, field);
    if (field.unique) indexes.set(name, unique);
    else if (field.externalId)
      indexes.set(physicalName('i', apiName, column), { unique: false, on: keyExpression(field) });
    const [target] = field.referenceTo;
    if (isReference(field) && target !== undefined) {
      indexes.set(physicalName('i', apiName, column), { unique: false, on: `(${identifier(column)})` });
      foreignKeys.set(physicalName('f', apiName, column), { column, to: target });
    }
    if (isFile(field))
      indexes.set(physicalName('i', apiName, column), { unique: false, on: `(${identifier(column)})` });
    if (isNumbered(field)) sequences.set(sequenceName(apiName, column), { column, format: field.format });
  }
  for (const column of object.features.search ? object.defaultSearchFields : []) {
    const field = columns.get(column)?.field;
    if (field && fieldType(field.fieldType).searchable)
      indexes.set(physicalName('s', apiName, column), {
        unique: false,
        on: `USING gin (erp.search_text(${identifier(column)}) public.gin_trgm_ops)`,
      });
  }
  if (object.features.duplicates)
    for (const { active, match } of rules.map((rule) => rule.body))
      for (const { field, method } of active ? match : []) addMatchIndex(indexes, apiName, method, field, columns);
  return { name: apiName, columns, indexes, foreignKeys, sequences };
}

/**
 * Indexes by which the newest of the records that a user reaches are found, where they do not reach all: by owner, and
 * for each sharing rule those that its field opens to a user or that meet its criteria.
 */
function sharingIndexes(
  { columns }: Pick<Table, 'columns'>,
  { apiName, sharingDefault }: ObjectMeta,
  rules: readonly SharingRule[],
): Table['indexes'] {
  const indexes = new Map<string, { unique: boolean; on: string }>();
  if (sharingDefault !== 'private') return indexes;
  const newest = '"createdAt" DESC, id DESC';
  indexes.set(physicalName('i', apiName, 'ownerId'), { unique: false, on: `("ownerId", ${newest})` });
  const fields = {
    ...systemFields(),
    ...Object.fromEntries([...columns.values()].flatMap(({ name, field }) => (field ? [[name, field]] : []))),
  };
  for (const { body } of rules) {
    const { criteria, through } = body;
    const field = through === undefined ? undefined : columns.get(through)?.field;
    if (field?.referenceTo.some((name) => isUserObject({ apiName: name })))
      indexes.set(physicalName('r', apiName, body.apiName), {
        unique: false,
        on: `(${identifier(field.apiName)}, ${newest})`,
      });
    const where = criteria !== undefined ? indexableCriteria(apiName, criteria, fields) : null;
    if (where)
      indexes.set(physicalName('r', apiName, body.apiName), {
        unique: false,
        on: `(${newest}) WHERE ${where}`,
      });
  }
  return indexes;
}

/**
 * SQL of criteria for an index; null for what is not stored, for items of lists, and for days, which have a time zone.
 */
function indexableCriteria(
  object: string,
  criteria: string,
  fields: Readonly<Record<string, FieldMeta>>,
): string | null {
  const known = new Map(Object.entries(fields));
  const fieldType = (name: string): FieldTypeName | undefined => {
    const meta = known.get(name);
    return meta && valueTypeName(meta);
  };
  try {
    const expression = checkExpression(criteria, { object, fieldType }, ['boolean']);
    const named = (name: string): FieldMeta => {
      const meta = known.get(name);
      if (!meta) throw new Error(`The checked criteria name ${name}, which is no field of ${object}.`);
      return meta;
    };
    const sqlIn = (timezone: string) =>
      conditionSql(expression, {
        column: identifier,
        fieldType: (name) => valueTypeName(named(name)),
        length: (name) => named(name).length,
        timezone,
      });
    const { sql, indexable } = sqlIn('UTC');
    return indexable && sql === sqlIn('Asia/Tokyo').sql ? sql : null;
  } catch (error) {
    if (error instanceof ExpressionError) return null; // it reads what is not stored
    throw error;
  }
}

const MATCH_INDEX: Readonly<Record<MatchMethod, MatchIndexKind>> = { exact: 'de', normalized: 'dn', fuzzy: 'df' };

/** `ownerId` is a reference, though no component says so. */
const OWNER = fieldMeta({ apiName: 'ownerId', fieldType: 'reference', label: '', system: true });

/**
 * The index by which a duplicate rule finds candidates; none when another one of the object serves as well. Records of
 * one value stand in the order of their ids, so that the first of very many are found at once. Trigrams go straight
 * into their index: the check before every write would read a list of pending ones from end to end.
 */
function addMatchIndex(
  indexes: Map<string, { unique: boolean; on: string }>,
  object: string,
  method: MatchMethod,
  field: string,
  columns: ReadonlyMap<string, Column>,
): void {
  const meta = field === 'ownerId' ? OWNER : columns.get(field)?.field;
  if (!meta) return;
  const form = matchForm(method, meta, identifier(field));
  const expression = form === identifier(field) ? form : `(${form})`;
  if (method !== 'fuzzy') {
    const same = new Set([`(${form})`, `(${expression})`]);
    if ([...indexes.values()].some(({ on }) => same.has(on))) return;
  }
  indexes.set(physicalName(MATCH_INDEX[method], object, field), {
    unique: false,
    on:
      method === 'fuzzy'
        ? `USING gin (${form} public.gin_trgm_ops, ${fuzzyClass(identifier(field))}) WITH (fastupdate = off)`
        : `(${expression}, id)`,
  });
}

/** The tables of the objects in `only` (all without it). */
export function physicalModel(state: State, only?: ReadonlySet<string>): Model {
  const fields = componentsByObject(state, CUSTOM_FIELD);
  const rules = componentsByObject(state, duplicateRule);
  const sharing = componentsByObject(state, sharingRule);
  const model = new Map<string, Table>();
  for (const component of componentsOf(state, CUSTOM_OBJECT)) {
    if (only && !only.has(component.fullName)) continue;
    const object = compileObject(component);
    const own = (fields.get(component.fullName) ?? []).sort((a, b) => (a.fullName < b.fullName ? -1 : 1));
    const { name } = object.fields;
    const stored = [...(name ? [name] : []), ...own.map((field) => compileField(field, state))];
    const table = tableOf(object, stored, rules.get(component.fullName) ?? []);
    const added = sharingIndexes(table, object, sharing.get(component.fullName) ?? []);
    model.set(component.fullName, { ...table, indexes: new Map([...table.indexes, ...added]) });
  }
  return model;
}

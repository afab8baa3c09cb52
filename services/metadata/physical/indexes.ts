/** Compares a tenant's indexes with those that its configuration requires. Pure. */
import { identifier } from '../../../lib/values/sql-text.ts';
import type { Model } from './model.ts';

/**
 * Raised whenever the same configuration calls for other indexes than before, or for others under the same names, so
 * that tenants which are there already get them.
 */
export const INDEX_GENERATION = 4;

export interface WantedIndex {
  readonly name: string;
  readonly unique: boolean;
  /** Name of the table. */
  readonly table: string;
  /** Everything after `CREATE … INDEX name ON table`. */
  readonly on: string;
}

/** As PostgreSQL knows it. */
export interface ExistingIndex {
  readonly name: string;
  /** False: it was being made when its maker died, and is of no use. */
  readonly valid: boolean;
  /** In the words of PostgreSQL, without the names of index and table. */
  readonly definition: string;
}

export interface IndexChanges {
  readonly missing: readonly WantedIndex[];
  /** There, and defined otherwise. */
  readonly changed: readonly WantedIndex[];
}

/** Names that only the platform gives: what it is, the object in eight characters, the column or rule. */
const OURS = /^_(?:u|i|s|r|de|dn|df)_[0-9a-f]{8}_/;

/**
 * Indexes of what every tenant's schema holds beside its objects. The schema of a new tenant has them; a large table that
 * was there before them gets them here.
 */
const COMPANION_INDEXES: readonly WantedIndex[] = [
  { name: '_idempotency_expiry', unique: false, table: '_idempotency', on: '(expires_at)' },
  { name: '_confirmations_expiry', unique: false, table: '_confirmations', on: '(expires_at)' },
  { name: '_revoked_shares_expiry', unique: false, table: '_revoked_shares', on: '(kept_until)' },
];

export const wantedIndexes = (model: Model): WantedIndex[] => [
  ...COMPANION_INDEXES,
  ...[...model.values()].flatMap((table) =>
    [...table.indexes].map(([name, { unique, on }]) => ({ name, unique, table: table.name, on })),
  ),
];

/** `definitions` are those of the wanted indexes, in the words of PostgreSQL. */
export function indexChanges(
  wanted: readonly WantedIndex[],
  definitions: ReadonlyMap<string, string>,
  existing: readonly ExistingIndex[],
): IndexChanges {
  const usable = new Map(existing.filter(({ valid }) => valid).map(({ name, definition }) => [name, definition]));
  return {
    missing: wanted.filter(({ name }) => !usable.has(name)),
    changed: wanted.filter(({ name }) => usable.has(name) && usable.get(name) !== definitions.get(name)),
  };
}

/** Names of ours that nothing in the configuration calls for. */
export function leftOver(wanted: readonly WantedIndex[], existing: readonly ExistingIndex[]): string[] {
  const expected = new Set(wanted.map(({ name }) => name));
  return existing.map(({ name }) => name).filter((name) => OURS.test(name) && !expected.has(name));
}

/** Name of an index that replaces another one. */
export const successor = (name: string): string => `${name}_new`;

export const createIndexSql = (
  { unique, table, on }: WantedIndex,
  how: { readonly name: string; readonly schema: string; readonly concurrently?: boolean },
): string =>
  `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${how.concurrently ? 'CONCURRENTLY IF NOT EXISTS ' : ''}` +
  `${identifier(how.name)} ON ${how.schema}.${identifier(table)} ${on}`;

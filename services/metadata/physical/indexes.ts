/** What is missing when the indexes of a tenant are held against those that its configuration calls for. Pure. */
import { type Model, quote } from './model.ts';

/**
 * Raised whenever the same configuration calls for other indexes than before, so that tenants which are there already
 * get them. An index whose definition changes gets another name with it: by its name it is known.
 */
export const INDEX_GENERATION = 1;

export interface ExistingIndex {
  readonly name: string;
  /** False: it was being made when its maker died, and is of no use. */
  readonly valid: boolean;
}

export interface IndexChanges {
  /** Of no use, and in the way of a new one of the same name. */
  readonly broken: readonly string[];
  readonly missing: readonly { readonly name: string; readonly unique: boolean; readonly on: string }[];
  /** Nothing in the configuration calls for them. */
  readonly leftOver: readonly string[];
}

/** Names that only the platform gives: what it is, the object in eight characters, the column or rule. */
const OURS = /^_(?:u|i|s|r|de|dn|df)_[0-9a-f]{8}_/;

/** `on` of what is missing names its table, within the quoted name of the schema. */
export function indexChanges(model: Model, existing: readonly ExistingIndex[], schema: string): IndexChanges {
  const valid = new Set(existing.filter((index) => index.valid).map((index) => index.name));
  const expected = new Set<string>();
  const missing: IndexChanges['missing'][number][] = [];
  for (const table of model.values())
    for (const [name, { unique, on }] of table.indexes) {
      expected.add(name);
      if (!valid.has(name)) missing.push({ name, unique, on: `${schema}.${quote(table.name)} ${on}` });
    }
  const ours = existing.filter(({ name }) => OURS.test(name));
  return {
    broken: ours.filter((index) => expected.has(index.name) && !index.valid).map((index) => index.name),
    missing,
    leftOver: ours.filter((index) => !expected.has(index.name)).map((index) => index.name),
  };
}

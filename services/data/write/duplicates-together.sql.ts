/** Statements that find duplicates of several writes at once: those of single writes, for each row of `input`. */
import { SetSql } from '../../../mixins/database/set-sql.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { reachSql } from '../sql.ts';
import { EPSILON, searchBy, weightOf } from './duplicate-rules.ts';
import {
  type Check,
  formOf,
  leastSimilarity,
  lockKeysSql,
  orderedLocksSql,
  parentsOfCreateSql,
  scoring,
  sharedTrigramsSql,
} from './duplicates.sql.ts';
import type { Write } from './write.ts';

/** A write with the duplicate rules that may fire for it. */
export interface Checked {
  readonly write: Write;
  readonly checks: readonly Check[];
}

/** One statement for several subjects. Throws when their texts differ. */
function commonStatement<T>(
  subjects: readonly T[],
  build: (subject: T, sql: Sql) => string,
): { set: SetSql<T>; text: string } {
  const set = new SetSql(subjects);
  const text = set.common(build);
  if (text === null) throw new Error('The statements of a group differ.');
  return { set, text };
}

const withInput = <T>(set: SetSql<T>, text: string): Statement =>
  set.statement(`WITH input AS MATERIALIZED (${set.input()}) ${text}`);

/** Locks the parents of creates of one shape; null: there are none. */
export function parentsOfCreatesSql(writes: readonly [Write, ...Write[]]): Statement | null {
  const build = (write: Write, sql: Sql): string => parentsOfCreateSql(write, sql) ?? '';
  if (build(writes[0], new Sql()) === '') return null;
  const { set, text } = commonStatement(writes, build);
  return withInput(set, `SELECT one.* FROM input CROSS JOIN LATERAL (${text}) one`);
}

/** A lock that a write takes; the id is a bigint. */
export interface DuplicateLock {
  readonly id: string;
  readonly alone: boolean;
}

/** The locks of a group, as duplicateLocksSql takes them. */
export function locksOfGroupSql(group: readonly Checked[]): Statement {
  const { set, text } = commonStatement(group, ({ write, checks }, sql) => lockKeysSql(write, sql, checks));
  return withInput(
    set,
    `SELECT locks.id::text AS id, bool_or(locks.alone) AS alone FROM input CROSS JOIN LATERAL (${text}) locks(id, alone)
      WHERE locks.id IS NOT NULL GROUP BY locks.id`,
  );
}

export function takeLocksSql(locks: readonly DuplicateLock[]): Statement {
  const sql = new Sql();
  const ids = sql.bind(
    locks.map(({ id }) => id),
    'bigint[]',
  );
  const alone = sql.bind(
    locks.map((lock) => lock.alone),
    'boolean[]',
  );
  return sql.statement(orderedLocksSql(`SELECT * FROM unnest(${ids}, ${alone})`));
}

/** The form of each item of each rule for a group, in the order of the writes; null where it has no value. */
export function formsOfGroupSql(group: readonly Checked[]): Statement {
  const { set, text } = commonStatement(group, ({ write, checks }, sql) => {
    const forms = checks.map(({ items, present }) => {
      const each = items.map(({ field }) => {
        const item = present.find((one) => one.field === field);
        return item ? `(${formOf(write, sql, item)})::text` : 'NULL';
      });
      return `jsonb_build_array(${each.join(', ')})`;
    });
    return `SELECT jsonb_build_array(${forms.join(', ')}) AS forms`;
  });
  return withInput(set, `SELECT one.forms FROM input CROSS JOIN LATERAL (${text}) one ORDER BY input.n`);
}

/**
 * Of writes with these forms of the items of a rule, the places from 1 of those that match an earlier one. Two that match
 * have in common what duplicateLocksSql locks.
 */
export function matchesAmongSql(
  { rule, items, search }: Check,
  forms: readonly (readonly (string | null)[])[],
): Statement {
  const sql = new Sql();
  const every = searchBy(items, items, rule.threshold) ?? search;
  const columns = items.map((_, index) =>
    sql.bind(
      forms.map((of) => of[index] ?? null),
      'text[]',
    ),
  );
  const names = items.map((_, index) => `f${index}`);
  const among = (fields: readonly { readonly field: unknown }[]): number[] =>
    items.flatMap(({ field }, index) => (fields.some((one) => one.field === field) ? [index] : []));
  const similarity = (): string => sql.bind(leastSimilarity(every), 'float8');
  const keys = [
    ...among(every.equal).map(
      (index) =>
        `SELECT n, ${index} AS item, hashtextextended(f${index}, 0) AS key FROM input WHERE f${index} IS NOT NULL`,
    ),
    ...among(every.similar).map(
      (index) =>
        `SELECT n, ${index}, shared.h FROM input CROSS JOIN LATERAL (${sharedTrigramsSql(`f${index}`, similarity())}) shared`,
    ),
  ];
  const scores = items.map(({ method, weight }, index) => {
    const [former, later] = [`former.f${index}`, `later.f${index}`];
    const alike =
      method === 'fuzzy'
        ? `coalesce(public.similarity(${former}, ${later})::float8, 0)`
        : `CASE WHEN ${former} = ${later} THEN 1 ELSE 0 END`;
    return `${alike} * ${sql.bind(weight, 'float8')}`;
  });
  return sql.statement(`WITH input AS MATERIALIZED (
      SELECT * FROM unnest(${columns.join(', ')}) WITH ORDINALITY AS given(${[...names, 'n'].join(', ')})),
    keys AS MATERIALIZED (${keys.join(' UNION ALL ')}),
    pairs AS MATERIALIZED (SELECT DISTINCT a.n AS former, b.n AS later FROM keys a JOIN keys b USING (item, key) WHERE a.n < b.n)
    SELECT DISTINCT pairs.later::integer AS place FROM pairs
      JOIN input former ON former.n = pairs.former JOIN input later ON later.n = pairs.later
    WHERE (${scores.join(' + ')}) / ${sql.bind(weightOf(items), 'float8')} >= ${sql.bind(rule.threshold - EPSILON, 'float8')}`);
}

export interface StoredMatches {
  /** Places from 1 of the writes that match a stored record. */
  readonly places: readonly number[];
  /** Ids of matched records that are about to change. */
  readonly ids: readonly string[];
}

/** The writes of a group for which a rule finds stored records. `changed`: ids of all records that are about to change. */
export function storedMatchesSql(group: readonly (readonly [Write, Check])[], changed: readonly string[]): Statement {
  const { set, text } = commonStatement(group, ([write, check], sql) => {
    const visible = reachSql(write.view, sql, write.object.apiName, 'read', 't');
    const { from } = scoring(write, sql, check);
    const found = (where: string): string => `SELECT candidate."id" FROM ${from(where)}`;
    return check.rule.scope === 'all' && visible !== 'true'
      ? `(${found(visible)}) UNION ALL (${found(`NOT (${visible})`)})`
      : found(visible);
  });
  const ids = set.placeholders.constant(changed, 'uuid[]');
  return withInput(
    set,
    `, found AS MATERIALIZED (SELECT input.n, one."id" FROM input CROSS JOIN LATERAL (${text}) one)
    SELECT ARRAY(SELECT DISTINCT n::integer FROM found) AS places,
      ARRAY(SELECT DISTINCT "id" FROM found WHERE "id" = ANY(${ids})) AS ids`,
  );
}

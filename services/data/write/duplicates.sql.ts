/** The statements that look for duplicates, and what a confirmation leaves in the statement that stores the record. */

import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import { fuzzyClass, fuzzyClasses, matchForm } from '../../../lib/schema/matching.ts';
import type { DuplicateRuleMeta } from '../../../lib/schema/snapshot.ts';
import { type Placeholders, Sql, within } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { auditSql, CallerSql } from '../../../mixins/mutation/audit.ts';
import { columnName, columnType, reachSql, recordJson, table } from '../sql.ts';
import { VERSION_COLUMNS } from '../view.ts';
import { stateSql } from './checks.sql.ts';
import { EPSILON, type MatchItem, type Search, searchBy, weightOf } from './duplicate-rules.ts';
import { lookupSql, referencesSql } from './references.ts';
import { parentLocksSql } from './rollups.ts';
import { requestOf } from './write.sql.ts';
import type { Confirmation, FieldValue, Write } from './write.ts';

/** Matches shown for a rule, in order of score, then id. */
const MATCHES_MAX = 10;
/** Records that an item brings to the comparison at most: by id when they are equal. */
const CANDIDATES_MAX = 1_000;
/** An item with the value that the write gives it; null: the stored one. */
export interface Valued extends MatchItem {
  readonly given: FieldValue | null;
}

/** A rule that may fire, as this caller and this write see it. */
export interface Check {
  readonly rule: DuplicateRuleMeta;
  readonly items: readonly MatchItem[];
  readonly present: readonly Valued[];
  readonly search: Search<Valued>;
}

/** The state and the parents that a create locks: other writers of their records hold these before they look here. */
export function beforeCreateSql(write: Write): Statement {
  const sql = new Sql();
  const text = parentsOfCreateSql(write, sql);
  return text === null ? { text: `WITH ${stateSql(write)} SELECT ${VERSION_COLUMNS} FROM state` } : sql.statement(text);
}

/** null: there are no parents to lock. */
export function parentsOfCreateSql(write: Write, sql: Sql): string | null {
  const { cte, ids } = referencesSql(write, write.given, (item) => sql.for(item));
  const gate = ' AND EXISTS (SELECT FROM state)';
  const parents = parentLocksSql(write, { object: write.object.apiName, id: null, changed: null, moves: ids, gate });
  if (parents.ctes.length === 0) return null;
  const ctes = [stateSql(write), cte, ...parents.ctes];
  return `WITH ${ctes.join(', ')} SELECT ${VERSION_COLUMNS} FROM state, refs WHERE true${parents.after}`;
}

/** A row when the confirmation was used before. */
export function usedSql(schema: string, { id }: Confirmation): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT 1 FROM ${schema}._confirmations WHERE confirmation_id = ${sql.bind(id, 'uuid')}`);
}

/** Below a hundredth everything is similar. */
export const leastSimilarity = ({ similarity }: Search<MatchItem>): number => Math.max(0.01, similarity - EPSILON);

export const similaritySql = (search: Search<Valued>): Statement => ({
  name: 'data trigram similarity',
  text: `SELECT set_config('pg_trgm.similarity_threshold', $1, true)`,
  values: [String(leastSimilarity(search))],
});

/** Trigrams of one object share so many locks: the table of locks is of a fixed size. */
const TRIGRAM_LOCKS = 128;

/**
 * Locks until the end of the transaction on what is about to be stored: a concurrent duplicate waits here, and finds
 * the record afterwards. Two records that match by a rule are equal in one of the items that it looks up by, or similar
 * in one, and what they then have in common is locked: the form, or one of a few trigrams. A caller who reads only some
 * of the fields of a rule looks up by others than the rest, and therefore writes alone.
 */
export function duplicateLocksSql(write: Write, checks: readonly Check[]): Statement {
  const sql = new Sql();
  return sql.statement(orderedLocksSql(lockKeysSql(write, sql, checks)));
}

/** In one order everywhere, or two writes could wait for each other. */
export const orderedLocksSql = (
  keys: string,
): string => `SELECT count(CASE WHEN alone THEN pg_advisory_xact_lock(id) ELSE pg_advisory_xact_lock_shared(id) END)
  FROM (SELECT id, bool_or(alone) AS alone FROM (${keys}) locks(id, alone)
    WHERE id IS NOT NULL GROUP BY id ORDER BY id OFFSET 0) ordered`;

/** What duplicateLocksSql locks: keys, and whether alone. */
export function lockKeysSql(write: Write, sql: Sql, checks: readonly Check[]): string {
  const name = (...parts: readonly string[]): string =>
    sql.bind([write.unit.schema, write.object.apiName, ...parts].join('|'), 'text');
  const keys = checks.flatMap(({ rule, items, present, search }) => {
    const every = searchBy(items, items, rule.threshold) ?? search;
    const among = (fields: readonly MatchItem[]): Valued[] =>
      present.filter((item) => fields.some(({ field }) => field === item.field));
    const whole = items.length < rule.match.length;
    const locks = among(every.equal).map((item) => {
      const form = formOf(write, sql, item);
      return `SELECT hashtextextended(${name(rule.apiName, item.field.apiName, '')} || ${form}::text, 0), true`;
    });
    for (const item of among(every.similar)) {
      const trigrams = sharedTrigramsSql(formOf(write, sql, item), sql.bind(leastSimilarity(every), 'float8'));
      const bucket = `(shared.h & ${TRIGRAM_LOCKS - 1})::text`;
      locks.push(`SELECT hashtextextended(${name('trigram', '')} || ${bucket}, 0), true FROM (${trigrams}) shared`);
    }
    if (rule.match.length > 1) locks.unshift(`SELECT hashtextextended(${name(rule.apiName)}, 0), ${whole}`);
    return locks;
  });
  return keys.join(' UNION ALL ');
}

/**
 * The trigrams of a text of which every text so similar has one: of n trigrams at least s × n are common to both, so
 * when all trigrams are put in one order, the first n − ⌈s × n⌉ + 1 of either text cannot all be missing in the other.
 */
export const sharedTrigramsSql = (form: string, similarity: string): string =>
  `SELECT h FROM (
    SELECT h, row_number() OVER (ORDER BY h) AS place, count(*) OVER () AS n
    FROM (SELECT hashtextextended(x, 0) AS h FROM unnest(public.show_trgm(${form})) x) hashed) placed
  WHERE place <= n - ceil(${similarity} * n) + 1`;

/** SQL of the form of the value that the record would have. */
export const formOf = (write: Write, sql: Sql, item: Valued): string =>
  matchForm(item.method, item.field, valueSql(write, sql, item));

function valueSql(write: Write, sql: Sql, { field, given }: Valued): string {
  const {
    object,
    id,
    unit: { schema },
  } = write;
  if (!given)
    return `(SELECT stored.${columnName(field)} FROM ${table(schema, object.apiName)} stored
      WHERE stored."id" = ${sql.bind(id, 'uuid')})`;
  if (given.lookup && given.value === null) return `(${lookupSql(write.view, schema, sql.for(given), given)})`;
  return `(${sql.bind(given.value, typeOf(field).bindType)}::${columnType(field)})`;
}

/** A match as matchSql answers it. The only row has no id when no match is visible. */
export interface MatchRow {
  readonly id: string | null;
  readonly name: string | null;
  readonly score: number;
  /** In the order of the items that have a value. */
  readonly similarities: readonly number[];
  readonly record: Readonly<Record<string, unknown>>;
  /** Matches that the user cannot see; the same in every row. */
  readonly hidden: number;
}

/**
 * The matches of a rule as MatchRow. Candidates come by index from each item that is looked up by; all of them are then
 * scored by all items.
 */
export function matchSql(write: Write, check: Check): Statement {
  const { object, view, access, call } = write;
  const { rule, items, present } = check;
  const sql = new Sql();
  const visible = reachSql(view, sql, object.apiName, 'read', 't');
  const scored = scoring(write, sql, check);
  const shown = new Set([object.nameField, ...items.map((item) => item.field.apiName)]);
  const fields = access.readable.filter((field) => shown.has(field.apiName));
  const nameField = object.fields[object.nameField];
  const name = nameField ? `candidate.${columnName(nameField)}` : 'NULL';
  const reportsHidden = (rule.scope === 'all' || rule.revealHiddenCount) && visible !== 'true';
  const hidden = reportsHidden ? `(SELECT count(*)::int FROM ${scored.from(`NOT (${visible})`)})` : '0';
  const similarities = present.map((_, index) => `similar_by.item${index}`).join(', ');
  return sql.statement(`SELECT match.*, ${hidden} AS hidden FROM (VALUES (1)) one LEFT JOIN LATERAL (
      SELECT candidate."id", ${name} AS name, ${scored.score} AS score,
        ARRAY[${similarities}]::float8[] AS similarities,
        ${recordJson('candidate', fields, call.ieee754Compatible)} AS record
      FROM ${scored.from(visible)} ORDER BY score DESC, candidate."id" LIMIT ${MATCHES_MAX}) match ON true`);
}

/** SQL of the score of a candidate, and of the FROM clause of all candidates under a condition that reach it. */
export function scoring(
  write: Write,
  sql: Sql,
  { rule, items, present, search }: Check,
): { readonly score: string; readonly from: (where: string) => string } {
  const { object, unit } = write;
  const records = table(unit.schema, object.apiName);
  const self = sql.bind(write.id, 'uuid');
  const forms = new Map<MatchItem, string>(present.map((item) => [item, formOf(write, sql, item)]));
  const formOfGiven = (item: MatchItem): string => forms.get(item) ?? 'NULL';
  const formOfRow = (item: MatchItem, alias: string): string =>
    matchForm(item.method, item.field, `${alias}.${columnName(item.field)}`);

  // All trigrams of a text may be common ones. What is similar to it is of similar size as well.
  const isOfSize = (item: Valued): string => {
    const sizes = fuzzyClasses(valueSql(write, sql, item), sql.bind(leastSimilarity(search), 'float8'));
    return `${fuzzyClass(`t.${columnName(item.field)}`)} && ${sizes}`;
  };
  const holds = (item: Valued): string =>
    item.method === 'fuzzy'
      ? `${formOfRow(item, 't')} OPERATOR(public.%) ${formOfGiven(item)} AND ${isOfSize(item)}`
      : `${formOfRow(item, 't')} = ${formOfGiven(item)}`;
  const foundBy = (item: Valued, where: string): string => {
    const held = [...new Set([item, ...search.allEqual, ...search.allSimilar])];
    // An index of equal values has them in the order of their ids; one of trigrams has no order.
    const order = held.some(({ method }) => method === 'fuzzy') ? '' : 'ORDER BY t."id" ';
    return `(SELECT t."id" FROM ${records} t
      WHERE ${held.map(holds).join(' AND ')} AND t."id" <> ${self} AND ${where} ${order}LIMIT ${CANDIDATES_MAX})`;
  };
  const similarities = present.map((item, index) => {
    const [ofRow, given] = [formOfRow(item, 'candidate'), formOfGiven(item)];
    return item.method === 'fuzzy'
      ? `coalesce(public.similarity(${ofRow}, ${given})::float8, 0) AS item${index}`
      : `CASE WHEN ${ofRow} = ${given} THEN 1 ELSE 0 END AS item${index}`;
  });
  const weighted = present.map((item, index) => `similar_by.item${index} * ${sql.bind(item.weight, 'float8')}`);
  const score = `(${weighted.join(' + ')}) / ${sql.bind(weightOf(items), 'float8')}`;
  const from = (where: string): string => {
    const candidates = [...search.equal, ...search.similar].map((item) => foundBy(item, where)).join(' UNION ');
    return `(${candidates}) found JOIN ${records} candidate ON candidate."id" = found."id"
      CROSS JOIN LATERAL (SELECT ${similarities.join(', ')} OFFSET 0) similar_by
      WHERE ${score} >= ${sql.bind(rule.threshold - EPSILON, 'float8')}`;
  };
  return { score, from };
}

/**
 * CTEs of the statement that stores the record: the confirmation is used up, and the audit trail says who confirmed
 * which matches, in an entry of its own. One row of the relation `from` stands for the record, as in trailSql.
 */
export function confirmedSql(write: Write, placeholders: Placeholders<Write>, from: string): string[] {
  const { call, object, confirmed, unit, ownRequest } = write;
  if (!confirmed) return [];
  const { constant: bind } = placeholders;
  const { id, expiresAt } = confirmed.confirmation;
  const ctes: string[] = [];
  // A part of a larger mutation leaves the confirmation to that mutation.
  if (!unit.key.part || ownRequest)
    ctes.push(`confirmation AS (INSERT INTO ${unit.schema}._confirmations (confirmation_id, expires_at)
      SELECT ${bind(id, 'uuid')}, ${bind(expiresAt.toISOString(), 'timestamptz')} FROM ${from})`);
  if (!confirmed.matches) return ctes;
  const entry = {
    operationId: call.operationId,
    outcome: 'committed',
    code: 'DUPLICATE_RULE',
    idempotencyKey: unit.key.key,
    objectApiName: object.apiName,
    recordId: write.id,
  } as const;
  const changes = bind(JSON.stringify(confirmed.matches), 'jsonb');
  const audit = auditSql(unit.schema, { bind }, new CallerSql(within(placeholders, requestOf)), entry, { changes });
  return [...ctes, `confirmation_audit AS (${audit} FROM ${from})`];
}

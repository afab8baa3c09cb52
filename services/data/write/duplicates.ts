/**
 * Duplicate rules: the record as it would be stored is compared with the others, inside the transaction of the write.
 * Twins that are written at the same time wait for each other before they look. Source: docs/reference/duplicates.md.
 */

import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isBlank } from '../../../lib/schema/field-types/blank.ts';
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import { fuzzyClass, fuzzyClasses, matchForm } from '../../../lib/schema/matching.ts';
import type { DuplicateRuleMeta, FieldMeta } from '../../../lib/schema/snapshot.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { columnName, columnType, reachSql, recordJson, table } from '../sql.ts';
import { assertFresh } from '../tenants.ts';
import { entrySql } from '../trail/entry.ts';
import { stateSql } from './checks.ts';
import { invalidConfirmation, openConfirmation, sealConfirmation } from './confirmation.ts';
import {
  activeRules,
  EPSILON,
  type MatchItem,
  readableItems,
  type Search,
  searchBy,
  weightOf,
} from './duplicate-rules.ts';
import { lookupSql, missingReferences, referredSql } from './references.ts';
import { parentLocksSql } from './rollups.ts';
import { validationFailed } from './violations.ts';
import type { Confirmation, Given, Write } from './write.ts';

/** Matches shown for a rule, in order of score, then id. */
const MATCHES_MAX = 10;
/** Records that an item brings to the comparison at most: by id when they are equal. */
const CANDIDATES_MAX = 1_000;
/** From this similarity on a field is named as one that matches, unless the threshold of the rule is lower. */
const MATCHED_FROM = 0.5;

interface DuplicateMatch {
  readonly objectApiName: string;
  readonly id: string;
  readonly displayName: string | null;
  readonly score: number;
  readonly matchedFields: readonly string[];
  readonly record: Record<string, unknown>;
}

/** An item of `rules` in the details of DUPLICATE_RULE. */
interface FiredRule {
  readonly ruleApiName: string;
  readonly label: string;
  readonly action: 'block' | 'confirm';
  readonly matches: readonly DuplicateMatch[];
  readonly hiddenMatchCount: number;
}

/** An item with SQL of the value that the record would have. */
interface Valued extends MatchItem {
  readonly given: Given | null;
}

/** A rule that may fire, as this caller and this write see it. */
interface Check {
  readonly rule: DuplicateRuleMeta;
  readonly items: readonly MatchItem[];
  readonly present: readonly Valued[];
  readonly search: Search<Valued>;
}

/**
 * Step of every mutation that stores the values of a record, after it was found valid: 409 with what it may be a
 * duplicate of, unless the caller confirms exactly that. Needs a transaction when mayAskDuplicates says so, and
 * confirmedSql in the statement that stores the record.
 */
export async function checkDuplicates(write: Write): Promise<void> {
  const token = write.call.headers.duplicateConfirmation;
  const confirmation = token === undefined ? null : openConfirmation(write, token);
  const checks = activeRules(write.object).flatMap((rule) => checkOf(write, rule) ?? []);
  if (checks.length === 0 && confirmation === null) return;
  const found = await ask(write, checks, confirmation);
  const fired = checks.flatMap((check, index) => firedRule(write, check, found[index]!) ?? []);
  write.confirmed = confirmation && { confirmation, matches: null };
  if (fired.length === 0) return;
  await refuseMissingReferences(write);
  const shown = fired.map(({ ruleApiName, matches, hiddenMatchCount }) => ({
    ruleApiName,
    // What the same request makes has another id each time: its place tells it.
    ids: matches.map(({ id }) => (write.made.includes(id) ? String(write.made.indexOf(id)) : id)),
    hiddenMatchCount,
  }));
  const confirmable = fired.every((rule) => rule.action === 'confirm');
  if (confirmable && confirmation?.covers(shown)) {
    write.confirmed = { confirmation, matches: changesOf(fired) };
    return;
  }
  const next = confirmable ? sealConfirmation(write, shown, confirmation) : null;
  throw new PlatformError('DUPLICATE_RULE', 'A similar record exists.', {
    details: {
      rules: fired,
      confirmable,
      confirmationToken: next?.token ?? null,
      confirmationExpiresAt: next?.expiresAt.toISOString() ?? null,
    },
  });
}

/** A create finds out with its last statement which references name no record, and faults come before duplicates. */
async function refuseMissingReferences(write: Write): Promise<void> {
  const missing = write.recordVersion === 0 ? await missingReferences(write) : [];
  if (missing.length > 0) throw validationFailed(missing);
}

/** The write asks the database before it stores: it cannot be one statement. An update `changes` what it gives at most. */
export const mayAskDuplicates = ({ object, call }: Write, changes?: readonly Given[]): boolean =>
  call.headers.duplicateConfirmation !== undefined ||
  activeRules(object).some(
    ({ match }) =>
      changes === undefined || changes.some((item) => match.some(({ field }) => field === item.field.apiName)),
  );

/** Null: the rule cannot fire, or the write changes nothing that it looks at. */
function checkOf(write: Write, rule: DuplicateRuleMeta): Check | null {
  const { object, access, recordVersion } = write;
  const isCreate = recordVersion === 0;
  const items = readableItems(rule, object, access);
  const changed = new Set(write.changed.map((item) => item.field.apiName));
  if (!isCreate && !items.some(({ field }) => changed.has(field.apiName))) return null;
  const given = new Map(write.given.map((item) => [item.field.apiName, item]));
  const present = items.flatMap((item): Valued[] => {
    const value = given.get(item.field.apiName) ?? null;
    if (value) return value.lookup || !isBlank(item.field, value.value) ? [{ ...item, given: value }] : [];
    // A stored value may be blank; the statement finds out.
    if (!isCreate) return [{ ...item, given: null }];
    return item.field.apiName === 'ownerId' ? [{ ...item, given: ownerOf(write, item.field) }] : [];
  });
  const search = present.length === 0 ? null : searchBy(items, present, rule.threshold);
  return search && { rule, items, present, search };
}

/** A new record belongs to who makes it. */
const ownerOf = ({ request }: Write, field: FieldMeta): Given => ({ field, value: request.userId, lookup: null });

type Row = readonly unknown[];

/** Asks for all rules at once; the rows of each rule. Nothing is asked for a reference that the create will be refused for. */
async function ask(write: Write, checks: readonly Check[], confirmation: Confirmation | null): Promise<Row[][]> {
  const { tx, view, schema } = write;
  const running: Promise<{ rows: unknown[][] }>[] = [];
  const send = (statement: Statement): Promise<{ rows: unknown[][] }> => {
    const answer = tx.arrays(statement);
    running.push(answer);
    return answer;
  };
  tx.gather();
  // What a deployment waits for comes first, as in every write.
  const state = write.recordVersion === 0 ? send(beforeCreateSql(write)) : null;
  if (checks.length > 0) send(lockSql(write, checks));
  const used = confirmation && send(usedSql(schema, confirmation));
  const answers = checks.map((check) => {
    if (check.search.similar.length + check.search.allSimilar.length > 0) send(similaritySql(check.search));
    return send(matchSql(write, check));
  });
  for (const answer of running) await answer;
  if (state) {
    const versions = (await state).rows[0]!;
    assertFresh(view, versions[0], versions[1]);
  }
  if (used && (await used).rows.length > 0) throw invalidConfirmation();
  return Promise.all(answers.map(async (answer) => (await answer).rows));
}

/** The state and the parents that a create locks: whoever changes a record of theirs holds these before they look here. */
function beforeCreateSql(write: Write): Statement {
  const sql = new Sql();
  const { cte, ids } = referredSql(write, sql, write.given);
  const gate = ' AND EXISTS (SELECT FROM s)';
  const parents = parentLocksSql(write, { object: write.object.apiName, id: null, changed: null, moves: ids, gate });
  if (parents.ctes.length === 0) return { text: `WITH ${stateSql(write)} SELECT s.m, s.a FROM s` };
  const ctes = [stateSql(write), cte, ...parents.ctes];
  return sql.statement(`WITH ${ctes.join(', ')} SELECT s.m, s.a FROM s, r WHERE true${parents.after}`);
}

/** A row when the confirmation was used before. */
function usedSql(schema: string, { id }: Confirmation): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT 1 FROM ${schema}._confirmations WHERE confirmation_id = ${sql.bind(id, 'uuid')}`);
}

/** Below a hundredth everything is similar. */
const leastSimilarity = ({ similarity }: Search<MatchItem>): number => Math.max(0.01, similarity - EPSILON);

const similaritySql = (search: Search<Valued>): Statement => ({
  name: 'data trigram similarity',
  text: `SELECT set_config('pg_trgm.similarity_threshold', $1, true)`,
  values: [String(leastSimilarity(search))],
});

/** Trigrams of one object share so many locks: the table of locks is of a fixed size. */
const TRIGRAM_LOCKS = 128;

/**
 * Locks until the end of the transaction on what is about to be stored: a twin waits here, and finds the record
 * afterwards. Two records that match by a rule are equal in one of the items that it looks up by, or similar in one, and
 * what they then have in common is locked: the form, or one of a few trigrams. Whoever reads only some of the fields of a
 * rule looks up by others than the rest, and therefore writes alone.
 */
function lockSql(write: Write, checks: readonly Check[]): Statement {
  const sql = new Sql();
  const name = (...parts: readonly string[]): string =>
    sql.bind([write.schema, write.object.apiName, ...parts].join('|'), 'text');
  const keys = checks.flatMap(({ rule, items, present }) => {
    const every = searchBy(items, items, rule.threshold)!;
    const among = (fields: readonly MatchItem[]): Valued[] =>
      present.filter((item) => fields.some(({ field }) => field === item.field));
    const whole = items.length < rule.match.length;
    return [
      ...(rule.match.length > 1
        ? [`SELECT hashtextextended(${name(rule.apiName)}, 0), ${whole ? 'true' : 'false'}`]
        : []),
      ...among(every.equal).map(
        (item) =>
          `SELECT hashtextextended(${name(rule.apiName, item.field.apiName, '')} || ${formOf(write, sql, item)}::text, 0), true`,
      ),
      ...among(every.similar).map(
        (item) =>
          `SELECT hashtextextended(${name('trigram', '')} || t.bucket, 0), true FROM (${sharedTrigramsSql(sql, formOf(write, sql, item), leastSimilarity(every))}) t`,
      ),
    ];
  });
  // In one order everywhere, or two writes could wait for each other.
  return sql.statement(
    `SELECT count(CASE WHEN alone THEN pg_advisory_xact_lock(k) ELSE pg_advisory_xact_lock_shared(k) END)
      FROM (SELECT k, bool_or(alone) AS alone FROM (${keys.join(' UNION ALL ')}) v(k, alone) WHERE k IS NOT NULL GROUP BY k ORDER BY k OFFSET 0) o`,
  );
}

/**
 * The trigrams of a text of which every text so similar has one: of n trigrams at least s × n are common to both, so
 * when all trigrams are put in one order, the first n − ⌈s × n⌉ + 1 of either text cannot all be missing in the other.
 */
const sharedTrigramsSql = (sql: Sql, form: string, similarity: number): string =>
  `SELECT (h & ${TRIGRAM_LOCKS - 1})::text AS bucket FROM (
    SELECT h, row_number() OVER (ORDER BY h) AS place, count(*) OVER () AS n
    FROM (SELECT hashtextextended(x, 0) AS h FROM unnest(public.show_trgm(${form})) x) hashed) placed
  WHERE place <= n - ceil(${sql.bind(similarity, 'float8')} * n) + 1`;

/** SQL of the form of the value that the record would have. */
const formOf = (write: Write, sql: Sql, item: Valued): string =>
  matchForm(item.method, item.field, valueSql(write, sql, item));

function valueSql(write: Write, sql: Sql, { field, given }: Valued): string {
  const { schema, object, id } = write;
  if (!given)
    return `(SELECT o.${columnName(field)} FROM ${table(schema, object.apiName)} o WHERE o."id" = ${sql.bind(id, 'uuid')})`;
  if (given.lookup && given.value === null) return `(${lookupSql(write, sql, given)})`;
  return `(${sql.bind(given.value, typeOf(field).bindType)}::${columnType(field)})`;
}

/**
 * The matches of a rule: id, name, score, similarities, record, and on every row the number of hidden matches; one row
 * with nulls when no match is visible. Candidates come by index from each item that is looked up by; all of them are
 * then scored by all items.
 */
function matchSql(write: Write, check: Check): Statement {
  const { object, schema, view, access, call } = write;
  const { rule, items, present, search } = check;
  const sql = new Sql();
  const name = table(schema, object.apiName);
  const self = sql.bind(write.id, 'uuid');
  const forms = new Map(present.map((item) => [item as MatchItem, formOf(write, sql, item)]));
  const ofRow = (item: MatchItem, alias: string): string =>
    matchForm(item.method, item.field, `${alias}.${columnName(item.field)}`);
  const visible = reachSql(view, sql, object.apiName, 'read', 't');

  // All trigrams of a text may be common ones. What is similar to it is of similar size as well.
  const sized = (item: Valued): string =>
    `${fuzzyClass(`t.${columnName(item.field)}`)} && ${fuzzyClasses(valueSql(write, sql, item), sql.bind(leastSimilarity(search), 'float8'))}`;
  const holds = (item: Valued): string =>
    item.method === 'fuzzy'
      ? `${ofRow(item, 't')} OPERATOR(public.%) ${forms.get(item)!} AND ${sized(item)}`
      : `${ofRow(item, 't')} = ${forms.get(item)!}`;
  const arm = (item: Valued, where: string): string => {
    const held = [...new Set([item, ...search.allEqual, ...search.allSimilar])];
    // An index of equal values has them in the order of their ids; one of trigrams has no order.
    const order = held.some(({ method }) => method === 'fuzzy') ? '' : 'ORDER BY t."id" ';
    return `(SELECT t."id" FROM ${name} t WHERE ${held.map(holds).join(' AND ')} AND t."id" <> ${self} AND ${where} ${order}LIMIT ${CANDIDATES_MAX})`;
  };
  const candidates = (where: string): string =>
    [...search.equal, ...search.similar].map((item) => arm(item, where)).join(' UNION ');
  const similarities = present.map((item) =>
    item.method === 'fuzzy'
      ? `coalesce(public.similarity(${ofRow(item, 'r')}, ${forms.get(item)!})::float8, 0)`
      : `CASE WHEN ${ofRow(item, 'r')} = ${forms.get(item)!} THEN 1 ELSE 0 END`,
  );
  const score = `(${present.map((item, index) => `s.s${index} * ${sql.bind(item.weight, 'float8')}`).join(' + ')}) / ${sql.bind(weightOf(items), 'float8')}`;
  const scored = (where: string): string => `(${candidates(where)}) c JOIN ${name} r ON r."id" = c."id"
      CROSS JOIN LATERAL (SELECT ${similarities.map((part, index) => `${part} AS s${index}`).join(', ')} OFFSET 0) s
      WHERE ${score} >= ${sql.bind(rule.threshold - EPSILON, 'float8')}`;

  const shown = new Set([object.nameField, ...items.map((item) => item.field.apiName)]);
  const fields = access.readable.filter((field) => shown.has(field.apiName));
  const tellsHidden = (rule.scope === 'all' || rule.revealHiddenCount) && visible !== 'true';
  const hidden = tellsHidden ? `(SELECT count(*)::int FROM ${scored(`NOT (${visible})`)})` : '0';
  return sql.statement(
    `SELECT m.*, ${hidden} FROM (VALUES (1)) one LEFT JOIN LATERAL (
      SELECT r."id", r.${columnName(object.fields[object.nameField]!)}, ${score} AS score, ARRAY[${present.map((_, index) => `s.s${index}`).join(', ')}]::float8[] AS similarities,
        ${recordJson('r', fields, call.ieee754Compatible)}::text AS record
      FROM ${scored(visible)} ORDER BY score DESC, r."id" LIMIT ${MATCHES_MAX}) m ON true`,
  );
}

/** What of a rule's rows the caller is told; null when it does not fire. */
function firedRule({ object }: Write, { rule, present }: Check, rows: readonly Row[]): FiredRule | null {
  const hidden = Number(rows[0]![5]);
  const matches = rows
    .filter((row) => row[0] !== null)
    .map((row) => ({
      objectApiName: object.apiName,
      id: row[0] as string,
      displayName: row[1] as string | null,
      score: Math.min(1, Math.round((row[2] as number) * 10_000) / 10_000),
      matchedFields: present
        .filter((_, index) => (row[3] as number[])[index]! >= Math.min(MATCHED_FROM, rule.threshold) - EPSILON)
        .map((item) => item.field.apiName),
      record: JSON.parse(row[4] as string) as Record<string, unknown>,
    }));
  if (matches.length === 0 && !(rule.scope === 'all' && hidden > 0)) return null;
  return {
    ruleApiName: `${object.apiName}.${rule.apiName}`,
    label: rule.label,
    action: rule.action,
    matches,
    hiddenMatchCount: rule.revealHiddenCount ? hidden : 0,
  };
}

/** What was confirmed, in the form in which the audit keeps changes. */
const changesOf = (fired: readonly FiredRule[]): Record<string, unknown> =>
  Object.fromEntries(
    fired.map((rule) => [rule.ruleApiName, { from: null, to: rule.matches.map((match) => match.id) }]),
  );

/**
 * CTEs of the statement that stores the record: the confirmation is used up, and who confirmed which matches is told to
 * the audit beside the change itself. One row of the relation `from` stands for the record, as in trailSql.
 */
export function confirmedSql(write: Write, sql: Sql, from: string): string[] {
  if (!write.confirmed) return [];
  const { request, key, call, object, schema, confirmed } = write;
  const { bind } = sql;
  const { id, expiresAt } = confirmed.confirmation;
  // What another mutation creates along the way leaves the confirmation to that mutation.
  const spent = write.within
    ? []
    : [
        `dct AS (INSERT INTO ${schema}._confirmations (confirmation_id, expires_at)
          SELECT ${bind(id, 'uuid')}, ${bind(expiresAt.toISOString(), 'timestamptz')} FROM ${from})`,
      ];
  if (!confirmed.matches) return spent;
  return [
    ...spent,
    `dca AS (${entrySql(schema, sql, request, {
      operationId: call.operationId,
      outcome: 'committed',
      code: 'DUPLICATE_RULE',
      idempotencyKey: key.key,
      objectApiName: object.apiName,
      recordId: write.id,
      changes: bind(JSON.stringify(confirmed.matches), 'jsonb'),
    })} FROM ${from})`,
  ];
}

/**
 * Duplicate rules: the record as it would be stored is compared with the others, inside the transaction of the write.
 * Duplicates that are written at the same time wait for each other before they look. Source:
 * docs/reference/duplicates.md.
 */

import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isBlank } from '../../../lib/schema/field-types/blank.ts';
import type { DuplicateRuleMeta, FieldMeta } from '../../../lib/schema/snapshot.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { assertFresh } from '../tenants.ts';
import type { Versions } from '../view.ts';
import { invalidConfirmation, openConfirmation, sealConfirmation } from './confirmation.ts';
import { activeRules, EPSILON, readableItems, searchBy } from './duplicate-rules.ts';
import {
  beforeCreateSql,
  type Check,
  duplicateLocksSql,
  type MatchRow,
  matchSql,
  similaritySql,
  usedSql,
  type Valued,
} from './duplicates.sql.ts';
import { missingReferences } from './references.ts';
import { validationFailed } from './violations.ts';
import type { Confirmation, FieldValue, Write } from './write.ts';

/** From this similarity on a field is named as one that matches, unless the threshold of the rule is lower. */
const MATCHED_FROM = 0.5;

interface DuplicateMatch {
  readonly objectApiName: string;
  readonly id: string;
  readonly displayName: string | null;
  readonly score: number;
  readonly matchedFields: readonly string[];
  readonly record: Readonly<Record<string, unknown>>;
}

/** An item of `rules` in the details of DUPLICATE_RULE. */
interface FiredRule {
  readonly ruleApiName: string;
  readonly label: string;
  readonly action: 'block' | 'confirm';
  readonly matches: readonly DuplicateMatch[];
  readonly hiddenMatchCount: number;
}

/**
 * Step of every mutation that stores the values of a record, after it was found valid: 409 with what it may be a
 * duplicate of, unless the caller confirms exactly that. Needs a transaction when mayAskDuplicates says so, and
 * confirmedSql in the statement that stores the record.
 */
export async function checkDuplicates(write: Write): Promise<void> {
  const token = write.call.headers.duplicateConfirmation;
  const confirmation = token === undefined ? null : openConfirmation(write, token);
  const checks = checksOf(write);
  if (checks.length === 0 && confirmation === null) return;
  const found = await ask(write, checks, confirmation);
  const fired = checks.flatMap((check, index) => firedRule(write, check, found[index] ?? []) ?? []);
  write.confirmed = confirmation && { confirmation, matches: null };
  if (fired.length === 0) return;
  await refuseMissingReferences(write);
  const shown = fired.map(({ ruleApiName, matches, hiddenMatchCount }) => ({
    ruleApiName,
    // A created record has another id in each execution: its position identifies it.
    ids: matches.map(({ id }) => (write.created.includes(id) ? String(write.created.indexOf(id)) : id)),
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

/**
 * The write asks the database before it stores: it cannot be one statement. An update `changes` what it gives at most.
 */
export const mayAskDuplicates = ({ object, call }: Write, changes?: readonly FieldValue[]): boolean =>
  call.headers.duplicateConfirmation !== undefined ||
  activeRules(object).some(
    ({ match }) =>
      changes === undefined || changes.some((item) => match.some(({ field }) => field === item.field.apiName)),
  );

/** The rules that may fire, of a write whose values are known, and that has locked its record if there is one. */
export const checksOf = (write: Write): readonly Check[] =>
  activeRules(write.object).flatMap((rule) => checkOf(write, rule) ?? []);

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

/** A new record belongs to the user who creates it. */
const ownerOf = ({ unit: { request } }: Write, field: FieldMeta): FieldValue => ({
  field,
  value: request.userId,
  lookup: null,
});

/**
 * Asks for all rules at once; the rows of each rule. Nothing is asked for a reference that the create will be refused
 * for.
 */
async function ask(write: Write, checks: readonly Check[], confirmation: Confirmation | null): Promise<MatchRow[][]> {
  const { view, unit } = write;
  const { tx, schema } = unit;
  const running: Promise<unknown>[] = [];
  const send = <R>(statement: Statement): Promise<R[]> => {
    const rows = tx.all<R>(statement);
    running.push(rows);
    return rows;
  };
  tx.gather();
  // Locks that a deployment waits for come first, as in every write.
  const state = write.recordVersion === 0 ? send<Versions>(beforeCreateSql(write)) : null;
  if (checks.length > 0) send(duplicateLocksSql(write, checks));
  const used = confirmation && send(usedSql(schema, confirmation));
  const matches = checks.map((check) => {
    if (check.search.similar.length + check.search.allSimilar.length > 0) send(similaritySql(check.search));
    return send<MatchRow>(matchSql(write, check));
  });
  for (const rows of running) await rows;
  for (const versions of (await state) ?? []) assertFresh(view, versions.metadataVersion, versions.accessVersion);
  if (used && (await used).length > 0) throw invalidConfirmation();
  return Promise.all(matches);
}

/** Matches of a rule as shown to the caller; null when it does not fire. */
function firedRule({ object }: Write, { rule, present }: Check, rows: readonly MatchRow[]): FiredRule | null {
  const hidden = rows[0]?.hidden ?? 0;
  const least = Math.min(MATCHED_FROM, rule.threshold) - EPSILON;
  const matches = rows.flatMap(({ id, name, score, similarities, record }): DuplicateMatch[] =>
    id === null
      ? []
      : [
          {
            objectApiName: object.apiName,
            id,
            displayName: name,
            score: Math.min(1, Math.round(score * 10_000) / 10_000),
            matchedFields: present
              .filter((_, index) => (similarities[index] ?? 0) >= least)
              .map((item) => item.field.apiName),
            record,
          },
        ],
  );
  if (matches.length === 0 && !(rule.scope === 'all' && hidden > 0)) return null;
  return {
    ruleApiName: `${object.apiName}.${rule.apiName}`,
    label: rule.label,
    action: rule.action,
    matches,
    hiddenMatchCount: rule.revealHiddenCount ? hidden : 0,
  };
}

/** The confirmed matches, in the audit's form of changes. */
const changesOf = (fired: readonly FiredRule[]): Record<string, unknown> =>
  Object.fromEntries(
    fired.map((rule) => [rule.ruleApiName, { from: null, to: rule.matches.map((match) => match.id) }]),
  );

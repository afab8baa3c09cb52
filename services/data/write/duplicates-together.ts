/**
 * Finds possible duplicates among several writes of one transaction with a few statements. Writes that may be duplicates are
 * executed singly afterwards, in their order, so that each is answered like a single write.
 */
import { isLockTimeout } from '../../../mixins/mutation/errors.ts';
import { assertFresh } from '../tenants.ts';
import type { Versions } from '../view.ts';
import { shapeOfValues } from './create.sql.ts';
import { type Check, similaritySql } from './duplicates.sql.ts';
import { checksOf } from './duplicates.ts';
import {
  type Checked,
  type DuplicateLock,
  formsOfGroupSql,
  locksOfGroupSql,
  matchesAmongSql,
  parentsOfCreatesSql,
  type StoredMatches,
  storedMatchesSql,
  takeLocksSql,
} from './duplicates-together.sql.ts';
import { endsTransaction, inSavepoint } from './parts.ts';
import type { Write } from './write.ts';

/**
 * The writes that may be duplicates: a write that matches a stored record or an earlier write, or changes a stored record that
 * another write matches. The others can be stored in any order. Takes the locks of single writes, so that concurrent
 * duplicates wait; after a lock timeout every write counts as a possible duplicate.
 * `writes`: in their order, valid, and with their records locked.
 */
export async function possibleDuplicates(writes: readonly [Write, ...Write[]]): Promise<ReadonlySet<Write>> {
  const checked = writes.flatMap((write): Checked[] => {
    const checks = checksOf(write);
    return checks.length > 0 ? [{ write, checks }] : [];
  });
  if (checked.length === 0) return new Set();
  try {
    return await inSavepoint(writes[0].unit, async () => {
      await lockTogether(writes, checked);
      return new Set([...(await matchingEarlier(checked)), ...(await matchingStored(writes, checked))]);
    });
  } catch (error) {
    // Each write then waits by itself.
    if (endsTransaction(error) || !isLockTimeout(error)) throw error;
    return new Set(writes);
  }
}

/** Writes of one shape differ in values only: one statement computes their locks and forms. */
const shapeOf = ({ write, checks }: Checked): string =>
  [
    write.recordVersion === 0 ? 'new' : 'stored',
    ...checks.map(({ rule, items, present }) =>
      [
        rule.apiName,
        items.length,
        ...present.map(({ field, given }) => {
          const targets = given?.value === null ? given.lookup?.targets : undefined;
          const named = targets?.map(({ object, by }) => `${object.apiName}.${by.apiName}`) ?? [];
          return `${field.apiName}${given ? '=' : ''}${named.join('|')}`;
        }),
      ].join(),
    ),
  ].join(';');

const groupsOf = (checked: readonly Checked[]): readonly (readonly Checked[])[] => [
  ...Map.groupBy(checked, shapeOf).values(),
];

/** Locks as `duplicates.ts` does for a single write: parents first, then the duplicate locks in one order. */
async function lockTogether(writes: readonly [Write, ...Write[]], checked: readonly Checked[]): Promise<void> {
  const [{ unit, view }] = writes;
  const creates = writes.filter(({ recordVersion }) => recordVersion === 0);
  for (const [first, ...others] of Map.groupBy(creates, shapeOfValues).values()) {
    const parents = first && parentsOfCreatesSql([first, ...others]);
    for (const versions of parents ? await unit.tx.all<Versions>(parents) : [])
      assertFresh(view, versions.metadataVersion, versions.accessVersion);
  }
  const locks: DuplicateLock[] = [];
  for (const group of groupsOf(checked)) locks.push(...(await unit.tx.all<DuplicateLock>(locksOfGroupSql(group))));
  await unit.tx.query(takeLocksSql(locks));
}

/** Writes that match an earlier one. */
async function matchingEarlier(checked: readonly Checked[]): Promise<Write[]> {
  type Forms = readonly (readonly (string | null)[])[];
  const formsOf = new Map<Checked, Forms>();
  for (const group of groupsOf(checked)) {
    const rows = await group[0]?.write.unit.tx.all<{ forms: Forms }>(formsOfGroupSql(group));
    for (const [place, one] of group.entries()) formsOf.set(one, rows?.[place]?.forms ?? []);
  }
  const found: Write[] = [];
  const byRule = Map.groupBy(
    checked.flatMap((one) =>
      one.checks.map((check, index) => ({ one, check, forms: formsOf.get(one)?.[index] ?? [] })),
    ),
    ({ check }) => check.rule,
  );
  for (const [first, ...others] of byRule.values()) {
    if (!first || others.length === 0) continue;
    const all = [first, ...others];
    const statement = matchesAmongSql(
      first.check,
      all.map(({ forms }) => forms),
    );
    for (const { place } of await first.one.write.unit.tx.all<{ place: number }>(statement))
      found.push(...all.slice(place - 1, place).map(({ one }) => one.write));
  }
  return found;
}

/** Writes that match a stored record, and those that change such a record. */
async function matchingStored(writes: readonly Write[], checked: readonly Checked[]): Promise<Write[]> {
  const updates = new Map(writes.filter(({ recordVersion }) => recordVersion > 0).map((write) => [write.id, write]));
  const found: Write[] = [];
  for (const group of groupsOf(checked))
    for (const [index, check] of (group[0]?.checks ?? []).entries()) {
      const asked = group.flatMap(({ write, checks }): (readonly [Write, Check])[] => {
        const own = checks[index];
        return own ? [[write, own]] : [];
      });
      const { tx } = asked[0]?.[0].unit ?? {};
      if (!tx) continue;
      const { similar, allSimilar } = check.search;
      if (similar.length + allSimilar.length > 0) void tx.query(similaritySql(check.search));
      const { places, ids } = await tx.one<StoredMatches>(storedMatchesSql(asked, [...updates.keys()]));
      for (const place of places) found.push(...asked.slice(place - 1, place).map(([write]) => write));
      for (const id of ids) found.push(...[updates.get(id)].filter((write) => write !== undefined));
    }
  return found;
}

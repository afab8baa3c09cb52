/**
 * Duplicate rules that apply to a write, and the items by which candidates are searched. Pure.
 * Source: docs/reference/duplicates.md.
 */

import type { ObjectAccess } from '../../../lib/access/types.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { methodsOf } from '../../../lib/schema/matching.ts';
import type { DuplicateRuleMeta, FieldMeta, MatchMethod, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';

/** The rules in force on an object. */
export const activeRules = memoize((object: ObjectMeta): readonly DuplicateRuleMeta[] =>
  object.features.duplicates ? object.duplicateRules.filter((rule) => rule.active) : [],
);

/** True when rules apply to the caller: one of hidden fields does not. */
export const hasDuplicateRules = (access: ObjectAccess): boolean =>
  activeRules(access.object).some((rule) => readableItems(rule, access.object, access).length > 0);

/** One item of a rule, for one caller. */
export interface MatchItem {
  readonly field: FieldMeta;
  readonly method: MatchMethod;
  readonly weight: number;
}

/** The items whose fields the caller reads: a score made of others would tell what stands in them. */
export const readableItems = (rule: DuplicateRuleMeta, object: ObjectMeta, access: ObjectAccess): MatchItem[] =>
  rule.match.flatMap(({ field: name, method, weight }) => {
    const field = ownEntry(access.fields, name)?.read ? ownEntry(object.fields, name) : undefined;
    return field ? [{ field, method, weight }] : [];
  });

/** Scores are sums of floating point numbers. */
export const EPSILON = 1e-6;

export interface Search<I extends MatchItem> {
  /** A record that matches is equal to the new one in one of these … */
  readonly equal: readonly I[];
  /** … or at least so similar in one of those. */
  readonly similar: readonly I[];
  /** And it is equal in all of these, for without them the others do not suffice … */
  readonly allEqual: readonly I[];
  /** … and at least so similar in all of those; none where there are some to be more similar in. */
  readonly allSimilar: readonly I[];
  readonly similarity: number;
}

/** With less similarity than that there are too many records to be worth a search. */
const WORTH_SEARCHING = 0.1;

/**
 * By which items a matching record can be found. A record matches when the weights of its items, each times its
 * similarity, sum up to `threshold` of all weights. Items that together weigh less than that cannot make a match, so
 * at least one of the others must contribute: the most expensive ones are left out. What is cheap is always used, for
 * the more the rest must contribute, the fewer records are similar enough. `present` are the items with a value, of all
 * `items` of the rule. Null: too little has a value for a match.
 */
export function searchBy<I extends MatchItem>(
  items: readonly MatchItem[],
  present: readonly I[],
  threshold: number,
): Search<I> | null {
  const whole = weightOf(items);
  const partOf = (of: readonly MatchItem[]): number => weightOf(of) / whole;
  if (partOf(present) < threshold - EPSILON) return null;
  let left = 0;
  const used: I[] = [];
  for (const item of [...present].sort((a, b) => expense(b) - expense(a))) {
    const part = partOf([item]);
    if (expense(item) > 0 && left + part < threshold - EPSILON) left += part;
    else used.push(item);
  }
  const equal = used.filter((item) => item.method !== 'fuzzy');
  const similar = used.filter((item) => item.method === 'fuzzy');
  // A record that is equal in none of the others needs all of what is missing from these.
  const similarity = similar.length === 0 ? 1 : (threshold - left) / partOf(similar);
  // Without the others they are what there is to look by: more than all of it is missing by an error of rounding only.
  const enough = similarity <= 1 + EPSILON || equal.length === 0;
  const bySimilarity = enough && similar.length > 0;
  const missing = (item: I): number => threshold - (partOf(present) - partOf([item]));
  const all = present.filter((item) => missing(item) > EPSILON);
  const least = (item: I): number => missing(item) / partOf([item]);
  const allSimilar = bySimilarity
    ? []
    : all.filter((item) => item.method === 'fuzzy' && least(item) >= WORTH_SEARCHING);
  return {
    equal,
    similar: bySimilarity ? similar : [],
    allEqual: all.filter((item) => item.method !== 'fuzzy'),
    allSimilar,
    similarity: Math.min(1, bySimilarity ? similarity : Math.min(...allSimilar.map(least))),
  };
}

export const weightOf = (items: readonly MatchItem[]): number => items.reduce((sum, item) => sum + item.weight, 0);

/** Cost of looking records up by an item: the number that share a value, times the cost of reading one. */
function expense({ method, field }: MatchItem): number {
  if (fieldType(field.fieldType).fewValues) return 3;
  if (method === 'fuzzy') return 2;
  return methodsOf(field.fieldType).includes('normalized') ? 0 : 1;
}

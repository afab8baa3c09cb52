/**
 * The newest records that a user reaches, when they are few among very many: one ordered, limited index scan per grant,
 * merged in order. A filter would read past the records of all other users instead; an OR over the grants would fetch
 * and sort all that the user may see. Source: docs/decisions/sharing-as-predicates.md.
 */
import type { Predicate } from '../access/predicate.ts';
import type { Plan } from './types.ts';

/** Owners that are looked up one by one. */
const OWNERS_MAX = 20;
const BRANCHES_MAX = 40;
/** Owners are sparse when they are at most one in so many users; otherwise an ordered scan soon finds enough. */
const SPARSE_RATIO = 40;
/** Statements are prepared for these numbers of owners; lists in between are padded with an owner without records. */
const PREPARED_OWNER_COUNTS = [1, 2, 4, 8, 12, 16, OWNERS_MAX];
const NO_USER = '00000000-0000-0000-0000-000000000000';

export type OwnedBy = Extract<Predicate, { kind: 'ownedBy' }>;

/** The owners are too few for an ordered scan to find their records soon. */
export const isSparse = (node: OwnedBy): boolean => !node.except && node.userIds.length * SPARSE_RATIO <= node.among;

/** The branches whose records are merged, each one grant; null when the plan is better read in one scan. */
export function mergeBranches(plan: Plan & { readonly sharing: Predicate | null }): readonly Predicate[] | null {
  if (plan.skip > 0 || !isNewestFirst(plan) || (plan.filter && isSelective(plan.filter))) return null;
  const { sharing } = plan;
  const grants = sharing?.kind === 'or' ? sharing.nodes : sharing ? [sharing] : [];
  const owned = grants.find((grant) => grant.kind === 'ownedBy');
  if (!owned || owned.userIds.length > OWNERS_MAX || !isSparse(owned)) return null;
  const rest = grants.filter((grant) => grant !== owned);
  if (!rest.every(({ kind }) => kind === 'criteria' || kind === 'shared' || kind === 'compare')) return null;
  const size = PREPARED_OWNER_COUNTS.find((count) => count >= owned.userIds.length) ?? OWNERS_MAX;
  const userIds = [...owned.userIds, ...Array<string>(size - owned.userIds.length).fill(NO_USER)];
  const all = [...userIds.map((userId): Predicate => ({ ...owned, userIds: [userId] })), ...rest];
  return all.length > BRANCHES_MAX ? null : all;
}

/** By createdAt and id, both in one direction: the order that an index has for every owner. */
const isNewestFirst = ({ sort: [first, second, ...rest] }: Plan): boolean =>
  rest.length === 0 &&
  first?.field.apiName === 'createdAt' &&
  first.through === null &&
  second?.field.apiName === 'id' &&
  first.desc === second.desc;

/** A filter that an index answers with few records: sharing is then asked of those alone. */
export function isSelective(node: Predicate): boolean {
  switch (node.kind) {
    case 'and':
      return node.nodes.some(isSelective);
    case 'or':
      return node.nodes.length > 0 && node.nodes.every(isSelective);
    case 'compare': {
      const { field, operator } = node;
      if (operator !== 'eq' && operator !== 'in') return false;
      return field.apiName === 'id' || field.referenceTo.length > 0 || field.unique || field.externalId;
    }
    case 'referenced':
      return !node.negated && isSelective(node.node);
    case 'related':
    case 'search':
    case 'false':
      return true;
    default:
      return false;
  }
}

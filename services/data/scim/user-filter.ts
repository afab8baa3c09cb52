/** Filters and orders of users, as predicates of the query language: no condition becomes SQL here. */
import type { Predicate } from '../../../lib/access/predicate.ts';
import { planConditions } from '../../../lib/query/plan.ts';
import type { QueryView } from '../../../lib/query/types.ts';
import { Violations } from '../../../lib/query/violations.ts';
import type { Operator } from '../../../lib/schema/field-types/types.ts';
import { requireField } from '../../../lib/schema/lookup.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { scimError, shown } from './errors.ts';
import { type CompareOperator, type FilterNode, type Leaf, leavesOf, localPath, type Value } from './filter.ts';

type Kind = 'text' | 'boolean' | 'id' | 'dateTime' | 'list';

/** Fields of the object User by the paths of SCIM, in lower case. */
const FIELDS: Readonly<Record<string, { readonly field: string; readonly kind: Kind }>> = {
  id: { field: 'id', kind: 'id' },
  username: { field: 'username', kind: 'text' },
  displayname: { field: 'displayName', kind: 'text' },
  'name.formatted': { field: 'displayName', kind: 'text' },
  emails: { field: 'email', kind: 'text' },
  'emails.value': { field: 'email', kind: 'text' },
  active: { field: 'active', kind: 'boolean' },
  locale: { field: 'locale', kind: 'text' },
  timezone: { field: 'timezone', kind: 'text' },
  roles: { field: 'roleApiName', kind: 'text' },
  'roles.value': { field: 'roleApiName', kind: 'text' },
  entitlements: { field: 'profileApiName', kind: 'text' },
  'entitlements.value': { field: 'profileApiName', kind: 'text' },
  groups: { field: 'permissionSetApiNames', kind: 'list' },
  'groups.value': { field: 'permissionSetApiNames', kind: 'list' },
  manager: { field: 'managerId', kind: 'id' },
  'manager.value': { field: 'managerId', kind: 'id' },
  'meta.created': { field: 'createdAt', kind: 'dateTime' },
  'meta.lastmodified': { field: 'updatedAt', kind: 'dateTime' },
};

/** Sub-attributes that are the same in every user. */
const CONSTANTS: Readonly<Record<string, Value>> = {
  'emails.type': 'work',
  'emails.primary': true,
  'roles.type': 'role',
  'roles.primary': true,
  'entitlements.type': 'profile',
  'entitlements.primary': true,
  'meta.resourcetype': 'User',
};

/** Paths whose comparisons are answered from elsewhere than the query language: by the ids of the users that match. */
const LOOKED_UP: ReadonlySet<string> = new Set(['username', 'externalid']);

/** The comparisons of a filter that have to be looked up: `eq` and `ne`. */
export const lookUpsOf = (filter: FilterNode | null): readonly Leaf[] =>
  filter === null ? [] : [...leavesOf(filter)].filter((leaf) => isLookedUp(leaf));

const isLookedUp = ({ path, operator }: Leaf): boolean =>
  LOOKED_UP.has(path) && (operator === 'eq' || operator === 'ne');

/** Ids of the users that a looked up comparison finds with `eq`. */
export type Found = ReadonlyMap<Leaf, readonly string[]>;

const OPERATORS: Readonly<Record<CompareOperator, Operator | null>> = {
  eq: 'eq',
  ne: 'neq',
  co: 'contains',
  sw: 'starts_with',
  ew: null,
  gt: 'gt',
  ge: 'gte',
  lt: 'lt',
  le: 'lte',
  pr: 'is_not_blank',
};

const OPPOSITES: Partial<Record<Operator, Operator>> = {
  eq: 'neq',
  neq: 'eq',
  contains: 'not_contains',
  is_not_blank: 'is_blank',
};

/** Added to a negated comparison, because an absent value is neither greater nor less. */
const OPPOSITE_RANGES: Partial<Record<Operator, Operator>> = { gt: 'lte', gte: 'lt', lt: 'gte', lte: 'gt' };

/** Throws FILTER_INVALID (invalidFilter) for what cannot be asked. */
export function userPredicate(node: FilterNode, object: ObjectMeta, view: QueryView, found: Found): Predicate {
  return compile(node, false);

  function compile(part: FilterNode, negated: boolean): Predicate {
    switch (part.kind) {
      case 'not':
        return compile(part.node, !negated);
      case 'leaf':
        return leaf(part, negated);
      default: {
        const kind = negated ? (part.kind === 'and' ? 'or' : 'and') : part.kind;
        return { kind, nodes: part.nodes.map((one) => compile(one, negated)) };
      }
    }
  }

  function leaf(part: Leaf, negated: boolean): Predicate {
    const ids = found.get(part);
    if (ids) return among(object, ids, (part.operator === 'ne') !== negated);
    const constant = Object.hasOwn(CONSTANTS, part.path) ? CONSTANTS[part.path] : undefined;
    if (constant !== undefined) return always(object, holds(part, constant) !== negated);
    const target = Object.hasOwn(FIELDS, part.path) ? FIELDS[part.path] : undefined;
    if (!target) throw scimError('invalidFilter', `Users cannot be filtered by ${shown(part.path)}.`);
    const { field, kind } = target;
    if (kind === 'boolean') return flag(field, part, negated);
    const operator = OPERATORS[part.operator];
    if (
      operator === null ||
      (kind === 'list' && part.operator !== 'eq' && part.operator !== 'ne' && part.operator !== 'pr')
    )
      throw notSupported(part);
    if (kind === 'id' && part.operator !== 'pr' && !isUuid(String(part.value).toLowerCase()))
      return always(object, (part.operator === 'ne') !== negated);
    const value = kind === 'id' ? String(part.value).toLowerCase() : part.value;
    // A list contains a value, it does not equal it.
    const asked: Operator =
      kind !== 'list' || part.operator === 'pr' ? operator : part.operator === 'eq' ? 'contains' : 'not_contains';
    if (value === null && part.operator !== 'pr') return blank(field, part, negated);
    if (!negated) return condition(field, asked, value);
    const opposite = asked === 'not_contains' ? 'contains' : OPPOSITES[asked];
    if (opposite) return condition(field, opposite, value);
    const range = OPPOSITE_RANGES[asked];
    if (range) return { kind: 'or', nodes: [condition(field, 'is_blank', null), condition(field, range, value)] };
    throw scimError('invalidFilter', `${part.operator} cannot be negated.`);
  }

  /** `eq null`: it has no value. */
  function blank(field: string, part: Leaf, negated: boolean): Predicate {
    if (part.operator !== 'eq' && part.operator !== 'ne') throw notSupported(part);
    return condition(field, (part.operator === 'eq') !== negated ? 'is_blank' : 'is_not_blank', null);
  }

  /** A user without the mark is active. */
  function flag(field: string, part: Leaf, negated: boolean): Predicate {
    if (part.operator === 'pr') return always(object, !negated);
    const value = typeof part.value === 'string' ? BOOLEANS[part.value.toLowerCase()] : part.value;
    if (typeof value !== 'boolean' || (part.operator !== 'eq' && part.operator !== 'ne'))
      throw scimError('invalidFilter', `${field} takes eq and ne with true or false.`);
    const wanted = (value === (part.operator === 'eq')) !== negated;
    return condition(field, wanted ? 'neq' : 'eq', false);
  }

  function condition(field: string, operator: Operator, value: Value): Predicate {
    const problems = new Violations();
    const planned = planConditions(
      null,
      [{ id: null, pointer: 'query:filter', field, operator, ...(value === null ? {} : { value }) }],
      object,
      view,
      problems,
    );
    problems.throwIfAny();
    return planned ?? { kind: 'false' };
  }
}

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false };

const notSupported = ({ path, operator }: Leaf): Error =>
  scimError('invalidFilter', `The operator ${operator} is not supported for ${shown(path)}.`);

/** The users with one of these ids, or all others. */
export function among(object: ObjectMeta, ids: readonly string[], except: boolean): Predicate {
  if (ids.length === 0) return always(object, except);
  return { kind: 'compare', field: requireField(object, 'id'), operator: except ? 'not_in' : 'in', values: ids };
}

const always = (object: ObjectMeta, yes: boolean): Predicate =>
  yes
    ? { kind: 'compare', field: requireField(object, 'id'), operator: 'is_not_blank', values: [] }
    : { kind: 'false' };

function holds({ operator, value }: Leaf, constant: Value): boolean {
  if (operator === 'pr') return true;
  const same = String(value).toLowerCase() === String(constant).toLowerCase();
  if (operator === 'eq') return same;
  if (operator === 'ne') return !same;
  throw scimError('invalidFilter', `The operator ${operator} is not supported for an attribute with one value.`);
}

/** The field that users are sorted by; throws PARAMETER_INVALID. */
export function sortField(path: string): string {
  const local = localPath(path);
  const target = Object.hasOwn(FIELDS, local) ? FIELDS[local] : undefined;
  if (!target || target.kind === 'list') throw scimError('invalidValue', `Users cannot be sorted by ${shown(path)}.`);
  return target.field;
}

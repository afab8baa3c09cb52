/**
 * The records that a user reaches. `grantsOf` is the one description: a list of the grants on records of an object, each
 * with its level and the records it applies to. `reach` compiles it to a predicate for SQL, `grantsTo` evaluates it for
 * one record. Source: docs/reference/access.md#sharing.
 */

import { isMasterDetail } from '../schema/field-types/registry.ts';
import { objectOf, referredObject, requireField } from '../schema/lookup.ts';
import { sharesThrough } from '../schema/shares-through.ts';
import type { FieldMeta, ObjectMeta, SharingRuleMeta } from '../schema/snapshot.ts';
import { isUserObject } from '../schema/user-object.ts';
import { memoize, memoizeByName } from '../values/memoize.ts';
import { meetsCriteria } from './criteria.ts';
import { type Directory, holdersOf, ownersOf, rolesBelow } from './directory.ts';
import type { Predicate } from './predicate.ts';
import { permissionGiven } from './rules.ts';
import type { Access } from './types.ts';

/** Level of a grant; each includes those before it. */
export type RecordLevel = 'read' | 'edit' | 'full';

/** Kinds of grants, as in explanations. */
export const GRANT_KINDS = [
  'profile',
  'permissionSet',
  'role',
  'sharingRule',
  'manualShare',
  'owner',
  'orgDefault',
] as const;

export interface Grant {
  readonly kind: (typeof GRANT_KINDS)[number];
  readonly apiName: string | null;
  readonly level: RecordLevel;
  readonly records: Records;
}

/** The records that a grant applies to. */
type Records =
  | { readonly kind: 'all' }
  | { readonly kind: 'owners'; readonly userIds: ReadonlySet<string> }
  | { readonly kind: 'criteria'; readonly object: ObjectMeta; readonly expression: string }
  /** Those whose field refers to the user (`target` null), or to a record of `target` that the user owns. */
  | { readonly kind: 'reference'; readonly field: FieldMeta; readonly target: ObjectMeta | null }
  /** Those with a manual share with the user, one of the roles or one of the groups. */
  | { readonly kind: 'shares'; readonly access: readonly ShareAccess[] }
  /** Those whose parents, all of them, are reached at `level`. */
  | { readonly kind: 'parents'; readonly fields: readonly FieldMeta[]; readonly level: RecordLevel };

type ShareAccess = 'read' | 'edit';

/** Each level includes those before it. */
export const RANK: Readonly<Record<RecordLevel, number>> = { read: 0, edit: 1, full: 2 };
const NOTHING: Predicate = { kind: 'false' };
/** Objects in a chain of parents at most. A circular chain grants nothing. */
export const PARENTS_MAX = 8;

/**
 * The records of an object that the user reaches at a level: null for all of them, otherwise the predicate. Of an
 * object that the user cannot read there are none.
 */
export function reach(access: Access, objectApiName: string, level: RecordLevel): Predicate | null {
  return reachFrom(access, objectApiName, level, []);
}

function reachFrom(access: Access, apiName: string, level: RecordLevel, path: readonly string[]): Predicate | null {
  if (path.includes(apiName) || path.length >= PARENTS_MAX) return NOTHING;
  const known = reaches(access);
  const key = `${level} ${apiName} ${path.join()}`;
  let node = known.get(key);
  if (node === undefined) known.set(key, (node = compile(access, apiName, level, [...path, apiName])));
  return node;
}

const reaches = memoize((_access: Access) => new Map<string, Predicate | null>());

function compile(access: Access, apiName: string, level: RecordLevel, path: readonly string[]): Predicate | null {
  const entry = access.objects[apiName];
  if (!entry) return NOTHING;
  const userIds = new Set<string>();
  const nodes: Predicate[] = [];
  const seen = new Set<Records['kind']>();
  for (const { level: given, records } of grantsOf(access, apiName)) {
    if (RANK[given] < RANK[level]) continue;
    switch (records.kind) {
      case 'all':
        return null;
      case 'owners':
        for (const userId of records.userIds) userIds.add(userId);
        break;
      case 'criteria':
        nodes.push({
          kind: 'criteria',
          object: records.object,
          expression: records.expression,
          timezone: access.snapshot.tenant.timezone,
        });
        break;
      case 'reference':
        nodes.push(referenceNode(access, records));
        break;
      case 'shares': {
        if (seen.has('shares')) break; // the wider one comes first
        seen.add('shares');
        const { principal, memberships } = access;
        nodes.push({
          kind: 'shared',
          object: entry.object,
          userId: principal.userId,
          roles: memberships.roles,
          groups: [...memberships.groups],
          access: records.access,
        });
        break;
      }
      case 'parents': {
        if (seen.has('parents')) break;
        seen.add('parents');
        const node = parentsNode(access, records, path);
        if (node === null) return null;
        nodes.push(node);
      }
    }
  }
  if (userIds.size > 0) nodes.unshift(ownedBy(access.directory, userIds));
  if (nodes.length <= 1) return nodes[0] ?? NOTHING;
  return { kind: 'or', nodes };
}

/** The field, or the owner of the one record that it refers to, is compared with the user. */
function referenceNode({ principal, directory }: Access, records: Extract<Records, { kind: 'reference' }>): Predicate {
  const { field, target } = records;
  const { userId } = principal;
  if (target === null) return { kind: 'compare', field, operator: 'eq', values: [userId] };
  const node: Predicate = { kind: 'ownedBy', userIds: [userId], except: false, among: directory.users.length };
  return { kind: 'related', field, object: target, relatedField: requireField(target, 'id'), node, sharing: null };
}

/** For more than half of the users the predicate lists the others: an owner is always one of the users. */
function ownedBy({ users }: Directory, owners: ReadonlySet<string>): Predicate {
  const among = users.length;
  if (owners.size <= among / 2) return { kind: 'ownedBy', userIds: [...owners], except: false, among };
  const others = users.filter((user) => !owners.has(user.userId)).map((user) => user.userId);
  return { kind: 'ownedBy', userIds: others, except: true, among };
}

/**
 * A masterDetail field is never empty and its record never missing, so a parent that is always reached asks nothing.
 */
function parentsNode(
  access: Access,
  { fields, level }: Extract<Records, { kind: 'parents' }>,
  path: readonly string[],
): Predicate | null {
  const nodes = fields.flatMap((field): Predicate[] => {
    const object = access.objects[referredObject(field)]?.object;
    if (!object) return [NOTHING];
    const sharing = reachFrom(access, object.apiName, level, path);
    if (sharing === null) return [];
    return [{ kind: 'related', field, object, relatedField: requireField(object, 'id'), node: null, sharing }];
  });
  if (nodes.length <= 1) return nodes[0] ?? null;
  return { kind: 'and', nodes };
}

/** The grants of a user on records of an object; none for an object that the user cannot read. */
const grantsOf = memoizeByName((access: Access, objectApiName): readonly Grant[] => [
  ...allGrants(access, objectApiName),
]);

const ALL: Records = { kind: 'all' };

function* allGrants(access: Access, objectApiName: string): Iterable<Grant> {
  const entry = access.objects[objectApiName];
  if (!entry) return;
  const { object } = entry;
  yield* everything(access, object);
  if (isUserObject(object)) return;
  yield* byDefault(object);
  const { principal, memberships, snapshot, directory } = access;
  const own = new Set([principal.userId]);
  yield { kind: 'owner', apiName: principal.username, level: 'full', records: { kind: 'owners', userIds: own } };
  if (principal.roleApiName !== null) {
    const userIds = new Set(holdersOf(directory, rolesBelow(snapshot, principal.roleApiName)));
    if (userIds.size > 0)
      yield { kind: 'role', apiName: principal.roleApiName, level: 'full', records: { kind: 'owners', userIds } };
  }
  for (const rule of object.sharingRules) {
    const { role, group } = rule.to;
    if (
      rule.kind !== 'reference' &&
      !(role !== undefined && memberships.roles.includes(role)) &&
      !(group !== undefined && memberships.groups.has(group))
    )
      continue;
    const records = recordsOf(rule, access, object);
    if (records === null) continue;
    yield {
      kind: 'sharingRule',
      apiName: `${object.apiName}.${rule.apiName}`,
      level: rule.access === 'readWrite' ? 'edit' : 'read',
      records,
    };
  }
  yield { kind: 'manualShare', apiName: null, level: 'read', records: { kind: 'shares', access: ['read', 'edit'] } };
  yield { kind: 'manualShare', apiName: null, level: 'edit', records: { kind: 'shares', access: ['edit'] } };
}

/** The records that a rule opens; null when its field is not there. */
function recordsOf(rule: SharingRuleMeta, { snapshot, directory }: Access, object: ObjectMeta): Records | null {
  if (rule.kind === 'owner') return { kind: 'owners', userIds: ownersOf(snapshot, directory, rule.from ?? {}) };
  if (rule.criteria !== null) return { kind: 'criteria', object, expression: rule.criteria };
  const through = sharesThrough(object, rule);
  if (through === null) return null;
  if (through.toUser) return { kind: 'reference', field: through.field, target: null };
  const target = objectOf(snapshot, referredObject(through.field));
  return target === undefined ? null : { kind: 'reference', field: through.field, target };
}

/** To whom a record is shared by hand. */
export const PRINCIPAL_TYPES = ['user', 'role', 'group'] as const;

/** A record with what sharing asks of it. */
export interface SharedRecord {
  readonly id: string;
  readonly ownerId: string | null;
  /** Stored values as JSON, decimals as text, of the fields that sharing rules read. */
  readonly values: Readonly<Record<string, unknown>>;
  /** By field of a sharing rule: the owner of the record that it refers to. */
  readonly owners: Readonly<Record<string, string | null>>;
  readonly shares: readonly Share[];
  /** By field: the records that control the sharing of this one. */
  readonly parents: Readonly<Record<string, SharedRecord | null>>;
}

export interface Share {
  readonly principalType: (typeof PRINCIPAL_TYPES)[number];
  readonly principalId: string;
  readonly access: ShareAccess;
}

/** The grants through which the user reaches this record at a level. */
export function grantsTo(
  access: Access,
  objectApiName: string,
  level: RecordLevel,
  record: SharedRecord,
): readonly Grant[] {
  return grantsFrom(access, objectApiName, level, record, []);
}

function grantsFrom(
  access: Access,
  apiName: string,
  level: RecordLevel,
  record: SharedRecord,
  path: readonly string[],
): readonly Grant[] {
  if (path.includes(apiName) || path.length >= PARENTS_MAX) return [];
  const below = [...path, apiName];
  return grantsOf(access, apiName).filter(
    (grant) => RANK[grant.level] >= RANK[level] && leadsTo(access, grant.records, record, below),
  );
}

function leadsTo(access: Access, records: Records, record: SharedRecord, path: readonly string[]): boolean {
  switch (records.kind) {
    case 'all':
      return true;
    case 'owners':
      return record.ownerId !== null && records.userIds.has(record.ownerId);
    case 'criteria':
      return meetsCriteria(records.object, records.expression, record.values, access.snapshot);
    case 'reference': {
      const { field, target } = records;
      return (target ? record.owners : record.values)[field.apiName] === access.principal.userId;
    }
    case 'shares':
      return record.shares.some((share) => records.access.includes(share.access) && isGivenTo(access, share));
    case 'parents':
      return records.fields.every((field) => {
        const parent = record.parents[field.apiName];
        return parent != null && grantsFrom(access, referredObject(field), records.level, parent, path).length > 0;
      });
  }
}

function isGivenTo({ principal, memberships }: Access, { principalType, principalId }: Share): boolean {
  if (principalType === 'user') return principalId === principal.userId;
  return principalType === 'role' ? memberships.roles.includes(principalId) : memberships.groups.has(principalId);
}

/** Permissions on all records, one grant for each profile or permission set that has them. */
function* everything({ bundles }: Access, object: ObjectMeta): Iterable<Grant> {
  const isUser = isUserObject(object);
  if (isUser) yield { kind: 'orgDefault', apiName: object.apiName, level: 'read', records: ALL };
  for (const { kind, bundle } of bundles) {
    const { viewAll, modifyAll } = permissionGiven(object, [bundle]);
    if (modifyAll || (viewAll && !isUser))
      yield { kind, apiName: bundle.apiName, level: modifyAll ? 'full' : 'read', records: ALL };
  }
}

function* byDefault(object: ObjectMeta): Iterable<Grant> {
  const grant = (level: RecordLevel, records: Records): Grant => ({
    kind: 'orgDefault',
    apiName: object.apiName,
    level,
    records,
  });
  switch (object.sharingDefault) {
    case 'readWrite':
      yield grant('full', ALL);
      break;
    case 'read':
      yield grant('read', ALL);
      break;
    case 'controlledByParent': {
      const fields = parentFields(object);
      if (fields.length === 0) break;
      yield grant('read', { kind: 'parents', fields, level: 'read' });
      yield grant('full', { kind: 'parents', fields, level: 'edit' });
    }
  }
}

/** The fields that refer to the parents which control the sharing of a record. */
export const parentFields = (object: ObjectMeta): readonly FieldMeta[] =>
  object.sharingDefault === 'controlledByParent'
    ? Object.values(object.fields).filter((field) => isMasterDetail(field))
    : [];

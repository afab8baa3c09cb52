/**
 * Groups of provisioning clients are the permission sets of the tenant: who has one is stored with the users and can be
 * changed here, what one gives is configuration. Source: docs/decisions/scim.md.
 */
import { hash } from 'node:crypto';
import { LIMITS } from '../../../config/limits.ts';
import type { ScimCall } from '../../../contracts/scim.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { PermissionBundle, Snapshot } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { recordNotFound, visibleObject } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import type { View } from '../view.ts';
import type { MutationDeps } from '../write/write.ts';
import { scimError, shown } from './errors.ts';
import { compares, type FilterNode, type Leaf, leavesOf, localPath, passes, readFilter } from './filter.ts';
import { addressOf, type Json, member, type Page, type PageRequest, readBody, type Selection } from './messages.ts';
import { type Attributes, applied, attributesOf, changesOf, type Change as PatchChange } from './patch.ts';
import {
  type ExternalId,
  externalIdsSql,
  membersSql,
  nameSql,
  type StoredUser,
  storedUsersSql,
} from './provisioned.sql.ts';
import { externalIdsOf, findUsers, type UserRecord, weak } from './read-users.ts';
import { COMMON_ATTRIBUTES, GROUP_ATTRIBUTES, GROUP_SCHEMA } from './schema.ts';
import { type Change, changeUsers, type Outcome } from './unit.ts';
import { externalIdOf } from './user-changes.ts';
import { among } from './user-filter.ts';
import { matchVersion } from './write-users.ts';

const GROUP_TABLE = [...COMMON_ATTRIBUTES, ...GROUP_ATTRIBUTES];

const NOT_HERE =
  'Groups are permission sets, which are configuration: deploy the PermissionSet, then assign its members here.';

const setsOf = ({ permissionSets }: Snapshot): PermissionBundle[] =>
  Object.values(permissionSets).toSorted((a, b) => (a.apiName < b.apiName ? -1 : 1));

/** A page of groups that a client asks for. */
export async function listGroups(
  deps: ReadDeps,
  request: RequestContext,
  baseUrl: string,
  asked: PageRequest,
  selection: Selection,
): Promise<Page> {
  const filter = asked.filter === null ? null : readFilter(asked.filter);
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    visibleObject(view, 'User');
    const externalIds = await externalIdsOf(deps, request, 'Group');
    const setsByUser = await setsOfUsers(deps, view, filter);
    const found = setsOf(view.snapshot).filter(
      (set) => filter === null || passes(filter, (leaf) => answer(leaf, set, externalIds, setsByUser)),
    );
    if (asked.sortBy !== null) sort(found, asked.sortBy);
    if (asked.descending) found.reverse();
    const page = found.slice(asked.startIndex - 1, asked.startIndex - 1 + asked.count);
    const members = selection.wants('members') ? await membersOf(deps, view, page) : null;
    const resources = page.map((set) =>
      groupResource(set, baseUrl, externalIds.get(set.apiName), members && (members.get(set.apiName) ?? [])),
    );
    return { total: found.length, resources };
  });
}

function sort(sets: PermissionBundle[], sortBy: string): void {
  const path = localPath(sortBy);
  if (path !== 'displayname' && path !== 'id')
    throw scimError('invalidValue', `Groups cannot be sorted by ${shown(sortBy)}.`);
  const key = ({ apiName, label }: PermissionBundle): string => (path === 'id' ? apiName : label.toLowerCase());
  sets.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

const MEMBER_PATHS = new Set(['members', 'members.value']);

/** The permission sets of the users whom the filter names as members, by id. */
async function setsOfUsers(
  deps: ReadDeps,
  view: View,
  filter: FilterNode | null,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const leaves = filter === null ? [] : [...leavesOf(filter)].filter(({ path }) => MEMBER_PATHS.has(path));
  const ids = leaves.flatMap(({ value }) =>
    typeof value === 'string' && isUuid(value.toLowerCase()) ? [value.toLowerCase()] : [],
  );
  if (ids.length === 0) return new Map();
  const { object } = visibleObject(view, 'User');
  const { users } = await findUsers(deps, view, among(object, ids, false), { expand: [], includeTotal: false });
  return new Map(users.map(({ id, permissionSetApiNames }) => [id, permissionSetApiNames ?? []]));
}

function answer(
  leaf: Leaf,
  { apiName, label }: PermissionBundle,
  externalIds: ReadonlyMap<string, string>,
  setsByUser: ReadonlyMap<string, readonly string[]>,
): boolean {
  if (MEMBER_PATHS.has(leaf.path)) {
    if (leaf.operator !== 'eq')
      throw scimError('invalidFilter', 'members takes the operator eq with the id of a user.');
    return setsByUser.get(String(leaf.value).toLowerCase())?.includes(apiName) ?? false;
  }
  switch (leaf.path) {
    case 'id':
      return compares(leaf, apiName, true);
    case 'displayname':
      return compares(leaf, label, false);
    case 'externalid': {
      const externalId = externalIds.get(apiName);
      return externalId === undefined ? leaf.operator === 'ne' : compares(leaf, externalId, true);
    }
    case 'meta.resourcetype':
      return compares(leaf, 'Group', false);
    default:
      throw scimError('invalidFilter', `Groups cannot be filtered by ${shown(leaf.path)}.`);
  }
}

/** The users who have each of the permission sets; throws PARAMETER_INVALID (tooMany). */
async function membersOf(
  deps: ReadDeps,
  view: View,
  sets: readonly PermissionBundle[],
): Promise<Map<string, UserRecord[]>> {
  const { object } = visibleObject(view, 'User');
  const field = object.fields['permissionSetApiNames'];
  const names = sets.map(({ apiName }) => apiName);
  if (!field || names.length === 0) return new Map();
  const { users } = await findUsers(
    deps,
    view,
    { kind: 'compare', field, operator: 'in', values: names },
    { take: LIMITS.scim_members_max + 1, includeTotal: false, expand: [] },
  );
  if (users.length > LIMITS.scim_members_max)
    throw scimError(
      'tooMany',
      `More than ${LIMITS.scim_members_max} members: ask without them (excludedAttributes=members), and for users by groups.value.`,
    );
  const members = new Map<string, UserRecord[]>(names.map((name) => [name, []]));
  for (const user of users) for (const name of user.permissionSetApiNames ?? []) members.get(name)?.push(user);
  return members;
}

const versionOf = (label: string, ids: readonly string[]): string =>
  `"${hash('sha256', [label, ...ids].join('\n'), 'base64url').slice(0, 22)}"`;

/** The resource of a group (RFC 7643 section 4.2); `members` null: not asked for. */
function groupResource(
  { apiName, label }: PermissionBundle,
  baseUrl: string,
  externalId: string | undefined,
  members: readonly UserRecord[] | null,
): Json {
  return {
    schemas: [GROUP_SCHEMA],
    id: apiName,
    ...(externalId === undefined ? {} : { externalId }),
    displayName: label,
    ...(members && members.length > 0
      ? {
          members: members.map(({ id, displayName, username }) => ({
            value: id,
            display: displayName ?? username,
            type: 'User',
            $ref: addressOf(baseUrl, 'Users', id),
          })),
        }
      : {}),
    meta: {
      resourceType: 'Group',
      location: addressOf(baseUrl, 'Groups', apiName),
      ...(members
        ? {
            version: weak(
              versionOf(
                label,
                members.map(({ id }) => id),
              ),
            ),
          }
        : {}),
    },
  };
}

/** The group with this id; null: there is none. */
export async function readGroup(
  deps: ReadDeps,
  request: RequestContext,
  baseUrl: string,
  id: string,
  wantsMembers: boolean,
): Promise<Json | null> {
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const set = ownEntry(view.snapshot.permissionSets, id);
    if (!set) return null;
    const externalIds = await externalIdsOf(deps, request, 'Group', [id]);
    const members = wantsMembers ? await membersOf(deps, view, [set]) : null;
    return groupResource(set, baseUrl, externalIds.get(id), members && (members.get(id) ?? []));
  });
}

/** Refuses to create a group: 409 where there is one of that name, which a client then finds by a filter. */
export async function refuseCreation(deps: ReadDeps, request: RequestContext, call: ScimCall): Promise<never> {
  const { displayName } = attributesWithName(readBody(call));
  return deps.tenants.withView(request.tenantId, request.userId, async ({ snapshot }) => {
    const known = setsOf(snapshot).find(({ label }) => label.toLowerCase() === displayName.toLowerCase());
    if (known) throw scimError('uniqueness', `There is a group ${shown(known.label)} with the id ${known.apiName}.`);
    throw new PlatformError('OBJECT_PERMISSION_DENIED', NOT_HERE, { details: { layer: 'objectPermission' } });
  });
}

function attributesWithName(body: Json): { displayName: string } {
  const key = Object.keys(body).find((name) => name.toLowerCase() === 'displayname');
  const displayName = key === undefined ? undefined : body[key];
  if (typeof displayName !== 'string' || displayName === '')
    throw scimError('invalidValue', 'A group needs a displayName.');
  return { displayName };
}

export async function refuseDeletion(deps: ReadDeps, request: RequestContext, { path }: ScimCall): Promise<never> {
  return deps.tenants.withView(request.tenantId, request.userId, async ({ snapshot }) => {
    if (!ownEntry(snapshot.permissionSets, path['id'] ?? '')) throw recordNotFound();
    throw new PlatformError('OBJECT_PERMISSION_DENIED', NOT_HERE, { details: { layer: 'objectPermission' } });
  });
}

/** A group as changes are computed from; the members by their ids, because there may be many. */
interface GroupState {
  readonly attributes: Attributes;
  readonly members: ReadonlySet<string>;
}

export const replaceGroup = (deps: MutationDeps, request: RequestContext, call: ScimCall): Promise<Outcome> => {
  const body = readBody(call);
  const { displayName } = attributesWithName(body);
  const given = attributesOf(
    Object.fromEntries(Object.entries(body).filter(([name]) => name.toLowerCase() !== 'members')),
    GROUP_TABLE,
  );
  const members = memberIds(member(body, 'members') ?? []);
  return changeGroup(deps, request, call, (before) => ({
    attributes: { ...before.attributes, ...given, displayName },
    members,
  }));
};

export const updateGroup = (deps: MutationDeps, request: RequestContext, call: ScimCall): Promise<Outcome> => {
  const changes = [...changesOf(readBody(call), WRITABLE)];
  return changeGroup(deps, request, call, (before) => {
    const attributes: Record<string, unknown> = { ...before.attributes };
    const members = new Set(before.members);
    for (const change of changes)
      if (change.attribute.name === 'members') changeMembers(members, change);
      else attributes[change.attribute.name] = applied(attributes, change);
    return { attributes, members };
  });
};

/** Applies an operation to the members; takes time in proportion to what the operation names. */
function changeMembers(members: Set<string>, { op, filter, sub, value }: PatchChange): void {
  if (filter === null && sub === null) {
    if (op === 'replace' || (op === 'remove' && (value === undefined || value === null))) members.clear();
    for (const id of memberIds(value ?? [])) op === 'remove' ? members.delete(id) : members.add(id);
    return;
  }
  if (op !== 'remove' || sub !== null || filter === null)
    throw scimError(
      'noTarget',
      'Members are added and removed: add with a value, remove with a value or members[value eq "…"].',
    );
  const node = readFilter(filter);
  for (const leaf of node.kind === 'or' ? node.nodes : [node]) {
    if (leaf.kind !== 'leaf' || leaf.path !== 'value' || leaf.operator !== 'eq' || typeof leaf.value !== 'string')
      throw scimError('invalidFilter', 'Members are named as members[value eq "…"], several joined by or.');
    members.delete(leaf.value.toLowerCase());
  }
}

/** Clients send the name of a group along with its members; that it is another one is found out afterwards. */
const WRITABLE = GROUP_TABLE.map((attribute) =>
  attribute.name === 'displayName' ? { ...attribute, mutability: 'readWrite' as const } : attribute,
);

function changeGroup(
  deps: MutationDeps,
  request: RequestContext,
  call: ScimCall,
  next: (before: GroupState) => GroupState,
): Promise<Outcome> {
  const id = call.path['id'] ?? '';
  return changeUsers(deps, request, call, { id: NO_USER }, async (change) => {
    const { unit, view } = change;
    const set = ownEntry(view.snapshot.permissionSets, id);
    if (!set) throw recordNotFound();
    const rows = await unit.tx.all<{ id: string }>(membersSql(unit.schema, id, LIMITS.scim_members_max + 1));
    if (rows.length > LIMITS.scim_members_max)
      throw scimError('tooMany', `A group with more than ${LIMITS.scim_members_max} members cannot be changed here.`);
    const had = new Set(rows.map((row) => row.id));
    matchVersion(call.headers.ifMatch, versionOf(set.label, [...had]));
    const named = await unit.tx.all<ExternalId>(externalIdsSql(unit.schema, request.clientId, 'Group', [id]));
    const externalId = named[0]?.externalId ?? null;
    const { attributes, members: has } = next({
      attributes: { displayName: set.label, ...(externalId === null ? {} : { externalId }) },
      members: had,
    });
    if (attributes['displayName'] !== undefined && attributes['displayName'] !== set.label)
      throw scimError('mutability', `The name of a group is that of its permission set: ${shown(set.label)}.`);
    await assign(
      change,
      request,
      id,
      [...has].filter((one) => !had.has(one)),
      [...had].filter((one) => !has.has(one)),
    );
    const newId = externalIdOf(attributes);
    if (newId !== externalId) await unit.tx.query(nameSql(unit.schema, request.clientId, 'Group', id, newId));
    return { id, created: false };
  });
}

/** Stands for the user that a change is about, where it is about several. */
const NO_USER = '00000000-0000-0000-0000-000000000000';

function memberIds(members: unknown): Set<string> {
  const ids = new Set<string>();
  for (const one of Array.isArray(members) ? members : [members]) {
    const { value, type }: Json = isObject(one) ? one : { value: one };
    if (typeof type === 'string' && type.toLowerCase() !== 'user')
      throw scimError('invalidValue', 'The members of a group are users.');
    if (typeof value !== 'string' || !isUuid(value.toLowerCase()))
      throw scimError('invalidValue', `A member is named by the id of a user, not ${shown(value)}.`);
    ids.add(value.toLowerCase());
  }
  return ids;
}

/** Gives the permission set to some users and takes it from others. */
async function assign(
  change: Change,
  { clientId }: RequestContext,
  set: string,
  added: readonly string[],
  removed: readonly string[],
): Promise<void> {
  const ids = [...added, ...removed];
  if (ids.length > LIMITS.scim_members_changed_max)
    throw scimError('tooMany', `A request changes ${LIMITS.scim_members_changed_max} members at most.`);
  if (ids.length === 0) return;
  const { unit } = change;
  const users = await unit.tx.all<StoredUser>(storedUsersSql(unit.schema, clientId, ids));
  const known = new Map(users.filter((user) => !user.deprovisioned).map((user) => [user.id, user]));
  const unknown = ids.filter((id) => !known.has(id));
  if (unknown.length > 0)
    throw scimError('invalidValue', `There is no user ${unknown.slice(0, 3).map(shown).join(', ')}.`);
  const gets = new Set(added);
  for (const user of known.values()) {
    const others = user.permissionSetApiNames.filter((name) => name !== set);
    await change.update(user, { permissionSetApiNames: gets.has(user.id) ? [...others, set] : others });
  }
}

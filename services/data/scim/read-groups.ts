/** Groups of provisioning clients are the permission sets of the tenant. Source: docs/decisions/scim.md. */
import { hash } from 'node:crypto';
import type { RequestContext } from '../../../lib/context.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { PermissionBundle, Snapshot } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { visibleObject } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import type { View } from '../view.ts';
import { scimError, shown } from './errors.ts';
import { compares, type FilterNode, type Leaf, leavesOf, localPath, passes, readFilter } from './filter.ts';
import { addressOf, type Json, type Page, type PageRequest, type Selection } from './messages.ts';
import { externalIdsOf, findUsers, type UserRecord, weak } from './read-users.ts';
import { GROUP_SCHEMA } from './schema.ts';
import { among } from './user-filter.ts';

export const setsOf = ({ permissionSets }: Snapshot): PermissionBundle[] =>
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

export const versionOf = (label: string, ids: readonly string[]): string =>
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

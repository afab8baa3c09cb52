/**
 * The users of a tenant as sharing needs them: the role hierarchy and the members of roles and groups. All of it
 * follows from the snapshot and the User records, so it is computed once per pair of versions. Source:
 * docs/reference/access.md#sharing.
 */

import { ownEntry } from '../schema/lookup.ts';
import type { GroupMeta, SharingPrincipal, Snapshot } from '../schema/snapshot.ts';
import { memoize, memoizeByName } from '../values/memoize.ts';

/** The users of a tenant, including deactivated ones, who still own records. */
export interface Directory {
  readonly users: readonly DirectoryUser[];
}

interface DirectoryUser {
  readonly userId: string;
  readonly username: string;
  readonly roleApiName: string | null;
}

export const NOBODY: Directory = { users: [] };

/** The roles below a role, without the role itself. */
export const rolesBelow = memoizeByName((snapshot: Snapshot, role): ReadonlySet<string> => {
  const below = new Set<string>();
  const children = childrenOf(snapshot);
  const open = [role];
  for (let at = open.pop(); at !== undefined; at = open.pop())
    for (const { apiName } of children.get(at) ?? [])
      if (apiName !== role && !below.has(apiName)) {
        below.add(apiName);
        open.push(apiName);
      }
  return below;
});

const childrenOf = memoize(({ roles }: Snapshot) => Map.groupBy(Object.values(roles), (role) => role.parent));

/** The roles whose shares a user receives: a share with a role includes the users of all roles above it. */
export function rolesReceived(snapshot: Snapshot, role: string | null): readonly string[] {
  return role === null || !Object.hasOwn(snapshot.roles, role) ? [] : [role, ...rolesBelow(snapshot, role)];
}

/** The groups a user is in: by name, by a role received, or through a group inside another one. */
export function groupsOf(snapshot: Snapshot, username: string, roles: readonly string[]): ReadonlySet<string> {
  const { byUser, byRole, byGroup } = membershipsOf(snapshot);
  const found = new Set<string>();
  const open = [...(byUser.get(username.toLowerCase()) ?? []), ...roles.flatMap((role) => byRole.get(role) ?? [])];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (found.has(at.group)) continue;
    found.add(at.group);
    open.push(...(byGroup.get(at.group) ?? []));
  }
  return found;
}

/** The groups by their members: users (names in lower case), roles, other groups. */
const membershipsOf = memoize(({ groups }: Snapshot) => {
  const by = (names: (members: GroupMeta['members']) => readonly string[]) =>
    Map.groupBy(
      Object.values(groups).flatMap(({ apiName, members }) =>
        names(members).map((member) => ({ group: apiName, member })),
      ),
      ({ member }) => member,
    );
  return {
    byUser: by(({ users }) => users.map((user) => user.toLowerCase())),
    byRole: by(({ roles }) => roles),
    byGroup: by((members) => members.groups),
  };
});

/** The users who hold one of these roles. */
export function holdersOf(directory: Directory, roles: ReadonlySet<string>): readonly string[] {
  const byRole = usersByRole(directory);
  return [...roles].flatMap((role) => byRole.get(role)?.map((user) => user.userId) ?? []);
}

/** The owners to whose records an owner rule applies: the holders of the role, or the users and roles of the group. */
export function ownersOf(snapshot: Snapshot, directory: Directory, from: SharingPrincipal): ReadonlySet<string> {
  if (from.role !== undefined) return new Set(holdersOf(directory, new Set([from.role])));
  const roles = new Set<string>();
  const names = new Set<string>();
  const seen = new Set<string>();
  const open = from.group === undefined ? [] : [from.group];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const group = ownEntry(snapshot.groups, at);
    if (seen.has(at) || !group) continue;
    seen.add(at);
    const { members } = group;
    for (const role of members.roles) roles.add(role);
    for (const user of members.users) names.add(user.toLowerCase());
    open.push(...members.groups);
  }
  const byName = usersByName(directory);
  const named = [...names].flatMap((name) => byName.get(name)?.map((user) => user.userId) ?? []);
  return new Set([...holdersOf(directory, roles), ...named]);
}

const usersByName = memoize(({ users }: Directory) => Map.groupBy(users, (user) => user.username.toLowerCase()));
const usersByRole = memoize(({ users }: Directory) => Map.groupBy(users, (user) => user.roleApiName));

/**
 * Changes of groups: who has a permission set is stored with the users and can be changed here, what one gives is
 * configuration. Source: docs/decisions/scim.md.
 */

import type { ScimCall } from '../../../contracts/scim.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { recordNotFound } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import type { MutationDeps } from '../write/write.ts';
import { scimError, shown } from './errors.ts';
import { readFilter } from './filter.ts';
import { type Json, member, readBody } from './messages.ts';
import { type Attributes, applied, attributesOf, changesOf, type Change as PatchChange } from './patch.ts';
import {
  type ExternalId,
  externalIdsSql,
  membersSql,
  nameSql,
  type StoredUser,
  storedUsersSql,
} from './provisioned.sql.ts';
import { setsOf, versionOf } from './read-groups.ts';
import { COMMON_ATTRIBUTES, GROUP_ATTRIBUTES } from './schema.ts';
import { type Change, changeUsers, type Outcome } from './unit.ts';
import { externalIdOf } from './user-changes.ts';
import { matchVersion } from './write-users.ts';

const GROUP_TABLE = [...COMMON_ATTRIBUTES, ...GROUP_ATTRIBUTES];

const NOT_HERE =
  'Groups are permission sets, which are configuration: deploy the PermissionSet, then assign its members here.';

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
    throw scimError('tooMany', `A request may change at most ${LIMITS.scim_members_changed_max} members.`);
  if (ids.length === 0) return;
  const { unit } = change;
  const users = await unit.tx.all<StoredUser>(storedUsersSql(unit.schema, clientId, ids));
  const known = new Map(users.filter((user) => !user.deprovisioned).map((user) => [user.id, user]));
  const unknown = ids.filter((id) => !known.has(id));
  if (unknown.length > 0)
    throw scimError('invalidValue', `There is no user ${unknown.slice(0, 3).map(shown).join(', ')}.`);
  const gets = new Set(added);
  await change.update(
    [...known.values()].map((user) => {
      const others = user.permissionSetApiNames.filter((name) => name !== set);
      return { user, fields: { permissionSetApiNames: gets.has(user.id) ? [...others, set] : others } };
    }),
  );
}

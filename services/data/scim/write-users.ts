/** Creating, replacing, changing and deleting users for a provisioning client. */
import type { ScimCall } from '../../../contracts/scim.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { recordNotFound } from '../object-access.ts';
import { etagOf } from '../sql.ts';
import type { MutationDeps } from '../write/write.ts';
import { scimError } from './errors.ts';
import { readBody } from './messages.ts';
import { type Attributes, attributesOf, patched } from './patch.ts';
import {
  deprovisionSql,
  nameSql,
  provisionSql,
  type StoredUser,
  storedByNameSql,
  storedUsersSql,
} from './provisioned.sql.ts';
import { weak } from './read-users.ts';
import { type Change, changeUsers, type Outcome } from './unit.ts';
import {
  changedFields,
  DEFAULT_PROFILE,
  defaultsFor,
  externalIdOf,
  fieldsOf,
  replacedAttributes,
  storedAttributes,
  USER_TABLE,
} from './user-changes.ts';

/** Creates the user, or takes back one whom a client has deleted: usernames are not given away. */
export async function createUser(deps: MutationDeps, request: RequestContext, call: ScimCall): Promise<Outcome> {
  const given = attributesOf(readBody(call), USER_TABLE);
  const fields = fieldsOf({}, given);
  const externalId = externalIdOf(given);
  const username = fields.username ?? '';
  const { platform } = deps;
  const before = await platform.database.tenant(request.tenantId, (tx) =>
    tx.first<StoredUser>(storedByNameSql(tx.schema, request.clientId, username)),
  );
  const id = before?.deprovisioned ? before.id : uuidv7();
  return changeUsers(deps, request, call, { id, username }, async (change) => {
    const { unit, view } = change;
    const known = await unit.tx.first<StoredUser>(storedByNameSql(unit.schema, request.clientId, username));
    // The deleted user was activated in the meantime.
    if (known?.id === id && !known.deprovisioned) throw scimError('uniqueness', 'The userName is taken.');
    const defaults = defaultsFor(view.snapshot, fields);
    const complete = {
      ...fields,
      profileApiName: fields.profileApiName ?? defaults.profileApiName,
      roleApiName: fields.roleApiName ?? (fields.profileApiName === undefined ? defaults.roleApiName : null),
    };
    if (known?.id === id) {
      await change.update([{ user: known, fields: { ...complete, permissionSetApiNames: [] } }]);
      await unit.tx.query(provisionSql(unit.schema, id));
    } else await change.create(id, complete);
    await name(unit, request, id, externalId, null);
    return { id, created: true };
  });
}

/** Sets what the client calls the user, where that is new. */
async function name(
  { tx, schema }: Unit,
  { clientId }: RequestContext,
  id: string,
  externalId: string | null,
  before: string | null,
): Promise<void> {
  if (externalId !== before) await tx.query(nameSql(schema, clientId, 'User', id, externalId));
}

export const replaceUser = (deps: MutationDeps, request: RequestContext, call: ScimCall): Promise<Outcome> => {
  const given = attributesOf(readBody(call), USER_TABLE);
  if (typeof given['userName'] !== 'string') throw scimError('invalidValue', 'A user needs a userName.');
  return change(deps, request, call, (user) => replacedAttributes(user, given));
};

export const updateUser = (deps: MutationDeps, request: RequestContext, call: ScimCall): Promise<Outcome> => {
  const body = readBody(call);
  return change(deps, request, call, (user) => patched(storedAttributes(user), body, USER_TABLE));
};

async function change(
  deps: MutationDeps,
  request: RequestContext,
  call: ScimCall,
  next: (user: StoredUser) => Attributes,
): Promise<Outcome> {
  const id = idOf(call);
  const seen = await storedUser(deps.platform.database, request, id);
  // The new username is checked before the transaction.
  const username = newUsername(seen, next(seen));
  return changeUsers(deps, request, call, { id, ...(username === undefined ? {} : { username }) }, async (inUnit) => {
    const { unit } = inUnit;
    const user = await lockedUser(inUnit, request, call, id);
    const attributes = next(user);
    const before = storedAttributes(user);
    const after = fieldsOf(before, attributes);
    const fields = changedFields(fieldsOf(before, before), { profileApiName: DEFAULT_PROFILE, ...after });
    if (Object.keys(fields).length > 0) await inUnit.update([{ user, fields }]);
    await name(unit, request, id, externalIdOf(attributes), user.externalId);
    return { id, created: false };
  });
}

const newUsername = (user: StoredUser, after: Attributes): string | undefined => {
  const { username } = fieldsOf(storedAttributes(user), after);
  return username === user.username ? undefined : username;
};

/** Deactivates the user; from now on provisioning does not see it. */
export function deleteUser(deps: MutationDeps, request: RequestContext, call: ScimCall): Promise<Outcome> {
  const id = idOf(call);
  return changeUsers(deps, request, call, { id }, async (change) => {
    const { unit } = change;
    const user = await lockedUser(change, request, call, id);
    if (user.active) await change.update([{ user, fields: { active: false } }]);
    await unit.tx.query(deprovisionSql(unit.schema, id));
    await name(unit, request, id, null, user.externalId);
    return { id, created: false };
  });
}

function idOf({ path }: ScimCall): string {
  const id = (path['id'] ?? '').toLowerCase();
  if (!isUuid(id)) throw recordNotFound();
  return id;
}

const visible = (user: StoredUser | null | undefined): StoredUser => {
  if (!user || user.deprovisioned) throw recordNotFound();
  return user;
};

const storedUser = async (
  database: Database,
  { tenantId, clientId }: RequestContext,
  id: string,
): Promise<StoredUser> =>
  visible(await database.tenant(tenantId, (tx) => tx.first<StoredUser>(storedUsersSql(tx.schema, clientId, [id]))));

/** The user as it is until the end of the transaction; throws ETAG_MISMATCH unless it has the version of If-Match. */
async function lockedUser(
  { unit }: Change,
  { clientId }: RequestContext,
  { headers }: ScimCall,
  id: string,
): Promise<StoredUser> {
  const user = visible(await unit.tx.first<StoredUser>(storedUsersSql(unit.schema, clientId, [id])));
  matchVersion(headers.ifMatch, etagOf(user.recordVersion));
  return user;
}

/** Throws ETAG_MISMATCH unless If-Match names the version; absent: any version will do. */
export function matchVersion(ifMatch: string | undefined, etag: string): void {
  if (ifMatch === undefined) return;
  const tags = ifMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  if (tags.includes('*') || tags.includes(etag)) return;
  throw new PlatformError('ETAG_MISMATCH', 'The resource has changed since it was read: read it again.', {
    details: { currentETag: weak(etag) },
  });
}

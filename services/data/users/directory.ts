/** Users as other services look them up, and as the platform itself creates them. Source: docs/reference/records.md. */

import type { DataActions, UserIdentity } from '../../../contracts/data.ts';
import { accessFor } from '../../../lib/access/rules.ts';
import type { Principal } from '../../../lib/access/types.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { usernameProblem } from '../../../lib/values/user-names.ts';
import { type Database, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { isShapeError, type Tenants } from '../tenants.ts';
import {
  findUserStatement,
  insertUserStatements,
  type NewUser,
  signInStatement,
  type UserKey,
  type UsernameRow,
  type UserRow,
  usernamesStatement,
  usersStatement,
  usersWithStatement,
} from './directory.sql.ts';

type ProvisionUser = DataActions['data.users.provision']['params']['users'][number];

/** The user with what decides about access; null when there is no such user, or no such tenant. */
export async function findUser(
  database: Database,
  tenants: Tenants,
  tenantId: string,
  key: UserKey,
): Promise<UserIdentity | null> {
  const found = await database
    .tenant(tenantId, (tx) => tx.first<UserRow>(findUserStatement(tx.schema, key)))
    .catch((error: unknown) => {
      if (isTenantGone(error)) return null;
      throw error;
    });
  if (!found) return null;
  const snapshot = await tenants.snapshot(tenantId, found.metadataVersion);
  return snapshot && identityOf(snapshot, found);
}

/** Those of the users that there are, with what decides about access. */
export async function listUsers(
  database: Database,
  tenants: Tenants,
  { tenantId, userIds }: DataActions['data.users.list']['params'],
): Promise<UserIdentity[]> {
  const rows = await database.tenant(tenantId, (tx) => tx.all<UserRow>(usersStatement(tx.schema, userIds)));
  const [first] = rows;
  const snapshot = first && (await tenants.snapshot(tenantId, first.metadataVersion));
  if (!snapshot) return [];
  const { locale, timezone } = snapshot.tenant;
  return rows.map((row) =>
    identityOf(snapshot, { ...row, locale: row.locale ?? locale, timezone: row.timezone ?? timezone }),
  );
}

/** Active users who hold a system permission, a page of them. */
export async function usersHolding(
  database: Database,
  tenants: Tenants,
  { tenantId, systemPermission, after, take }: DataActions['data.users.holding']['params'],
): Promise<DataActions['data.users.holding']['result']> {
  const snapshot = await tenants.snapshot(tenantId);
  if (!snapshot) return { users: [], next: null };
  const giving = (bundles: Snapshot['profiles']): string[] =>
    Object.values(bundles).flatMap(({ apiName, system }) => (system.includes(systemPermission) ? [apiName] : []));
  const bundles = { profiles: giving(snapshot.profiles), permissionSets: giving(snapshot.permissionSets) };
  const rows = await database.tenant(tenantId, (tx) =>
    tx.all<UserRow>(usersWithStatement(tx.schema, bundles, after, take)),
  );
  return {
    users: rows.map((row) => identityOf(snapshot, row)),
    next: rows.length < take ? null : (rows.at(-1)?.id ?? null),
  };
}

/**
 * Stores with the user's record when the user last signed in. It is no change of the record: version, history and change
 * feed stay as they are. The audit trail records the sign-in.
 */
export async function noteSignIn(database: Database, tenantId: string, userId: string, at: string): Promise<void> {
  await database.tenant(tenantId, (tx) => tx.query(signInStatement(tx.schema, userId, at)));
}

/** SQLSTATEs of a missing role, schema or table. */
const NO_SUCH_TENANT: ReadonlySet<string> = new Set(['22023', '42704', '3F000', '42P01']);

/** The tenant was erased, or never was. */
export const isTenantGone = (error: unknown): boolean => NO_SUCH_TENANT.has(sqlState(error) ?? '');

function identityOf(snapshot: Snapshot, row: UserRow): UserIdentity {
  const active = row.active !== false;
  const principal: Principal = {
    userId: row.id,
    username: row.username,
    displayName: row.displayName ?? row.username,
    active,
    locale: row.locale,
    timezone: row.timezone ?? snapshot.tenant.timezone,
    profileApiName: row.profileApiName,
    roleApiName: row.roleApiName,
    permissionSetApiNames: row.permissionSetApiNames ?? [],
  };
  const { system } = accessFor(snapshot, principal);
  return {
    id: row.id,
    username: row.username,
    displayName: principal.displayName,
    email: row.email,
    active,
    locale: row.locale,
    timezone: row.timezone,
    emailDigest: row.emailDigest,
    profileApiName: row.profileApiName,
    roleApiName: row.roleApiName,
    permissionSetApiNames: row.permissionSetApiNames ?? [],
    managerId: row.managerId,
    apiEnabled: active && system.has('apiEnabled'),
    systemPermissions: active ? [...system].sort() : [],
    updatedAt: row.updatedAt,
  };
}

interface ProvisionedUsers {
  readonly userIds: Record<string, string>;
  readonly stored: readonly { readonly userId: string; readonly user: ProvisionUser }[];
}

/**
 * Creates the users that are missing, as the platform; an existing username keeps its record. Returns the ids of all.
 * The caller passes passwords on to auth; auth learns of the other users by the outbox.
 */
export async function provisionUsers(
  database: Database,
  tenants: Tenants,
  tenantId: string,
  users: readonly ProvisionUser[],
): Promise<ProvisionedUsers> {
  const snapshot = await tenants.snapshot(tenantId);
  if (!snapshot) throw new PlatformError('INTERNAL_ERROR', 'The tenant does not exist.');
  for (const user of users)
    if (!Object.hasOwn(snapshot.profiles, user.profileApiName))
      throw new PlatformError('INTERNAL_ERROR', `The tenant has no profile ${user.profileApiName}.`);
  try {
    return await database.tenantTransaction(tenantId, (tx) => storeUsers(tx, users));
  } catch (error) {
    if (isShapeError(error))
      throw new PlatformError('INTERNAL_ERROR', 'The tenant has no User object yet.', { cause: error });
    throw error;
  }
}

async function storeUsers(tx: Tx, users: readonly ProvisionUser[]): Promise<ProvisionedUsers> {
  await tx.query(`SELECT FROM ${tx.schema}._state FOR UPDATE`);
  const rows = await tx.all<UsernameRow>(usernamesStatement(tx.schema));
  const ids = new Map(rows.map((row) => [row.username, row.id]));
  const stored: { userId: string; user: ProvisionUser }[] = [];
  let created = 0;
  for (const user of users) {
    const username = user.username.toLowerCase();
    let userId = ids.get(username);
    if (!userId) {
      const problem = usernameProblem(user.username);
      if (problem !== null) throw new PlatformError('PARAMETER_INVALID', `The username ${problem}`);
      userId = uuidv7();
      const managerId = user.managerUsername ? (ids.get(user.managerUsername.toLowerCase()) ?? null) : null;
      for (const statement of insertUserStatements(tx.schema, newUser(userId, user, managerId)))
        await tx.query(statement);
      ids.set(username, userId);
      created++;
    }
    stored.push({ userId, user });
  }
  if (created) await tx.query(`UPDATE ${tx.schema}._state SET access_version = access_version + 1`);
  return { userIds: Object.fromEntries(stored.map(({ userId, user }) => [user.username, userId])), stored };
}

const newUser = (id: string, user: ProvisionUser, managerId: string | null): NewUser => ({
  id,
  username: user.username,
  displayName: user.displayName,
  email: user.email,
  profileApiName: user.profileApiName,
  roleApiName: user.roleApiName ?? null,
  permissionSetApiNames: user.permissionSetApiNames ?? [],
  managerId,
});

/** Users as other services ask for them, and as the platform itself creates them. Source: docs/reference/records.md. */

import type { DataActions, UserIdentity } from '../../../contracts/data.ts';
import { accessFor } from '../../../lib/access/rules.ts';
import type { Principal } from '../../../lib/access/types.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { requestId, uuidv7 } from '../../../lib/values/ids.ts';
import { type Database, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { table } from '../sql.ts';
import { isShapeError, type Tenants } from '../tenants.ts';
import { USER_SYNC } from './rules.ts';

type ProvisionUser = DataActions['data.users.provision']['params']['users'][number];

const COLUMNS =
  'u."id", u."username", u."displayName", u."email", u."active", u."locale", u."timezone", u."profileApiName", u."roleApiName", u."permissionSetApiNames"';

interface UserRow {
  id: string;
  username: string;
  displayName: string | null;
  email: string | null;
  active: boolean | null;
  locale: string | null;
  timezone: string | null;
  profileApiName: string;
  roleApiName: string | null;
  permissionSetApiNames: string[] | null;
}

/** The user with what decides about access; null when there is no such user, or no such tenant. */
export async function findUser(
  database: Database,
  tenants: Tenants,
  tenantId: string,
  by: { userId: string } | { username: string },
): Promise<UserIdentity | null> {
  const condition = 'userId' in by ? 'u."id" = $1' : 'lower(u."username") = lower($1)';
  const found = await database
    .tenant(tenantId, async (tx) => {
      const { rows } = await tx.query<UserRow & { version: number }>({
        name: `user by ${'userId' in by ? 'id' : 'name'} ${tx.schema}`,
        text: `SELECT s.metadata_version AS version, ${COLUMNS} FROM ${tx.schema}._state s CROSS JOIN ${table(tx.schema, 'User')} u WHERE ${condition}`,
        values: ['userId' in by ? by.userId : by.username],
      });
      return rows[0];
    })
    .catch((error: unknown) => {
      if (NO_SUCH_TENANT.has(sqlState(error) ?? '')) return undefined;
      throw error;
    });
  if (!found) return null;
  const snapshot = await tenants.snapshot(tenantId, found.version);
  return snapshot && identityOf(snapshot, found);
}

/**
 * Shows on the user's record when the person last signed in. Nobody's change, so it leaves no history; the audit trail has
 * it, as everything that raises the version of a record.
 */
export async function noteSignIn(database: Database, tenantId: string, userId: string, at: string): Promise<void> {
  await database.tenant(tenantId, (tx) =>
    tx.query(
      `WITH o AS MATERIALIZED (SELECT "id", "lastSignInAt" FROM ${table(tx.schema, 'User')} WHERE "id" = $1 FOR NO KEY UPDATE),
        u AS (UPDATE ${table(tx.schema, 'User')} u SET "lastSignInAt" = $2, "recordVersion" = u."recordVersion" + 1 FROM o
          WHERE u."id" = o."id" AND (o."lastSignInAt" IS NULL OR o."lastSignInAt" < $2)
          RETURNING u."recordVersion" AS version, jsonb_build_object('lastSignInAt', jsonb_build_object('from', o."lastSignInAt", 'to', u."lastSignInAt")) AS changes)
       INSERT INTO ${tx.schema}._audit (audit_id, user_id, channel, operation_id, outcome, request_id, object, record_id, kind, record_version, changes)
       SELECT $3, $1, 'ui', 'auth.user.signedIn', 'committed', $4, 'User', $1, 'update', version, changes FROM u`,
      [userId, at, uuidv7(), requestId()],
    ),
  );
}

/** The tenant's role or schema is not there. */
const NO_SUCH_TENANT: ReadonlySet<string> = new Set(['22023', '42704', '3F000', '42P01']);

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
    profileApiName: row.profileApiName,
    roleApiName: row.roleApiName,
    apiEnabled: active && system.has('apiEnabled'),
    systemPermissions: active ? [...system].sort() : [],
  };
}

/**
 * Creates the users that are missing, as the platform; a username that is there keeps its record. Returns the ids of
 * all. Credentials follow through auth, by the caller of this function for passwords, by the sync rows otherwise.
 */
export async function provisionUsers(
  database: Database,
  tenants: Tenants,
  tenantId: string,
  users: readonly ProvisionUser[],
): Promise<{ userIds: Record<string, string>; stored: { userId: string; user: ProvisionUser; email: string }[] }> {
  const snapshot = await tenants.snapshot(tenantId);
  if (!snapshot) throw new PlatformError('INTERNAL_ERROR', 'There is no such tenant.');
  for (const user of users)
    if (!Object.hasOwn(snapshot.profiles, user.profileApiName))
      throw new PlatformError('INTERNAL_ERROR', `The tenant has no profile ${user.profileApiName}.`);
  try {
    return await database.tenantTransaction(tenantId, async (tx) => {
      await tx.query(`SELECT FROM ${tx.schema}._state FOR UPDATE`);
      const ids = await idsByUsername(tx);
      const stored = [];
      let created = 0;
      for (const user of users) {
        let userId = ids.get(user.username.toLowerCase());
        if (!userId) {
          userId = uuidv7();
          const manager = user.managerUsername ? (ids.get(user.managerUsername.toLowerCase()) ?? null) : null;
          await insertUser(tx, userId, user, manager);
          ids.set(user.username.toLowerCase(), userId);
          created++;
        }
        stored.push({ userId, user, email: user.email });
      }
      if (created) await tx.query(`UPDATE ${tx.schema}._state SET access_version = access_version + 1`);
      return { userIds: Object.fromEntries(stored.map(({ userId, user }) => [user.username, userId])), stored };
    });
  } catch (error) {
    if (isShapeError(error))
      throw new PlatformError('INTERNAL_ERROR', 'The tenant has no User object yet.', { cause: error });
    throw error;
  }
}

async function idsByUsername(tx: Tx): Promise<Map<string, string>> {
  const { rows } = await tx.query<{ id: string; username: string }>(
    `SELECT "id", lower("username") AS username FROM ${table(tx.schema, 'User')}`,
  );
  return new Map(rows.map((row) => [row.username, row.id]));
}

async function insertUser(tx: Tx, id: string, user: ProvisionUser, managerId: string | null): Promise<void> {
  await tx.query(
    `INSERT INTO ${table(tx.schema, 'User')} ("id", "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", "recordVersion",
       "name", "displayName", "username", "email", "active", "profileApiName", "roleApiName", "permissionSetApiNames", "managerId")
     VALUES ($1, $1, now(), $1, now(), $1, 1, $2, $2, $3, $4, true, $5, $6, $7, $8)`,
    [
      id,
      user.displayName,
      user.username,
      user.email,
      user.profileApiName,
      user.roleApiName ?? null,
      user.permissionSetApiNames ?? [],
      managerId,
    ],
  );
  await tx.query(
    `INSERT INTO ${tx.schema}._audit (audit_id, channel, operation_id, outcome, request_id, object, record_id, kind, record_version, changes)
     VALUES ($1, 'job', 'data.users.provision', 'committed', $2, 'User', $3, 'create', 1, $4)`,
    [
      uuidv7(),
      requestId(),
      id,
      JSON.stringify({
        username: { from: null, to: user.username },
        displayName: { from: null, to: user.displayName },
        email: { from: null, to: user.email },
        profileApiName: { from: null, to: user.profileApiName },
        roleApiName: { from: null, to: user.roleApiName ?? null },
        permissionSetApiNames: { from: null, to: user.permissionSetApiNames ?? [] },
      }),
    ],
  );
  await tx.query(`INSERT INTO ${tx.schema}._outbox (type, object, record_id, data) VALUES ($1, 'User', $2, '{}')`, [
    USER_SYNC,
    id,
  ]);
}

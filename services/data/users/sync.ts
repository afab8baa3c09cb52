/**
 * Informs auth of changed users. The change leaves a row in the tenant's outbox, in its own transaction; here the row is
 * processed: read the user as it is now, inform auth, delete the row. A crash in between only means that auth is
 * informed once more. Source: docs/reference/records.md.
 */

import type { AuthActions } from '../../../contracts/auth.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { type JobPayload, jobQueue } from '../../../mixins/jobs/queue.ts';
import { table } from '../sql.ts';
import { USER_SYNC } from './rules.ts';

type SyncUser = AuthActions['auth.users.sync']['params']['users'][number];

/** Sends one user to auth; must be idempotent. */
export type SendUser = (tenantId: string, user: SyncUser) => Promise<unknown>;

/** Tenants with users that auth could not be informed of: for two days, as long as auth may reasonably be away. */
export const USER_SYNC_JOBS = jobQueue<JobPayload>('data.userSync', {
  attempts: 300,
  retrySeconds: 5,
  retryMaxSeconds: 600,
  pollSeconds: 5,
  concurrency: 1,
  perTenant: 1,
  oneForEachKey: true,
});

const BATCH = 200;

interface Unsent {
  outboxId: number;
  userId: string;
  username: string | null;
  email: string | null;
  active: boolean | null;
}

/**
 * SQL of the users that auth is not informed of yet. An index holds these rows alone: the type must stand in the text.
 */
export const unsentSql = (schema: string): string =>
  `SELECT o.outbox_id AS "outboxId", o.record_id AS "userId", u."username", u."email", u."active"
     FROM ${schema}._outbox o LEFT JOIN ${table(schema, 'User')} u ON u."id" = o.record_id
     WHERE o.type = '${USER_SYNC}' ORDER BY o.outbox_id LIMIT ${BATCH} FOR UPDATE OF o`;

/** Sends the unsent users of a tenant. What keeps auth from one of them is thrown once the others are sent. */
export async function sendUnsentUsers(database: Database, tenantId: string, send: SendUser): Promise<void> {
  const failures: unknown[] = [];
  for (let found = BATCH; found === BATCH && failures.length === 0; )
    found = await sendBatch(database, tenantId, send, failures);
  if (failures.length > 0) throw failures[0];
}

/**
 * The rows stay locked while auth is informed, so that an older state of a user never arrives behind a newer one. Answers
 * how many there were.
 */
function sendBatch(database: Database, tenantId: string, send: SendUser, failures: unknown[]): Promise<number> {
  return database.tenantTransaction(tenantId, async (tx) => {
    const { rows } = await tx.query<Unsent>(unsentSql(tx.schema));
    const sent: number[] = [];
    for (const [userId, unsent] of Map.groupBy(rows, (row) => row.userId)) {
      const [user] = unsent;
      if (!user) continue;
      const { username, email, active } = user;
      try {
        if (username !== null)
          await send(tenantId, { userId, username, email: email ?? username, active: active !== false });
        sent.push(...unsent.map((row) => row.outboxId));
      } catch (error) {
        failures.push(error);
      }
    }
    if (sent.length)
      await tx.query(`DELETE FROM ${tx.schema}._outbox WHERE type = '${USER_SYNC}' AND outbox_id = ANY($1::bigint[])`, [
        sent,
      ]);
    return rows.length;
  });
}

/** Users that were sent by hand, with a password. */
export async function forgetUnsent(database: Database, tenantId: string, userIds: readonly string[]): Promise<void> {
  await database.tenant(tenantId, (tx) =>
    tx.query(`DELETE FROM ${tx.schema}._outbox WHERE type = '${USER_SYNC}' AND record_id = ANY($1::uuid[])`, [userIds]),
  );
}

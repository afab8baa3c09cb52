/**
 * Accepts a deployment: the key, the deployment and its job are one transaction, so that the same key twice is one
 * deployment. Source: docs/reference/idempotency.md.
 */

import type { RequestContext } from '../../../lib/context.ts';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { type Database, isConnectionError, sqlState } from '../../../mixins/database/database.ts';
import { serviceRole } from '../../../mixins/database/roles.ts';
import type { Bind } from '../../../mixins/database/sql.ts';
import { claimKeySql } from '../../../mixins/mutation/key.sql.ts';
import { answerOf, findKey, type IdempotencyKey, keyInProgress } from '../../../mixins/mutation/key.ts';
import { inOrder } from '../apply.ts';

import type { DeploymentJobs } from './jobs.ts';
import { insertDeployment, type NewDeployment } from './store.ts';

const binder =
  (values: unknown[]): Bind =>
  (value, type) =>
    `$${values.push(value)}::${type}`;

/** The stored outcome of the key, when there is one; throws 409 when it belongs to something else. */
export function replayOf(database: Database, tenantId: string, key: IdempotencyKey): Promise<OperationReply | null> {
  return database.tenant(tenantId, async (tx) => answerOf(await findKey(tx, key), key));
}

/** Stores the deployment under its key. Answers the stored outcome when a twin was faster. */
export async function acceptDeployment(
  database: Database,
  jobs: DeploymentJobs,
  request: RequestContext,
  key: IdempotencyKey,
  deployment: NewDeployment,
  reply: { status: number; headers: Record<string, string>; body: string },
): Promise<OperationReply> {
  let accepted: boolean;
  try {
    accepted = await database.tenantTransaction(request.tenantId, async (tx) => {
      const values: unknown[] = [];
      const bind = binder(values);
      const text = claimKeySql(tx.schema, key, bind, '', {
        status: bind(reply.status, 'smallint'),
        headers: bind(JSON.stringify(reply.headers), 'jsonb'),
        body: bind(reply.body, 'text'),
      });
      const { rowCount } = await tx.query(text, values);
      if (rowCount !== 1) return false;
      // The job comes last: what is sent after a failure would outlive the rollback.
      await inOrder([
        tx.query(
          `INSERT INTO ${tx.schema}._audit (audit_id, user_id, client_id, agent_run_id, channel, operation_id, outcome,
              request_id, idempotency_key, changes, ip)
            VALUES ($1, $2, $3, $4, $5, 'metadata.deployments.create', 'committed', $6, $7, $8, $9)`,
          [
            uuidv7(),
            request.userId,
            request.clientId,
            request.agentRunId,
            request.channel,
            request.requestId,
            key.key,
            JSON.stringify({ deploymentId: deployment.deploymentId, checkOnly: deployment.checkOnly }),
            request.ip,
          ],
        ),
        tx.actAs(serviceRole('metadata', request.tenantId)),
        insertDeployment(tx, deployment),
      ]);
      await jobs.enqueue(tx, request.tenantId);
      return true;
    });
  } catch (error) {
    if (sqlState(error) === '55P03') throw keyInProgress();
    throw error;
  }
  if (accepted) {
    jobs.wake();
    return { status: reply.status, headers: reply.headers, body: Buffer.from(reply.body) };
  }
  const stored = await replayOf(database, request.tenantId, key);
  if (stored) return stored;
  throw keyInProgress();
}

/** Off the success path: the refused request keeps its key for itself, and the refusal is audited. */
export async function recordRefusal(
  database: Database,
  request: RequestContext,
  call: OperationCall,
  key: IdempotencyKey,
  failure: PlatformError,
): Promise<void> {
  if (failure.code === 'IDEMPOTENCY_KEY_REUSED' || failure.code === 'IDEMPOTENCY_IN_PROGRESS') return;
  try {
    await database.tenantTransaction(request.tenantId, async (tx) => {
      await tx.query(
        `INSERT INTO ${tx.schema}._idempotency AS k (client_id, user_id, key, fingerprint, state, request_id, completed_at)
          VALUES ($1, $2, $3, $4, 'FAILED', $5, now())
          ON CONFLICT (client_id, user_id, key) DO NOTHING`,
        [key.clientId, key.userId, key.key, key.fingerprint, key.requestId],
      );
      await tx.query(
        `INSERT INTO ${tx.schema}._audit (audit_id, user_id, client_id, agent_run_id, channel, operation_id, outcome, code, request_id, idempotency_key, ip)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
        [
          uuidv7(),
          request.userId,
          request.clientId,
          request.agentRunId,
          request.channel,
          call.operationId,
          [401, 403].includes(failure.status) ? 'denied' : 'failed',
          failure.code,
          request.requestId,
          key.key,
          request.ip,
        ],
      );
    });
  } catch (error) {
    // The record of a refusal is not worth hiding the refusal for.
    if (!isConnectionError(error) && sqlState(error) === null) throw error;
  }
}

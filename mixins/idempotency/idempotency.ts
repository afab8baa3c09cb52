/**
 * Idempotency keys in a tenant's schema: the SQL that claims a key inside the transaction of a mutation, and what a key
 * that is already there means. One key is one intention: the same request gets the stored outcome, another request
 * under the same key is refused. Source: docs/reference/idempotency.md.
 */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../lib/operation.ts';
import type { Tx } from '../database/database.ts';
import type { Bind } from '../database/sql.ts';

export interface IdempotencyKey {
  readonly clientId: string;
  readonly userId: string;
  readonly key: string;
  /** SHA-256 (hex) of what makes the request the same request. */
  readonly fingerprint: string;
  readonly requestId: string;
  /** A dry run: the key is held against what is stored, and nothing is recorded under it. */
  readonly checkOnly: boolean;
}

type KeyState = 'RESERVED' | 'COMPLETED' | 'FAILED';

interface KeyRow {
  readonly state: KeyState;
  readonly fingerprint: string;
  readonly requestId: string;
  readonly status: number | null;
  readonly headers: Record<string, string> | null;
  readonly body: string | null;
  readonly createdAt: string;
}

const PATTERN = /^[A-Za-z0-9._:-]{8,200}$/;

/** The key of a mutation, or 400. */
export function idempotencyKey(
  call: { headers: { idempotencyKey?: string }; fingerprint?: string },
  request: { clientId: string; userId: string; requestId: string },
  checkOnly = false,
): IdempotencyKey {
  const key = call.headers.idempotencyKey;
  if (key === undefined) throw new PlatformError('IDEMPOTENCY_KEY_REQUIRED', 'Send the header Idempotency-Key.');
  if (!PATTERN.test(key))
    throw new PlatformError(
      'IDEMPOTENCY_KEY_INVALID',
      'Idempotency-Key takes 8 to 200 letters, digits, periods, hyphens, underscores and colons.',
    );
  if (!call.fingerprint) throw new PlatformError('INTERNAL_ERROR', 'The mutation carries no fingerprint.');
  return {
    clientId: request.clientId,
    userId: request.userId,
    key,
    fingerprint: call.fingerprint,
    requestId: request.requestId,
    checkOnly,
  };
}

/** SQL condition: claimKeySql would claim the key, as far as can be seen. What a claim allows need not be begun in vain. */
export function claimableSql(schema: string, key: IdempotencyKey, bind: Bind): string {
  if (key.checkOnly) return 'true';
  return `NOT EXISTS (SELECT FROM ${schema}._idempotency k WHERE k.client_id = ${bind(key.clientId, 'text')} AND k.user_id = ${bind(key.userId, 'uuid')} AND k.key = ${bind(key.key, 'text')}
    AND k.expires_at > now() AND NOT (k.state = 'FAILED' AND k.fingerprint = ${bind(key.fingerprint, 'text')}))`;
}

/**
 * `INSERT INTO _idempotency … RETURNING`: claims the key, or returns no row when it belongs to an outcome, to another
 * request, or to work in progress. A concurrent twin makes it wait until that one has ended (lock_timeout). Failed and
 * expired keys are claimed anew. `outcome` gives SQL for what a completed mutation answers. A dry run claims nothing.
 */
export function claimKeySql(
  schema: string,
  key: IdempotencyKey,
  bind: Bind,
  from: string,
  outcome: { status: string; headers: string; body: string } | null,
): string {
  if (key.checkOnly)
    return `SELECT 1 FROM (SELECT 1${outcome ? `, ${outcome.headers}, ${outcome.body}` : ''} ${from}) x WHERE NOT EXISTS (SELECT FROM ${schema}._idempotency
      WHERE client_id = ${bind(key.clientId, 'text')} AND user_id = ${bind(key.userId, 'uuid')} AND key = ${bind(key.key, 'text')} AND expires_at > now() AND fingerprint <> ${bind(key.fingerprint, 'text')})`;
  const state = outcome ? "'COMPLETED'" : "'RESERVED'";
  return `INSERT INTO ${schema}._idempotency AS k (client_id, user_id, key, fingerprint, state, request_id, status, headers, body, completed_at)
    SELECT ${bind(key.clientId, 'text')}, ${bind(key.userId, 'uuid')}, ${bind(key.key, 'text')}, ${bind(key.fingerprint, 'text')}, ${state}, ${bind(key.requestId, 'text')}, ${outcome ? `${outcome.status}, ${outcome.headers}, ${outcome.body}, now()` : 'NULL, NULL, NULL, NULL'}
    ${from}
    ON CONFLICT (client_id, user_id, key) DO UPDATE SET
      fingerprint = excluded.fingerprint, state = excluded.state, status = excluded.status,
      headers = excluded.headers, body = excluded.body, completed_at = excluded.completed_at,
      request_id = CASE WHEN k.expires_at <= now() THEN excluded.request_id ELSE k.request_id END,
      created_at = CASE WHEN k.expires_at <= now() THEN excluded.created_at ELSE k.created_at END,
      expires_at = CASE WHEN k.expires_at <= now() THEN excluded.expires_at ELSE k.expires_at END
    WHERE (k.state = 'FAILED' AND k.fingerprint = excluded.fingerprint) OR k.expires_at <= now()
    RETURNING 1`;
}

/** `UPDATE _idempotency` of a key that this transaction claimed as RESERVED. */
export function completeKeySql(
  schema: string,
  key: IdempotencyKey,
  bind: Bind,
  outcome: { status: string; headers: string; body: string },
  from = '',
): string {
  if (key.checkOnly) return `SELECT 1, ${outcome.headers}, ${outcome.body} ${from}`;
  return `UPDATE ${schema}._idempotency SET state = 'COMPLETED', status = ${outcome.status}, headers = ${outcome.headers}, body = ${outcome.body}, completed_at = now()
    ${from} WHERE client_id = ${bind(key.clientId, 'text')} AND user_id = ${bind(key.userId, 'uuid')} AND key = ${bind(key.key, 'text')}
    RETURNING 1`;
}

/** The live row of a key; null when there is none. */
export async function findKey(tx: Tx, key: IdempotencyKey): Promise<KeyRow | null> {
  const { rows } = await tx.arrays({
    name: `${tx.schema} key`,
    text: `SELECT state, fingerprint, request_id, status, headers, body,
        to_json(created_at::timestamptz(3)) #>> '{}' FROM ${tx.schema}._idempotency
      WHERE client_id = $1 AND user_id = $2 AND key = $3 AND expires_at > now()`,
    values: [key.clientId, key.userId, key.key],
  });
  const row = rows[0];
  if (!row) return null;
  return {
    state: row[0] as KeyState,
    fingerprint: row[1] as string,
    requestId: row[2] as string,
    status: row[3] as number | null,
    headers: row[4] as Record<string, string> | null,
    body: row[5] as string | null,
    createdAt: row[6] as string,
  };
}

export const keyInProgress = (): PlatformError =>
  new PlatformError('IDEMPOTENCY_IN_PROGRESS', 'A request with this idempotency key is still being worked on.', {
    retryAfterSeconds: 1,
  });

export const keyReused = (row: KeyRow): PlatformError =>
  new PlatformError('IDEMPOTENCY_KEY_REUSED', 'The idempotency key was first used for another request.', {
    details: { firstRequestId: row.requestId, firstSeenAt: row.createdAt },
  });

/**
 * What a key that could not be claimed means: the stored reply, or 409. null: the key is free by now (its holder failed
 * meanwhile), so the mutation may be tried again. A stored outcome of this very request (its answer was lost between the
 * database and us) is not called a replay.
 */
export function answerOf(row: KeyRow | null, key: IdempotencyKey): OperationReply | null {
  if (!row) return null;
  if (row.fingerprint !== key.fingerprint) throw keyReused(row);
  if (row.state === 'RESERVED') throw keyInProgress();
  if (row.state === 'FAILED') return null;
  return {
    status: row.status ?? 200,
    headers: row.requestId === key.requestId ? { ...row.headers } : { ...row.headers, 'Idempotency-Replayed': 'true' },
    body: row.body === null ? null : Buffer.from(row.body),
  };
}

/**
 * Idempotency keys: how a request names one, and what a key means that is already stored. One key is one intention: the
 * same request gets the stored outcome, another request under the same key is refused. The statements that claim and
 * complete a key stand in key.sql.ts. Source: docs/reference/idempotency.md.
 */

import { hash } from 'node:crypto';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../lib/operation.ts';
import { IDEMPOTENCY_KEY_RULE, isIdempotencyKey } from '../../lib/values/idempotency-key.ts';
import type { Tx } from '../database/database.ts';

export interface IdempotencyKey {
  readonly clientId: string;
  readonly userId: string;
  /** Empty: the operation only tries something out, and takes no key. */
  readonly key: string;
  /** SHA-256 (hex) of what makes the request the same request. */
  readonly fingerprint: string;
  readonly requestId: string;
  /** A dry run: the key is compared with the stored ones, and nothing is recorded under it. */
  readonly checkOnly: boolean;
  /** The request is one part of a larger mutation, which claims and completes the key itself. */
  readonly part: boolean;
  /** A step of a larger request, which begins anew after a crash: the step is refused again then, by the same request. */
  readonly isStep: boolean;
}

const STEP = 'part:';

/** The key of a step of a request with this key. */
export const stepKey = ({ key }: IdempotencyKey, index: number): string =>
  `${STEP}${hash('sha256', key).slice(0, 40)}:${index}`;

/** Caller of the request. */
type KeyHolder = Pick<IdempotencyKey, 'clientId' | 'userId' | 'requestId'>;

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

/** The key of a mutation, or 400. */
export function idempotencyKey(
  call: { headers: { idempotencyKey?: string }; fingerprint?: string },
  request: KeyHolder & { dryRun?: boolean },
): IdempotencyKey {
  const key = call.headers.idempotencyKey;
  if (key === undefined) throw new PlatformError('IDEMPOTENCY_KEY_REQUIRED', 'Send the header Idempotency-Key.');
  if (!isIdempotencyKey(key)) throw new PlatformError('IDEMPOTENCY_KEY_INVALID', IDEMPOTENCY_KEY_RULE);
  if (!call.fingerprint) throw new PlatformError('INTERNAL_ERROR', 'The mutation carries no fingerprint.');
  return {
    clientId: request.clientId,
    userId: request.userId,
    key,
    fingerprint: call.fingerprint,
    requestId: request.requestId,
    checkOnly: request.dryRun === true,
    part: false,
    isStep: key.startsWith(STEP),
  };
}

/** In the place of a key, of a request that only tries something out. */
export const withoutKey = ({ clientId, userId, requestId }: KeyHolder): IdempotencyKey => ({
  clientId,
  userId,
  key: '',
  fingerprint: '',
  requestId,
  checkOnly: true,
  part: false,
  isStep: false,
});

/** The live row of a key; null when there is none. */
export function findKey(tx: Tx, key: IdempotencyKey): Promise<KeyRow | null> {
  return tx.first<KeyRow>({
    name: `${tx.schema} key`,
    text: `SELECT state, fingerprint, request_id AS "requestId", status, headers, body,
        to_json(created_at::timestamptz(3)) #>> '{}' AS "createdAt"
      FROM ${tx.schema}._idempotency
      WHERE client_id = $1 AND user_id = $2 AND key = $3 AND expires_at > now()`,
    values: [key.clientId, key.userId, key.key],
  });
}

export const keyInProgress = (): PlatformError =>
  new PlatformError(
    'IDEMPOTENCY_IN_PROGRESS',
    'A request with this idempotency key is still in progress. Try again in a moment.',
    {
      retryAfterSeconds: 1,
    },
  );

export const keyReused = (row: KeyRow): PlatformError =>
  new PlatformError('IDEMPOTENCY_KEY_REUSED', 'The idempotency key was first used for another request.', {
    details: { firstRequestId: row.requestId, firstSeenAt: row.createdAt },
  });

/**
 * Result for a key that could not be claimed: the stored reply, or 409. null: the key is free by now (its holder failed
 * meanwhile), so the mutation may be tried again. A stored outcome of this very request (its answer was lost between
 * the database and us) is not called a replay.
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

/** The stored reply of a key that could not be claimed. 409 when it belongs to another request, or is free again. */
export async function storedReply(tx: Tx, key: IdempotencyKey): Promise<OperationReply> {
  const reply = answerOf(await findKey(tx, key), key);
  if (reply) return reply;
  throw new PlatformError('WRITE_CONTENTION', 'Another request released the idempotency key meanwhile. Try again.', {
    retryAfterSeconds: 1,
  });
}

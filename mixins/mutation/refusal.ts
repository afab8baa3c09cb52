/** The end of a mutation that committed nothing: a refusal or a dry run. Off the success path. */
import { setTimeout as pause } from 'node:timers/promises';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { isUuid } from '../../lib/values/ids.ts';
import { type Database, isConnectionError, type Tx } from '../database/database.ts';
import { Sql } from '../database/sql.ts';
import { auditSql, CallerSql } from './audit.ts';
import { failKeySql } from './key.sql.ts';
import { answerOf, findKey, type IdempotencyKey, keyReused } from './key.ts';

/** A request that committed nothing, and where its outcome is recorded. */
interface ConcludedRequest {
  readonly database: Database;
  readonly request: RequestContext;
  readonly call: OperationCall;
  readonly key: IdempotencyKey;
}

const LOST_ACCESS: ReadonlySet<string> = new Set([
  'OBJECT_NOT_FOUND',
  'API_ACCESS_DISABLED',
  'TOKEN_REVOKED',
  'METADATA_PERMISSION_DENIED',
]);

const lostAccess = (outcome: OperationReply | PlatformError): boolean =>
  outcome instanceof PlatformError && LOST_ACCESS.has(outcome.code);

/**
 * Records the refusal with its key and throws it. When the key already has an outcome (a retry that would now fail for
 * other reasons), that outcome is the answer.
 */
export async function concludeRefusal(concluded: ConcludedRequest, failure: PlatformError): Promise<OperationReply> {
  if (failure.code === 'IDEMPOTENCY_IN_PROGRESS') throw failure;
  let stored: OperationReply | null = null;
  try {
    if (failure.code === 'IDEMPOTENCY_KEY_REUSED') throw failure;
    stored = await retryOnLostConnection(() => recordRefusal(concluded, failure));
  } catch (error) {
    // An earlier attempt may have been committed and its answer lost: then the refusal is only its echo.
    if (isConnectionError(error)) throw unknownOutcome(error);
    // Recording a refusal is less important than answering with it.
    if (!(error instanceof PlatformError)) throw failure;
    // The key remains that of the first request, and only the attempt is recorded.
    if (error.code === 'IDEMPOTENCY_KEY_REUSED') await recordAttempt(concluded, error).catch(() => {});
    throw error;
  }
  // A caller who may no longer see the object gets 404, not the stored body.
  if (stored && !lostAccess(failure)) return stored;
  throw failure;
}

const RECONNECTS_MAX = 3;

/** Connections of the pool that a restart of the database has broken are found out one by one. */
async function retryOnLostConnection<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++)
    try {
      return await work();
    } catch (error) {
      if (attempt > RECONNECTS_MAX || !isConnectionError(error)) throw error;
      await pause(50 * 2 ** attempt);
    }
}

const unknownOutcome = (cause: unknown): PlatformError =>
  new PlatformError(
    'SERVICE_UNAVAILABLE',
    'The database was lost before the outcome was known; send the request again.',
    {
      retryAfterSeconds: 1,
      cause,
    },
  );

/** Key and audit entry of a refusal; the stored reply when the key has an outcome. */
function recordRefusal(concluded: ConcludedRequest, failure: PlatformError): Promise<OperationReply | null> {
  const { database, request, key } = concluded;
  return database.tenant(request.tenantId, async (tx) => {
    const sql = new Sql();
    const { recorded } = await tx.one<{ recorded: boolean }>(
      sql.statement(`WITH key_claim AS (${failKeySql(tx.schema, sql.for(key).of, !key.isStep)}),
        audit AS (${attemptSql(tx, sql, concluded, failure)} WHERE EXISTS (SELECT FROM key_claim))
        SELECT EXISTS (SELECT FROM key_claim) AS recorded`),
    );
    return recorded ? null : answerOf(await findKey(tx, key), key);
  });
}

/**
 * Ends a dry run. `verdictOf` turns a refusal of the content into the dry run's answer; null: it remains an error. The
 * dry run of a request under a run of an agent is audited as an attempt, nothing else is recorded. A key that stands
 * for another request is refused in any case.
 */
export async function concludeDryRun(
  concluded: ConcludedRequest,
  outcome: OperationReply | PlatformError,
  verdictOf: ((failure: PlatformError) => OperationReply | null) | undefined,
): Promise<OperationReply> {
  const { database, request, key } = concluded;
  let answer = outcome instanceof PlatformError ? (verdictOf?.(outcome) ?? outcome) : outcome;
  const record = async (tx: Tx): Promise<void> => {
    const used = await findKey(tx, key);
    if (used && used.fingerprint !== key.fingerprint) answer = keyReused(used);
    // An executed request can have no dry run any more: the dry run of a call under a run has the fingerprint of the
    // call.
    else if (!lostAccess(answer)) answer = answerOf(used, key) ?? answer;
    const sql = new Sql();
    await tx.query(sql.statement(attemptSql(tx, sql, concluded, answer instanceof PlatformError ? answer : null)));
  };
  // Without a key it was no attempt at a change, but a question.
  if (key.key !== '') await database.tenant(request.tenantId, record);
  if (answer instanceof PlatformError) throw answer;
  return answer;
}

async function recordAttempt(concluded: ConcludedRequest, failure: PlatformError): Promise<void> {
  await concluded.database.tenant(concluded.request.tenantId, (tx) => {
    const sql = new Sql();
    return tx.query(sql.statement(attemptSql(tx, sql, concluded, failure)));
  });
}

/** The audit entry of a mutation that committed nothing; `failure` null: a dry run that found nothing wrong. */
function attemptSql(tx: Tx, sql: Sql, { request, call, key }: ConcludedRequest, failure: PlatformError | null): string {
  const recordId = (call.path['id'] ?? '').toLowerCase();
  return auditSql(tx.schema, sql, new CallerSql(sql.for(request)), {
    operationId: call.operationId,
    outcome: failure && [401, 403].includes(failure.status) ? 'denied' : 'failed',
    code: failure?.code ?? 'CHECK_ONLY',
    idempotencyKey: key.key,
    objectApiName: call.path['objectApiName']?.slice(0, 80) ?? null,
    recordId: isUuid(recordId) ? recordId : null,
  });
}

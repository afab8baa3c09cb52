/** Mutations that were refused: driver errors become errors of the catalogue, and the refusal is recorded. */

import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { isConnectionError, isGivenUp, sqlState } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { GIVEN_UP } from '../../../mixins/database/unavailable.ts';
import { answerOf, findKey, type IdempotencyKey, keyInProgress, keyReused } from '../../../mixins/mutation/key.ts';
import type { Platform } from '../../../mixins/platform.ts';
import { own } from '../tenants.ts';
import { entrySql } from '../trail/entry.ts';
import type { View } from '../view.ts';
import { refused } from './check-only.ts';
import { invalidConfirmation } from './confirmation.ts';
import { pointerTo, validationFailed } from './violations.ts';

interface DriverError {
  readonly code?: string;
  readonly constraint?: string;
  readonly column?: string;
  readonly table?: string;
  readonly where?: string;
}

const LOCK_TIMEOUT = '55P03';

/** The same key may be tried again at once: nothing was committed, or the key says what was. */
export const isTransient = (error: unknown): boolean =>
  ['40001', '40P01'].includes(sqlState(error) ?? '') || isConnectionError(error);

/** The write waited in vain for the row that a deployment holds until it is done. */
export const isDeployment = (error: unknown): boolean =>
  sqlState(error) === LOCK_TIMEOUT && (error as DriverError).where?.includes('"_state"') === true;

/**
 * The write waited in vain, and not for a row: a deployment holds the table, or a twin what is locked by its value. A
 * second attempt looks at the row of deployments first, and so tells which.
 */
export const isLockedOut = (error: unknown): boolean =>
  sqlState(error) === LOCK_TIMEOUT && (error as DriverError).where?.includes(' tuple ') !== true;

/** The write waited in vain for another write: for a row, a key or a unique value. */
export const isBehindAnother = (error: unknown): boolean =>
  sqlState(error) === LOCK_TIMEOUT && !isDeployment(error) && !isLockedOut(error);

/** The error of the catalogue that a failed mutation answers with. Only refusals that a caller can act on say why. */
export function toPlatformError(view: View | undefined, call: OperationCall, error: unknown): PlatformError {
  if (error instanceof PlatformError) return error;
  const driver = error as DriverError;
  const access = view && own(view.access.objects, call.path['objectApiName'] ?? '');
  const state = sqlState(error);
  const contention = new PlatformError('WRITE_CONTENTION', 'Other requests keep changing the same data; try again.', {
    retryAfterSeconds: 1,
    cause: error,
  });
  if (isGivenUp(error))
    return new PlatformError('SERVICE_UNAVAILABLE', GIVEN_UP, { retryAfterSeconds: 1, cause: error });
  if (state === LOCK_TIMEOUT) return driver.where?.includes('"_idempotency') ? keyInProgress() : contention;
  if (state === '40001' || state === '40P01') return contention;
  if (access && state?.startsWith('23')) {
    // Records of other objects may be written along.
    const isOwn = driver.table === undefined || driver.table === access.object.apiName;
    const column = isOwn ? (driver.column ?? columnOf(driver.constraint)) : null;
    // A field the caller cannot read is not named.
    const field = column !== null && own(access.fields, column)?.read ? column : null;
    const pointer = field === null ? '' : pointerTo(field);
    if (state === '23505' && driver.constraint === '_confirmations_pkey') return invalidConfirmation();
    if (state === '23505') return uniqueConflict([field]);
    if (state === '23503' && call.operationId === 'data.records.delete')
      return new PlatformError('DELETE_RESTRICTED', 'Other records depend on this one.', {
        details: { dependents: [] },
      });
    if (state === '23503')
      return validationFailed([
        violation(pointer, 'REFERENCE_NOT_FOUND', 'A reference refers to no record.', { field }),
      ]);
    if (state === '23502')
      return validationFailed([violation(pointer, 'FIELD_REQUIRED', 'A required value is missing.', { field })]);
    return validationFailed([violation(pointer, 'FIELD_OUT_OF_RANGE', 'A value is not allowed.', { field })]);
  }
  if (state === '22003' && driver.where?.includes('_rollup_'))
    return validationFailed([
      violation('', 'FIELD_OUT_OF_RANGE', 'A figure over this record and its like would not fit its field.', {
        field: null,
      }),
    ]);
  if (state?.startsWith('22'))
    return new PlatformError('VALIDATION_FAILED', 'The record was not saved: a value cannot be stored.', {
      errors: [violation('', 'FIELD_FORMAT_INVALID', 'A value cannot be stored in its field.')],
      cause: error,
    });
  return new PlatformError('INTERNAL_ERROR', 'The request could not be completed; the same key may be sent again.', {
    cause: error,
  });
}

/** `fields`: those whose values other records have, null for one that the caller cannot read. */
export const uniqueConflict = (fields: readonly (string | null)[]): PlatformError =>
  new PlatformError('UNIQUE_VALUE_CONFLICT', 'Another record already has this value.', {
    details: { field: fields[0] ?? null },
    errors: fields.map((field) =>
      violation(
        field === null ? '' : pointerTo(field),
        'UNIQUE_VALUE_CONFLICT',
        'Another record already has this value.',
        {
          field,
        },
      ),
    ),
  });

/** Unique indexes and foreign keys carry their column at the end of their name. */
const columnOf = (constraint: string | undefined): string | null =>
  /^_[uf]_[0-9a-f]{8}_(.+)$/.exec(constraint ?? '')?.[1] ?? null;

/**
 * The end of a mutation that was refused, off the success path: when the key already has an outcome (a retry that would
 * now fail for other reasons), that outcome is the answer; otherwise key and refusal are recorded and the error thrown.
 */
export async function concludeFailure(
  platform: Platform,
  request: RequestContext,
  call: OperationCall,
  key: IdempotencyKey,
  failure: PlatformError,
): Promise<OperationReply> {
  if (failure.code === 'IDEMPOTENCY_IN_PROGRESS') throw failure;
  let stored: OperationReply | null = null;
  try {
    if (failure.code === 'IDEMPOTENCY_KEY_REUSED') throw failure;
    stored = await recordFailure(platform, request, call, key, failure);
  } catch (error) {
    // The record of a refusal is not worth hiding the refusal for.
    if (!(error instanceof PlatformError)) throw failure;
    if (error.code === 'IDEMPOTENCY_KEY_REUSED') await auditReuse(platform, request, call, key, error);
    throw error;
  }
  // Who may no longer see the object gets 404, not the stored body.
  if (stored && !LOST_ACCESS.has(failure.code)) return stored;
  throw failure;
}

const LOST_ACCESS: ReadonlySet<string> = new Set(['OBJECT_NOT_FOUND', 'API_ACCESS_DISABLED', 'TOKEN_REVOKED']);

async function recordFailure(
  platform: Platform,
  request: RequestContext,
  call: OperationCall,
  key: IdempotencyKey,
  failure: PlatformError,
): Promise<OperationReply | null> {
  return platform.database.tenant(request.tenantId, async (tx) => {
    const sql = new Sql();
    const { bind } = sql;
    const user = bind(key.userId, 'uuid');
    const client = bind(key.clientId, 'text');
    const { rows } = await tx.arrays(
      sql.statement(`WITH k AS (
        INSERT INTO ${tx.schema}._idempotency AS k (client_id, user_id, key, fingerprint, state, request_id, completed_at)
        VALUES (${client}, ${user}, ${bind(key.key, 'text')}, ${bind(key.fingerprint, 'text')}, 'FAILED', ${bind(key.requestId, 'text')}, now())
        ON CONFLICT (client_id, user_id, key) DO UPDATE SET
          fingerprint = excluded.fingerprint, state = 'FAILED', status = NULL, headers = NULL, body = NULL,
          request_id = CASE WHEN k.expires_at <= now() THEN excluded.request_id ELSE k.request_id END,
          created_at = CASE WHEN k.expires_at <= now() THEN excluded.created_at ELSE k.created_at END,
          completed_at = excluded.completed_at,
          expires_at = CASE WHEN k.expires_at <= now() THEN excluded.expires_at ELSE k.expires_at END
        WHERE (k.state = 'FAILED' AND k.fingerprint = excluded.fingerprint) OR k.expires_at <= now()
        RETURNING 1),
      a AS (${attemptSql(tx.schema, sql, request, call, key, failure)} WHERE EXISTS (SELECT FROM k))
      SELECT count(*)::int FROM k`),
    );
    if (rows[0]![0] === 1) return null;
    return answerOf(await findKey(tx, key), key);
  });
}

/** The key stays that of the first request, and only the attempt is recorded. */
async function auditReuse(
  platform: Platform,
  request: RequestContext,
  call: OperationCall,
  key: IdempotencyKey,
  failure: PlatformError,
): Promise<void> {
  const sql = new Sql();
  await platform.database
    .tenant(request.tenantId, (tx) => tx.arrays(sql.statement(attemptSql(tx.schema, sql, request, call, key, failure))))
    .catch(() => {});
}

/** The audit entry of a mutation that committed nothing; `failure` null: a dry run that was carried out. */
function attemptSql(
  schema: string,
  sql: Sql,
  request: RequestContext,
  call: OperationCall,
  key: IdempotencyKey,
  failure: PlatformError | null,
): string {
  const recordId = (call.path['id'] ?? '').toLowerCase();
  return entrySql(schema, sql, request, {
    operationId: call.operationId,
    outcome: failure && [401, 403].includes(failure.status) ? 'denied' : 'failed',
    code: failure?.code ?? 'CHECK_ONLY',
    idempotencyKey: key.key,
    objectApiName: call.path['objectApiName']?.slice(0, 80) ?? null,
    recordId: isUuid(recordId) ? recordId : null,
  });
}

/**
 * The end of a dry run: a refusal of the content is its verdict. The attempt is audited, nothing else is recorded. A key
 * that stands for another request is refused, whatever the dry run would have said.
 */
export async function concludeCheck(
  platform: Platform,
  request: RequestContext,
  call: OperationCall,
  key: IdempotencyKey,
  outcome: OperationReply | PlatformError,
): Promise<OperationReply> {
  let answer = outcome instanceof PlatformError ? (refused(outcome) ?? outcome) : outcome;
  await platform.database.tenant(request.tenantId, async (tx) => {
    const used = await findKey(tx, key);
    if (used && used.fingerprint !== key.fingerprint) answer = keyReused(used);
    const failure = answer instanceof PlatformError ? answer : null;
    const sql = new Sql();
    await tx.arrays(sql.statement(attemptSql(tx.schema, sql, request, call, key, failure)));
  });
  if (answer instanceof PlatformError) throw answer;
  return answer;
}

/**
 * SQL of idempotency keys in the schema of a tenant. Each function returns the text of a statement without WITH, which
 * may run by itself or as a CTE of a larger one: the hot mutations of records do everything in one statement.
 */
import type { Placeholders } from '../database/sql.ts';
import type { IdempotencyKey } from './key.ts';

/** SQL of what a completed mutation answers: smallint, jsonb and text. */
interface OutcomeSql {
  readonly status: string;
  readonly headers: string;
  readonly body: string;
}

/** How a key is used, which decides about the text. */
type KeyUse = Pick<IdempotencyKey, 'checkOnly' | 'part'>;

/** Placeholders of the values of a key. */
type KeyValues = Placeholders<IdempotencyKey>['of'];

const clientId = (of: KeyValues): string => of((key) => key.clientId, 'text');
const userId = (of: KeyValues): string => of((key) => key.userId, 'uuid');
const keyText = (of: KeyValues): string => of((key) => key.key, 'text');
const fingerprint = (of: KeyValues): string => of((key) => key.fingerprint, 'text');
const requestId = (of: KeyValues): string => of((key) => key.requestId, 'text');

const isKey = (of: KeyValues): string =>
  `client_id = ${clientId(of)} AND user_id = ${userId(of)} AND key = ${keyText(of)}`;

/**
 * A failed key may be claimed again by the same request, sent later; its body is the id of the one that was refused. What reaches a
 * process late, because that stood still or its link did, has been repeated by others meanwhile: its caller knows the refusal.
 */
const isClaimable = (fingerprint: string, requestId: string): string =>
  `(k.state = 'FAILED' AND k.fingerprint = ${fingerprint} AND (k.body IS NULL OR k.body < ${requestId}))`;
/** An expired key may be claimed by any request. */
const CLAIMABLE = `${isClaimable('excluded.fingerprint', 'excluded.request_id')} OR k.expires_at <= now()`;

/** Columns that ON CONFLICT sets besides state and outcome: an expired key begins anew, any other keeps its first request. */
const RENEWED = ['request_id', 'created_at', 'expires_at']
  .map((column) => `${column} = CASE WHEN k.expires_at <= now() THEN excluded.${column} ELSE k.${column} END`)
  .join(', ');

/** SQL condition: claimKeySql would claim the key, as far as can be seen. For work that must not be done in vain. */
export function claimableSql(schema: string, key: KeyUse, of: KeyValues): string {
  if (key.checkOnly || key.part) return 'true';
  return `NOT EXISTS (SELECT FROM ${schema}._idempotency k WHERE ${isKey(of)}
    AND k.expires_at > now() AND NOT ${isClaimable(fingerprint(of), requestId(of))})`;
}

/**
 * `INSERT INTO _idempotency … RETURNING`: claims the key, or returns no row when it belongs to an outcome, to another
 * request, or to work in progress. A concurrent duplicate request waits until the first has ended (lock_timeout).
 * Failed and expired keys are claimed anew. `from` is a FROM clause with what the outcome refers to; `outcome` null
 * reserves the key for completeKeySql. A dry run claims nothing, and neither does a part of a larger mutation.
 */
export function claimKeySql(
  schema: string,
  key: KeyUse,
  of: KeyValues,
  from: string,
  outcome: OutcomeSql | null,
): string {
  if (key.part) return `SELECT 1${outcome ? `, ${outcome.headers}, ${outcome.body}` : ''} ${from}`;
  if (key.checkOnly)
    return `SELECT 1 FROM (SELECT 1${outcome ? `, ${outcome.headers}, ${outcome.body}` : ''} ${from}) claim
      WHERE NOT EXISTS (SELECT FROM ${schema}._idempotency
        WHERE ${isKey(of)} AND expires_at > now() AND fingerprint <> ${fingerprint(of)})`;
  const stored = outcome ? `${outcome.status}, ${outcome.headers}, ${outcome.body}, now()` : 'NULL, NULL, NULL, NULL';
  return `INSERT INTO ${schema}._idempotency AS k
      (client_id, user_id, key, fingerprint, state, request_id, status, headers, body, completed_at)
    SELECT ${clientId(of)}, ${userId(of)}, ${keyText(of)},
      ${fingerprint(of)}, ${outcome ? "'COMPLETED'" : "'RESERVED'"}, ${requestId(of)},
      ${stored}
    ${from}
    ON CONFLICT (client_id, user_id, key) DO UPDATE SET
      fingerprint = excluded.fingerprint, state = excluded.state, status = excluded.status,
      headers = excluded.headers, body = excluded.body, completed_at = excluded.completed_at, ${RENEWED}
    WHERE ${CLAIMABLE}
    RETURNING 1`;
}

/** `UPDATE _idempotency` of a key that this transaction has reserved. `from` as for claimKeySql. Returns one row. */
export function completeKeySql(schema: string, key: KeyUse, of: KeyValues, outcome: OutcomeSql, from = ''): string {
  if (key.checkOnly || key.part) return `SELECT 1, ${outcome.headers}, ${outcome.body} ${from}`;
  return `UPDATE ${schema}._idempotency SET state = 'COMPLETED', status = ${outcome.status},
      headers = ${outcome.headers}, body = ${outcome.body}, completed_at = now()
    ${from} WHERE ${isKey(of)}
    RETURNING 1`;
}

/**
 * `INSERT INTO _idempotency … RETURNING`: records that the request of the key was refused, so that no other request
 * takes the key, or that it goes on in steps (`isOver` false), of which a process that dies leaves some. Returns no row
 * when the key belongs to an outcome, to another request, or to a later attempt that was refused.
 */
export function failKeySql(schema: string, of: KeyValues, isOver: boolean): string {
  return `INSERT INTO ${schema}._idempotency AS k
      (client_id, user_id, key, fingerprint, state, request_id, body, completed_at)
    VALUES (${clientId(of)}, ${userId(of)}, ${keyText(of)},
      ${fingerprint(of)}, 'FAILED', ${requestId(of)}, ${isOver ? requestId(of) : 'NULL'}, now())
    ON CONFLICT (client_id, user_id, key) DO UPDATE SET
      fingerprint = excluded.fingerprint, state = 'FAILED', status = NULL, headers = NULL, body = excluded.body,
      completed_at = excluded.completed_at, ${RENEWED}
    WHERE ${CLAIMABLE}
    RETURNING 1`;
}

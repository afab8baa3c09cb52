/** Statements on artifacts of the protocol that every sign-in and every token uses, or that must be atomic. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** The user of a sign-in, and the generation of the user's sessions with which it began; null: unknown, so not current. */
export interface SignIn {
  userId: string;
  sessionGeneration: number | null;
}

export interface ArtifactRow {
  model: string;
  id: string;
  payload: object;
  grantId: string | null;
  accountId: string | null;
  uid: string | null;
  userCode: string | null;
  /** The sign-in that the row comes from: nothing is saved once all sessions of its user have ended. Null: it needs none. */
  signIn: SignIn | null;
  /** Network of an anonymous caller, who has no user to account for the row. */
  network: string | null;
}

export interface Saving {
  /** False: a row that exists and has not expired stays as it is. */
  replace: boolean;
  /** Id of the row that is changed; nothing is saved when it is gone. Null: the row may be new. */
  storedAs?: string | null;
}

/** The locks make a concurrent end of the session, or of all sessions of its user, wait; it then deletes the row. */
export function saveArtifact(
  row: ArtifactRow,
  expiresInSeconds: number,
  { replace, storedAs = null }: Saving,
): Statement {
  const sql = new Sql();
  const signedIn = sql.bind(row.signIn?.userId ?? null, 'uuid');
  const isCurrent = `(${signedIn} IS NULL OR EXISTS (SELECT FROM auth.credentials WHERE user_id = ${signedIn}
       AND session_generation = ${sql.bind(row.signIn?.sessionGeneration ?? null, 'integer')} FOR SHARE))`;
  const columns = 'model, id, payload, grant_id, account_id, uid, user_code, network, expires_at';
  const model = sql.bind(row.model, 'text');
  const values = `${model}, ${sql.bind(row.id, 'text')},
       ${sql.bind(JSON.stringify(row.payload), 'jsonb')}, ${sql.bind(row.grantId, 'text')},
       ${sql.bind(row.accountId, 'text')}, ${sql.bind(row.uid, 'text')}, ${sql.bind(row.userCode, 'text')},
       ${sql.bind(row.network, 'text')},
       now() + make_interval(secs => ${sql.bind(expiresInSeconds, 'float8')})`;
  if (storedAs !== null)
    return sql.statement(
      `UPDATE auth.artifacts SET (${columns}) = (SELECT ${values})
       WHERE model = ${model} AND id = ${sql.bind(storedAs, 'text')} AND ${isCurrent}`,
    );
  return sql.statement(
    `INSERT INTO auth.artifacts AS artifact (${columns})
     SELECT ${values} WHERE ${isCurrent}
     ON CONFLICT (model, id) DO UPDATE SET payload = excluded.payload, grant_id = excluded.grant_id,
       account_id = excluded.account_id, uid = excluded.uid, user_code = excluded.user_code,
       network = excluded.network, expires_at = excluded.expires_at
       WHERE ${sql.bind(replace, 'boolean')} OR artifact.expires_at <= now()`,
  );
}

export function findArtifact(model: string, column: 'id' | 'uid' | 'user_code', value: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT id, payload, extract(epoch FROM now() - consumed_at)::float8 AS "consumedSecondsAgo",
       floor(extract(epoch FROM consumed_at))::float8 AS "consumedAt"
     FROM auth.artifacts
     WHERE model = ${sql.bind(model, 'text')} AND ${column} = ${sql.bind(value, 'text')} AND expires_at > now()`,
  );
}

/** Of several calls at once, one changes the row. */
export function consumeArtifact(model: string, id: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.artifacts SET consumed_at = now()
     WHERE model = ${sql.bind(model, 'text')} AND id = ${sql.bind(id, 'text')} AND consumed_at IS NULL`,
  );
}

/** Deletes what a network has made beyond the newest `keep` of a model. */
export function deleteSurplus(model: string, network: string, keep: number): Statement {
  const sql = new Sql();
  const [modelValue, networkValue] = [sql.bind(model, 'text'), sql.bind(network, 'text')];
  return sql.statement(
    `DELETE FROM auth.artifacts WHERE model = ${modelValue} AND id IN (
       SELECT id FROM auth.artifacts WHERE network = ${networkValue} AND model = ${modelValue}
       ORDER BY expires_at DESC OFFSET ${sql.bind(keep, 'integer')} FOR UPDATE SKIP LOCKED)`,
  );
}

/** Deletes, of all that callers made who are not signed in, the oldest beyond the newest `keep`. */
export function deleteSurplusOfAll(keep: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.artifacts WHERE (model, id) IN (
       SELECT model, id FROM auth.artifacts WHERE network IS NOT NULL
       ORDER BY expires_at DESC OFFSET ${sql.bind(keep, 'integer')} FOR UPDATE SKIP LOCKED)`,
  );
}

/** Deletes some of what has expired; of several processes that do so, each takes other rows. */
export function deleteExpiredArtifacts(max: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.artifacts WHERE (model, id) IN (
       SELECT model, id FROM auth.artifacts WHERE expires_at < now()
       ORDER BY expires_at LIMIT ${sql.bind(max, 'integer')} FOR UPDATE SKIP LOCKED)`,
  );
}

/** A second between what the device measures and what we measure is not the device's fault. */
const POLL_TOLERANCE_SECONDS = 1;

/**
 * A device polls for its tokens before the user has answered; too soon makes the interval longer for good (RFC 8628
 * section 3.5). One statement, so that questions at the same moment are all judged.
 */
export function pollDeviceCode(id: string, seconds: number, longer: number, longest: number): Statement {
  const sql = new Sql();
  const least = sql.bind(seconds, 'integer');
  const due = `code.polled_at + make_interval(secs => coalesce(code.poll_seconds, ${least}) - ${POLL_TOLERANCE_SECONDS})`;
  return sql.statement(
    `WITH pending AS (
       SELECT model, id, ${due} > clock_timestamp() AS early FROM auth.artifacts code
       WHERE model = 'DeviceCode' AND id = ${sql.bind(id, 'text')} AND expires_at > now() AND account_id IS NULL
         AND NOT payload ? 'error'
       FOR UPDATE)
     UPDATE auth.artifacts code SET polled_at = clock_timestamp(),
       poll_seconds = coalesce(code.poll_seconds, ${least}) +
         CASE WHEN early THEN ${sql.bind(longer, 'integer')} ELSE 0 END
     FROM pending WHERE code.model = pending.model AND code.id = pending.id
       AND coalesce(code.poll_seconds, 0) <= ${sql.bind(longest, 'integer')}
     RETURNING coalesce(early, false) AS early`,
  );
}

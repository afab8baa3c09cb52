/** Statements on artifacts of the protocol that every sign-in and every token uses, or that must be atomic. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export interface ArtifactRow {
  model: string;
  id: string;
  payload: object;
  grantId: string | null;
  accountId: string | null;
  uid: string | null;
  userCode: string | null;
}

/** Unless `replace`, a row that exists and has not expired stays as it is. */
export function saveArtifact(row: ArtifactRow, expiresInSeconds: number, replace: boolean): Statement {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO auth.artifacts AS artifact
       (model, id, payload, grant_id, account_id, uid, user_code, expires_at)
     VALUES (${sql.bind(row.model, 'text')}, ${sql.bind(row.id, 'text')},
       ${sql.bind(JSON.stringify(row.payload), 'jsonb')}, ${sql.bind(row.grantId, 'text')},
       ${sql.bind(row.accountId, 'text')}, ${sql.bind(row.uid, 'text')}, ${sql.bind(row.userCode, 'text')},
       now() + make_interval(secs => ${sql.bind(expiresInSeconds, 'float8')}))
     ON CONFLICT (model, id) DO UPDATE SET payload = excluded.payload, grant_id = excluded.grant_id,
       account_id = excluded.account_id, uid = excluded.uid, user_code = excluded.user_code,
       expires_at = excluded.expires_at
       WHERE ${sql.bind(replace, 'boolean')} OR artifact.expires_at <= now()`,
  );
}

export function findArtifact(model: string, column: 'id' | 'uid' | 'user_code', value: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT payload, extract(epoch FROM now() - consumed_at)::float8 AS "consumedSecondsAgo",
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

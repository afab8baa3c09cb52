/** Statements on passkeys and second factors that find the tenant first, or that must be atomic. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export interface PasskeyRow {
  tenantId: string;
  id: string;
  userId: string;
  name: string;
  publicKey: Buffer;
  counter: number;
  transports: string[];
  backupEligible: boolean;
  backedUp: boolean;
}

/** A passkey that signs in. */
export interface KnownPasskey extends PasskeyRow {
  /** Of its user; read with the passkey, so that a sign-in with a passkey removed meanwhile does not count. */
  sessionGeneration: number;
}

export function passkeyById(id: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT tenant_id AS "tenantId", id, user_id AS "userId", name, public_key AS "publicKey", counter,
       transports, backup_eligible AS "backupEligible", backed_up AS "backedUp",
       session_generation AS "sessionGeneration"
     FROM auth.passkeys JOIN auth.credentials USING (tenant_id, user_id) WHERE id = ${sql.bind(id, 'text')}`,
  );
}

/** A user's passkeys, the oldest first. */
export function passkeysOfUser(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT id, name, transports, backed_up AS "backedUp", created_at AS "createdAt", last_used_at AS "lastUsedAt"
     FROM auth.passkeys
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}
     ORDER BY created_at, id`,
  );
}

/**
 * Held until the end of the transaction: other changes of the user's factors wait. No row when all sessions of the user
 * have ended since `generation`; null: whatever has ended.
 */
export function lockCredential(tenantId: string, userId: string, generation: number | null): Statement {
  const sql = new Sql();
  const isCurrent = generation === null ? '' : `AND session_generation = ${sql.bind(generation, 'integer')}`;
  return sql.statement(
    `SELECT FROM auth.credentials
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')} ${isCurrent} FOR UPDATE`,
  );
}

/** A statement of its own behind the lock: what a statement sees was committed before it began, not while it waited. */
export function countPasskeys(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT count(*)::integer AS passkeys FROM auth.passkeys
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`,
  );
}

/** A counter that does not grow is that of a copied key; authenticators without a counter always send 0. */
export function markPasskeyUsed(passkey: {
  tenantId: string;
  id: string;
  counter: number;
  backedUp: boolean;
}): Statement {
  const sql = new Sql();
  const counter = sql.bind(passkey.counter, 'bigint');
  return sql.statement(
    `UPDATE auth.passkeys SET counter = ${counter}, backed_up = ${sql.bind(passkey.backedUp, 'boolean')},
       last_used_at = now()
     WHERE tenant_id = ${sql.bind(passkey.tenantId, 'uuid')} AND id = ${sql.bind(passkey.id, 'text')}
       AND (counter < ${counter} OR (counter = 0 AND ${counter} = 0))`,
  );
}

/** Of several uses of one time step, one changes the row. */
export function claimTimeStep(tenantId: string, userId: string, step: number): Statement {
  const sql = new Sql();
  const stepValue = sql.bind(step, 'bigint');
  return sql.statement(
    `UPDATE auth.authenticators SET last_step = ${stepValue}
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}
       AND last_step < ${stepValue}`,
  );
}

export function claimRecoveryCode(tenantId: string, userId: string, codeHash: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.recovery_codes
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}
       AND code_hash = ${sql.bind(codeHash, 'bytea')}`,
  );
}

/** Numbers of a user's factors, in one row. */
export function factorsOfUser(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  const mine = `WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`;
  return sql.statement(
    `SELECT (SELECT count(*) FROM auth.passkeys ${mine})::integer AS passkeys,
       EXISTS (SELECT FROM auth.authenticators ${mine}) AS authenticator,
       (SELECT count(*) FROM auth.recovery_codes ${mine})::integer AS "recoveryCodes"`,
  );
}

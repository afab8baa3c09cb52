/**
 * The SQL of auth, all of it. Work for a known tenant runs as svc_auth under row-level security (`shared`). Only what
 * has to find the tenant first (a username, a grant id, a link's token, the provider's own artefacts) runs as the
 * login role (`query`), and each of these reads exactly one row by a unique key.
 */
import { type Database, sqlState, type Tx } from '../../mixins/database/database.ts';

export interface Credential {
  tenantId: string;
  userId: string;
  username: string;
  email: string;
  passwordHash: string | null;
  active: boolean;
}

export interface StoredKey {
  kid: string;
  purpose: 'signing' | 'cookies';
  plain: Record<string, unknown> | null;
  sealed: Buffer | null;
  createdAt: Date;
  retiredAt: Date | null;
}

export interface Artifact {
  payload: Record<string, unknown>;
  consumedSecondsAgo: number | null;
  consumedAt: number | null;
}

export interface LiveGrant {
  grantId: string;
  userId: string;
  clientId: string;
}

export type SyncOutcome = 'created' | 'updated' | 'usernameTaken';

const CREDENTIAL =
  'tenant_id AS "tenantId", user_id AS "userId", username, email, password_hash AS "passwordHash", active';
const ARTIFACT = `payload, extract(epoch FROM now() - consumed_at)::float8 AS "consumedSecondsAgo",
  floor(extract(epoch FROM consumed_at))::float8 AS "consumedAt"`;

export class AuthStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  // Credentials

  /** Tenant not known yet: the username is all that the sign-in page has. */
  async credentialByUsername(username: string): Promise<Credential | null> {
    const { rows } = await this.#database.query<Credential>(
      `SELECT ${CREDENTIAL} FROM auth.credentials WHERE lower(username) = lower($1)`,
      [username],
    );
    return rows[0] ?? null;
  }

  /** Tenant not known yet: the provider knows an account by the user's id alone. */
  async credentialByUser(userId: string): Promise<Credential | null> {
    const { rows } = await this.#database.query<Credential>(
      `SELECT ${CREDENTIAL} FROM auth.credentials WHERE user_id = $1`,
      [userId],
    );
    return rows[0] ?? null;
  }

  async credential(tenantId: string, userId: string): Promise<Credential | null> {
    return this.#database.shared('auth', tenantId, async (tx) => {
      const { rows } = await tx.query<Credential>(
        `SELECT ${CREDENTIAL} FROM auth.credentials WHERE tenant_id = $1 AND user_id = $2`,
        [tenantId, userId],
      );
      return rows[0] ?? null;
    });
  }

  async upsertCredential(
    tenantId: string,
    user: { userId: string; username: string; email: string; active: boolean },
  ): Promise<SyncOutcome> {
    try {
      return await this.#database.shared('auth', tenantId, async (tx) => {
        const { rows } = await tx.query<{ created: boolean }>(
          `INSERT INTO auth.credentials AS c (tenant_id, user_id, username, email, active)
           VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (tenant_id, user_id) DO UPDATE
             SET username = excluded.username, email = excluded.email, active = excluded.active, updated_at = now()
           RETURNING (xmax = 0) AS created`,
          [tenantId, user.userId, user.username, user.email, user.active],
        );
        return rows[0]!.created ? 'created' : 'updated';
      });
    } catch (error) {
      if (sqlState(error) === '23505') return 'usernameTaken';
      throw error;
    }
  }

  async setPassword(tenantId: string, userId: string, passwordHash: string): Promise<void> {
    await this.#database.shared('auth', tenantId, (tx) => writePassword(tx, tenantId, userId, passwordHash));
  }

  async signedIn(tenantId: string, userId: string): Promise<void> {
    await this.#database.shared('auth', tenantId, (tx) =>
      tx.query('UPDATE auth.credentials SET last_sign_in_at = now() WHERE tenant_id = $1 AND user_id = $2', [
        tenantId,
        userId,
      ]),
    );
  }

  // Set-password links

  async createLink(tenantId: string, userId: string, tokenHash: Buffer, validSeconds: number): Promise<void> {
    await this.#database.shared('auth', tenantId, (tx) =>
      tx.query(
        `INSERT INTO auth.password_links (tenant_id, token_hash, user_id, expires_at)
         VALUES ($1, $2, $3, now() + make_interval(secs => $4))`,
        [tenantId, tokenHash, userId, validSeconds],
      ),
    );
  }

  async hasLiveLink(tenantId: string, userId: string): Promise<boolean> {
    return this.#database.shared('auth', tenantId, async (tx) => {
      const { rowCount } = await tx.query(
        'SELECT FROM auth.password_links WHERE tenant_id = $1 AND user_id = $2 AND expires_at > now()',
        [tenantId, userId],
      );
      return rowCount > 0;
    });
  }

  /** Tenant not known yet: the link carries nothing but its token. */
  async credentialByLink(tokenHash: Buffer): Promise<Credential | null> {
    const { rows } = await this.#database.query<Credential>(
      `SELECT ${CREDENTIAL} FROM auth.credentials JOIN auth.password_links l USING (tenant_id, user_id)
       WHERE l.token_hash = $1 AND l.expires_at > now() AND active`,
      [tokenHash],
    );
    return rows[0] ?? null;
  }

  /** Spends the link and sets the password, both or neither; false when the link is spent already. */
  async spendLink(tenantId: string, tokenHash: Buffer, passwordHash: string): Promise<boolean> {
    return this.#database.shared('auth', tenantId, async (tx) => {
      const { rows } = await tx.query<{ userId: string }>(
        `DELETE FROM auth.password_links WHERE tenant_id = $1 AND token_hash = $2 AND expires_at > now()
         RETURNING user_id AS "userId"`,
        [tenantId, tokenHash],
      );
      const userId = rows[0]?.userId;
      if (!userId) return false;
      await writePassword(tx, tenantId, userId, passwordHash);
      return true;
    });
  }

  // Guessing

  /**
   * Counts an attempt before it is judged, so that attempts in parallel cannot outrun the count. Answers the seconds
   * to wait: 0 when the attempt may be judged. From `free` failures on, each one doubles the wait. The clock is read when
   * the row is held: of several at once, the last to get it may have begun first.
   */
  async countAttempt(key: string, free: number, waitMaxSeconds: number): Promise<number> {
    const { rows } = await this.#database.query<{ counted: boolean; wait: number }>(
      `WITH counted AS (
         INSERT INTO auth.attempts AS a (key, failures, blocked_until, updated_at) VALUES ($1, 1, clock_timestamp(), now())
         ON CONFLICT (key) DO UPDATE SET
           failures = CASE WHEN a.updated_at < now() - interval '1 hour' THEN 1 ELSE a.failures + 1 END,
           blocked_until = clock_timestamp() + make_interval(secs =>
             CASE WHEN a.updated_at < now() - interval '1 hour' OR a.failures + 1 < $2 THEN 0
                  ELSE least($3, power(2, least(a.failures + 1 - $2, 20))) END),
           updated_at = now()
         WHERE a.blocked_until <= clock_timestamp()
         RETURNING 1)
       SELECT EXISTS (SELECT FROM counted) AS counted,
         coalesce((SELECT extract(epoch FROM blocked_until - clock_timestamp()) FROM auth.attempts WHERE key = $1), 0)::float8 AS wait`,
      [key, free, waitMaxSeconds],
    );
    const row = rows[0]!;
    return row.counted ? 0 : Math.max(1, Math.ceil(row.wait));
  }

  async forgetAttempts(key: string): Promise<void> {
    await this.#database.query('DELETE FROM auth.attempts WHERE key = $1', [key]);
  }

  /** Takes back one counted attempt: it was a success after all. */
  async uncountAttempt(key: string): Promise<void> {
    await this.#database.query(
      'UPDATE auth.attempts SET failures = greatest(failures - 1, 0), blocked_until = clock_timestamp() WHERE key = $1',
      [key],
    );
  }

  // Grants

  async saveGrant(
    grant: { tenantId: string; id: string; userId: string; clientId: string; payload: object },
    expiresIn: number,
  ): Promise<void> {
    await this.#database.shared('auth', grant.tenantId, (tx) =>
      tx.query(
        `INSERT INTO auth.grants (tenant_id, id, user_id, client_id, payload, expires_at)
         VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
         ON CONFLICT (tenant_id, id) DO UPDATE SET payload = excluded.payload, expires_at = excluded.expires_at`,
        [grant.tenantId, grant.id, grant.userId, grant.clientId, JSON.stringify(grant.payload), expiresIn],
      ),
    );
  }

  /** Tenant not known yet: tokens of the provider carry the grant's id alone. */
  async grantPayload(grantId: string): Promise<Record<string, unknown> | null> {
    const { rows } = await this.#database.query<{ payload: Record<string, unknown> }>(
      'SELECT payload FROM auth.grants WHERE id = $1 AND expires_at > now()',
      [grantId],
    );
    return rows[0]?.payload ?? null;
  }

  /** The standing grant of a client that acts as its integration user. */
  async integrationGrant(tenantId: string, userId: string, clientId: string): Promise<string | null> {
    return this.#database.shared('auth', tenantId, async (tx) => {
      const { rows } = await tx.query<{ id: string }>(
        `SELECT id FROM auth.grants WHERE tenant_id = $1 AND user_id = $2 AND client_id = $3
           AND payload ? 'integration' AND expires_at > now() + interval '1 day'
         ORDER BY created_at DESC LIMIT 1`,
        [tenantId, userId, clientId],
      );
      return rows[0]?.id ?? null;
    });
  }

  /** Which of these grants are alive: known, not expired, of an active user. Marks them as used. */
  async liveGrants(tenantId: string, grantIds: readonly string[]): Promise<LiveGrant[]> {
    return this.#database.shared('auth', tenantId, async (tx) => {
      const live = tx.query<LiveGrant>(
        `SELECT g.id AS "grantId", g.user_id AS "userId", g.client_id AS "clientId"
         FROM auth.grants g JOIN auth.credentials c USING (tenant_id, user_id)
         WHERE g.tenant_id = $1 AND g.id = ANY($2) AND g.expires_at > now() AND c.active`,
        [tenantId, grantIds],
      );
      // To the minute is enough, and spares a write per check.
      const used = tx.query(
        `UPDATE auth.grants SET last_used_at = now() WHERE tenant_id = $1 AND id IN (
           SELECT id FROM auth.grants WHERE tenant_id = $1 AND id = ANY($2)
             AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
           ORDER BY id FOR UPDATE SKIP LOCKED)`,
        [tenantId, grantIds],
      );
      await used;
      return (await live).rows;
    });
  }

  /** Ends one grant with everything that hangs on it. True when it was alive. */
  async endGrant(grantId: string): Promise<boolean> {
    return this.#database.transaction(async (tx) => {
      const grant = tx.query('DELETE FROM auth.grants WHERE id = $1', [grantId]);
      const artifacts = tx.query('DELETE FROM auth.artifacts WHERE grant_id = $1', [grantId]);
      await artifacts;
      return (await grant).rowCount > 0;
    });
  }

  /** Ends every grant and browser session of a user; answers the ids of the grants. */
  async endGrantsOfUser(tenantId: string, userId: string): Promise<string[]> {
    const ended = await this.#database.shared('auth', tenantId, async (tx) => {
      const { rows } = await tx.query<{ id: string }>(
        'DELETE FROM auth.grants WHERE tenant_id = $1 AND user_id = $2 RETURNING id',
        [tenantId, userId],
      );
      // User ids are unique over all tenants; artefacts have no tenant of their own.
      await tx.query('DELETE FROM auth.artifacts WHERE account_id = $1', [userId]);
      return rows.map((row) => row.id);
    });
    return ended;
  }

  // Artefacts of the protocol

  /** With `once` a row that is already there stays, and the answer is false. */
  async saveArtifact(
    model: string,
    id: string,
    row: {
      payload: object;
      grantId: string | null;
      accountId: string | null;
      uid: string | null;
      userCode: string | null;
    },
    expiresIn: number,
    once = false,
  ): Promise<boolean> {
    const { rowCount } = await this.#database.query(
      `INSERT INTO auth.artifacts AS a (model, id, payload, grant_id, account_id, uid, user_code, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, now() + make_interval(secs => $8))
       ON CONFLICT (model, id) DO UPDATE SET payload = excluded.payload, grant_id = excluded.grant_id,
         account_id = excluded.account_id, uid = excluded.uid, user_code = excluded.user_code,
         expires_at = excluded.expires_at
         WHERE NOT $9 OR a.expires_at <= now()`,
      [model, id, JSON.stringify(row.payload), row.grantId, row.accountId, row.uid, row.userCode, expiresIn, once],
    );
    return rowCount > 0;
  }

  async artifact(model: string, by: 'id' | 'uid' | 'user_code', value: string): Promise<Artifact | null> {
    const { rows } = await this.#database.query<Artifact>(
      `SELECT ${ARTIFACT} FROM auth.artifacts WHERE model = $1 AND ${by} = $2 AND expires_at > now()`,
      [model, value],
    );
    return rows[0] ?? null;
  }

  /** True when this call is the one that consumed it. */
  async consumeArtifact(model: string, id: string): Promise<boolean> {
    const { rowCount } = await this.#database.query(
      'UPDATE auth.artifacts SET consumed_at = now() WHERE model = $1 AND id = $2 AND consumed_at IS NULL',
      [model, id],
    );
    return rowCount > 0;
  }

  async deleteArtifact(model: string, id: string): Promise<void> {
    await this.#database.query('DELETE FROM auth.artifacts WHERE model = $1 AND id = $2', [model, id]);
  }

  async deleteArtifactsOfGrant(model: string, grantId: string): Promise<void> {
    await this.#database.query('DELETE FROM auth.artifacts WHERE grant_id = $1 AND model = $2', [grantId, model]);
  }

  // Secrets of tenant clients

  async clientSecret(tenantId: string, apiName: string): Promise<Buffer | null> {
    return this.#database.shared('auth', tenantId, async (tx) => {
      const { rows } = await tx.query<{ secretHash: Buffer }>(
        'SELECT secret_hash AS "secretHash" FROM auth.client_secrets WHERE tenant_id = $1 AND api_name = $2',
        [tenantId, apiName],
      );
      return rows[0]?.secretHash ?? null;
    });
  }

  async saveClientSecret(tenantId: string, apiName: string, secretHash: Buffer): Promise<void> {
    await this.#database.shared('auth', tenantId, (tx) =>
      tx.query(
        `INSERT INTO auth.client_secrets (tenant_id, api_name, secret_hash) VALUES ($1, $2, $3)
         ON CONFLICT (tenant_id, api_name) DO UPDATE SET secret_hash = excluded.secret_hash, updated_at = now()`,
        [tenantId, apiName, secretHash],
      ),
    );
  }

  // Browser origins

  async saveOrigins(tenantId: string, metadataVersion: number, origins: readonly string[]): Promise<void> {
    await this.#database.shared('auth', tenantId, (tx) =>
      tx.query(
        `INSERT INTO auth.tenant_origins AS o (tenant_id, metadata_version, origins) VALUES ($1, $2, $3)
         ON CONFLICT (tenant_id) DO UPDATE
           SET metadata_version = excluded.metadata_version, origins = excluded.origins
           WHERE o.metadata_version < excluded.metadata_version`,
        [tenantId, metadataVersion, origins],
      ),
    );
  }

  /** Tenant not known: a preflight names none. Answers nothing but whether somebody lists the origin. */
  async originListed(origin: string): Promise<boolean> {
    const { rowCount } = await this.#database.query(
      'SELECT FROM auth.tenant_origins WHERE origins @> ARRAY[$1::text] LIMIT 1',
      [origin],
    );
    return rowCount > 0;
  }

  /** Versions at which the origins of these tenants were taken down. */
  async originVersions(tenantIds: readonly string[]): Promise<Map<string, number>> {
    const { rows } = await this.#database.query<{ tenantId: string; version: number }>(
      'SELECT tenant_id AS "tenantId", metadata_version AS version FROM auth.tenant_origins WHERE tenant_id = ANY($1)',
      [tenantIds],
    );
    return new Map(rows.map((row) => [row.tenantId, row.version]));
  }

  // Keys

  async keys(): Promise<StoredKey[]> {
    const { rows } = await this.#database.query<StoredKey & { createdAt: string; retiredAt: string | null }>(
      `SELECT kid, purpose, plain, sealed, created_at AS "createdAt", retired_at AS "retiredAt"
       FROM auth.keys ORDER BY created_at DESC, kid`,
    );
    return rows.map((row) => ({
      ...row,
      createdAt: new Date(row.createdAt),
      retiredAt: row.retiredAt === null ? null : new Date(row.retiredAt),
    }));
  }

  /**
   * Adds a key and retires the older ones of its purpose; two nodes that want the same at once do it once. `make` is
   * asked only when the newest key is older than `olderThanSeconds` (0: always).
   */
  async replaceKey(
    purpose: StoredKey['purpose'],
    olderThanSeconds: number,
    keepRetiredSeconds: number,
    make: () => Promise<Pick<StoredKey, 'kid' | 'plain' | 'sealed'>>,
  ): Promise<boolean> {
    return this.#database.transaction(async (tx) => {
      await tx.query("SELECT pg_advisory_xact_lock(hashtext('auth.keys'))");
      const { rows } = await tx.query<{ fresh: boolean }>(
        `SELECT coalesce(max(created_at) > clock_timestamp() - make_interval(secs => $2), false) AS fresh
         FROM auth.keys WHERE purpose = $1`,
        [purpose, olderThanSeconds],
      );
      if (rows[0]!.fresh) return false;
      const key = await make();
      await tx.query('UPDATE auth.keys SET retired_at = now() WHERE purpose = $1 AND retired_at IS NULL', [purpose]);
      await tx.query('INSERT INTO auth.keys (kid, purpose, plain, sealed) VALUES ($1, $2, $3, $4)', [
        key.kid,
        purpose,
        key.plain === null ? null : JSON.stringify(key.plain),
        key.sealed,
      ]);
      await tx.query(
        `DELETE FROM auth.keys WHERE purpose = $1 AND retired_at < now() - make_interval(secs => $2)
           AND kid NOT IN (SELECT kid FROM auth.keys WHERE purpose = $1 ORDER BY created_at DESC LIMIT 2)`,
        [purpose, keepRetiredSeconds],
      );
      return true;
    });
  }

  // Ends

  /** Removes what has ended by itself. */
  async sweep(): Promise<void> {
    for (const statement of [
      'DELETE FROM auth.artifacts WHERE expires_at < now()',
      'DELETE FROM auth.grants WHERE expires_at < now()',
      'DELETE FROM auth.password_links WHERE expires_at < now()',
      "DELETE FROM auth.attempts WHERE updated_at < now() - interval '1 day'",
    ])
      await this.#database.query(statement);
  }
}

/** A password that was just set makes every older link worthless. */
async function writePassword(tx: Tx, tenantId: string, userId: string, passwordHash: string): Promise<void> {
  await Promise.all([
    tx.query(
      'UPDATE auth.credentials SET password_hash = $3, updated_at = now() WHERE tenant_id = $1 AND user_id = $2',
      [tenantId, userId, passwordHash],
    ),
    tx.query('DELETE FROM auth.password_links WHERE tenant_id = $1 AND user_id = $2', [tenantId, userId]),
  ]);
}

/** Which users the people at OpenID providers are. */
import { type Database, sqlState } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';

/** A person at a provider, as a tenant's users sign in there. */
export interface Identity {
  tenantId: string;
  issuer: string;
  subject: string;
}

export class Identities {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The user that the person is; null when they have not signed in before. */
  async userOf({ tenantId, issuer, subject }: Identity): Promise<string | null> {
    const sql = new Sql();
    const statement = sql.statement(
      `UPDATE auth.identities SET last_used_at = now()
       WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND issuer = ${sql.bind(issuer, 'text')}
         AND subject = ${sql.bind(subject, 'text')}
       RETURNING user_id AS "userId"`,
    );
    const found = await this.#database.shared('auth', tenantId, (tx) => tx.first<{ userId: string }>(statement));
    return found?.userId ?? null;
  }

  /** False when the person is a user already, or the user another person at the same provider. */
  async add({ tenantId, issuer, subject }: Identity, userId: string): Promise<boolean> {
    const sql = new Sql();
    const statement = sql.statement(
      `INSERT INTO auth.identities (tenant_id, issuer, subject, user_id)
       VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(issuer, 'text')}, ${sql.bind(subject, 'text')},
         ${sql.bind(userId, 'uuid')})`,
    );
    try {
      await this.#database.shared('auth', tenantId, (tx) => tx.query(statement));
      return true;
    } catch (error) {
      if (sqlState(error) === '23505') return false;
      throw error;
    }
  }

  /** Forgets who a user is at all providers; returns how many identities that were. */
  async removeOf(tenantId: string, userId: string): Promise<number> {
    const sql = new Sql();
    const statement = sql.statement(
      `DELETE FROM auth.identities
       WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`,
    );
    return (await this.#database.shared('auth', tenantId, (tx) => tx.query(statement))).rowCount;
  }
}

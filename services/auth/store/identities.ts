/** Users by their identities at OpenID providers. */
import { type Database, sqlState } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { AuditEntries } from './audit-entries.ts';
import { identityAdded, operatorAct } from './entries.ts';
import { endGrantsOfUser } from './grants.ts';

/** A person at a provider, as a tenant's users sign in there. */
interface Identity {
  tenantId: string;
  issuer: string;
  subject: string;
}

interface SignIn {
  userId: string;
  sessionGeneration: number;
}

export class Identities {
  readonly #database: Database;
  readonly #trail: AuditEntries;

  constructor(database: Database, trail: AuditEntries) {
    this.#database = database;
    this.#trail = trail;
  }

  /** The user that the person is, as they sign in; null when they have not signed in before. */
  userOf({ tenantId, issuer, subject }: Identity): Promise<SignIn | null> {
    const sql = new Sql();
    const statement = sql.statement(
      `UPDATE auth.identities identity SET last_used_at = now() FROM auth.credentials credential
       WHERE credential.tenant_id = identity.tenant_id AND credential.user_id = identity.user_id
         AND identity.tenant_id = ${sql.bind(tenantId, 'uuid')} AND issuer = ${sql.bind(issuer, 'text')}
         AND subject = ${sql.bind(subject, 'text')}
       RETURNING identity.user_id AS "userId", credential.session_generation AS "sessionGeneration"`,
    );
    return this.#database.shared('auth', tenantId, (tx) => tx.first<SignIn>(statement));
  }

  /** False when the person is a user already, or the user another person at the same provider. */
  async add({ tenantId, issuer, subject }: Identity, userId: string, provider: string): Promise<boolean> {
    const sql = new Sql();
    const statement = sql.statement(
      `INSERT INTO auth.identities (tenant_id, issuer, subject, user_id)
       VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(issuer, 'text')}, ${sql.bind(subject, 'text')},
         ${sql.bind(userId, 'uuid')})`,
    );
    try {
      await this.#trail.change(tenantId, async (tx, note) => {
        await tx.query(statement);
        await note(identityAdded(userId, { provider, issuer, subject }));
      });
      return true;
    } catch (error) {
      if (sqlState(error) === '23505') return false;
      throw error;
    }
  }

  /** Forgets who a user is at all providers, and ends their sessions: how many identities and which grants that were. */
  removeOf(tenantId: string, userId: string): Promise<{ removed: number; ended: string[] }> {
    const sql = new Sql();
    const statement = sql.statement(
      `DELETE FROM auth.identities
       WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`,
    );
    return this.#trail.change(tenantId, async (tx, note) => {
      const ended = await endGrantsOfUser(tx, tenantId, userId);
      const { rowCount: removed } = await tx.query(statement);
      const changes = { identities: { from: String(removed), to: '0' } };
      await note(operatorAct('auth.identities.remove', { userId, changes }));
      return { removed, ended };
    });
  }
}

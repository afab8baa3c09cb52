/** Secrets by which OpenID providers of tenants know the platform, as they were sealed. */
import type { Database } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Kept } from '../vault.ts';
import type { AuditEntries } from './audit-entries.ts';
import { operatorAct } from './entries.ts';

/** The secret is bound to these: it is not used for another issuer or client. */
export interface SecretOwner {
  tenantId: string;
  apiName: string;
  issuer: string;
  clientId: string;
}

export type KeptSecret = SecretOwner & Kept;

const COLUMNS = `tenant_id AS "tenantId", api_name AS "apiName", issuer, client_id AS "clientId", plain, sealed`;

export class ProviderSecrets {
  readonly #database: Database;
  readonly #trail: AuditEntries;

  constructor(database: Database, trail: AuditEntries) {
    this.#database = database;
    this.#trail = trail;
  }

  find({ tenantId, apiName, issuer, clientId }: SecretOwner): Promise<KeptSecret | null> {
    const sql = new Sql();
    const statement = sql.statement(
      `SELECT ${COLUMNS} FROM auth.provider_secrets
       WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND api_name = ${sql.bind(apiName, 'text')}
         AND issuer = ${sql.bind(issuer, 'text')} AND client_id = ${sql.bind(clientId, 'text')}`,
    );
    return this.#database.shared('auth', tenantId, (tx) => tx.first<KeptSecret>(statement));
  }

  /** A secret from an operator. */
  async save(secret: KeptSecret): Promise<void> {
    const sql = new Sql();
    const statement = sql.statement(
      `INSERT INTO auth.provider_secrets (tenant_id, api_name, issuer, client_id, plain, sealed)
       VALUES (${sql.bind(secret.tenantId, 'uuid')}, ${sql.bind(secret.apiName, 'text')},
         ${sql.bind(secret.issuer, 'text')}, ${sql.bind(secret.clientId, 'text')},
         ${sql.bind(secret.plain && JSON.stringify(secret.plain), 'jsonb')}, ${sql.bind(secret.sealed, 'bytea')})
       ON CONFLICT (tenant_id, api_name) DO UPDATE SET issuer = excluded.issuer, client_id = excluded.client_id,
         plain = excluded.plain, sealed = excluded.sealed, updated_at = now()`,
    );
    const changes = { provider: { from: null, to: secret.apiName }, issuer: { from: null, to: secret.issuer } };
    await this.#trail.change(secret.tenantId, async (tx, note) => {
      await tx.query(statement);
      await note(operatorAct('auth.identityProviders.setSecret', { changes }));
    });
  }

  async remove(tenantId: string, apiName: string): Promise<boolean> {
    const sql = new Sql();
    const statement = sql.statement(
      `DELETE FROM auth.provider_secrets
       WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND api_name = ${sql.bind(apiName, 'text')}`,
    );
    return (await this.#database.shared('auth', tenantId, (tx) => tx.query(statement))).rowCount > 0;
  }

  /** Replaces those for which `changed` returns something, of all tenants; returns how many those were. */
  change(changed: (secret: KeptSecret) => Kept | null): Promise<number> {
    return this.#database.transaction(async (tx) => {
      const rows = await tx.all<KeptSecret>({ text: `SELECT ${COLUMNS} FROM auth.provider_secrets FOR UPDATE` });
      let count = 0;
      for (const row of rows) {
        const kept = changed(row);
        if (!kept) continue;
        const sql = new Sql();
        await tx.query(
          sql.statement(
            `UPDATE auth.provider_secrets SET plain = ${sql.bind(kept.plain && JSON.stringify(kept.plain), 'jsonb')},
               sealed = ${sql.bind(kept.sealed, 'bytea')}
             WHERE tenant_id = ${sql.bind(row.tenantId, 'uuid')} AND api_name = ${sql.bind(row.apiName, 'text')}`,
          ),
        );
        count++;
      }
      return count;
    });
  }
}

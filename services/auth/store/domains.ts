/** Mail domains that operators have verified for tenants. */
import { type Database, sqlState } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { AuditEntries } from './audit-entries.ts';
import { operatorAct } from './entries.ts';

interface TenantDomain {
  domain: string;
  tenantId: string;
}

export class Domains {
  readonly #database: Database;
  readonly #trail: AuditEntries;

  constructor(database: Database, trail: AuditEntries) {
    this.#database = database;
    this.#trail = trail;
  }

  /** The tenant of a domain. Runs as the login role, since no tenant is known yet. */
  async tenantOf(domain: string): Promise<string | null> {
    const sql = new Sql();
    const statement = sql.statement(
      `SELECT tenant_id AS "tenantId" FROM auth.domains WHERE domain = ${sql.bind(domain, 'text')}`,
    );
    const found = await this.#database.login((tx) => tx.first<{ tenantId: string }>(statement));
    return found?.tenantId ?? null;
  }

  /** False when another tenant has the domain. */
  async add(tenantId: string, domain: string): Promise<boolean> {
    const sql = new Sql();
    const statement = sql.statement(
      `INSERT INTO auth.domains (tenant_id, domain)
       VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(domain, 'text')}) ON CONFLICT (tenant_id, domain) DO NOTHING`,
    );
    try {
      await this.#trail.change(tenantId, async (tx, note) => {
        await tx.query(statement);
        await note(operatorAct('auth.domains.add', { changes: { domain: { from: null, to: domain } } }));
      });
      return true;
    } catch (error) {
      if (sqlState(error) === '23505') return false;
      throw error;
    }
  }

  remove(tenantId: string, domain: string): Promise<boolean> {
    const sql = new Sql();
    const statement = sql.statement(
      `DELETE FROM auth.domains
       WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND domain = ${sql.bind(domain, 'text')}`,
    );
    return this.#trail.change(tenantId, async (tx, note) => {
      if ((await tx.query(statement)).rowCount === 0) return false;
      await note(operatorAct('auth.domains.remove', { changes: { domain: { from: domain, to: null } } }));
      return true;
    });
  }

  of(tenantId: string): Promise<TenantDomain[]> {
    const sql = new Sql();
    const statement = sql.statement(
      `SELECT domain, tenant_id AS "tenantId" FROM auth.domains
       WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} ORDER BY domain`,
    );
    return this.#database.shared('auth', tenantId, (tx) => tx.all<TenantDomain>(statement));
  }
}

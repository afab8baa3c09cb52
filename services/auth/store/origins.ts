/** Browser origins that the clients of each tenant list. */
import { Op } from 'sequelize';
import type { Database } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { TenantOriginsModel } from '../models/tenant-origins.ts';

export class Origins {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Stores the origins as of a version of the tenant's configuration; those of a newer version stay. */
  async save(tenantId: string, metadataVersion: number, origins: readonly string[]): Promise<void> {
    const sql = new Sql();
    const statement = sql.statement(
      `INSERT INTO auth.tenant_origins AS stored (tenant_id, metadata_version, origins)
       VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(metadataVersion, 'integer')}, ${sql.bind(origins, 'text[]')})
       ON CONFLICT (tenant_id) DO UPDATE
         SET metadata_version = excluded.metadata_version, origins = excluded.origins
         WHERE stored.metadata_version < excluded.metadata_version`,
    );
    await this.#database.shared('auth', tenantId, (tx) => tx.query(statement));
  }

  /** The tenant is not known: a preflight names none. Says only whether any tenant lists the origin. */
  async isListed(origin: string): Promise<boolean> {
    const where = { origins: { [Op.contains]: [origin] } };
    const listed = await this.#database.login((tx) =>
      TenantOriginsModel.findOne({ attributes: ['tenantId'], where, ...on(tx) }),
    );
    return listed !== null;
  }

  /** The versions of configuration as of which the origins of these tenants are stored. */
  async versions(tenantIds: readonly string[]): Promise<Map<string, number>> {
    const where = { tenantId: { [Op.any]: [...tenantIds] } };
    const rows = await this.#database.login((tx) =>
      TenantOriginsModel.findAll({ attributes: ['tenantId', 'metadataVersion'], where, ...on(tx) }),
    );
    return new Map(rows.map(({ tenantId, metadataVersion }) => [tenantId, metadataVersion]));
  }
}

/**
 * Auth's copy of each tenant's clients: the browser origins and metadata documents that they name, and grants of those
 * that there are.
 */
import { Op, type WhereOptions } from 'sequelize';
import type { Database } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { ArtifactModel } from '../models/artifact.ts';
import { TenantOriginsModel } from '../models/tenant-origins.ts';
import { deleteGrantsOfOtherClients } from './grants.sql.ts';

export class Origins {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Stores origins and documents as of a version of the tenant's configuration; those of a newer version stay. Ends the grants of
   * clients that are no longer in it, so that they do not work again for a later client of that name.
   */
  async save(
    tenantId: string,
    metadataVersion: number,
    {
      origins,
      documents,
      clientIds,
    }: { origins: readonly string[]; documents: readonly string[]; clientIds: readonly string[] },
  ): Promise<void> {
    const sql = new Sql();
    const statement = sql.statement(
      `INSERT INTO auth.tenant_origins AS stored (tenant_id, metadata_version, origins, documents)
       VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(metadataVersion, 'integer')}, ${sql.bind(origins, 'text[]')},
         ${sql.bind(documents, 'text[]')})
       ON CONFLICT (tenant_id) DO UPDATE
         SET metadata_version = excluded.metadata_version, origins = excluded.origins, documents = excluded.documents
         WHERE stored.metadata_version < excluded.metadata_version`,
    );
    await this.#database.shared('auth', tenantId, async (tx) => {
      const { rowCount } = await tx.query(statement);
      if (rowCount === 0) return;
      const ended = await tx.all<{ id: string }>(deleteGrantsOfOtherClients(tenantId, clientIds));
      if (ended.length > 0) await ArtifactModel.destroy({ where: { grantId: ended.map(({ id }) => id) }, ...on(tx) });
    });
  }

  /** The tenant is not known: a preflight names none. Says only whether any tenant lists the origin. */
  isListed(origin: string): Promise<boolean> {
    return this.#isNamed({ origins: { [Op.contains]: [origin] } });
  }

  /** Called before a sign-in, so it says only whether a client of any tenant names the metadata document. */
  hasDocument(address: string): Promise<boolean> {
    return this.#isNamed({ documents: { [Op.contains]: [address] } });
  }

  async #isNamed(where: WhereOptions<TenantOriginsModel>): Promise<boolean> {
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

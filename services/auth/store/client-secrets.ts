/** Secrets of external clients: their SHA-256 hashes. */
import type { Database } from '../../../mixins/database/database.ts';
import { NOW, on } from '../../../mixins/models/sequelize.ts';
import { ClientSecretModel } from '../models/client-secret.ts';

export class ClientSecrets {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async hash(tenantId: string, apiName: string): Promise<Buffer | null> {
    const where = { tenantId, apiName };
    const secret = await this.#database.shared('auth', tenantId, (tx) =>
      ClientSecretModel.findOne({ attributes: ['secretHash'], where, ...on(tx) }),
    );
    return secret?.secretHash ?? null;
  }

  async save(tenantId: string, apiName: string, secretHash: Buffer): Promise<void> {
    const row = { tenantId, apiName, secretHash, updatedAt: NOW };
    await this.#database.shared('auth', tenantId, (tx) => ClientSecretModel.upsert(row, on(tx)));
  }
}

/** Secrets of external clients: their SHA-256 hashes. */
import type { Database } from '../../../mixins/database/database.ts';
import { NOW, on } from '../../../mixins/models/sequelize.ts';
import { ClientSecretModel } from '../models/client-secret.ts';
import type { AuditEntries } from './audit-entries.ts';
import { operatorAct } from './entries.ts';

export class ClientSecrets {
  readonly #database: Database;
  readonly #trail: AuditEntries;

  constructor(database: Database, trail: AuditEntries) {
    this.#database = database;
    this.#trail = trail;
  }

  async hash(tenantId: string, apiName: string): Promise<Buffer | null> {
    const where = { tenantId, apiName };
    const secret = await this.#database.shared('auth', tenantId, (tx) =>
      ClientSecretModel.findOne({ attributes: ['secretHash'], where, ...on(tx) }),
    );
    return secret?.secretHash ?? null;
  }

  /** A new secret from an operator; the one before ends. */
  async rotate(tenantId: string, apiName: string, secretHash: Buffer): Promise<void> {
    const row = { tenantId, apiName, secretHash, updatedAt: NOW };
    await this.#trail.change(tenantId, async (tx, note) => {
      await ClientSecretModel.upsert(row, on(tx));
      await note(operatorAct('auth.clients.rotateSecret', { changes: { client: { from: null, to: apiName } } }));
    });
  }
}

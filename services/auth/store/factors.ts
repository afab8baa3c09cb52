/** Passkeys, authenticator apps and recovery codes of users. */
import { type Database, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { AuthenticatorModel } from '../models/authenticator.ts';
import { PasskeyModel } from '../models/passkey.ts';
import { RecoveryCodeModel } from '../models/recovery-code.ts';
import * as statements from './factors.sql.ts';

export type Passkey = statements.PasskeyRow;

/** A passkey as its owner sees it. */
export interface ListedPasskey {
  id: string;
  name: string;
  transports: string[];
  backedUp: boolean;
  createdAt: string;
  lastUsedAt: string | null;
}

export interface FactorCounts {
  passkeys: number;
  authenticator: boolean;
  recoveryCodes: number;
}

export interface UserKey {
  tenantId: string;
  userId: string;
}

/** A user has at most this many passkeys. */
export const PASSKEYS_MAX = 10;

export class Factors {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Which factors the user has. */
  counts({ tenantId, userId }: UserKey): Promise<FactorCounts> {
    return this.#shared(tenantId, (tx) => tx.one<FactorCounts>(statements.factorsOfUser(tenantId, userId)));
  }

  /** The tenant is not known yet: a passkey alone says who signs in. */
  passkey(id: string): Promise<Passkey | null> {
    return this.#database.login((tx) => tx.first<Passkey>(statements.passkeyById(id)));
  }

  /** The user's passkeys, the oldest first. */
  passkeys({ tenantId, userId }: UserKey): Promise<ListedPasskey[]> {
    return this.#shared(tenantId, (tx) => tx.all<ListedPasskey>(statements.passkeysOfUser(tenantId, userId)));
  }

  /** False when the user has as many passkeys as allowed, or when the passkey is stored already. */
  async addPasskey(passkey: Passkey): Promise<boolean> {
    const { tenantId, userId } = passkey;
    try {
      return await this.#shared(tenantId, async (tx) => {
        const { rowCount } = await tx.query(statements.lockCredential(tenantId, userId));
        if (rowCount === 0) return false;
        const { passkeys } = await tx.one<{ passkeys: number }>(statements.countPasskeys(tenantId, userId));
        if (passkeys >= PASSKEYS_MAX) return false;
        await PasskeyModel.create(passkey, on(tx));
        return true;
      });
    } catch (error) {
      if (sqlState(error) === '23505') return false;
      throw error;
    }
  }

  async renamePasskey({ tenantId, userId }: UserKey, id: string, name: string): Promise<boolean> {
    const [changed] = await this.#shared(tenantId, (tx) =>
      PasskeyModel.update({ name }, { where: { tenantId, userId, id }, ...on(tx) }),
    );
    return changed > 0;
  }

  async removePasskey({ tenantId, userId }: UserKey, id: string): Promise<boolean> {
    const removed = await this.#shared(tenantId, (tx) =>
      PasskeyModel.destroy({ where: { tenantId, userId, id }, ...on(tx) }),
    );
    return removed > 0;
  }

  /** False when the counter shows that the passkey was copied. */
  async markPasskeyUsed(passkey: Pick<Passkey, 'tenantId' | 'id' | 'counter' | 'backedUp'>): Promise<boolean> {
    const { rowCount } = await this.#shared(passkey.tenantId, (tx) => tx.query(statements.markPasskeyUsed(passkey)));
    return rowCount > 0;
  }

  async authenticatorSecret({ tenantId, userId }: UserKey): Promise<Buffer | null> {
    const stored = await this.#shared(tenantId, (tx) =>
      AuthenticatorModel.findOne({ attributes: ['sealedSecret'], where: { tenantId, userId }, ...on(tx) }),
    );
    return stored?.sealedSecret ?? null;
  }

  /** Takes the place of an earlier authenticator app. */
  async setAuthenticator({ tenantId, userId }: UserKey, sealedSecret: Buffer, lastStep: number): Promise<void> {
    await this.#shared(tenantId, (tx) =>
      AuthenticatorModel.upsert({ tenantId, userId, sealedSecret, lastStep }, on(tx)),
    );
  }

  async removeAuthenticator({ tenantId, userId }: UserKey): Promise<boolean> {
    const removed = await this.#shared(tenantId, (tx) =>
      AuthenticatorModel.destroy({ where: { tenantId, userId }, ...on(tx) }),
    );
    return removed > 0;
  }

  /** True when this call is the first that uses the time step, or a later one than all before. */
  async claimTimeStep({ tenantId, userId }: UserKey, step: number): Promise<boolean> {
    const { rowCount } = await this.#shared(tenantId, (tx) =>
      tx.query(statements.claimTimeStep(tenantId, userId, step)),
    );
    return rowCount > 0;
  }

  /** New codes take the place of all earlier ones. */
  async replaceRecoveryCodes({ tenantId, userId }: UserKey, codeHashes: readonly Buffer[]): Promise<void> {
    await this.#shared(tenantId, async (tx) => {
      await RecoveryCodeModel.destroy({ where: { tenantId, userId }, ...on(tx) });
      await RecoveryCodeModel.bulkCreate(
        codeHashes.map((codeHash) => ({ tenantId, userId, codeHash })),
        on(tx),
      );
    });
  }

  /** Uses a code up; of several calls at once, one gets it. */
  async claimRecoveryCode({ tenantId, userId }: UserKey, codeHash: Buffer): Promise<boolean> {
    const { rowCount } = await this.#shared(tenantId, (tx) =>
      tx.query(statements.claimRecoveryCode(tenantId, userId, codeHash)),
    );
    return rowCount > 0;
  }

  /** Removes every passkey, authenticator app and recovery code of a user; returns what there was. */
  removeAll({ tenantId, userId }: UserKey): Promise<FactorCounts> {
    return this.#shared(tenantId, async (tx) => {
      const had = await tx.one<FactorCounts>(statements.factorsOfUser(tenantId, userId));
      const where = { tenantId, userId };
      await PasskeyModel.destroy({ where, ...on(tx) });
      await AuthenticatorModel.destroy({ where, ...on(tx) });
      await RecoveryCodeModel.destroy({ where, ...on(tx) });
      return had;
    });
  }

  #shared<T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#database.shared('auth', tenantId, work);
  }
}

/** Passkeys, authenticator apps and recovery codes of users. */
import { type Database, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import type { FactorEvent } from '../factors/events.ts';
import { AuthenticatorModel } from '../models/authenticator.ts';
import { PasskeyModel } from '../models/passkey.ts';
import { RecoveryCodeModel } from '../models/recovery-code.ts';
import type { AuditEntries } from './audit-entries.ts';
import { factorChanged } from './entries.ts';
import * as statements from './factors.sql.ts';
import { endGrantsOfUser } from './grants.ts';

type Passkey = statements.PasskeyRow;
export type KnownPasskey = statements.KnownPasskey;

/** A passkey as its owner sees it. */
interface ListedPasskey {
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

/** A user in a sign-in, which may have ended meanwhile. */
export interface SignedInUser extends UserKey {
  /** Of the user's sessions when the sign-in began. */
  sessionGeneration: number;
}

/** A user has at most this many passkeys. */
export const PASSKEYS_MAX = 10;

const keyOf = ({ tenantId, userId }: UserKey) => ({ tenantId, userId });

export class Factors {
  readonly #database: Database;
  readonly #trail: AuditEntries;

  constructor(database: Database, trail: AuditEntries) {
    this.#database = database;
    this.#trail = trail;
  }

  /** Numbers of the user's factors. */
  counts({ tenantId, userId }: UserKey): Promise<FactorCounts> {
    return this.#shared(tenantId, (tx) => tx.one<FactorCounts>(statements.factorsOfUser(tenantId, userId)));
  }

  /** The tenant is not known yet: a passkey alone says who signs in. */
  passkey(id: string): Promise<KnownPasskey | null> {
    return this.#database.login((tx) => tx.first<KnownPasskey>(statements.passkeyById(id)));
  }

  /** The user's passkeys, the oldest first. */
  passkeys({ tenantId, userId }: UserKey): Promise<ListedPasskey[]> {
    return this.#shared(tenantId, (tx) => tx.all<ListedPasskey>(statements.passkeysOfUser(tenantId, userId)));
  }

  /** False when the user has as many passkeys as allowed, the passkey is stored already, or the sign-in has ended. */
  async addPasskey({ sessionGeneration, ...passkey }: Passkey & SignedInUser): Promise<boolean> {
    const { tenantId, userId } = passkey;
    try {
      return await this.#trail.change(tenantId, async (tx, note) => {
        const { rowCount } = await tx.query(statements.lockCredential(tenantId, userId, sessionGeneration));
        if (rowCount === 0) return false;
        const { passkeys } = await tx.one<{ passkeys: number }>(statements.countPasskeys(tenantId, userId));
        if (passkeys >= PASSKEYS_MAX) return false;
        await PasskeyModel.create(passkey, on(tx));
        await note(factorChanged(userId, 'passkeyAdded'));
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

  removePasskey(user: UserKey, id: string): Promise<boolean> {
    return this.#remove(user, 'passkeyRemoved', (tx) =>
      PasskeyModel.destroy({ where: { ...keyOf(user), id }, ...on(tx) }),
    );
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

  /** Takes the place of an earlier authenticator app. False when the sign-in has ended. */
  setAuthenticator(
    { tenantId, userId, sessionGeneration }: SignedInUser,
    sealedSecret: Buffer,
    lastStep: number,
  ): Promise<boolean> {
    return this.#trail.change(tenantId, async (tx, note) => {
      const { rowCount } = await tx.query(statements.lockCredential(tenantId, userId, sessionGeneration));
      if (rowCount === 0) return false;
      await AuthenticatorModel.upsert({ tenantId, userId, sealedSecret, lastStep }, on(tx));
      await note(factorChanged(userId, 'authenticatorAdded'));
      return true;
    });
  }

  removeAuthenticator(user: UserKey): Promise<boolean> {
    return this.#remove(user, 'authenticatorRemoved', (tx) =>
      AuthenticatorModel.destroy({ where: keyOf(user), ...on(tx) }),
    );
  }

  /** True when this call is the first that uses the time step, or a later one than all before. */
  async claimTimeStep({ tenantId, userId }: UserKey, step: number): Promise<boolean> {
    const { rowCount } = await this.#shared(tenantId, (tx) =>
      tx.query(statements.claimTimeStep(tenantId, userId, step)),
    );
    return rowCount > 0;
  }

  /**
   * New codes take the place of all earlier ones; false when the sign-in has ended. `asked`: by the user, and not
   * together with the first factor.
   */
  replaceRecoveryCodes(
    { tenantId, userId, sessionGeneration }: SignedInUser,
    codeHashes: readonly Buffer[],
    asked: boolean,
  ): Promise<boolean> {
    return this.#trail.change(tenantId, async (tx, note) => {
      const { rowCount } = await tx.query(statements.lockCredential(tenantId, userId, sessionGeneration));
      if (rowCount === 0) return false;
      await RecoveryCodeModel.destroy({ where: { tenantId, userId }, ...on(tx) });
      await RecoveryCodeModel.bulkCreate(
        codeHashes.map((codeHash) => ({ tenantId, userId, codeHash })),
        on(tx),
      );
      if (asked) await note(factorChanged(userId, 'recoveryCodesMade'));
      return true;
    });
  }

  /** Uses a code up; of several calls at once, one gets it. */
  claimRecoveryCode({ tenantId, userId }: UserKey, codeHash: Buffer): Promise<boolean> {
    return this.#trail.change(tenantId, async (tx, note) => {
      const { rowCount } = await tx.query(statements.claimRecoveryCode(tenantId, userId, codeHash));
      if (rowCount > 0) await note(factorChanged(userId, 'recoveryCodeUsed'));
      return rowCount > 0;
    });
  }

  /**
   * Removes every passkey, authenticator app and recovery code of a user, and ends all sessions, for an operator; returns the
   * former factors and the grants that ended.
   */
  reset({ tenantId, userId }: UserKey): Promise<{ had: FactorCounts; ended: string[] }> {
    return this.#trail.change(tenantId, async (tx, note) => {
      // Locks the user first, as every change of factors does.
      const ended = await endGrantsOfUser(tx, tenantId, userId);
      const had = await tx.one<FactorCounts>(statements.factorsOfUser(tenantId, userId));
      const where = { tenantId, userId };
      await PasskeyModel.destroy({ where, ...on(tx) });
      await AuthenticatorModel.destroy({ where, ...on(tx) });
      await RecoveryCodeModel.destroy({ where, ...on(tx) });
      await note(factorChanged(userId, 'reset', null));
      return { had, ended };
    });
  }

  /** Removes a factor; without a second factor recovery codes end, too. False: it was removed before. */
  #remove(user: UserKey, event: FactorEvent, remove: (tx: Tx) => Promise<number>): Promise<boolean> {
    const { tenantId, userId } = user;
    return this.#trail.change(tenantId, async (tx, note) => {
      // Two factors that are removed at once would each see the other one.
      await tx.query(statements.lockCredential(tenantId, userId, null));
      if ((await remove(tx)) === 0) return false;
      const { passkeys, authenticator } = await tx.one<FactorCounts>(statements.factorsOfUser(tenantId, userId));
      if (passkeys === 0 && !authenticator) await RecoveryCodeModel.destroy({ where: keyOf(user), ...on(tx) });
      await note(factorChanged(userId, event));
      return true;
    });
  }

  #shared<T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#database.shared('auth', tenantId, work);
  }
}

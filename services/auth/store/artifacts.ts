/**
 * Artifacts of the OAuth protocol: codes, refresh tokens, browser sessions, interactions. Each is found by an id that
 * nobody can guess, before any tenant is known, so all of this runs as the login role.
 */
import type { Database } from '../../../mixins/database/database.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { ArtifactModel } from '../models/artifact.ts';
import { type ArtifactRow, consumeArtifact, findArtifact, saveArtifact } from './artifacts.sql.ts';

export interface Artifact {
  payload: Record<string, unknown>;
  consumedSecondsAgo: number | null;
  consumedAt: number | null;
}

export class Artifacts {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Without `replace`, a row that exists stays, and the result is false. */
  async save(row: ArtifactRow, expiresInSeconds: number, { replace }: { replace: boolean }): Promise<boolean> {
    const { rowCount } = await this.#database.query(saveArtifact(row, expiresInSeconds, replace));
    return rowCount > 0;
  }

  find(model: string, column: 'id' | 'uid' | 'user_code', value: string): Promise<Artifact | null> {
    return this.#database.login((tx) => tx.first<Artifact>(findArtifact(model, column, value)));
  }

  /** True when this call is the one that consumed it. */
  async consume(model: string, id: string): Promise<boolean> {
    const { rowCount } = await this.#database.query(consumeArtifact(model, id));
    return rowCount > 0;
  }

  async delete(model: string, id: string): Promise<void> {
    await this.#database.login((tx) => ArtifactModel.destroy({ where: { model, id }, ...on(tx) }));
  }

  async deleteOfGrant(model: string, grantId: string): Promise<void> {
    await this.#database.login((tx) => ArtifactModel.destroy({ where: { model, grantId }, ...on(tx) }));
  }
}

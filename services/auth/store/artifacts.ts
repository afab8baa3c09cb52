/**
 * Artifacts of the OAuth protocol: codes, refresh tokens, browser sessions, interactions. Each is found by an id that
 * is unguessable, before any tenant is known, so all of this runs as the login role.
 */
import type { Database } from '../../../mixins/database/database.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { ArtifactModel } from '../models/artifact.ts';
import {
  type ArtifactRow,
  consumeArtifact,
  deleteExpiredArtifacts,
  deleteSurplus,
  deleteSurplusOfAll,
  findArtifact,
  pollDeviceCode,
  type Saving,
  saveArtifact,
} from './artifacts.sql.ts';

/**
 * Anonymous artifacts of one kind that one network may have pending. An office of some thousand people behind one
 * address has fewer sign-ins under way; beyond that the oldest one makes room.
 */
const OF_NETWORK_MAX = 200;
const OF_ALL_NETWORKS_MAX = 50_000;
const DELETE_BATCH = 2_000;
/** RFC 8628 section 3.5: each answer `slow_down` makes the interval five seconds longer. */
const POLL_SECONDS = 5;
const POLL_SECONDS_MAX = 300;

interface Artifact {
  /** As the database knows it. */
  id: string;
  payload: Record<string, unknown>;
  consumedSecondsAgo: number | null;
  consumedAt: number | null;
}

export class Artifacts {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** False: a row exists that is not replaced, or the sign-in has ended. */
  async save(row: ArtifactRow, expiresInSeconds: number, saving: Saving): Promise<boolean> {
    const { rowCount } = await this.#database.query(saveArtifact(row, expiresInSeconds, saving));
    if (row.network !== null) await this.#database.query(deleteSurplus(row.model, row.network, OF_NETWORK_MAX));
    return rowCount > 0;
  }

  /** False when the device must ask less often. What is not waiting for a person's answer is nothing to slow down. */
  async mayPoll(deviceCode: string): Promise<boolean> {
    const polled = await this.#database.login((tx) =>
      tx.first<{ early: boolean }>(pollDeviceCode(deviceCode, POLL_SECONDS, POLL_SECONDS, POLL_SECONDS_MAX)),
    );
    return polled?.early !== true;
  }

  /** Removes expired rows in short statements, and the oldest anonymous ones beyond the limit. */
  async deleteExpired(): Promise<void> {
    let deleted: number;
    do deleted = (await this.#database.query(deleteExpiredArtifacts(DELETE_BATCH))).rowCount;
    while (deleted === DELETE_BATCH);
    await this.#database.query(deleteSurplusOfAll(OF_ALL_NETWORKS_MAX));
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

/** Grants: one authorization of one client by one user, with everything that depends on it. */
import { ACCOUNT_CLIENT_ID } from '../../../contracts/auth.ts';
import type { StoredGrant } from '../../../lib/access/client-marks.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { takesNoChanges } from '../../../mixins/database/failures.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { ArtifactModel } from '../models/artifact.ts';
import { CalendarLinkModel } from '../models/calendar-link.ts';
import type { AuditEntries, NewAuditEntry } from './audit-entries.ts';
import { connectionRevoked } from './entries.ts';
import * as statements from './grants.sql.ts';
import { deleteOriginsOfUser } from './known-origins.sql.ts';

export interface LiveGrant extends StoredGrant {
  grantId: string;
  /** Of a client that acts as its integration user. */
  integration: boolean;
}

export class Grants {
  readonly #database: Database;
  readonly #trail: AuditEntries;

  constructor(database: Database, trail: AuditEntries) {
    this.#database = database;
    this.#trail = trail;
  }

  /** False: the sign-in has ended with all sessions of the user. */
  async save(grant: statements.GrantRow, expiresInSeconds: number): Promise<boolean> {
    const { rowCount } = await this.#database.shared('auth', grant.tenantId, (tx) =>
      tx.query(statements.saveGrant(grant, expiresInSeconds)),
    );
    return rowCount > 0;
  }

  /** The tenant is not known yet: tokens of the provider carry the grant's id alone. */
  async payload(grantId: string): Promise<Record<string, unknown> | null> {
    const grant = await this.#database.login((tx) =>
      tx.first<{ payload: Record<string, unknown> }>(statements.grantPayload(grantId)),
    );
    return grant?.payload ?? null;
  }

  /** The standing grant of a client that acts as its integration user. */
  async ofIntegration(integration: statements.IntegrationOf): Promise<string | null> {
    const grant = await this.#database.shared('auth', integration.tenantId, (tx) =>
      tx.first<{ id: string }>(statements.integrationGrant(integration)),
    );
    return grant?.id ?? null;
  }

  /**
   * Those of the grants that are live: known, not expired, of an active user. `used`: they are marked so, unless the database
   * takes no changes.
   */
  async live(tenantId: string, grantIds: readonly string[], used: boolean): Promise<LiveGrant[]> {
    try {
      return await this.#database.shared('auth', tenantId, async (tx) => {
        const live = tx.all<LiveGrant>(statements.liveGrants(tenantId, grantIds));
        if (used) await tx.query(statements.markGrantsUsed(tenantId, grantIds));
        return live;
      });
    } catch (error) {
      if (used && takesNoChanges(error)) return this.live(tenantId, grantIds, false);
      throw error;
    }
  }

  /** Ends one grant with everything that depends on it. True when it was live. */
  end(grantId: string): Promise<boolean> {
    return this.#database.transaction(async (tx) => {
      const ended = tx.query(statements.deleteGrant(grantId));
      await ArtifactModel.destroy({ where: { grantId }, ...on(tx) });
      return (await ended).rowCount > 0;
    });
  }

  /** Connections in the name of a user, newest first. */
  connections(
    user: { tenantId: string; userId: string },
    after: Pick<statements.ConnectionRow, 'createdAt' | 'id'> | null,
    limit: number,
  ): Promise<statements.ConnectionRow[]> {
    return this.#database.shared('auth', user.tenantId, (tx) =>
      tx.all<statements.ConnectionRow>(statements.connectionsOfUser(user, ACCOUNT_CLIENT_ID, after, limit)),
    );
  }

  /** Ends one connection of a user, who does so on a page; the client that had it, null when there was none. */
  endConnection(user: { tenantId: string; userId: string }, grantId: string): Promise<string | null> {
    return this.#trail.change(user.tenantId, async (tx, note) => {
      const ended = await tx.first<{ clientId: string }>(statements.deleteConnection(user, ACCOUNT_CLIENT_ID, grantId));
      if (!ended) return null;
      await ArtifactModel.destroy({ where: { grantId }, ...on(tx) });
      await note(connectionRevoked(user.userId, { connectionId: grantId, clientId: ended.clientId }));
      return ended.clientId;
    });
  }

  /**
   * Ends every grant and browser session of a user, and the link to the calendar; known browsers and networks are forgotten.
   * Returns the ids of the grants. `entry`: for the audit trail, when there were some.
   */
  endOfUser(tenantId: string, userId: string, entry: NewAuditEntry | null = null): Promise<string[]> {
    return this.#trail.change(tenantId, async (tx, note) => {
      const ended = await endGrantsOfUser(tx, tenantId, userId);
      if (entry && ended.length > 0) await note(entry);
      return ended;
    });
  }
}

/** The same within a transaction of the tenant. */
export async function endGrantsOfUser(tx: Tx, tenantId: string, userId: string): Promise<string[]> {
  // First: what a request under way has saved by now is deleted, and what it saves later is refused.
  await tx.query(statements.endSignIns(tenantId, userId));
  const ended = await tx.all<{ id: string }>(statements.deleteGrantsOfUser(tenantId, userId));
  // User ids are unique over all tenants; artifacts have no tenant of their own.
  await ArtifactModel.destroy({ where: { accountId: userId }, ...on(tx) });
  await tx.query(deleteOriginsOfUser(tenantId, userId));
  await CalendarLinkModel.destroy({ where: { tenantId, userId }, ...on(tx) });
  return ended.map(({ id }) => id);
}

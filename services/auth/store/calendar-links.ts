/** Links by which programs read the calendar of a user: one for each, and it ends with all sessions of the user. */
import type { Database } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { NOW, on } from '../../../mixins/models/sequelize.ts';
import { CalendarLinkModel } from '../models/calendar-link.ts';
import type { AuditEntries } from './audit-entries.ts';
import { calendarLinkChanged } from './entries.ts';
import { lockCredential } from './factors.sql.ts';
import type { SignedInUser, UserKey } from './factors.ts';

export class CalendarLinks {
  readonly #database: Database;
  readonly #trail: AuditEntries;

  constructor(database: Database, trail: AuditEntries) {
    this.#database = database;
    this.#trail = trail;
  }

  /** When the link of the user was created; null: there is none. */
  async createdAt({ tenantId, userId }: UserKey): Promise<string | null> {
    const link = await this.#database.shared('auth', tenantId, (tx) =>
      CalendarLinkModel.findOne({ attributes: ['createdAt'], where: { tenantId, userId }, ...on(tx) }),
    );
    return link && String(link.createdAt);
  }

  /** Takes the place of an earlier link. False when the sign-in has ended. */
  replace({ tenantId, userId, sessionGeneration }: SignedInUser, tokenHash: Buffer): Promise<boolean> {
    return this.#trail.change(tenantId, async (tx, note) => {
      const { rowCount } = await tx.query(lockCredential(tenantId, userId, sessionGeneration));
      if (rowCount === 0) return false;
      await CalendarLinkModel.upsert({ tenantId, userId, tokenHash, createdAt: NOW }, on(tx));
      await note(calendarLinkChanged(userId, 'create'));
      return true;
    });
  }

  /** False: there was none. */
  remove({ tenantId, userId }: UserKey): Promise<boolean> {
    return this.#trail.change(tenantId, async (tx, note) => {
      if ((await CalendarLinkModel.destroy({ where: { tenantId, userId }, ...on(tx) })) === 0) return false;
      await note(calendarLinkChanged(userId, 'revoke'));
      return true;
    });
  }

  /** The active user of a link. The tenant is not known yet: the link carries nothing but its token. */
  userOf(tokenHash: Buffer): Promise<UserKey | null> {
    return this.#database.login((tx) => tx.first<UserKey>(userByLink(tokenHash)));
  }
}

function userByLink(tokenHash: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT tenant_id AS "tenantId", user_id AS "userId"
     FROM auth.calendar_links JOIN auth.credentials credential USING (tenant_id, user_id)
     WHERE token_hash = ${sql.bind(tokenHash, 'bytea')} AND credential.active`,
  );
}

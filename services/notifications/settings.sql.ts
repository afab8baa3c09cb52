/** Statements about the preferences of users. */
import { LIMITS } from '../../lib/limits.ts';
import type { Severity } from '../../lib/notice.ts';
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';
import type { ChosenChannels } from './channels.ts';
import type { Recipient } from './items.sql.ts';
import type { QuietHours } from './quiet-hours.ts';

export interface Settings {
  readonly channels: ChosenChannels;
  readonly quiet: QuietHours | null;
  /** false: the user has turned off all mails by a link in one. */
  readonly mails: boolean;
}

export const NO_SETTINGS: Settings = { channels: {}, quiet: null, mails: true };

/** With `userId` and when the last mails left, in milliseconds since 1970. */
export interface SettingsRow extends Settings {
  readonly userId: string;
  readonly mailedAt: number | null;
  readonly criticalMailedAt: number | null;
}

const COLUMNS = `user_id AS "userId", channels, mails,
      CASE WHEN quiet_from IS NOT NULL THEN json_build_object('from', quiet_from, 'to', quiet_to) END AS quiet,
      (extract(epoch FROM mailed_at) * 1000)::float8 AS "mailedAt",
      (extract(epoch FROM critical_mailed_at) * 1000)::float8 AS "criticalMailedAt"`;

export function settingsSql(tenantId: string, userIds: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${COLUMNS}
    FROM notifications.settings WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
      AND user_id = ANY (${sql.bind(userIds, 'uuid[]')})`);
}

/** The settings of a user, made where they have none, and locked until the transaction ends. */
export function ownSettingsSql({ tenantId, userId }: Recipient): Statement {
  const sql = new Sql();
  return sql.statement(`INSERT INTO notifications.settings (tenant_id, user_id)
    VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(userId, 'uuid')})
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET user_id = excluded.user_id RETURNING ${COLUMNS}`);
}

export function storeSettingsSql({ tenantId, userId }: Recipient, { channels, quiet, mails }: Settings): Statement {
  const sql = new Sql();
  return sql.statement(`INSERT INTO notifications.settings (tenant_id, user_id, channels, quiet_from, quiet_to, mails)
    VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(userId, 'uuid')}, ${sql.bind(JSON.stringify(channels), 'jsonb')},
      ${sql.bind(quiet?.from ?? null, 'text')}, ${sql.bind(quiet?.to ?? null, 'text')}, ${sql.bind(mails, 'boolean')})
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET channels = excluded.channels, quiet_from = excluded.quiet_from,
      quiet_to = excluded.quiet_to, mails = excluded.mails`);
}

/**
 * Locks the settings of a user whose mail is due, until the transaction ends, so that one process at a time makes it. Stores the
 * hash of the token in its link.
 */
export function lockSettingsSql({ tenantId, userId }: Recipient, tokenHash: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(`INSERT INTO notifications.settings (tenant_id, user_id, unsubscribe_hash)
    VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(userId, 'uuid')}, ${sql.bind(tokenHash, 'bytea')})
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET unsubscribe_hash = excluded.unsubscribe_hash RETURNING ${COLUMNS}`);
}

/** Notes that a mail with notifications of these severities leaves. */
export function mailLeavesSql({ tenantId, userId }: Recipient, severities: readonly Severity[]): Statement {
  const sql = new Sql();
  const all = sql.bind(severities, 'text[]');
  return sql.statement(`UPDATE notifications.settings SET
      mailed_at = CASE WHEN 'critical' = ALL (${all}) THEN mailed_at ELSE now() END,
      critical_mailed_at = CASE WHEN 'critical' = ANY (${all}) THEN now() ELSE critical_mailed_at END
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`);
}

/** Turns off the mails of the user whose links have the token with this hash. */
export function stopMailsSql(tokenHash: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE notifications.settings SET mails = false WHERE unsubscribe_hash = ${sql.bind(tokenHash, 'bytea')}`,
  );
}

/** Types of which the user has notifications. */
export function typesSql({ tenantId, userId }: Recipient): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT DISTINCT type FROM notifications.items
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}
    ORDER BY type LIMIT ${LIMITS.notification_types_max}`);
}

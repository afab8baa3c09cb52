/** Statements about mails of notifications that are due. */
import { LIMITS } from '../../lib/limits.ts';
import type { Severity } from '../../lib/notice.ts';
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';
import type { Delivery, Recipient } from './items.sql.ts';
import { SAME_MAIL_MS } from './mail-time.ts';

/** A mail lists so many; the others are counted. */
export const MAIL_ITEMS_MAX = 20;
/** Afterwards another process takes what one has not ended. */
const LEASE_SECONDS = 300;

/** Users for whom a mail is due. The login of the service looks across tenants. */
export function dueSql(take: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT tenant_id AS "tenantId", user_id AS "userId" FROM notifications.items
    WHERE mail_at <= now() GROUP BY tenant_id, user_id ORDER BY min(mail_at) LIMIT ${sql.bind(take, 'int')}`);
}

export interface MailedItem {
  readonly notificationId: string;
  readonly mailId: string;
  /** false: a lost process had taken it before, in the same mail. */
  readonly isNew: boolean;
  readonly severity: Severity;
  readonly objectApiName: string | null;
  readonly recordId: string | null;
  readonly actorId: string | null;
  /** In milliseconds since 1970. */
  readonly createdAt: number;
  readonly title: string;
  readonly body: string;
  readonly status: string;
}

/**
 * Takes what is due, with what follows within a minute: first again what a lost process had taken, in the same mail as
 * before; `mailId` is that of a new one.
 */
export function takeSql({ tenantId, userId }: Recipient, mailId: string): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const user = sql.bind(userId, 'uuid');
  return sql.statement(`WITH due AS (
      SELECT notification_id, mail_id FROM notifications.items
      WHERE tenant_id = ${tenant} AND user_id = ${user}
        AND mail_at <= CASE WHEN mail_id IS NULL THEN now() + interval '${SAME_MAIL_MS} milliseconds' ELSE now() END
      ORDER BY mail_id, notification_id LIMIT ${LIMITS.notifications_of_user_max} FOR UPDATE SKIP LOCKED),
    first AS (SELECT mail_id FROM due ORDER BY mail_id LIMIT 1)
    UPDATE notifications.items item SET mail_id = coalesce(due.mail_id, ${sql.bind(mailId, 'uuid')}),
      mail_at = now() + interval '${LEASE_SECONDS} seconds'
    FROM due, first WHERE item.tenant_id = ${tenant} AND item.notification_id = due.notification_id
      AND due.mail_id IS NOT DISTINCT FROM first.mail_id
    RETURNING item.notification_id AS "notificationId", item.mail_id AS "mailId", due.mail_id IS NULL AS "isNew", item.severity,
      item.object_api_name AS "objectApiName", item.record_id AS "recordId", item.actor_id AS "actorId", item.title, item.body, item.status,
      (extract(epoch FROM item.created_at) * 1000)::float8 AS "createdAt"`);
}

/** The outcome of these notifications on the channel. A mail that is `queued` keeps its id: auth knows what becomes of it. */
export function mailedSql(tenantId: string, ids: readonly string[], outcome: Omit<Delivery, 'at'>): Statement {
  const sql = new Sql();
  const delivery = sql.bind(JSON.stringify(outcome), 'jsonb');
  return sql.statement(`UPDATE notifications.items SET mail_at = NULL,
      mail_id = CASE WHEN ${delivery} ->> 'state' = 'queued' THEN mail_id END,
      deliveries = jsonb_set(deliveries, '{email}', ${delivery} || jsonb_build_object('at', now()))
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND notification_id = ANY (${sql.bind(ids, 'uuid[]')})`);
}

/** Puts back what was taken for a mail but has to wait until the time of `at`, in milliseconds since 1970. */
export function holdSql(
  tenantId: string,
  held: readonly { readonly notificationId: string; readonly at: number }[],
): Statement {
  const sql = new Sql();
  return sql.statement(`UPDATE notifications.items item SET mail_id = NULL, mail_at = to_timestamp(held.at / 1000)
    FROM jsonb_to_recordset(${sql.bind(JSON.stringify(held), 'jsonb')}) AS held ("notificationId" uuid, at float8)
    WHERE item.tenant_id = ${sql.bind(tenantId, 'uuid')} AND item.notification_id = held."notificationId"`);
}

/** Mails of which it is not known yet what has become of them, those behind `after`. */
export function openMailsSql(tenantId: string, after: string | null, take: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT DISTINCT mail_id AS "mailId" FROM notifications.items
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND mail_id IS NOT NULL AND mail_at IS NULL
      AND (${sql.bind(after, 'uuid')} IS NULL OR mail_id > ${sql.bind(after, 'uuid')})
    ORDER BY mail_id LIMIT ${sql.bind(take, 'int')}`);
}

export function settleMailSql(tenantId: string, mailId: string, outcome: Omit<Delivery, 'at'>): Statement {
  const sql = new Sql();
  const delivery = sql.bind(JSON.stringify(outcome), 'jsonb');
  return sql.statement(`UPDATE notifications.items SET mail_id = NULL,
      deliveries = jsonb_set(deliveries, '{email}', ${delivery} || jsonb_build_object('at', now()))
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND mail_id = ${sql.bind(mailId, 'uuid')} AND mail_at IS NULL`);
}

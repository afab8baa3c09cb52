/** Statements about notifications. */
import type { Channel, DeliveryBody, NotificationAction, Status } from '../../contracts/notifications.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { Severity } from '../../lib/notice.ts';
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';

/** What became of a notification on a channel. */
export type Delivery = Omit<DeliveryBody, 'channel'>;

export interface ItemRow {
  readonly notificationId: string;
  readonly type: string;
  readonly severity: Severity;
  readonly title: string;
  readonly body: string;
  readonly objectApiName: string | null;
  readonly recordId: string | null;
  readonly actorId: string | null;
  readonly agentRunId: string | null;
  readonly actions: readonly NotificationAction[];
  readonly status: Status;
  readonly createdAt: string;
  readonly readAt: string | null;
  readonly expiresAt: string;
  readonly deliveries: Readonly<Record<Channel, Delivery>>;
  /** Of the mail that has it; null: there is none, or it is known what became of it. */
  readonly mailId: string | null;
}

const COLUMNS = `notification_id AS "notificationId", type, severity, title, body, object_api_name AS "objectApiName",
  record_id AS "recordId", actor_id AS "actorId", agent_run_id AS "agentRunId", actions, status, created_at AS "createdAt",
  read_at AS "readAt", expires_at AS "expiresAt", deliveries, mail_id AS "mailId"`;

/** Of whom the statements are: they see no notification of another user. */
export interface Recipient {
  readonly tenantId: string;
  readonly userId: string;
}

const ofUser = (sql: Sql, { tenantId, userId }: Recipient): string =>
  `tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')} AND in_app AND expires_at > now()`;

interface ItemsQuery {
  readonly statuses: readonly Status[];
  readonly type: string | null;
  readonly before: string | null;
  readonly take: number;
}

/** The newest ones first. */
export function itemsSql(recipient: Recipient, { statuses, type, before, take }: ItemsQuery): Statement {
  const sql = new Sql();
  const conditions = [
    ofUser(sql, recipient),
    `status = ANY (${sql.bind(statuses, 'text[]')})`,
    ...(type === null ? [] : [`type = ${sql.bind(type, 'text')}`]),
    ...(before === null ? [] : [`notification_id < ${sql.bind(before, 'uuid')}`]),
  ];
  return sql.statement(`SELECT ${COLUMNS} FROM notifications.items WHERE ${conditions.join(' AND ')}
    ORDER BY notification_id DESC LIMIT ${sql.bind(take, 'int')}`);
}

export function unreadSql(recipient: Recipient): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT count(*)::int AS unread FROM notifications.items WHERE ${ofUser(sql, recipient)} AND status = 'unread'`,
  );
}

export function itemSql(recipient: Recipient, notificationId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${COLUMNS} FROM notifications.items
    WHERE ${ofUser(sql, recipient)} AND notification_id = ${sql.bind(notificationId, 'uuid')}`);
}

/** Answers the notification as it is then; no row: there is none. */
export function statusSql(recipient: Recipient, notificationId: string, status: Status): Statement {
  const sql = new Sql();
  const next = sql.bind(status, 'text');
  return sql.statement(`UPDATE notifications.items SET status = ${next},
      read_at = CASE WHEN ${next} = 'unread' THEN NULL ELSE coalesce(read_at, now()) END
    WHERE ${ofUser(sql, recipient)} AND notification_id = ${sql.bind(notificationId, 'uuid')} RETURNING ${COLUMNS}`);
}

/** `before`: RFC 3339. */
export function markReadSql(recipient: Recipient, before: string, type: string | null): Statement {
  const sql = new Sql();
  const ofType = type === null ? '' : ` AND type = ${sql.bind(type, 'text')}`;
  return sql.statement(`UPDATE notifications.items SET status = 'read', read_at = now()
    WHERE ${ofUser(sql, recipient)} AND status = 'unread' AND created_at <= ${sql.bind(before, 'timestamptz')}${ofType}`);
}

export interface NewItem {
  readonly notificationId: string;
  readonly userId: string;
  readonly type: string;
  readonly severity: Severity;
  readonly title: string;
  readonly body: string;
  readonly objectApiName: string | null;
  readonly recordId: string | null;
  readonly actorId: string | null;
  readonly agentRunId: string | null;
  readonly actions: readonly NotificationAction[];
  readonly dedupeKey: string | null;
  readonly inApp: boolean;
  /** When a mail is due that has it, RFC 3339; null: none is. */
  readonly mailAt: string | null;
  readonly deliveries: Readonly<Record<Channel, Omit<Delivery, 'at'>>>;
}

/** Answers the users who did not have one of the type with the dedupe key. */
export function insertItemsSql(tenantId: string, items: readonly NewItem[]): Statement {
  const sql = new Sql();
  return sql.statement(`INSERT INTO notifications.items (tenant_id, notification_id, user_id, type, severity, title, body,
      object_api_name, record_id, actor_id, agent_run_id, actions, dedupe_key, in_app, expires_at, deliveries,
      mail_at)
    SELECT ${sql.bind(tenantId, 'uuid')}, "notificationId", "userId", type, severity, title, body, "objectApiName", "recordId",
      "actorId", "agentRunId", actions, "dedupeKey", "inApp", now() + interval '${LIMITS.notification_days} days', deliveries, "mailAt"
    FROM jsonb_to_recordset(${sql.bind(JSON.stringify(items), 'jsonb')}) AS item ("notificationId" uuid, "userId" uuid,
      type text, severity text, title text, body text, "objectApiName" text, "recordId" uuid, "actorId" uuid,
      "agentRunId" uuid, actions jsonb, "dedupeKey" text, "inApp" boolean, deliveries jsonb,
      "mailAt" timestamptz)
    ORDER BY "userId"
    ON CONFLICT (tenant_id, user_id, type, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
    RETURNING user_id AS "userId", notification_id AS "notificationId"`);
}

/** Removes what a user has too many of: archived and read ones before unread ones, the oldest first. */
export function trimSql(tenantId: string, userIds: readonly string[]): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(`DELETE FROM notifications.items WHERE tenant_id = ${tenant} AND notification_id IN (
    SELECT surplus.notification_id FROM unnest(${sql.bind(userIds, 'uuid[]')}) AS recipient (user_id), LATERAL (
      SELECT notification_id FROM notifications.items item
      WHERE item.tenant_id = ${tenant} AND item.user_id = recipient.user_id
      ORDER BY (item.status = 'unread') DESC, notification_id DESC OFFSET ${LIMITS.notifications_of_user_max}) surplus)`);
}

/** Counts recipients of what a user sends; answers how many there are in this hour. */
export function countSentSql({ tenantId, userId }: Recipient, recipients: number): Statement {
  const sql = new Sql();
  const count = sql.bind(recipients, 'int');
  const isOver = "settings.sent_since < now() - interval '1 hour'";
  return sql.statement(`INSERT INTO notifications.settings AS settings (tenant_id, user_id, sent)
    VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(userId, 'uuid')}, ${count})
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET
      sent = CASE WHEN ${isOver} THEN ${count} ELSE settings.sent + ${count} END,
      sent_since = CASE WHEN ${isOver} THEN now() ELSE settings.sent_since END
    RETURNING sent, extract(epoch FROM sent_since + interval '1 hour' - now())::int AS "secondsLeft"`);
}

export function removeExpiredSql(tenantId: string, take: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(`DELETE FROM notifications.items WHERE tenant_id = ${tenant} AND notification_id IN (
    SELECT notification_id FROM notifications.items WHERE tenant_id = ${tenant} AND expires_at < now()
    LIMIT ${sql.bind(take, 'int')})`);
}

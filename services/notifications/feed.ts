/** The notifications of a user, as they read and mark them. Source: docs/reference/notifications.md. */
import { CHANNELS, type NotificationBody, type Status } from '../../contracts/notifications.ts';
import type { Handler } from '../../contracts/operations.ts';
import { askerOf, type RequestContext } from '../../lib/context.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import { listPage } from '../../lib/query/list-page.ts';
import { parseListQuery } from '../../lib/query/parse.ts';
import { readInstant } from '../../lib/values/calendar.ts';
import { platformTime } from '../../lib/values/clock.ts';
import { sealFor } from '../../lib/values/sealed.ts';
import { formatTimestamp } from '../../lib/values/time.ts';
import { mutate } from '../../mixins/mutation/mutate.ts';
import type { NotificationsDeps } from './deps.ts';
import { type ItemRow, itemSql, itemsSql, markReadSql, statusSql, unreadSql } from './items.sql.ts';
import { settle } from './mails.ts';
import { readableRecordOf } from './records.ts';

const STATUSES_OF: Readonly<Record<Status | 'all', readonly Status[]>> = {
  unread: ['unread'],
  read: ['read'],
  archived: ['archived'],
  all: ['unread', 'read', 'archived'],
};

export const listItems: Handler<'notifications.items.list', NotificationsDeps> = async (deps, request, { query }) => {
  const { status = null, type = null, ...paging } = query;
  const { database, sealingKeys } = deps;
  const statuses: readonly Status[] = status === null ? ['unread', 'read'] : STATUSES_OF[status];
  const page = await listPage(
    { name: 'notifications.items', parameters: { status, type } },
    parseListQuery(paging, 'query'),
    sealFor(request, sealingKeys, platformTime()),
    {
      rows: ([before = null], take) =>
        database.shared('notifications', request.tenantId, (tx) =>
          tx.all<ItemRow>(itemsSql(request, { statuses, type, before, take })),
        ),
      keys: ({ notificationId }) => [notificationId],
      present: (rows) => presentItems(deps, request, rows),
    },
  );
  const { unread } = await database.shared('notifications', request.tenantId, (tx) =>
    tx.one<{ unread: number }>(unreadSql(request)),
  );
  return { ...page, body: { ...page.body, unreadCount: unread } };
};

export const getItem: Handler<'notifications.items.get', NotificationsDeps> = async (deps, request, { path }) => ({
  body: await presentItem(deps, request, await findItem(deps, request, path.notificationId)),
});

export const updateItem: Handler<'notifications.items.update', NotificationsDeps> = (deps, request, call) =>
  mutate(deps.database, request, call, {
    role: { service: 'notifications' },
    work: async ({ tx, tally }) => {
      tally.records = 0;
      const row = await tx.first<ItemRow>(statusSql(request, call.path.notificationId, call.body.status));
      if (!row) throw notFound();
      return { body: await presentItem(deps, request, row) };
    },
  });

export const markAllRead: Handler<'notifications.items.markAllRead', NotificationsDeps> = (deps, request, call) => {
  const { before, type = null } = call.body;
  if (readInstant(before) === null)
    throw new PlatformError('PARAMETER_INVALID', 'before must be a time such as 2026-11-21T00:01:22.123Z.', {
      errors: [violation('/before', 'PARAMETER_INVALID', 'There is no such time.')],
    });
  return mutate(deps.database, request, call, {
    role: { service: 'notifications' },
    work: async ({ tx, tally }) => {
      tally.records = 0;
      const { rowCount } = await tx.query(markReadSql(request, before, type));
      return { status: 201, body: { updated: rowCount } };
    },
  });
};

export const listDeliveries: Handler<'notifications.deliveries.list', NotificationsDeps> = async (
  deps,
  request,
  { path },
) => {
  const { notificationId } = path;
  const found = await findItem(deps, request, notificationId);
  // Auth knows what has become of a mail until the sweep asks.
  if (found.mailId !== null) await settle(deps, request.tenantId, [found.mailId]);
  const { deliveries, createdAt } = found.mailId === null ? found : await findItem(deps, request, notificationId);
  const records = CHANNELS.map((channel) => {
    const { state, reason, at } = deliveries[channel];
    return { channel, state, reason, at: time(at ?? createdAt) };
  });
  return { body: { records, nextCursor: null } };
};

async function findItem({ database }: NotificationsDeps, request: RequestContext, id: string): Promise<ItemRow> {
  const row = await database.shared('notifications', request.tenantId, (tx) => tx.first<ItemRow>(itemSql(request, id)));
  if (!row) throw notFound();
  return row;
}

const notFound = (): PlatformError =>
  new PlatformError('NOTIFICATION_NOT_FOUND', 'The notification does not exist, or it is that of another user.');

async function presentItem(deps: NotificationsDeps, request: RequestContext, row: ItemRow): Promise<NotificationBody> {
  const [item] = await presentItems(deps, request, [row]);
  if (!item) throw new Error('Assertion failed: a row is a notification');
  return item;
}

/** Each with its record, where the caller can read it at this moment. */
async function presentItems(
  deps: NotificationsDeps,
  request: RequestContext,
  rows: readonly ItemRow[],
): Promise<NotificationBody[]> {
  const recordOf = await readableRecordOf(deps, askerOf(request), rows);
  return rows.map((row) => ({
    notificationId: row.notificationId,
    type: row.type,
    title: row.title,
    body: row.body,
    severity: row.severity,
    record: recordOf(row),
    actor: row.actorId === null ? null : { userId: row.actorId, agentRunId: row.agentRunId },
    actions: [...row.actions],
    status: row.status,
    createdAt: time(row.createdAt),
    readAt: row.readAt === null ? null : time(row.readAt),
    expiresAt: time(row.expiresAt),
  }));
}

const time = (text: string): string => formatTimestamp(new Date(text));

/**
 * Makes the notifications of a notice, in the transaction of its caller: one for each recipient, with what becomes of it on
 * each channel. Source: docs/reference/notifications.md.
 */
import type { UserIdentity } from '../../contracts/data.ts';
import type { Notice } from '../../lib/notice.ts';
import { uuidv7 } from '../../lib/values/ids.ts';
import type { Tx } from '../../mixins/database/database.ts';
import type { Unit } from '../../mixins/mutation/unit.ts';
import type { NotificationsDeps } from './deps.ts';
import { insertItemsSql, type NewItem, trimSql } from './items.sql.ts';
import { actionIn, textOf } from './texts/texts.ts';

/** Active users by id. */
export type Users = ReadonlyMap<string, UserIdentity>;

export const readRecipients = async (
  { listUsers }: NotificationsDeps,
  tenantId: string,
  userIds: readonly string[],
): Promise<Users> => {
  const users = await listUsers({ tenantId, userIds: [...new Set(userIds)] });
  return new Map(users.filter(({ active }) => active).map((user) => [user.id, user]));
};

/** Answers how many were made. `users`: the recipients, and the actor; those that are missing get none. */
export async function createItems(
  tx: Tx,
  tenantId: string,
  notice: Notice,
  users: Users,
  emit: Unit['emit'],
): Promise<number> {
  const { type, severity = 'info', record = null, actor = null, action = null, dedupeKey = null } = notice;
  const actorName = (actor && users.get(actor.userId)?.displayName) ?? null;
  const items = [...new Set(notice.recipientIds)].flatMap((userId): NewItem[] => {
    const user = users.get(userId);
    if (!user) return [];
    return [
      {
        notificationId: uuidv7(),
        userId,
        type,
        severity,
        ...textOf(notice, user.locale, actorName),
        objectApiName: record?.objectApiName ?? null,
        recordId: record?.id ?? null,
        actorId: actor?.userId ?? null,
        agentRunId: actor?.agentRunId ?? null,
        actions: action ? [actionIn(user.locale, action)] : [],
        dedupeKey,
        inApp: true,
        deliveries: {
          inApp: { state: 'delivered', reason: null },
          email: { state: 'suppressed', reason: 'noChannel' },
          push: { state: 'suppressed', reason: 'noChannel' },
          webhook: { state: 'sent', reason: null },
        },
      },
    ];
  });
  if (items.length === 0) return 0;
  const made = await tx.all<{ userId: string; notificationId: string }>(insertItemsSql(tenantId, items));
  const userIds = made.map(({ userId }) => userId);
  await tx.query(trimSql(tenantId, userIds));
  for (const { userId, notificationId } of made)
    emit({
      type: 'notifications.notification.created',
      recordId: notificationId,
      data: { notificationId, userId, type },
    });
  return made.length;
}

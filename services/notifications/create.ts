/**
 * Makes the notifications of a notice, in the transaction of its caller: one for each recipient, with what becomes of it on
 * each channel. Source: docs/reference/notifications.md.
 */
import type { UserIdentity } from '../../contracts/data.ts';
import type { Notice } from '../../lib/notice.ts';
import { platformTime } from '../../lib/values/clock.ts';
import { uuidv7 } from '../../lib/values/ids.ts';
import type { Tx } from '../../mixins/database/database.ts';
import type { Unit } from '../../mixins/mutation/unit.ts';
import { type Channels, channelsOf, isLocked } from './channels.ts';
import type { NotificationsDeps } from './deps.ts';
import { insertItemsSql, type NewItem, trimSql } from './items.sql.ts';
import { mailTime } from './mail-time.ts';
import { NO_SETTINGS, type Settings, type SettingsRow, settingsSql } from './settings.sql.ts';
import type { NotificationText } from './texts/language.ts';
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

const UNWANTED = { state: 'suppressed', reason: 'preference' } as const;

/** Auth mails requests of agents by itself. */
function mailOf(type: string, { email }: Channels, { mails }: Settings): NewItem['deliveries']['email'] {
  if (isLocked(type)) return { state: 'suppressed', reason: 'sentSeparately' };
  if (!email) return UNWANTED;
  return mails ? { state: 'queued', reason: null } : { state: 'suppressed', reason: 'unsubscribed' };
}

/** Texts by recipient, of a notice that names a template; others follow from its type. */
export type Texts = ReadonlyMap<string, NotificationText>;

export async function readTexts(
  { fillTemplate }: NotificationsDeps,
  tenantId: string,
  notice: Notice,
  users: Users,
): Promise<Texts> {
  const { template = null, record = null, recipientIds } = notice;
  const texts = new Map<string, NotificationText>();
  if (template === null || record === null) return texts;
  const name = actorName(notice, users);
  for (const userId of new Set(recipientIds))
    if (users.has(userId)) {
      const text = await fillTemplate({ tenantId, userId, record, template, actor: name });
      if (text) texts.set(userId, text);
    }
  return texts;
}

let newest = 0;

/** Rises, so that notifications of a user that are made together are listed in their order. */
function risingTime(): number {
  newest = Math.max(platformTime(), newest + 1);
  return newest;
}

const actorName = ({ actor = null }: Notice, users: Users): string | null =>
  (actor && users.get(actor.userId)?.displayName) ?? null;

/** Answers how many were made. `users`: the recipients, and the actor; those that are missing get none. */
export async function createItems(
  tx: Tx,
  tenantId: string,
  { notice, texts }: { readonly notice: Notice; readonly texts: Texts },
  users: Users,
  emit: Unit['emit'],
): Promise<number> {
  const { type, severity = 'info', record = null, actor = null, action = null, dedupeKey = null } = notice;
  const name = actorName(notice, users);
  const userIds = notice.recipientIds.filter((userId) => users.has(userId));
  const rows = await tx.all<SettingsRow>(settingsSql(tenantId, userIds));
  const chosen = new Map(rows.map((row) => [row.userId, row]));
  const [now, idTime] = [platformTime(), risingTime()];
  const items = [...new Set(notice.recipientIds)].flatMap((userId): NewItem[] => {
    const user = users.get(userId);
    if (!user) return [];
    const settings = chosen.get(userId) ?? { ...NO_SETTINGS, mailedAt: null, criticalMailedAt: null };
    const channels = channelsOf(type, settings.channels);
    const email = mailOf(type, channels, settings);
    return [
      {
        notificationId: uuidv7(idTime),
        userId,
        type,
        severity,
        ...(texts.get(userId) ?? textOf(notice, user.locale, name)),
        objectApiName: record?.objectApiName ?? null,
        recordId: record?.id ?? null,
        actorId: actor?.userId ?? null,
        agentRunId: actor?.agentRunId ?? null,
        actions: action ? [actionIn(user.locale, action)] : [],
        dedupeKey,
        inApp: channels.inApp,
        mailAt:
          email.state === 'queued'
            ? new Date(mailTime({ ...user, ...settings }, { severity, createdAt: now }, now)).toISOString()
            : null,
        deliveries: {
          inApp: channels.inApp ? { state: 'delivered', reason: null } : UNWANTED,
          email,
          push: { state: 'suppressed', reason: 'noChannel' },
          webhook: channels.webhook ? { state: 'sent', reason: null } : UNWANTED,
        },
      },
    ];
  });
  if (items.length === 0) return 0;
  const made = await tx.all<{ userId: string; notificationId: string }>(insertItemsSql(tenantId, items));
  await tx.query(
    trimSql(
      tenantId,
      made.map(({ userId }) => userId),
    ),
  );
  for (const { userId, notificationId } of made)
    if (channelsOf(type, chosen.get(userId)?.channels ?? {}).webhook)
      emit({
        type: 'notifications.notification.created',
        recordId: notificationId,
        data: { notificationId, userId, type },
      });
  return made.length;
}

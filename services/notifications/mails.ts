/**
 * Mails about notifications, through the outbox of auth: what is due of a user goes in one, with at least ten minutes between
 * two with critical ones, and between two with others, so that a storm is a few mails. Source: docs/reference/notifications.md#mails.
 */
import { createHash, createHmac } from 'node:crypto';
import type { UserIdentity } from '../../contracts/data.ts';
import { platformTime } from '../../lib/values/clock.ts';
import { requestId, uuidv7 } from '../../lib/values/ids.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { WorkLoop } from '../../mixins/jobs/work-loop.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import { readRecipients } from './create.ts';
import type { NotificationsDeps } from './deps.ts';
import type { Delivery, Recipient } from './items.sql.ts';
import { heldUntil } from './mail-time.ts';
import {
  dueSql,
  holdSql,
  MAIL_ITEMS_MAX,
  type MailedItem,
  mailedSql,
  openMailsSql,
  settleMailSql,
  takeSql,
} from './mails.sql.ts';
import { readableRecordOf, recordOf } from './records.ts';
import { lockSettingsSql, mailLeavesSql, type SettingsRow, stopMailsSql } from './settings.sql.ts';

type Outcome = Omit<Delivery, 'at'>;

const LOOK_MS = 2_000;
const AT_A_TIME = 4;
const SETTLED_AT_A_TIME = 200;
const ASK_MS = 30_000;

export const mailLoop = (deps: NotificationsDeps, { log }: Pick<Platform, 'log'>): WorkLoop<Recipient> =>
  new WorkLoop<Recipient>({
    label: 'notifications.mails',
    lookMs: LOOK_MS,
    concurrency: AT_A_TIME,
    due: async (take, left) =>
      (await deps.database.login((tx) => tx.all<Recipient>(dueSql(take + left.length)))).filter(
        (recipient) => !left.includes(keyOf(recipient)),
      ),
    keyOf,
    run: async (recipient) => {
      await mailDue(deps, recipient);
      return 'done';
    },
    failed: (error, recipient) =>
      warnOf(log, error, 'Mails about notifications wait; it is tried again.', recipient ? { ...recipient } : {}),
  });

const keyOf = ({ tenantId, userId }: Recipient): string => `${tenantId} ${userId}`;

/** The same in each mail to a user, so that links of earlier ones work too; stored is its hash alone. */
const unsubscribeToken = ([key]: SealingKeys, { tenantId, userId }: Recipient): string =>
  createHmac('sha256', key).update(`unsubscribe ${tenantId} ${userId}`).digest('base64url');

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Ends the mails of the user whose links have the token; one that is unknown changes nothing. */
export async function stopMails({ database }: Pick<NotificationsDeps, 'database'>, token: string): Promise<void> {
  await database.login((tx) => tx.query(stopMailsSql(hashOf(token))));
}

async function mailDue(deps: NotificationsDeps, recipient: Recipient): Promise<void> {
  const { tenantId, userId } = recipient;
  const user = (await readRecipients(deps, tenantId, [userId])).get(userId);
  const unsubscribe = unsubscribeToken(deps.sealingKeys, recipient);
  const { taken, mails } = await deps.database.shared('notifications', tenantId, (tx) =>
    take(tx, recipient, user, hashOf(unsubscribe)),
  );
  const unread = taken.filter(({ status }) => status === 'unread');
  const hidden = user ? await hiddenOf(deps, recipient, unread) : [];
  const mailed = unread.filter((item) => !hidden.includes(item));
  const outcome = mails
    ? await queue(deps, recipient, mailed, { unsubscribe, digest: digestOf(user, mailed) })
    : UNSUBSCRIBED;
  const ids = (items: readonly MailedItem[]): string[] => items.map(({ notificationId }) => notificationId);
  const read = taken.filter((item) => !unread.includes(item));
  await deps.database.shared('notifications', tenantId, async (tx) => {
    await tx.query(mailedSql(tenantId, ids(read), { state: 'suppressed', reason: 'read' }));
    await tx.query(mailedSql(tenantId, ids(hidden), { state: 'suppressed', reason: 'recordHidden' }));
    await tx.query(mailedSql(tenantId, ids(mailed), outcome));
  });
}

const UNSUBSCRIBED: Outcome = { state: 'suppressed', reason: 'unsubscribed' };

/**
 * What is mailed now, the oldest first. The user may have chosen otherwise since it was due: then it is put back, in the
 * transaction that takes the rest.
 */
async function take(
  tx: Tx,
  recipient: Recipient,
  user: UserIdentity | undefined,
  tokenHash: Buffer,
): Promise<{ readonly taken: readonly MailedItem[]; readonly mails: boolean }> {
  const settings = await tx.one<SettingsRow>(lockSettingsSql(recipient, tokenHash));
  const due = await tx.all<MailedItem>(takeSql(recipient, uuidv7()));
  const now = platformTime();
  const held = due.flatMap((item) => {
    const at = user && item.isNew ? heldUntil({ ...user, ...settings }, item, now) : null;
    return at === null ? [] : [{ notificationId: item.notificationId, at }];
  });
  if (held.length > 0) await tx.query(holdSql(recipient.tenantId, held));
  const waits = new Set(held.map(({ notificationId }) => notificationId));
  const taken = due
    .filter(({ notificationId }) => !waits.has(notificationId))
    .sort((a, b) => (a.notificationId < b.notificationId ? -1 : 1));
  const leaving = taken.filter(({ isNew, status }) => isNew && status === 'unread');
  const severities = leaving.map(({ severity }) => severity);
  if (leaving.length > 0) await tx.query(mailLeavesSql(recipient, severities));
  return { taken, mails: settings.mails };
}

/** Those about records that the user cannot read at this moment. */
async function hiddenOf(
  deps: NotificationsDeps,
  { tenantId, userId }: Recipient,
  items: readonly MailedItem[],
): Promise<MailedItem[]> {
  const asker = {
    requestId: requestId(),
    tenantId,
    userId,
    clientId: 'notifications',
    deadline: platformTime() + ASK_MS,
  };
  const readable = await readableRecordOf(deps, asker, items);
  return items.filter((item) => recordOf(item) !== null && readable(item) === null);
}

const digestOf = (user: UserIdentity | undefined, items: readonly MailedItem[]): 'daily' | 'weekly' | null => {
  const { emailDigest = null } = user ?? {};
  return emailDigest === 'off' || items.every(({ severity }) => severity === 'critical') ? null : emailDigest;
};

/** Puts a mail with these into the outbox of auth, where it waits for the mail server. */
async function queue(
  deps: NotificationsDeps,
  { tenantId, userId }: Recipient,
  items: readonly MailedItem[],
  kind: Pick<Parameters<NotificationsDeps['queueMail']>[0], 'unsubscribe' | 'digest'>,
): Promise<Outcome> {
  const [first] = items;
  if (!first) return { state: 'suppressed', reason: 'read' };
  const shown = items.slice(0, MAIL_ITEMS_MAX);
  const actors = await readRecipients(
    deps,
    tenantId,
    shown.flatMap(({ actorId }) => actorId ?? []),
  );
  const nameOf = (actorId: string | null): string | null => actors.get(actorId ?? '')?.displayName ?? null;
  const answer = await deps.queueMail({
    tenantId,
    userId,
    mailId: first.mailId,
    ...kind,
    items: shown.map(({ title, body, severity, actorId }) => ({ title, body, severity, from: nameOf(actorId) })),
    more: Math.max(0, items.length - MAIL_ITEMS_MAX),
  });
  return answer === 'queued' ? { state: 'queued', reason: null } : { state: 'suppressed', reason: answer };
}

type MailState = Awaited<ReturnType<NotificationsDeps['mailStates']>>[string];

/** The delivery that follows from the state of a mail in auth; null: it is on its way. */
function deliveryOf(state: MailState | undefined): Outcome | null {
  switch (state) {
    case 'waiting':
      return null;
    case 'sent':
      return { state: 'sent', reason: null };
    case 'needless':
      return { state: 'suppressed', reason: 'needless' };
    case 'refused':
    case 'gaveUp':
      return { state: 'failed', reason: state };
    default:
      return { state: 'failed', reason: 'unknown' };
  }
}

/** Asks auth for the states of mails, and stores them. */
export async function settleMails(
  deps: Pick<NotificationsDeps, 'database' | 'mailStates'>,
  tenantId: string,
  signal: AbortSignal,
): Promise<void> {
  let last: string | null = null;
  do {
    const open: { mailId: string }[] = await deps.database.shared('notifications', tenantId, (tx) =>
      tx.all(openMailsSql(tenantId, last, SETTLED_AT_A_TIME)),
    );
    const mailIds = open.map(({ mailId }) => mailId);
    await settle(deps, tenantId, mailIds);
    last = mailIds[SETTLED_AT_A_TIME - 1] ?? null;
  } while (last !== null && !signal.aborted);
}

/** The same of these mails. */
export async function settle(
  { database, mailStates }: Pick<NotificationsDeps, 'database' | 'mailStates'>,
  tenantId: string,
  mailIds: readonly string[],
): Promise<void> {
  if (mailIds.length === 0) return;
  const states = await mailStates({ tenantId, mailIds });
  await database.shared('notifications', tenantId, async (tx) => {
    for (const mailId of mailIds) {
      const delivery = deliveryOf(states[mailId]);
      if (delivery) await tx.query(settleMailSql(tenantId, mailId, delivery));
    }
  });
}

import type { ServiceSchema } from 'moleculer';
import { type ActionHandlers, answering, call } from '../../contracts/call.ts';
import type { NotificationsActions } from '../../contracts/notifications.ts';
import { orEarlier } from '../../mixins/mutation/earlier.ts';
import { NOTICES } from '../../mixins/notices.ts';
import type { Platform } from '../../mixins/platform.ts';
import { sealingKeys } from '../../mixins/sealing-keys.ts';
import type { NotificationsDeps } from './deps.ts';
import { getItem, listDeliveries, listItems, markAllRead, updateItem } from './feed.ts';
import { mailLoop, stopMails } from './mails.ts';
import { notify, workOff } from './notices.ts';
import { getPreferences, updatePreferences } from './preferences.ts';
import { sendItems } from './send.ts';
import { sweepPeriodically } from './sweep.ts';

/** A process that ends gives the mails that it is at so long. */
const LEAVE_MS = 3_000;

/** The Moleculer schema of notifications: it declares and delegates. */
export default async function notificationsService(platform: Platform): Promise<ServiceSchema> {
  const { database, broker, jobs } = platform;
  const deps: NotificationsDeps = {
    database,
    sealingKeys: await sealingKeys(platform, 'cursors of notification lists'),
    queueMail: (question) => call(broker, 'auth.mails.notify', question),
    mailStates: (question) => call(broker, 'auth.mails.states', question),
    listUsers: (question) => call(broker, 'data.users.list', question),
    log: platform.log,
    fillTemplate: (question) => call(broker, 'data.templates.fill', question),
    readableRecords: (question) => call(broker, 'data.records.readable', question),
  };
  const mails = mailLoop(deps, platform);
  const answer = answering(deps);

  return {
    name: 'notifications',
    actions: {
      'items.list': answer(listItems),
      'items.get': answer(getItem),
      'items.update': answer(updateItem),
      'items.markAllRead': answer(markAllRead),
      'items.send': answer(orEarlier(sendItems)),
      'deliveries.list': answer(listDeliveries),
      'preferences.get': answer(getPreferences),
      'preferences.update': answer(orEarlier(updatePreferences)),
      'mails.stop': async ({ params: { token } }) => {
        await stopMails(deps, token);
        return null;
      },
      notify: async ({ params: { tenantId, notice } }) => {
        await notify(deps, tenantId, notice);
        return null;
      },
    } satisfies ActionHandlers<'notifications', NotificationsActions>,
    async started() {
      await jobs.work(NOTICES, ({ payload, signal }) => workOff(deps, payload, signal));
      await sweepPeriodically(platform, deps);
      jobs.onLeave(() => mails.stop(LEAVE_MS));
      mails.wake();
    },
    stopped: () => mails.stop(LEAVE_MS),
  };
}

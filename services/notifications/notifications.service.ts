import type { ServiceSchema } from 'moleculer';
import { type ActionContext, type ActionHandlers, call } from '../../contracts/call.ts';
import type { NotificationsActions } from '../../contracts/notifications.ts';
import { type RequestContext, requestContext } from '../../lib/context.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { orEarlier } from '../../mixins/mutation/earlier.ts';
import { NOTICES } from '../../mixins/notices.ts';
import type { Platform } from '../../mixins/platform.ts';
import { sealingKeys } from '../../mixins/sealing-keys.ts';
import type { NotificationsDeps } from './deps.ts';
import { getItem, listDeliveries, listItems, markAllRead, updateItem } from './feed.ts';
import { notify, workOff } from './notices.ts';
import { sendItems } from './send.ts';
import { sweepPeriodically } from './sweep.ts';

/** The Moleculer schema of notifications: it declares and delegates. */
export default async function notificationsService(platform: Platform): Promise<ServiceSchema> {
  const { database, broker, jobs } = platform;
  const deps: NotificationsDeps = {
    database,
    sealingKeys: await sealingKeys(platform, 'cursors of notification lists'),
    listUsers: (question) => call(broker, 'data.users.list', question),
    seenRecords: (question) => call(broker, 'data.records.seen', question),
  };
  const answer =
    <Input extends OperationCall>(
      handler: (deps: NotificationsDeps, request: RequestContext, input: Input) => Promise<OperationReply>,
    ) =>
    (ctx: ActionContext<Input>): Promise<OperationReply> =>
      handler(deps, requestContext(ctx), ctx.params);

  return {
    name: 'notifications',
    actions: {
      'items.list': answer(listItems),
      'items.get': answer(getItem),
      'items.update': answer(updateItem),
      'items.markAllRead': answer(markAllRead),
      'items.send': answer(orEarlier(sendItems)),
      'deliveries.list': answer(listDeliveries),
      notify: async ({ params: { tenantId, notice } }) => {
        await notify(deps, tenantId, notice);
        return null;
      },
    } satisfies ActionHandlers<'notifications', NotificationsActions>,
    async started() {
      await jobs.work(NOTICES, ({ payload, signal }) => workOff(deps, payload, signal));
      await sweepPeriodically(platform, deps);
    },
  };
}

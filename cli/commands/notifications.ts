/** `notifications`: what the user is told, and what of it was read. */
import { Option } from '@commander-js/extra-typings';
import { LIMITS } from '../../lib/limits.ts';
import { act, addGroup, type Program, type Run } from '../command.ts';
import { wholeNumber } from '../data/assignments.ts';
import { usage } from '../failure.ts';
import { counted } from '../output/values.ts';

const STATUSES = ['unread', 'read', 'archived', 'all'] as const;

export function addNotifications(program: Program): void {
  const notifications = addGroup(program, 'notifications', 'your notifications');
  notifications
    .command('list')
    .description('list your notifications, newest first')
    .addOption(new Option('--status <status>', 'default: unread and read').choices(STATUSES))
    .option('--type <type>', 'of this type, such as recordAssigned')
    .option('--take <number>', `notifications per page (default: ${LIMITS.take_default})`, wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .action(
      act(async (run, { status, type, take, cursor }) => {
        const answer = await (await run.api()).call('notifications.items.list', {
          query: {
            ...(status ? { status } : {}),
            ...(type ? { type } : {}),
            ...(take ? { take } : {}),
            ...(cursor ? { cursor } : {}),
          },
        });
        const { records, nextCursor, unreadCount } = answer.body;
        run.output.result(answer, () => {
          run.output.table(
            [
              { title: 'Id', whole: true },
              { title: 'Status' },
              { title: 'When' },
              { title: 'Title' },
              { title: 'About' },
            ],
            records.map(({ notificationId, status, createdAt, title, record }) => [
              notificationId,
              status,
              createdAt,
              title,
              record ? `${record.objectApiName}/${record.id}` : '',
            ]),
          );
          run.output.note(`${counted(unreadCount, 'notification is', 'notifications are')} unread.`);
          if (nextCursor) run.output.note(`There are more: --cursor ${nextCursor}`);
        });
      }),
    );
  notifications
    .command('read')
    .description('mark notifications as read')
    .argument('[id...]')
    .option('--all', 'all that there are now')
    .action(
      act(async (run, ids, { all }) => {
        if (all ? ids.length > 0 : ids.length === 0)
          throw usage('Name notifications by their ids, or all of them with --all.');
        await (all ? readAll(run) : mark(run, ids, 'read'));
      }),
    );
  notifications
    .command('archive')
    .description('archive notifications')
    .argument('<id...>')
    .action(act((run, ids) => mark(run, ids, 'archived')));
}

async function mark(run: Run, ids: readonly string[], status: 'read' | 'archived'): Promise<void> {
  const api = await run.api();
  for (const notificationId of ids) {
    const answer = await api.call('notifications.items.update', { path: { notificationId }, body: { status } });
    run.output.result(answer, () => run.output.line(notificationId));
  }
}

/** Notifications that arrive meanwhile stay unread. */
async function readAll(run: Run): Promise<void> {
  const api = await run.api();
  const newest = (await api.call('notifications.items.list', { query: { status: 'all', take: 1 } })).body.records[0];
  if (!newest) return run.output.note('There are no notifications.');
  const answer = await api.call('notifications.items.markAllRead', { body: { before: newest.createdAt } });
  run.output.result(answer, () => run.output.line(`Marked as read: ${answer.body.updated}`));
}

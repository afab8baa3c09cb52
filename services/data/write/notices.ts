/** Notifications that follow from writes. Source: docs/reference/notifications.md#how-they-arise. */
import type { Notice } from '../../../lib/notice.ts';
import { requestNotice } from '../../../mixins/notices.ts';
import type { Write } from './write.ts';

/** Asks for a notification with the transaction of the write; a dry run asks for none. */
export async function notice({ unit, deps }: Write, asked: Notice): Promise<void> {
  if (!unit.checkOnly) await requestNotice(unit.tx, deps.platform.jobs, unit.request, asked);
}

/** Tells a user about the record, unless they are the one who acts. */
export async function noticeUser(write: Write, type: 'recordAssigned' | 'recordShared', userId: string): Promise<void> {
  const { object, id, unit } = write;
  const { request } = unit;
  if (userId === request.userId) return;
  await notice(write, {
    type,
    recipientIds: [userId],
    data: { object: object.label },
    record: { objectApiName: object.apiName, id },
    actor: { userId: request.userId, agentRunId: request.agentRunId },
  });
}

/** Step: the new owner learns of it. Jobs move records by the thousand; their creator is told when they end. */
export async function noticeOwner(write: Write): Promise<void> {
  const owner = write.changed.find(({ field }) => field.apiName === 'ownerId')?.value ?? null;
  if (owner !== null && write.unit.request.channel !== 'job' && write.invalid.length === 0)
    await noticeUser(write, 'recordAssigned', String(owner));
}

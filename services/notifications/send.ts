/** Notifications that users send. Source: docs/reference/notifications.md#sending. */
import type { Handler } from '../../contracts/operations.ts';
import { permissionDenied } from '../../lib/access/system-permission.ts';
import { askerOf } from '../../lib/context.ts';
import { PlatformError, type Violation, violation } from '../../lib/errors/platform-error.ts';
import { LIMITS } from '../../lib/limits.ts';
import { textProblem } from '../../lib/schema/field-types/common.ts';
import { recordKey } from '../../lib/schema/record-key.ts';
import { mutate } from '../../mixins/mutation/mutate.ts';
import { createItems, readRecipients } from './create.ts';
import type { NotificationsDeps } from './deps.ts';
import { countSentSql } from './items.sql.ts';
import { isPlatformType } from './texts/texts.ts';

export const sendItems: Handler<'notifications.items.send', NotificationsDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  const { type, data, severity = 'info', dedupeKey = null } = call.body;
  const recipientIds = [...new Set(call.body.recipients.map((id) => id.toLowerCase()))];
  const record = call.body.record ? { ...call.body.record, id: call.body.record.id.toLowerCase() } : null;
  const recipients = recipientIds.map((id) => ({ objectApiName: 'User', id }));
  const [users, read] = await Promise.all([
    readRecipients(deps, tenantId, [userId, ...recipientIds]),
    deps.readableRecords({ asker: askerOf(request), records: record ? [...recipients, record] : recipients }),
  ]);
  const readable = new Set(read.map(recordKey));
  if (!users.get(userId)?.systemPermissions.includes('sendNotifications')) throw permissionDenied('sendNotifications');
  const invalid: Violation[] = [];
  if (isPlatformType(type))
    invalid.push(violation('/type', 'FIELD_READ_ONLY', `${type} is a type of the platform: choose one of your own.`));
  for (const [name, text] of Object.entries(data)) {
    const unfit = textProblem(text);
    if (unfit !== null) invalid.push(violation(`/data/${name}`, 'FIELD_FORMAT_INVALID', `The text ${unfit}`));
  }
  for (const [n, id] of call.body.recipients.entries())
    if (!readable.has(recordKey({ objectApiName: 'User', id: id.toLowerCase() })) || !users.has(id.toLowerCase()))
      invalid.push(violation(`/recipients/${n}`, 'REFERENCE_NOT_FOUND', 'There is no such user whom you can see.'));
  if (record && !readable.has(recordKey(record)))
    invalid.push(violation('/record', 'REFERENCE_NOT_FOUND', 'There is no such record that you can read.'));
  if (invalid.length > 0)
    throw new PlatformError('VALIDATION_FAILED', 'The notification was not sent.', { errors: invalid });
  return mutate(deps.database, request, call, {
    role: { service: 'notifications' },
    work: async (unit) => {
      unit.tally.records = 0;
      const { sent, secondsLeft } = await unit.tx.one<{ sent: number; secondsLeft: number }>(
        countSentSql(request, recipientIds.length),
      );
      if (sent > LIMITS.notification_sent_per_hour_max) throw tooManySent(secondsLeft);
      const notice = {
        type,
        recipientIds,
        data: { title: data.title, body: data.body ?? '' },
        severity,
        record,
        actor: { userId, agentRunId: request.agentRunId },
        dedupeKey,
      };
      const created = await createItems(unit.tx, tenantId, { notice, texts: new Map() }, users, unit.emit);
      unit.audit({ kind: 'create', changes: { type: { from: null, to: type }, sent: { from: null, to: created } } });
      if (created > 0)
        unit.effects.push({ kind: 'notification', objectApiName: 'User', id: null, fields: [], count: created });
      return { status: 201, body: { sent: created, duplicates: recipientIds.length - created } };
    },
  });
};

const tooManySent = (retryAfterSeconds: number): PlatformError =>
  new PlatformError(
    'RATE_LIMIT_EXCEEDED',
    `A user may notify at most ${LIMITS.notification_sent_per_hour_max} recipients an hour.`,
    {
      retryAfterSeconds: Math.max(1, retryAfterSeconds),
      details: { policy: 'notifications', limit: LIMITS.notification_sent_per_hour_max, windowSeconds: 3_600 },
    },
  );

/** Preferences of a user: types by channel, and quiet hours. Source: docs/reference/notifications.md#preferences. */
import { PLATFORM_TYPES, type PreferencesBody } from '../../contracts/notifications.ts';
import type { Handler } from '../../contracts/operations.ts';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { mutate } from '../../mixins/mutation/mutate.ts';
import { type Channels, channelsOf, isLocked } from './channels.ts';
import type { NotificationsDeps } from './deps.ts';
import { NO_SETTINGS, ownSettingsSql, type Settings, settingsSql, storeSettingsSql, typesSql } from './settings.sql.ts';

export const getPreferences: Handler<'notifications.preferences.get', NotificationsDeps> = async (
  { database },
  request,
) => ({ body: await database.shared('notifications', request.tenantId, (tx) => read(tx, request)) });

export const updatePreferences: Handler<'notifications.preferences.update', NotificationsDeps> = (
  { database },
  request,
  call,
) => {
  const { records = [], quietHours } = call.body;
  const locked = records.flatMap(({ type }, n) =>
    isLocked(type) ? [violation(`/records/${n}/type`, 'FIELD_READ_ONLY', `${type} cannot be turned off.`)] : [],
  );
  if (locked.length > 0)
    throw new PlatformError('VALIDATION_FAILED', 'The preferences were not changed.', { errors: locked });
  return mutate(database, request, call, {
    role: { service: 'notifications' },
    work: async ({ tx, tally }) => {
      tally.records = 0;
      const before = await tx.one<Settings>(ownSettingsSql(request));
      const channels: Record<string, Partial<Channels>> = { ...before.channels };
      for (const { type, channels: changed } of records) channels[type] = { ...channels[type], ...changed };
      if (Object.keys(channels).length > LIMITS.notification_types_max)
        throw new PlatformError(
          'TOO_MANY_ITEMS',
          `A user may choose for at most ${LIMITS.notification_types_max} types.`,
          {
            details: { max: LIMITS.notification_types_max },
          },
        );
      const quiet = quietHours === undefined ? before.quiet : quietHours;
      // A user who turns mails on again wants them, also after a link in a mail has turned off all of them.
      const mails = before.mails || records.some(({ channels: { email } }) => email === true);
      await tx.query(storeSettingsSql(request, { channels, quiet, mails }));
      return { body: await read(tx, request) };
    },
  });
};

async function read(tx: Tx, request: RequestContext): Promise<PreferencesBody> {
  const { channels, quiet, mails } = await settingsOf(tx, request);
  const received = await tx.all<{ type: string }>(typesSql(request));
  const types = new Set([...PLATFORM_TYPES, ...Object.keys(channels), ...received.map(({ type }) => type)]);
  return {
    records: [...types].sort().map((type) => {
      const [on, locked] = [channelsOf(type, channels), isLocked(type)];
      return { type, channels: { ...on, email: on.email && (mails || locked) }, locked };
    }),
    quietHours: quiet,
  };
}

async function settingsOf(tx: Tx, { tenantId, userId }: RequestContext): Promise<Settings> {
  return (await tx.first<Settings>(settingsSql(tenantId, [userId]))) ?? NO_SETTINGS;
}

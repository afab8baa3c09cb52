/** The calendar of a user as a file. */
import type { Handler } from '../../contracts/operations.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { LIMITS } from '../../lib/limits.ts';
import { platformTime } from '../../lib/values/clock.ts';
import type { CalendarDeps } from './deps.ts';
import { type ExpandedRow, sizeSql, WITHOUT_ATTENDEES, windowSql } from './events/events.sql.ts';
import { inTurns } from './events/turns.ts';
import { icsParts } from './ics.ts';
import { DAY_MS } from './recurrence/times.ts';

const MAX_EVENTS = LIMITS.calendar_export_events_max;
const MAX_BYTES = LIMITS.calendar_export_max_bytes;

const tooLarge = (): PlatformError =>
  new PlatformError('TOO_MANY_ITEMS', 'The calendar is too large for a file; list its events.', {
    details: { max: MAX_EVENTS },
  });

/**
 * Events that have not ended a year ago.
 * @throws PlatformError CALENDAR_NOT_FOUND, or TOO_MANY_ITEMS before it holds much more than a file may have.
 */
export const exportCalendar: Handler<'calendar.calendars.export', CalendarDeps> = async (deps, request, { path }) => {
  const { tenantId, userId: calendarId } = request;
  if (path.calendarId.toLowerCase() !== calendarId)
    throw new PlatformError('CALENDAR_NOT_FOUND', 'The calendar does not exist, or you have no access to it.');
  const now = platformTime();
  const from = new Date(now - LIMITS.calendar_export_days * DAY_MS).toISOString();
  const of = { calendarId, mine: null };
  const events = await deps.database.shared('calendar', tenantId, async (tx) => {
    const size = await tx.first<{ events: number; bytes: number }>(sizeSql(tenantId, calendarId, from, MAX_EVENTS + 1));
    // JSON may be longer than the file by what it escapes.
    if (!size || size.events > MAX_EVENTS || size.bytes > 2 * MAX_BYTES) throw tooLarge();
    return tx.all<ExpandedRow>(
      windowSql(tenantId, of, from, '9000-01-01T00:00:00Z', MAX_EVENTS + 1, WITHOUT_ATTENDEES),
    );
  });
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const text of inTurns(icsParts(events, now))) {
    const part = Buffer.from(text);
    bytes += part.length;
    if (bytes > MAX_BYTES) throw tooLarge();
    parts.push(part);
  }
  return {
    headers: { 'Content-Disposition': 'attachment; filename="calendar.ics"' },
    body: Buffer.concat(parts),
  };
};

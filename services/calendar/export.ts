/** The calendar of a user as a file, for the user and for programs that have the user's link. */
import type { CalendarActions } from '../../contracts/calendar.ts';
import type { Handler } from '../../contracts/operations.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { LIMITS } from '../../lib/limits.ts';
import { platformTime } from '../../lib/values/clock.ts';
import { matchesEtag, strongEtag } from '../../lib/values/etags.ts';
import type { CalendarDeps } from './deps.ts';
import { type ExpandedRow, positionSql, sizeSql, WITHOUT_ATTENDEES, windowSql } from './events/events.sql.ts';
import { inTurns } from './events/turns.ts';
import { icsParts } from './ics.ts';
import { DAY_MS } from './recurrence/times.ts';

const MAX_EVENTS = LIMITS.calendar_export_events_max;
const MAX_BYTES = LIMITS.calendar_export_max_bytes;

const tooLarge = (): PlatformError =>
  new PlatformError('TOO_MANY_ITEMS', 'The calendar is too large for a file; list its events.', {
    details: { max: MAX_EVENTS },
  });

export const exportCalendar: Handler<'calendar.calendars.export', CalendarDeps> = async (deps, request, { path }) => {
  const { tenantId, userId: calendarId } = request;
  if (path.calendarId.toLowerCase() !== calendarId)
    throw new PlatformError('CALENDAR_NOT_FOUND', 'The calendar does not exist, or you have no access to it.');
  return {
    headers: { 'Content-Disposition': 'attachment; filename="calendar.ics"' },
    body: await fileOf(deps, tenantId, calendarId, null),
  };
};

/** Changes with the form of the file, so that programs read it again. */
const FORM = 1;

/** The file for programs that ask again and again: one that has this version learns so at the cost of a look. */
export async function readFeed(
  deps: CalendarDeps,
  { tenantId, userId, name, ifNoneMatch }: CalendarActions['calendar.feeds.read']['params'],
): Promise<CalendarActions['calendar.feeds.read']['result']> {
  // A calendar that was restored or moved has its positions once more.
  const { epoch } = await deps.epoch({ tenantId });
  const state = await deps.database.shared('calendar', tenantId, (tx) =>
    tx.first<{ position: string }>(positionSql(tenantId, userId)),
  );
  // Events leave the file as they get old, and the changes of clocks in it are those around the day.
  const day = Math.floor(platformTime() / DAY_MS);
  const etag = strongEtag([FORM, userId, name, epoch, state?.position ?? 0, day].join(' '));
  if (matchesEtag(ifNoneMatch ?? undefined, etag)) return { etag, body: null };
  return { etag, body: await fileOf(deps, tenantId, userId, name) };
}

/**
 * Events that have not ended a year ago. `name`: what programs call the calendar.
 * @throws PlatformError TOO_MANY_ITEMS before it holds much more than a file may have.
 */
async function fileOf(
  deps: Pick<CalendarDeps, 'database'>,
  tenantId: string,
  calendarId: string,
  name: string | null,
): Promise<Buffer> {
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
  for await (const text of inTurns(icsParts(events, now, name))) {
    const part = Buffer.from(text);
    bytes += part.length;
    if (bytes > MAX_BYTES) throw tooLarge();
    parts.push(part);
  }
  return Buffer.concat(parts);
}

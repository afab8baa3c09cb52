/** The calendar of a user as a file, for the user and for programs that have the subscription link. */
import { hash, randomBytes } from 'node:crypto';
import { addressOf, type Handler, type OperationInput } from '../../contracts/operations.ts';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { OperationReply } from '../../lib/operation.ts';
import { platformTime } from '../../lib/values/clock.ts';
import { formatTimestamp } from '../../lib/values/time.ts';
import { mutate } from '../../mixins/mutation/mutate.ts';
import type { CalendarDeps } from './deps.ts';
import { type ExpandedRow, sizeSql, WITHOUT_ATTENDEES, windowSql } from './events/events.sql.ts';
import { inTurns } from './events/turns.ts';
import { icsParts } from './ics.ts';
import { deleteLinkSql, linkSql, storeLinkSql } from './links.sql.ts';
import { DAY_MS } from './recurrence/times.ts';

const calendarNotFound = (): PlatformError =>
  new PlatformError('CALENDAR_NOT_FOUND', 'The calendar does not exist, or you have no access to it.');

/** Refuses every calendar but that of the caller. */
function requireOwn({ userId }: RequestContext, calendarId: string): void {
  if (calendarId.toLowerCase() !== userId) throw calendarNotFound();
}

export const exportCalendar: Handler<'calendar.calendars.export', CalendarDeps> = async (deps, request, { path }) => {
  requireOwn(request, path.calendarId);
  return file(deps, request.tenantId, request.userId);
};

const MAX_EVENTS = LIMITS.calendar_export_events_max;
const MAX_BYTES = LIMITS.calendar_export_max_bytes;

const tooLarge = (): PlatformError =>
  new PlatformError('TOO_MANY_ITEMS', 'The calendar is too large for a file; list its events.', {
    details: { max: MAX_EVENTS },
  });

/** Events that have not ended a year ago. Throws TOO_MANY_ITEMS before it holds much more than a file may have. */
async function file({ database }: CalendarDeps, tenantId: string, calendarId: string): Promise<OperationReply> {
  const now = platformTime();
  const from = new Date(now - LIMITS.calendar_export_days * DAY_MS).toISOString();
  const of = { calendarId, mine: null };
  const events = await database.shared('calendar', tenantId, async (tx) => {
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
}

const UUID_BYTES = 16;
const SECRET_BYTES = 32;

/** Tenant, user and secret in one text. */
const linkOf = (tenantId: string, userId: string, secret: Buffer): string =>
  Buffer.from(`${tenantId}${userId}${secret.toString('hex')}`.replaceAll('-', ''), 'hex').toString('base64url');

const uuidOf = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

const hashOf = (secret: Buffer): string => hash('sha256', secret);

export const createLink: Handler<'calendar.subscriptionLinks.create', CalendarDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  requireOwn(request, call.path.calendarId);
  const secret = randomBytes(SECRET_BYTES);
  return mutate(deps.database, request, call, {
    role: { service: 'calendar' },
    work: async (unit) => {
      await unit.tx.query(storeLinkSql(tenantId, userId, hashOf(secret)));
      unit.audit({ recordId: userId, kind: 'update', changes: { subscriptionLink: 'created' } });
      const body = { calendarId: userId, createdAt: formatTimestamp(platformTime()) };
      const link = `${linkOf(tenantId, userId, secret)}.ics`;
      const url = `${deps.baseUrl}${addressOf('calendar.feeds.get', { link })}`;
      return { status: 201, body: { ...body, url }, kept: { ...body, url: null } };
    },
  });
};

export const deleteLink: Handler<'calendar.subscriptionLinks.delete', CalendarDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  requireOwn(request, call.path.calendarId);
  return mutate(deps.database, request, call, {
    role: { service: 'calendar' },
    work: async (unit) => {
      await unit.tx.query(deleteLinkSql(tenantId, userId));
      unit.audit({ recordId: userId, kind: 'update', changes: { subscriptionLink: 'deleted' } });
      return { status: 204, body: null };
    },
  });
};

/** The file for who has the link of an active user, whose tenant is not suspended. */
export async function readFeed(
  deps: CalendarDeps,
  { path }: OperationInput<'calendar.feeds.get'>,
): Promise<OperationReply> {
  const bytes = Buffer.from(path.link.replace(/\.ics$/, ''), 'base64url');
  const tenantId = uuidOf(bytes.subarray(0, UUID_BYTES));
  const userId = uuidOf(bytes.subarray(UUID_BYTES, 2 * UUID_BYTES));
  const secret = bytes.subarray(2 * UUID_BYTES);
  const statement = linkSql(tenantId, userId, hashOf(secret));
  const known = await deps.database.shared('calendar', tenantId, (tx) => tx.first(statement));
  if (!known || !(await deps.isActive(tenantId, userId))) throw calendarNotFound();
  return file(deps, tenantId, userId);
}

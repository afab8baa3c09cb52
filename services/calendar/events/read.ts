/** Calendars, and single events as callers see them. */
import type { Handler } from '../../../contracts/operations.ts';
import { etagOf } from '../../../mixins/mutation/version.ts';
import type { CalendarDeps } from '../deps.ts';
import { visibleEvent } from './access.ts';
import { present } from './event.ts';

export const listCalendars: Handler<'calendar.calendars.list', CalendarDeps> = async (deps, { tenantId, userId }) => {
  const { timezone } = await deps.access({ tenantId, userId });
  return { body: { records: [{ calendarId: userId, ownerId: userId, timezone, access: 'owner' }], nextCursor: null } };
};

export const getEvent: Handler<'calendar.events.get', CalendarDeps> = async (deps, request, { path }) => {
  const { event, instance, sight } = await visibleEvent(deps, request, path.eventId);
  return { headers: { ETag: etagOf(event) }, body: present(event, instance, sight) };
};

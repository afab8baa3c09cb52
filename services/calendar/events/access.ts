/**
 * Who sees an event: its organizer and the users who attend, all of it; those who can read its record, too, but of a private
 * one only when it is. Its organizer alone changes it.
 */
import { askerOf, type RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import type { CalendarDeps } from '../deps.ts';
import { readCompact } from '../recurrence/rule.ts';
import { localOf } from '../recurrence/times.ts';
import { asItself, type EventRow, type Instance, instanceAt, type Override } from './event.ts';
import { eventSql, overridesSql } from './events.sql.ts';

/** `reader`: of private ones, and of private instances, nothing but when. */
type Sight = 'full' | 'reader';

export const eventNotFound = (): PlatformError =>
  new PlatformError('EVENT_NOT_FOUND', 'The event does not exist, or you have no access to it.');

/** Users who take part. */
export const peopleOf = ({ calendarId, attendees }: EventRow): string[] => [
  calendarId,
  ...attendees.flatMap(({ userId }) => userId ?? []),
];

export const takesPart = (event: EventRow, userId: string): boolean => peopleOf(event).includes(userId);

/** For each of the events that the caller may see: how much of it. */
export async function sightOf(
  deps: Pick<CalendarDeps, 'readable'>,
  request: RequestContext,
  events: readonly EventRow[],
): Promise<ReadonlyMap<string, Sight>> {
  const others = events.filter((event) => !takesPart(event, request.userId));
  const records = others.flatMap(({ objectApiName, recordId }) =>
    objectApiName !== null && recordId !== null ? [{ objectApiName, id: recordId }] : [],
  );
  const asked = [...new Map(records.map((one) => [nameOf(one), one])).values()];
  const read = asked.length > 0 ? await deps.readable({ asker: askerOf(request), records: asked }) : [];
  const readable = new Set(read.map(nameOf));
  return new Map(
    events.flatMap((event): [string, Sight][] => {
      if (takesPart(event, request.userId)) return [[event.eventId, 'full']];
      const { objectApiName, recordId } = event;
      if (objectApiName === null || recordId === null || !readable.has(nameOf({ objectApiName, id: recordId })))
        return [];
      return [[event.eventId, 'reader']];
    }),
  );
}

const nameOf = ({ objectApiName, id }: { objectApiName: string; id: string }): string => `${objectApiName} ${id}`;

/** Refuses a record that the caller cannot read. */
export async function requireRecord(
  deps: Pick<CalendarDeps, 'readable'>,
  request: RequestContext,
  { objectApiName, id }: { readonly objectApiName: string; readonly id: string },
): Promise<void> {
  const read = await deps.readable({ asker: askerOf(request), records: [{ objectApiName, id }] });
  if (read.length === 0)
    throw new PlatformError('RECORD_NOT_FOUND', 'The record does not exist, or you have no access to it.');
}

/** An id of a path: of an event, or of an instance with its original start. */
interface EventName {
  readonly eventId: string;
  readonly original: string | null;
}

export function nameIn(id: string): EventName {
  const [eventId = '', compact] = id.split('_');
  if (compact === undefined) return { eventId: eventId.toLowerCase(), original: null };
  const wall = readCompact(compact);
  if (wall === null)
    throw new PlatformError('PARAMETER_INVALID', 'eventId names a time that does not exist.', {
      errors: [violation('path:eventId', 'PARAMETER_INVALID', 'names a time that does not exist.')],
    });
  return { eventId: eventId.toLowerCase(), original: localOf(wall) };
}

interface SeenEvent {
  readonly event: EventRow;
  readonly instance: Instance;
  readonly sight: Sight;
}

/** An event, series or instance that the caller may see. Throws EVENT_NOT_FOUND. */
export async function visibleEvent(deps: CalendarDeps, request: RequestContext, id: string): Promise<SeenEvent> {
  const { tenantId } = request;
  const { eventId, original } = nameIn(id);
  const [event, override] = await deps.database.shared('calendar', tenantId, async (tx) => [
    await tx.first<EventRow>(eventSql(tenantId, eventId)),
    original === null ? undefined : await tx.first<Override>(overridesSql(tenantId, eventId, original)),
  ]);
  const sight = event && (await sightOf(deps, request, [event])).get(eventId);
  const instance = event && (original === null ? asItself(event) : instanceAt(event, original, override ?? null));
  if (!event || !sight || !instance) throw eventNotFound();
  return { event, instance, sight };
}

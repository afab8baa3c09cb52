/**
 * Who sees an event: its organizer and the users who attend, all of it, but its record only when they can read that; those who
 * can read its record, too, but of a private one only when it is. Its organizer alone changes it.
 */
import type { RecordName } from '../../../contracts/data.ts';
import { askerOf, type RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { recordKey } from '../../../lib/schema/record-key.ts';
import type { CalendarDeps } from '../deps.ts';
import { readCompact } from '../recurrence/rule.ts';
import { localOf } from '../recurrence/times.ts';
import { asItself, type EventRow, type Instance, instanceAt, type Override, type Sight } from './event.ts';
import { eventSql, overridesSql } from './events.sql.ts';

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
  const records = events.flatMap((event) => recordOf(event) ?? []);
  const asked = [...new Map(records.map((one) => [recordKey(one), one])).values()];
  const read = asked.length > 0 ? await deps.readable({ asker: askerOf(request), records: asked }) : [];
  const readable = new Set(read.map(recordKey));
  return new Map(
    events.flatMap((event): [string, Sight][] => {
      const record = recordOf(event);
      const sight = {
        isPart: takesPart(event, request.userId),
        readsRecord: record !== null && readable.has(recordKey(record)),
      };
      return sight.isPart || sight.readsRecord ? [[event.eventId, sight]] : [];
    }),
  );
}

const recordOf = ({ objectApiName, recordId }: EventRow): RecordName | null =>
  objectApiName === null || recordId === null ? null : { objectApiName, id: recordId };

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

export interface SeenEvent {
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

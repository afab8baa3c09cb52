/**
 * Events as one user may know of them at this moment: of records those that the user can read, or could when they were
 * deleted, cut to the fields that they can read; of anything else what is theirs, and what a permission shows. What they
 * may not know of is left out.
 */
import type { EventChange } from '../../../contracts/data/event-records.ts';
import { EVENT_TYPES } from '../../../contracts/event-types.ts';
import { holdsPermission } from '../../../lib/access/system-permission.ts';
import type { Asker } from '../../../lib/context.ts';
import type { SystemPermission } from '../../../lib/schema/snapshot.ts';
import type { EventsDeps } from '../deps.ts';
import { cloudEventText } from './cloud-event.ts';
import type { LogEvent } from './log.sql.ts';

interface VisibleEvent {
  readonly event: LogEvent;
  /** Its JSON, in one line. */
  readonly text: string;
}

export interface Visible {
  readonly events: readonly VisibleEvent[];
  /** The first event that the answer has no room for; null: there is none. */
  readonly cutAt: LogEvent | null;
  /** The client of the asker may be used. */
  readonly clientUsable: boolean;
}

export async function visibleEvents(
  { readRecords, baseUrl }: Pick<EventsDeps, 'readRecords' | 'baseUrl'>,
  asker: Asker,
  events: readonly LogEvent[],
  full: boolean,
): Promise<Visible> {
  if (events.length === 0) return { events: [], cutAt: null, clientUsable: true };
  const records = events.flatMap(({ type, object, recordId, recordVersion, at }, place) =>
    EVENT_TYPES[type]?.audience === 'record' && object !== null && recordId !== null && recordVersion !== null
      ? [
          {
            place,
            objectApiName: object,
            id: recordId,
            version: recordVersion,
            deleted: type === 'data.record.deleted',
            at,
          },
        ]
      : [],
  );
  const { systemPermissions, changes, cutAt, clientUsable } = await readRecords({ asker, records, full });
  const held = new Set(systemPermissions);
  const mayKnow = ({ userId }: LogEvent, audience: 'people' | SystemPermission): boolean =>
    audience !== 'people' && (userId === asker.userId || holdsPermission(held, audience));
  const byPlace = new Map(changes.map((change) => [change.place, change]));
  const shown = events.slice(0, cutAt ?? events.length).flatMap((event, place): VisibleEvent[] => {
    const audience = EVENT_TYPES[event.type]?.audience;
    if (audience === undefined) return [];
    const change = byPlace.get(place);
    const data = audience === 'record' ? change && recordData(event, change) : otherData(event);
    if (data === undefined) return [];
    if (audience !== 'record' && !concerns(event, asker.userId) && !mayKnow(event, audience)) return [];
    return [{ event, text: cloudEventText(asker.tenantId, baseUrl, event, data) }];
  });
  return { events: shown, cutAt: cutAt === null ? null : (events[cutAt] ?? null), clientUsable };
}

/** `people` of the data is for this alone, and not shown. */
const concerns = ({ data: { userId, people } }: LogEvent, user: string): boolean =>
  userId === user || (Array.isArray(people) && people.includes(user));

const actorOf = ({ userId, clientId, agentRunId }: LogEvent): object => ({ userId, clientId, agentRunId });

const otherData = (event: LogEvent): string => {
  const { people: _people, ...data } = event.data;
  return JSON.stringify({ ...data, actor: actorOf(event), requestId: event.requestId });
};

function recordData(event: LogEvent, { etag, changedFields, before, after, showsTransition }: EventChange): string {
  const { object, recordId, recordVersion, data, requestId } = event;
  const { transactionId, transactionIndex, transactionSize, transition = null } = data;
  const head = JSON.stringify({
    objectApiName: object,
    id: recordId,
    recordVersion,
    etag,
    changedFields,
  });
  const tail = JSON.stringify({
    transition: showsTransition ? transition : null,
    transactionId,
    transactionIndex,
    transactionSize,
    actor: actorOf(event),
    requestId,
  });
  return `${head.slice(0, -1)},"before":${before ?? 'null'},"after":${after ?? 'null'},${tail.slice(1)}`;
}

/** Pull and stream: the same pages of the log. Source: docs/reference/events.md. */
import { EVENT_TYPE_NAMES } from '../../../contracts/event-types.ts';
import { eventsTopics } from '../../../contracts/events.ts';
import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import { askerOf, type RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { type Seal, sealFor } from '../../../lib/values/sealed.ts';
import type { EventsDeps } from '../deps.ts';
import { type LogPosition, openPosition, positionExpired, sealPosition } from './cursor.ts';
import { type LogPage, readPage, readPageTogether } from './page.ts';

/** Events of one page of a stream. */
const STREAM_TAKE = 100;
const OBJECTS_MAX = 50;

type Query = OperationInput<'events.stream.get'>['query'];

export const listEvents: Handler<'events.items.list', EventsDeps> = async (deps, request, call) => {
  const { take = LIMITS.take_default, waitSeconds = 0, ...query } = call.query;
  const { seal, page, topics } = await pageOf(deps, request, query, call.headers, take);
  const resumeCursor = sealPosition(page.position, seal);
  const records = page.events.map(({ text }) => text).join();
  const rest = JSON.stringify({
    nextCursor: page.more ? resumeCursor : null,
    resumeCursor,
    oldestCursor: sealPosition(page.oldest, seal),
  });
  const waits = waitSeconds > 0 && page.events.length === 0 && !page.more;
  return {
    body: Buffer.from(`{"records":[${records}],${rest.slice(1)}`),
    ...(waits ? { wait: { seconds: waitSeconds, cursor: resumeCursor, topics } } : {}),
  };
};

export const streamEvents: Handler<'events.stream.get', EventsDeps> = async (deps, request, call) => {
  const { seal, page, topics } = await pageOf(deps, request, call.query, call.headers, STREAM_TAKE, readPageTogether);
  const cursorOf = (sequence: number): string => sealPosition({ ...page.position, sequence }, seal);
  return {
    body: null,
    events: {
      events: page.events.map(({ event, text }) => ({ id: cursorOf(event.sequence), type: event.type, data: text })),
      cursor: cursorOf(page.position.sequence),
      topics,
      more: page.more,
    },
  };
};

/** `Last-Event-ID` is how clients of streams, and the gateway, go on: it stands above the cursor of the first request. */
async function pageOf(
  deps: EventsDeps,
  request: RequestContext,
  query: Query,
  headers: { readonly lastEventId?: string },
  take: number,
  read = readPage,
): Promise<{ seal: Seal; page: LogPage; topics: readonly string[] }> {
  const full = query.payload === 'full';
  if (full && !request.scopes.includes('data:read'))
    throw new PlatformError('SCOPE_INSUFFICIENT', 'The values of fields take the scope data:read.', {
      details: { layer: 'scope', required: ['data:read'] },
    });
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  const cursor = headers.lastEventId || query.cursor;
  const { types, objects } = filtersOf(query);
  const page = await read(
    deps,
    {
      asker: askerOf(request),
      start: cursor === undefined ? null : openPosition(cursor, seal),
      full,
      types,
      objects,
      take,
    },
    (isOld: boolean, oldest: LogPosition) => positionExpired(isOld, sealPosition(oldest, seal)),
  );
  return { seal, page, topics: eventsTopics(request.tenantId, objects) };
}

const listed = (text: string | undefined): string[] | null =>
  text === undefined ? null : [...new Set(text.split(',').map((name) => name.trim()))];

/** The first few, as far as they are short enough to be names. */
const named = (types: readonly string[]): string =>
  types
    .slice(0, 5)
    .map((type) => type.slice(0, 80))
    .join(', ');

/** An object that the user cannot see has no events for them, like one that does not exist. */
function filtersOf({ types, objects }: Query): { types: readonly string[]; objects: readonly string[] | null } {
  const [typeNames, objectNames] = [listed(types), listed(objects)];
  const unknown = typeNames?.filter((name) => !EVENT_TYPE_NAMES.includes(name)) ?? [];
  const errors = [
    ...(unknown.length > 0
      ? [violation('query:types', 'PARAMETER_INVALID', `There is no event of type ${named(unknown)}.`)]
      : []),
    ...((objectNames?.length ?? 0) > OBJECTS_MAX
      ? [violation('query:objects', 'PARAMETER_INVALID', `At most ${OBJECTS_MAX} objects may be named.`)]
      : []),
  ];
  if (errors.length > 0)
    throw new PlatformError('PARAMETER_INVALID', errors.map(({ message }) => message).join(' '), { errors });
  return { types: typeNames ?? EVENT_TYPE_NAMES, objects: objectNames };
}

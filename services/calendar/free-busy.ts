/** When users are busy, without what they do. */
import type { Handler } from '../../contracts/operations.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { LIMITS } from '../../lib/limits.ts';
import { formatTimestamp, isTimezone } from '../../lib/values/time.ts';
import type { CalendarDeps } from './deps.ts';
import { contentOf, type EventRow, type Instance } from './events/event.ts';
import { type ExpandedRow, windowSql } from './events/events.sql.ts';
import { Problems } from './events/input.ts';
import { inTurns } from './events/turns.ts';
import { expand, windowOf } from './events/window.ts';
import { instantOf, wallAt } from './recurrence/times.ts';

export const queryFreeBusy: Handler<'calendar.freeBusy.query', CalendarDeps> = async (deps, request, { body }) => {
  const { tenantId, userId } = request;
  const { from, to, timezone } = body;
  const problems = new Problems();
  if (!isTimezone(timezone)) problems.add('/timezone', 'Not an IANA time zone such as Europe/Berlin.');
  const users = body.userIds.map((id) => id.toLowerCase());
  const principals = users.map((principalId) => ({ principalType: 'user' as const, principalId }));
  for (const place of await deps.unknownPrincipals({ tenantId, userId, principals }))
    problems.add(`/userIds/${place}`, 'There is no such active user.');
  problems.throwIfAny();
  const window = windowOf(from, to, LIMITS.calendar_free_busy_days_max, (name) => `/${name}`);
  const max = LIMITS.calendar_free_busy_instances_max;
  const rows = await deps.database.shared('calendar', tenantId, (tx) =>
    tx.all<ExpandedRow>(windowSql(tenantId, { users }, from, to, max + 1)),
  );
  if (rows.length > max)
    throw new PlatformError('TOO_MANY_ITEMS', 'There are too many events; ask for fewer users or days.', {
      details: { max },
    });
  const offset = wallAt(window.from, timezone) - window.from;
  const found = await expand(rows, { ...window, offset }, max);
  const taken = new Map<string, [number, number][]>(users.map((id) => [id, []]));
  for await (const { event, instance } of inTurns(found)) {
    const time = timeOf(event, instance, timezone);
    for (const id of event.inCalendars) if (isBusy(event, instance, id)) taken.get(id)?.push(time);
  }
  const answers = [];
  for await (const id of inTurns(users)) {
    const times = merged(taken.get(id) ?? [], window.from, window.to);
    const busy = times.map(([begin, end]) => ({ from: formatTimestamp(begin), to: formatTimestamp(end) }));
    answers.push({ userId: id, busy });
  }
  return { body: { users: answers } };
};

function isBusy(event: EventRow, { override }: Instance, userId: string): boolean {
  const { busy, status } = contentOf(event, override);
  const answer =
    override?.responses[userId]?.response ?? event.attendees.find((one) => one.userId === userId)?.response;
  return busy && status !== 'canceled' && answer !== 'declined';
}

const timeOf = ({ startTimezone }: EventRow, { startAt, endAt }: Instance, timezone: string): [number, number] =>
  startTimezone === null ? [instantOf(startAt, timezone), instantOf(endAt, timezone)] : [startAt, endAt];

/** The times in order, within the window, with those joined that touch. */
function merged(times: readonly [number, number][], from: number, to: number): [number, number][] {
  const joined: [number, number][] = [];
  for (const [begin, end] of [...times].sort(([a], [b]) => a - b)) {
    const last = joined.at(-1);
    if (last && begin <= last[1]) last[1] = Math.max(last[1], end);
    // A copy: several users have the same times.
    else joined.push([begin, end]);
  }
  return joined.flatMap(([begin, end]): [number, number][] =>
    end > from && begin < to ? [[Math.max(begin, from), Math.min(end, to)]] : [],
  );
}

/** Windows of time in which instances are looked for. */
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { readInstant } from '../../../lib/values/calendar.ts';
import { DAY_MS } from '../recurrence/times.ts';
import { type Instance, instancesOf, type Window } from './event.ts';
import type { ExpandedRow } from './events.sql.ts';
import { inTurns, meetZones } from './turns.ts';

/** The window of `from` and `to`. Throws PARAMETER_INVALID when it is none, or longer than so many days. */
export function windowOf(from: string, to: string, daysMax: number, pointer: (name: string) => string): Window {
  const [begin, end] = [readInstant(from), readInstant(to)];
  if (begin !== null && end !== null && begin < end && end - begin <= daysMax * DAY_MS)
    return { from: begin, to: end, offset: offsetIn(from) };
  const message = `\`to\` is after \`from\`, by ${daysMax} days at most.`;
  throw new PlatformError('PARAMETER_INVALID', message, {
    errors: [violation(pointer('to'), 'PARAMETER_INVALID', message)],
  });
}

/** Milliseconds by which the local time of a date-time is ahead of UTC. */
function offsetIn(text: string): number {
  const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)$/.exec(text) ?? [];
  if (sign === undefined) return 0;
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

/**
 * Instances of the events within the window. Throws TOO_MANY_ITEMS when there are more than `max`, each counted for every
 * calendar that it is looked for in.
 */
export async function expand(
  events: readonly ExpandedRow[],
  window: Window,
  max: number,
): Promise<{ event: ExpandedRow; instance: Instance }[]> {
  const found: { event: ExpandedRow; instance: Instance }[] = [];
  let count = 0;
  for await (const event of inTurns(events)) {
    await meetZones(event.overrides);
    const instances = instancesOf(event, event.overrides, window);
    for (const instance of instances) found.push({ event, instance });
    count += instances.length * event.inCalendars.length;
    if (count > max) throw tooManyInstances(max);
  }
  return found;
}

export const tooManyInstances = (max: number = LIMITS.calendar_instances_max): PlatformError =>
  new PlatformError('TOO_MANY_ITEMS', `There are more than ${max} instances; ask for a shorter time.`, {
    details: { max },
  });

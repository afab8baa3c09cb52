/**
 * A calendar as an iCalendar file (RFC 5545), without people: addresses are fields of users. And an event for a person outside
 * who is invited to it (RFC 5546), which names the organizer and this person. Pure.
 */
import { contentOf, type EventRow, type Override, overridden, timesAt, uidOf } from './events/event.ts';
import { inTurns } from './events/turns.ts';
import { compactOf, writeRecurrence } from './recurrence/rule.ts';
import { wallOf } from './recurrence/times.ts';
import { timezoneLines } from './timezones.ts';

export interface Organizer {
  readonly address: string;
  readonly name: string | null;
}

export interface Told {
  readonly method: 'REQUEST' | 'CANCEL';
  readonly event: EventRow;
  /** The one instance that it is about, or all that differ from their series. */
  readonly overrides: readonly Override[];
  readonly isInstance: boolean;
}

type ExportedEvent = EventRow & { readonly overrides: readonly Override[] };

/** A line of a file is at most this many bytes long. */
const LINE_BYTES = 75;

const HEAD = ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//ERP platform//Calendar//EN', 'CALSCALE:GREGORIAN'];

/**
 * The file in parts, none of which takes long. `now`: milliseconds since 1970. `name`: of a calendar that programs read again
 * and again.
 */
export function* icsParts(events: readonly ExportedEvent[], now: number, name: string | null): Generator<string> {
  yield written(name === null ? HEAD : [...HEAD, ...subscribed(name)]);
  for (const zone of [...new Set(events.flatMap(zonesOf))].sort()) yield written(timezoneLines(zone, now));
  for (const event of events) {
    yield written(eventLines(event, null));
    for (const override of event.overrides) yield written(eventLines(event, override));
  }
  yield written(['END:VCALENDAR']);
}

/** Of RFC 7986, and the names of it that programs knew before. */
const subscribed = (name: string): string[] => [
  'METHOD:PUBLISH',
  `NAME:${escaped(name)}`,
  `X-WR-CALNAME:${escaped(name)}`,
  'REFRESH-INTERVAL;VALUE=DURATION:PT1H',
  'X-PUBLISHED-TTL:PT1H',
];

/** Bounded: the mails of one event wait together, in memory and in the database. */
const TOLD_MAX_CHARS = 64 * 1024;
/** Of the line that names the person, which each instance has. */
const TOLD_PERSON_MAX_CHARS = 340;
const TOLD_DESCRIPTION_MAX_CHARS = 2_000;

/**
 * The event for a person: the same for each, but for the line that names the person. Instances that are too many, with the time
 * zones that they alone name, are left out. Made in turns of the event loop, since each zone takes a while.
 */
export async function eventFor(
  { method, event, overrides, isInstance }: Told,
  organizer: Organizer,
  now: number,
): Promise<(attendee: { readonly address: string; readonly optional: boolean }) => string> {
  const name = organizer.name === null ? '' : `;CN="${organizer.name.replaceAll(UNQUOTABLE, '')}"`;
  const people = [`ORGANIZER${name}:${mailto(organizer.address)}`];
  const toldLines = (override: Override | null): string =>
    written(
      eventLines(shortened(event), override && shortenedOverride(override), {
        people,
        canceled: method === 'CANCEL',
        stamp: new Date(now).toISOString(),
      }),
    );
  let head = written([...HEAD, `METHOD:${method}`]);
  let events = '';
  let length = head.length;
  const named = new Set<string>();
  for await (const override of inTurns(isInstance ? overrides : [null, ...overrides])) {
    const zones = new Set(zonesOf({ ...event, overrides: override ? [override] : [] })).difference(named);
    const zoneText = [...zones].map((zone) => written(timezoneLines(zone, now))).join('');
    const part = toldLines(override);
    length += zoneText.length + part.length + TOLD_PERSON_MAX_CHARS;
    if (length > TOLD_MAX_CHARS && override && !isInstance) break;
    head += zoneText;
    events += part;
    for (const zone of zones) named.add(zone);
  }
  const text = `${head}${events}${written(['END:VCALENDAR'])}`;
  return ({ address, optional }) => {
    const role = optional ? 'OPT-PARTICIPANT' : 'REQ-PARTICIPANT';
    const line = `ATTENDEE;ROLE=${role};PARTSTAT=NEEDS-ACTION;RSVP=TRUE:${mailto(address)}`;
    // Where a text has these words, a blank stands before them, or they are not a line.
    return text.replaceAll('\r\nBEGIN:VEVENT\r\n', (begin) => `${begin}${folded(line)}\r\n`);
  };
}

/** What the value of a parameter cannot have, also in quotes. */
const UNQUOTABLE = /["\p{Cc}]/gu;

const short = (text: string): string =>
  [...text.slice(0, 2 * TOLD_DESCRIPTION_MAX_CHARS)].slice(0, TOLD_DESCRIPTION_MAX_CHARS).join('');

const shortened = (event: EventRow): EventRow => {
  const { description } = event.content;
  return description === null ? event : { ...event, content: { ...event.content, description: short(description) } };
};

const shortenedOverride = (override: Override): Override => {
  const { description } = override.patch;
  return description ? { ...override, patch: { ...override.patch, description: short(description) } } : override;
};

const mailto = (address: string): string => `mailto:${encodeURI(address).replaceAll(/[?#]/g, encodeURIComponent)}`;

const written = (lines: readonly string[]): string => lines.map((line) => `${folded(line)}\r\n`).join('');

const zonesOf = ({ startTimezone, endTimezone, overrides }: ExportedEvent): string[] =>
  [startTimezone, endTimezone, ...overrides.flatMap(({ patch }) => [patch.startTimezone, patch.endTimezone])].filter(
    (zone) => zone !== null && zone !== undefined,
  );

/** What the event of an invitation has besides. */
interface TellingLines {
  readonly people: readonly string[];
  readonly canceled: boolean;
  /** RFC 3339: of the mail. */
  readonly stamp: string;
}

function eventLines(event: EventRow, override: Override | null, telling: TellingLines | null = null): string[] {
  const { startTimezone, recurrence } = event;
  const { title, description, location, status, visibility, busy } = contentOf(event, override);
  const times = override ? (overridden(override) ?? timesAt(event, wallOf(override.originalStart))) : event;
  const anchor = { wall: wallOf(event.startLocal), timezone: startTimezone };
  return [
    'BEGIN:VEVENT',
    ...(telling?.people ?? []),
    `UID:${uidOf(event)}`,
    `DTSTAMP:${utc(telling?.stamp ?? event.updatedAt)}`,
    `CREATED:${utc(event.createdAt)}`,
    `LAST-MODIFIED:${utc(event.updatedAt)}`,
    `SEQUENCE:${event.sequence}`,
    `DTSTART${timeValue(times.startLocal, times.startTimezone)}`,
    `DTEND${timeValue(times.endLocal, times.endTimezone)}`,
    ...(override ? [`RECURRENCE-ID${timeValue(override.originalStart, startTimezone)}`] : []),
    ...(recurrence && !override ? writeRecurrence(recurrence, anchor) : []),
    `SUMMARY:${escaped(title)}`,
    ...(description === null ? [] : [`DESCRIPTION:${escaped(description)}`]),
    ...(location === null ? [] : [`LOCATION:${escaped(location)}`]),
    `STATUS:${status === 'canceled' || telling?.canceled ? 'CANCELLED' : status.toUpperCase()}`,
    `CLASS:${visibility === 'private' ? 'PRIVATE' : 'PUBLIC'}`,
    `TRANSP:${busy ? 'OPAQUE' : 'TRANSPARENT'}`,
    'END:VEVENT',
  ];
}

const utc = (time: string): string => `${compactOf(new Date(time).getTime(), false)}Z`;

const timeValue = (local: string, timezone: string | null): string => {
  if (timezone === null) return `;VALUE=DATE:${compactOf(wallOf(local), true)}`;
  const text = compactOf(wallOf(local), false);
  return timezone === 'UTC' ? `:${text}Z` : `;TZID=${timezone}:${text}`;
};

const escaped = (text: string): string =>
  text
    .replaceAll(/[\\;,]/g, '\\$&')
    // Programs take each of them for the end of a line.
    .replaceAll(/\r\n?|[\n\u0085\u2028\u2029]/g, '\\n')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they may not stand in the file
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '');

/** The line in parts that are short enough, without cutting a character. */
function folded(line: string): string {
  if (Buffer.byteLength(line) <= LINE_BYTES) return line;
  const parts: string[] = [];
  let part = '';
  let bytes = 0;
  for (const character of line) {
    const size = Buffer.byteLength(character);
    if (bytes + size > LINE_BYTES) {
      parts.push(part);
      part = '';
      bytes = 1;
    }
    part += character;
    bytes += size;
  }
  return [...parts, part].join('\r\n ');
}

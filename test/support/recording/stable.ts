/**
 * Makes of a recording what the next one makes as well: what differs from run to run (ids, times, tokens, digests) is
 * replaced in the order in which it appears, by something of the same form.
 */
import { hash } from 'node:crypto';
import type { Exchange } from '../../../contracts/examples.ts';
import { lastSunday } from '../../../templates/samples/values.ts';
import type { Recorded } from './recorder.ts';

/** The Sunday up to which the demo tenants have records, and the minute of the first call. */
const SUNDAY = Date.UTC(2026, 10, 22);
const BEGIN = Date.UTC(2026, 10, 24, 9, 0);
const MINUTE = 60_000;
/** How exact the distance to a moment to come is: the time that the recording takes must not show in it. */
const COARSE = 5 * MINUTE;

const PATTERN = new RegExp(
  [
    '(?<uuid>\\b[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\\b)',
    '(?<request>\\breq_[0-9A-HJKMNP-TV-Z]{26}\\b)',
    '(?<time>\\b\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?(?:Z|[+-]\\d\\d:\\d\\d))',
    '(?<day>\\b\\d{4}-\\d\\d-\\d\\d\\b)',
    '(?<position>\\bc1\\.[\\w-]{60,})',
    '(?<sequence>\\b0\\d{19}\\b)',
    '(?<stamp>(?<=(?:DTSTAMP|CREATED|LAST-MODIFIED):)\\d{8}T\\d{6}Z)',
    '(?<retry>\\bretry: \\d+)',
    '(?<address>\\b127\\.0\\.0\\.1\\b)',
  ].join('|'),
  'g',
);
const HOST = /http:\/\/localhost:\d+/g;
/** An ETag that is a digest; one that counts versions is the same every time. */
const DIGEST = /^"[\w-]{22}(?:-gzip)?"$/;

/** Numbers that are measured, by the name of the member. */
const MEASURED: Readonly<Record<string, number>> = { durationMs: 12.5, latencyMs: 143, usedBytes: 72_351_744 };

type Make = (n: number) => string;

const uuid: Make = (n) => `0193d3b0-52f1-7000-8000-${n.toString(16).padStart(12, '0')}`;
const request: Make = (n) => `req_01JD9Z8Q4M7T2V5K6N8P${String(n).padStart(6, '0')}`;
const token =
  (kind: string): Make =>
  (n) =>
    Buffer.from(`${kind} ${n}`).toString('base64url');
const etag: Make = (n) => `"${hash('sha256', `version ${n}`, 'base64url').slice(0, 22)}"`;
const fingerprint: Make = (n) => `sha256:${hash('sha256', `fingerprint ${n}`)}`;
const [cursor, confirmation, connection] = [token('cursor'), token('confirmation'), token('connection')];

/** Opaque texts, by the name of the member, parameter or header that has them. */
const OPAQUE: Readonly<Record<string, Make>> = {
  cursor,
  nextCursor: cursor,
  resumeCursor: cursor,
  oldestCursor: cursor,
  confirmationToken: confirmation,
  secret: (n) => `whsec_${Buffer.from(`secret ${n}`).toString('base64')}`,
  'X-Duplicate-Confirmation': confirmation,
  connectionId: connection,
  grantId: connection,
  fingerprint,
};

export class Stable {
  readonly #starts: readonly number[];
  readonly #shift: number;
  readonly #known = new Map<string, string>();
  readonly #opaque = new Set<string>();
  readonly #counts = new Map<Make, number>();
  #call = 0;

  constructor(calls: readonly Recorded[]) {
    this.#starts = calls.map(({ at }) => at);
    this.#shift = SUNDAY - lastSunday(this.#starts[0]!);
  }

  /** The exchange of a call, in the order of the calls, with all that differs replaced. */
  exchange(call: number, exchange: Exchange): Exchange {
    this.#call = call;
    return this.#of(exchange, '') as Exchange;
  }

  #of(value: unknown, name: string): unknown {
    if (typeof value === 'string') return this.#text(value, name);
    if (typeof value === 'number') return MEASURED[name] ?? value;
    if (Array.isArray(value)) return value.map((one) => this.#of(one, name));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [this.#text(key, ''), this.#of(one, key)]));
  }

  #text(text: string, name: string): string {
    const make = OPAQUE[name];
    if (make) {
      this.#opaque.add(text);
      return this.#replaced(text, make);
    }
    if (DIGEST.test(text)) return this.#replaced(text, etag);
    let stable = text.replaceAll(HOST, 'https://erp.example');
    for (const one of this.#opaque) stable = stable.replaceAll(one, this.#known.get(one)!);
    return stable.replaceAll(PATTERN, (found, ...rest) => {
      const groups = rest.at(-1) as Record<string, string | undefined>;
      if (groups['uuid']) return this.#replaced(found, uuid);
      if (groups['request']) return this.#replaced(found, request);
      if (groups['time']) return this.#replaced(found, () => this.#time(found));
      if (groups['day']) return new Date(Date.parse(found) + this.#shift).toISOString().slice(0, 10);
      if (groups['position']) return this.#replaced(found, cursor);
      if (groups['sequence']) return '00000000000000004711';
      if (groups['stamp']) return '20261124T090000Z';
      if (groups['retry']) return 'retry: 2000';
      return '192.0.2.10';
    });
  }

  #replaced(found: string, make: Make): string {
    const known = this.#known.get(found);
    if (known !== undefined) return known;
    const n = (this.#counts.get(make) ?? 0) + 1;
    this.#counts.set(make, n);
    const made = make(n);
    this.#known.set(found, made);
    return made;
  }

  /**
   * A moment of the recording becomes that of the call after which it was, one call a minute; one to come keeps its
   * distance; what was before keeps it from the day up to which there are sample records.
   */
  #time(found: string): string {
    const at = Date.parse(found);
    const call = this.#starts.findLastIndex((start, i) => i <= this.#call && start <= at);
    const distance = at - (this.#starts[call] ?? 0);
    const isToCome = call === this.#call && distance > MINUTE;
    const moment =
      call >= 0
        ? BEGIN + call * MINUTE + (isToCome ? Math.round(distance / COARSE) * COARSE : 0)
        : at < lastSunday(this.#starts[0]!)
          ? at + this.#shift
          : BEGIN - MINUTE;
    return new Date(moment).toISOString().replace('Z', found.endsWith('Z') ? 'Z' : '+00:00');
  }
}

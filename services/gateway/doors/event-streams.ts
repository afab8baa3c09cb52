/**
 * Streams of server-sent events. A stream holds a connection of the gateway and nothing else: it reads pages by ordinary calls
 * of its service, when it is woken or after a while, and ends with the right to read them. One timer serves all.
 */

import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import type { EventPage } from '../../../lib/streams.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import type { Exchange } from '../edge/exchange.ts';
import { commonHeaders, type ReplyOptions } from '../edge/reply.ts';
import type { Streams } from '../pipeline/streams.ts';

const SWEEP_MS = 500;
/** So often a quiet stream says that it is alive, and its caller's rights are checked. */
const HEARTBEAT_MS = 15_000;
/** A wake-up may be lost. */
const READ_MS = 60_000;
/** Clients come back after this, not all at once. */
const RETRY_MIN_MS = 1_000;
const RETRY_SPREAD_MS = 4_000;
const HEARTBEAT = ': keep-alive\n\n';

interface Options {
  readonly streams: Streams;
  /** Throws when the caller may not read any more. */
  readonly recheck: (x: Exchange) => Promise<void>;
  /** The page behind the cursor, for which the caller pays. */
  readonly read: (x: Exchange, cursor: string) => Promise<OperationReply>;
}

interface Stream {
  cursor: string;
  topics: readonly string[];
  /** There is, or may be, more to read. */
  woken: boolean;
  working: boolean;
  readAt: number;
  /** When the caller's budget has units for a page again. */
  pausedUntil: number;
  saidAt: number;
  /** End of the access token, or of the time of the operation, in the time of the platform. */
  readonly endsAt: number;
  readonly leave: () => void;
}

export class EventStreams {
  readonly #options: Options;
  readonly #open = new Map<Exchange, Stream>();
  readonly #timer = setInterval(() => this.#sweep(), SWEEP_MS).unref();
  #ended = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Begins a stream with its first page. */
  begin(x: Exchange, page: EventPage, options: ReplyOptions): void {
    if (this.#ended)
      throw new PlatformError('SERVICE_UNAVAILABLE', 'This process is stopping. Connect again.', {
        retryAfterSeconds: 1,
      });
    const { res, session, timeLimits } = x;
    // Its client left during the first page: nothing would end the stream.
    if (x.left || res.destroyed) return;
    const now = performance.now();
    const tokenEnds = session?.tokenExpiresAt ? Date.parse(session.tokenExpiresAt) : Number.POSITIVE_INFINITY;
    const stream: Stream = {
      cursor: page.cursor,
      topics: page.topics,
      woken: page.more,
      working: false,
      readAt: now,
      pausedUntil: 0,
      saidAt: now,
      endsAt: Math.min(tokenEnds, x.startedAt + timeLimits.streamMs),
      leave: this.#options.streams.enter(x),
    };
    this.#open.set(x, stream);
    res.once('close', () => {
      this.#open.delete(x);
      stream.leave();
    });
    x.unsentResponses.begin(x, 0);
    // It has a place of its own, and holds none of those of requests.
    x.leaveFlight();
    const headers = commonHeaders(x, options, { 'X-Accel-Buffering': 'no' });
    res.writeHead(200, [...headers, 'Content-Type', 'text/event-stream']);
    x.answered = true;
    this.#write(x, stream, `${retry()}${textOf(page)}`);
    if (stream.woken) void this.#work(x, stream);
  }

  /** Something has happened that streams with one of these topics may show. */
  wake(topics: readonly string[]): void {
    const now = performance.now();
    for (const [x, stream] of this.#open) {
      if (!stream.topics.some((topic) => topics.includes(topic))) continue;
      stream.woken = true;
      // Of many wake-ups in a row each stream reads twice a second.
      if (now - stream.readAt >= SWEEP_MS && isDue(stream, now)) void this.#work(x, stream);
    }
  }

  /** These grants have ended. */
  revoked(grantIds: readonly string[]): void {
    for (const x of this.#open.keys()) if (x.session && grantIds.includes(x.session.grantId)) this.#end(x);
  }

  /** Ends all streams: their clients come back to another process, and go on where they were. */
  endAll(): void {
    this.#ended = true;
    clearInterval(this.#timer);
    for (const x of this.#open.keys()) this.#end(x);
  }

  #sweep(): void {
    const now = performance.now();
    const time = platformTime();
    for (const [x, stream] of this.#open)
      if (time >= stream.endsAt) this.#end(x);
      else if (now - stream.saidAt >= HEARTBEAT_MS || isDue(stream, now)) void this.#work(x, stream);
  }

  /** Writes what is new, or that the stream is alive; checks the caller's rights before each page. */
  async #work(x: Exchange, stream: Stream): Promise<void> {
    // A client that has not taken the last page gets no further one.
    if (stream.working || x.res.writableNeedDrain) return;
    stream.working = true;
    try {
      await this.#options.recheck(x);
      if (!isDue(stream)) this.#write(x, stream, HEARTBEAT);
      else while (await this.#read(x, stream)) await this.#options.recheck(x);
    } catch (error) {
      // Away services and units of the budget come back; a right that was taken does not.
      if (!(error instanceof PlatformError)) this.#end(x);
      else if (error.status === 429) {
        stream.woken = true;
        stream.pausedUntil = performance.now() + (error.retryAfterSeconds ?? 1) * 1_000;
      } else if (error.status < 500) this.#end(x);
    } finally {
      stream.working = false;
    }
  }

  /** Writes the next page. True when the one behind it can be read at once. */
  async #read(x: Exchange, stream: Stream): Promise<boolean> {
    stream.woken = false;
    stream.readAt = performance.now();
    const { events: page } = await this.#options.read(x, stream.cursor);
    if (!page || x.res.writableEnded) return false;
    ({ cursor: stream.cursor, topics: stream.topics } = page);
    stream.woken ||= page.more;
    this.#write(x, stream, textOf(page));
    return page.more && !x.res.writableNeedDrain;
  }

  #write(x: Exchange, stream: Stream, text: string): void {
    if (x.res.writableEnded || text === '') return;
    stream.saidAt = performance.now();
    const bytes = Buffer.from(text);
    this.#options.streams.bytes += bytes.length;
    x.unsentResponses.add(x, bytes.length);
    x.res.write(bytes, (error) => {
      if (!error) x.unsentResponses.sent(x, bytes.length);
    });
  }

  /** Called until the client has taken all. */
  #end({ res }: Exchange): void {
    if (!res.writableEnded) res.end(retry());
  }
}

const isDue = ({ woken, readAt, pausedUntil }: Stream, now = performance.now()): boolean =>
  now >= pausedUntil && (woken || now - readAt >= READ_MS);

const retry = (): string => `retry: ${Math.round(RETRY_MIN_MS + Math.random() * RETRY_SPREAD_MS)}\n\n`;

const textOf = ({ events }: EventPage): string =>
  events.map(({ id, type, data }) => `id: ${id}\nevent: ${type}\ndata: ${data}\n\n`).join('');

/** Places of event streams. */
export const EVENT_STREAMS = {
  ofCaller: LIMITS.event_streams_of_caller_max,
  ofTenant: LIMITS.event_streams_of_tenant_max,
  all: LIMITS.event_streams_max,
};

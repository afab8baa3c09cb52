/**
 * Answers that are ready and that their clients have not taken yet: how many bytes wait for one caller, on one
 * connection and in all, and the end of clients that take nothing or too little. A byte is taken when the operating
 * system has it. One look per second at what is under way, no timer per answer.
 * Source: docs/reference/limits.md, "Connections and slow clients".
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TimeLimits } from '../../../contracts/time-limits.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Bearer } from '../pipeline/session.ts';

export interface UnsentLimits {
  /** Bytes that may wait for one caller and on one connection, unless it is a single answer. */
  readonly ofCallerBytes: number;
  readonly ofConnectionBytes: number;
  readonly allBytes: number;
  /** On average, from when the client may no longer take nothing. */
  readonly bytesPerSecond: number;
}

const DEFAULTS: UnsentLimits = {
  ofCallerBytes: LIMITS.unsent_of_caller_max_bytes,
  ofConnectionBytes: LIMITS.unsent_of_connection_max_bytes,
  allBytes: LIMITS.unsent_max_bytes,
  bytesPerSecond: LIMITS.answer_min_bytes_per_second,
};

/** Errors and the answers of most writes are smaller: they are sent in any case. */
const SMALL_BYTES = 64 * 1024;

/**
 * Why a connection ended before its answers were taken; `pipelined`: it sent too many requests ahead, `unwaiting`: too
 * many refusals of its caller wait.
 */
const CUT_REASONS = ['stalled', 'slow', 'memory', 'pipelined', 'unwaiting'] as const;
type CutReason = (typeof CUT_REASONS)[number];

/** The caller whose answers are counted together: a connection of limits.md, or an address. */
interface Holder {
  unsentBytes: number;
}

/** One answer under way. The times are those of the sweep that saw it first, and of the last one that saw it move. */
export interface UnsentResponse {
  readonly holder: Holder;
  readonly socket: SocketState;
  /** Not yet taken. */
  unsentBytes: number;
  sentBytes: number;
  seenBytes: number;
  seenAt: number | null;
  movedAt: number;
}

/** The part of a request that this needs. */
interface Recipient {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  readonly ip: string;
  readonly session: { readonly tenantId: string } | null;
  readonly routeIfKnown: { readonly operation: { readonly mutation: boolean } } | null;
  readonly budget: { readonly flight: Holder } | null;
  readonly timeLimits: Pick<TimeLimits, 'idleMs'>;
  /** The answer while its client has not taken all of it. */
  unsentResponse: UnsentResponse | null;
}

export class UnsentResponses {
  readonly #limits: UnsentLimits;
  readonly #active: Iterable<Recipient>;
  readonly #cut = new Map<CutReason, number>(CUT_REASONS.map((reason) => [reason, 0]));
  #unsentBytes = 0;
  /** Answers in whose place their callers were told to receive earlier ones first. */
  refusals = 0;

  /** `active`: the requests that have not ended, oldest first. */
  constructor(active: Iterable<Recipient>, limits: UnsentLimits = DEFAULTS) {
    this.#active = active;
    this.#limits = limits;
  }

  /** Bytes of all answers that have not been taken. */
  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  /** Connections that were closed with answers on them, by reason. */
  get cut(): ReadonlyMap<string, number> {
    return this.#cut;
  }

  /**
   * Counts an answer as under way, from when its body is in memory. Throws CONCURRENCY_LIMIT_EXCEEDED in place of an
   * answer that can be asked for again, when too much waits for its caller already.
   */
  begin(x: Recipient, bytes: number): void {
    const socket = stateOf(x.req.socket);
    const holder = x.budget?.flight ?? socket;
    if (bytes > SMALL_BYTES && isRepeatable(x)) {
      this.#checkRoom(holder, bytes, this.#limits.ofCallerBytes);
      this.#checkRoom(socket, bytes, this.#limits.ofConnectionBytes);
    }
    x.unsentResponse = { holder, socket, unsentBytes: 0, sentBytes: 0, seenBytes: 0, seenAt: null, movedAt: 0 };
    this.#add(x.unsentResponse, bytes);
    if (this.#unsentBytes > this.#limits.allBytes) this.#makeRoom();
  }

  /** The body has become smaller before it was sent. */
  shrink({ unsentResponse }: Recipient, bytes: number): void {
    if (unsentResponse) this.#add(unsentResponse, bytes - unsentResponse.unsentBytes);
  }

  /** More bytes of an answer that is streamed. */
  add({ unsentResponse }: Recipient, bytes: number): void {
    if (!unsentResponse) return;
    this.#add(unsentResponse, bytes);
    if (this.#unsentBytes > this.#limits.allBytes) this.#makeRoom();
  }

  /** The operating system has taken so many bytes of it. */
  sent({ unsentResponse }: Recipient, bytes: number): void {
    if (!unsentResponse) return;
    unsentResponse.sentBytes += bytes;
    this.#add(unsentResponse, -bytes);
  }

  /** The answer is out, or its client is gone. */
  end(x: Recipient): void {
    if (!x.unsentResponse) return;
    this.#add(x.unsentResponse, -x.unsentResponse.unsentBytes);
    x.unsentResponse = null;
  }

  /** Once a second: ends clients that take nothing, or too little. */
  sweep(now = performance.now()): void {
    for (const x of this.#active) {
      const { unsentResponse, timeLimits } = x;
      // An answer behind another one on its connection has no socket yet: it is not late.
      if (!unsentResponse || x.res.socket === null) continue;
      // A stream that has nothing to send: its client owes nothing.
      if (unsentResponse.unsentBytes === 0) {
        unsentResponse.seenAt = null;
        unsentResponse.sentBytes = unsentResponse.seenBytes = 0;
        continue;
      }
      unsentResponse.seenAt ??= unsentResponse.movedAt = now;
      if (unsentResponse.seenBytes !== unsentResponse.sentBytes) unsentResponse.movedAt = now;
      unsentResponse.seenBytes = unsentResponse.sentBytes;
      if (now - unsentResponse.movedAt > timeLimits.idleMs) this.#cutOff(x, 'stalled');
      else if (unsentResponse.sentBytes < this.#owedBytes(now - unsentResponse.seenAt - timeLimits.idleMs))
        this.#cutOff(x, 'slow');
    }
  }

  /** A connection was closed for this. */
  countCut(reason: CutReason): void {
    this.#cut.set(reason, (this.#cut.get(reason) ?? 0) + 1);
  }

  /** Bytes that a client must have read after this time at the minimum rate. */
  #owedBytes(milliseconds: number): number {
    return (milliseconds * this.#limits.bytesPerSecond) / 1_000;
  }

  #checkRoom({ unsentBytes }: Holder, bytes: number, maxBytes: number): void {
    if (unsentBytes === 0 || unsentBytes + bytes <= maxBytes) return;
    this.refusals++;
    const message = `Receive the ${unsentBytes} bytes of earlier answers first: at most ${maxBytes} bytes may wait.`;
    throw new PlatformError('CONCURRENCY_LIMIT_EXCEEDED', message, { details: { maxBytes }, retryAfterSeconds: 1 });
  }

  #add(unsentResponse: UnsentResponse, bytes: number): void {
    unsentResponse.unsentBytes += bytes;
    unsentResponse.holder.unsentBytes += bytes;
    if (unsentResponse.socket !== unsentResponse.holder) unsentResponse.socket.unsentBytes += bytes;
    this.#unsentBytes += bytes;
  }

  #cutOff(x: Recipient, reason: CutReason): void {
    this.countCut(reason);
    // At once, not when Node hears of it: the next look must not find it again.
    this.end(x);
    // A response that waits behind another one has none. A reset: after a close, the system would keep what it has taken
    // and try to deliver it for minutes.
    x.req.socket.resetAndDestroy();
  }

  /**
   * A client that requests much and does not read must not exhaust memory: of the tenant that holds most, the answers
   * that have not moved for longest end.
   */
  #makeRoom(): void {
    const tenants = new Map<string, { bytes: number; answers: Recipient[] }>();
    for (const x of this.#active) {
      if (!x.unsentResponse) continue;
      const key = x.session?.tenantId ?? x.ip;
      const tenant = tenants.get(key) ?? { bytes: 0, answers: [] };
      tenant.bytes += x.unsentResponse.unsentBytes;
      tenant.answers.push(x);
      tenants.set(key, tenant);
    }
    for (const { answers } of tenants.values()) answers.sort((a, b) => lastMoved(a) - lastMoved(b));
    while (this.#unsentBytes > this.#limits.allBytes) {
      const most = [...tenants.values()].sort((a, b) => b.bytes - a.bytes)[0];
      const stuck = most?.answers.shift();
      if (!most || !stuck) return;
      most.bytes -= stuck.unsentResponse?.unsentBytes ?? 0;
      this.#cutOff(stuck, 'memory');
    }
  }
}

/** An executed write must get its answer. */
const isRepeatable = ({ method, routeIfKnown }: Recipient): boolean =>
  routeIfKnown ? !routeIfKnown.operation.mutation : method === 'GET';

/** One that no sweep has seen is the newest. */
const lastMoved = ({ unsentResponse }: Recipient): number =>
  unsentResponse?.seenAt == null ? Infinity : unsentResponse.movedAt;

/** Refused requests in a row. The times are those of performance.now(). */
export interface RefusalState {
  /** Refusals of requests sent before the previous `Retry-After` had passed. */
  ignored: number;
  /** When the last one allows another attempt; 0: there was none. */
  retryAt: number;
}

/** State of a TCP connection between its requests. */
export interface SocketState {
  /** When its first request came, in the time of performance.now(). */
  readonly openedAt: number;
  /** Requests that are not answered yet. */
  unanswered: number;
  /** Bytes of its answers that have not been taken. */
  unsentBytes: number;
  /** The last 429 on it. */
  refusal: RefusalState | null;
  readonly bearer: Bearer;
  /** The response of the last request. */
  last: ServerResponse | null;
  /** When its last answer was out, and the bytes that were read then; more of them are the next request. */
  usedAt: number;
  bytesUsed: number;
}

const states = new WeakMap<Socket, SocketState>();

export function stateOf(socket: Socket): SocketState {
  let state = states.get(socket);
  if (!state) {
    const now = performance.now();
    state = {
      openedAt: now,
      unanswered: 0,
      unsentBytes: 0,
      refusal: null,
      bearer: { authorization: '', key: '' },
      last: null,
      usedAt: now,
      bytesUsed: 0,
    };
    states.set(socket, state);
  }
  return state;
}

/** What a gateway remembers about a TCP connection between its requests. */
import type { Socket } from 'node:net';

/** Refused requests in a row. The times are those of performance.now(). */
export interface RefusalState {
  /** How many of them came before the `Retry-After` of the one before was over. */
  ignored: number;
  /** When the last one allows another attempt; 0: there was none. */
  retryAt: number;
}

export interface SocketState {
  /** When its first request came, in the time of performance.now(). */
  readonly openedAt: number;
  /** Requests that are not answered yet. */
  unanswered: number;
  /** Bytes of its answers that have not been taken. */
  unsentBytes: number;
  /** The last 429 on it. */
  refusal: RefusalState | null;
}

const states = new WeakMap<Socket, SocketState>();

export function stateOf(socket: Socket): SocketState {
  let state = states.get(socket);
  if (!state) {
    state = { openedAt: performance.now(), unanswered: 0, unsentBytes: 0, refusal: null };
    states.set(socket, state);
  }
  return state;
}

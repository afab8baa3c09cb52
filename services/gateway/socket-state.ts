/** What a gateway remembers about a TCP connection between its requests. */
import type { Socket } from 'node:net';

export interface SocketState {
  /** Requests that are not answered yet. */
  unanswered: number;
  /** Bytes of its answers that have not been taken. */
  unsentBytes: number;
}

const states = new WeakMap<Socket, SocketState>();

export function stateOf(socket: Socket): SocketState {
  let state = states.get(socket);
  if (!state) states.set(socket, (state = { unanswered: 0, unsentBytes: 0 }));
  return state;
}

/**
 * How the HTTP server of a gateway ends, so that no caller loses the answer to a request that was taken: while the
 * process leaves, every answer closes its connection; then connections without a request are closed, then the listening
 * socket, and what is under way is waited for.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { stopListening } from './listening.ts';
import { type SocketState, stateOf } from './unsent-responses.ts';

/** A connection may have been opened for a request that is on its way. */
const SILENT_MS = 500;
/** A connection that was used so lately is about to be used again; the next answer closes it. */
const USED_MS = 200;
/** The rest of a request line and headers whose beginning is here. */
const ARRIVING_MS = 2_000;
/** How long is read on behind our end of a connection: what crosses it would have it reset. */
const LINGER_MS = 500;
const LOOK_MS = 20;
/** A turn of the event loop in which nothing happened is shorter. */
const QUIET_MS = 1;
const TURNS_MAX = 200;

interface Connection {
  readonly openedAt: number;
  /** The answer that closes the connection has begun. */
  closes: boolean;
  arrivingSince: number | null;
  endedAt: number | null;
}

interface Pair {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

export class GracefulShutdown {
  readonly #server: Server;
  readonly #connections = new Map<Socket, Connection>();
  #opened = 0;
  #closing: Promise<void> | undefined;

  /** `server`: before it listens. */
  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket: Socket) => {
      this.#opened++;
      this.#connections.set(socket, {
        openedAt: performance.now(),
        closes: false,
        arrivingSince: null,
        endedAt: null,
      });
      socket.once('close', () => this.#connections.delete(socket));
    });
  }

  /** A request has arrived while the process leaves. False: its connection is being closed; do nothing. */
  arrived({ req, res }: Pair): boolean {
    const connection = this.#connections.get(req.socket);
    if (!connection) return true;
    if (connection.closes || req.socket.writableEnded) return false;
    this.#closeAfter({ req, res }, connection);
    return true;
  }

  /**
   * While the listening socket is about to be closed. Requests wait for it: the callers of answered ones would connect
   * again, and no turn of the event loop would be quiet.
   */
  get closing(): Promise<void> | undefined {
    return this.#closing;
  }

  /** From now on answers close their connections, also those to `unanswered`. New connections are still taken. */
  leave(unanswered: Iterable<Pair>): void {
    for (const pair of unanswered) {
      const connection = this.#connections.get(pair.req.socket);
      if (connection && !pair.res.headersSent) this.#closeAfter(pair, connection);
    }
  }

  /** Takes nothing new, and waits for what is under way; what is left at `until` is `late`, and cut off. */
  async end(until: number, late: () => void = () => {}): Promise<void> {
    // New connections are still accepted meanwhile.
    const used = performance.now() + USED_MS;
    while (this.#endIdle() && performance.now() < used) await pause(LOOK_MS);
    // Connections in the kernel's accept queue are reset with the listening socket. Each turn of the event loop accepts
    // all of it, so the socket is closed right behind a turn in which nothing came.
    this.#closing = this.#quietTurn();
    await this.#closing;
    stopListening(this.#server);
    this.#closing = undefined;
    for (;;) {
      this.#endIdle();
      if (this.#connections.size === 0 || performance.now() > until) break;
      await pause(LOOK_MS);
    }
    if ([...this.#connections.keys()].some((socket) => stateOf(socket).unanswered > 0)) late();
    for (const socket of this.#connections.keys()) socket.destroy();
    this.#server.close(() => {}); // ends the timer of node:http
  }

  /**
   * Decided when the headers are written: one that is followed by another request on its connection, or whose body is
   * still arriving, keeps the connection, because Node closes it together with the answer.
   */
  #closeAfter({ req, res }: Pair, connection: Connection): void {
    const writeHead = res.writeHead.bind(res) as (...parameters: unknown[]) => ServerResponse;
    res.writeHead = (...parameters: unknown[]) => {
      if (stateOf(req.socket).last === res && req.complete) {
        res.shouldKeepAlive = false;
        connection.closes = true;
      }
      return writeHead(...parameters);
    };
  }

  async #quietTurn(): Promise<void> {
    for (let turns = 0; turns < TURNS_MAX; turns++) {
      const opened = this.#opened;
      const began = performance.now();
      await turn();
      await turn();
      if (opened === this.#opened && performance.now() - began < QUIET_MS) return;
    }
  }

  /** Closes connections on which no request is expected; true when there are such on which one is. */
  #endIdle(): boolean {
    const now = performance.now();
    let awaited = false;
    for (const [socket, connection] of this.#connections) {
      const state = stateOf(socket);
      if (state.unanswered > 0) continue;
      if (connection.endedAt !== null) {
        if (now - connection.endedAt > LINGER_MS) socket.destroy();
      } else if (socket.writableEnded) connection.endedAt = now;
      else if (isAwaited(socket, state, connection, now)) awaited = true;
      else {
        connection.endedAt = now;
        socket.end();
      }
    }
    return awaited;
  }
}

/** A request may be on its way on a connection that has none. */
function isAwaited(socket: Socket, { usedAt, bytesUsed }: SocketState, connection: Connection, now: number): boolean {
  if (socket.bytesRead === 0) return now - connection.openedAt < SILENT_MS;
  if (socket.bytesRead === bytesUsed) return now - usedAt < USED_MS;
  connection.arrivingSince ??= now;
  return now - connection.arrivingSince < ARRIVING_MS;
}

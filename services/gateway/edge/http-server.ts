/** The server of node:http with the bounds of docs/reference/http.md, and the answer to what is no HTTP request. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { LIMITS } from '../../../config/limits.ts';
import { API_VERSION } from '../../../lib/addresses.ts';
import { errorBody } from '../../../lib/errors/error-body.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { requestId } from '../../../lib/values/ids.ts';
import { Connections } from './connections.ts';
import { stateOf } from './socket-state.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 65_000;
const CHECK_INTERVAL_MS = 2_000;
/** To read why, before the connection is closed. */
const CLOSE_REFUSED_MS = 1_000;
/** The longest IPv6 address with a zone, in brackets and with a port, is shorter. */
const ENTRY_MAX_CHARS = 100;
/** What the largest body may have. */
const DISCARD_MAX_BYTES = 32 * 1024 * 1024;
const DISCARD_BYTES_PER_MS = 32 * 1024;

interface ServerListeners {
  request: RequestListener;
  /** The client waits for `100 Continue` before it sends the body. */
  checkContinue: RequestListener;
  /** The client expects something else than `100 Continue`. */
  checkExpectation: RequestListener;
  /** Bytes that are no request; the socket is all there is to answer on. */
  malformed: (error: NodeJS.ErrnoException, socket: Socket) => void;
  /** A connection was closed because it sent too many requests ahead. */
  cutAhead: () => void;
}

/** A server that does not listen yet. */
export function createHttpServer(listeners: ServerListeners, options: { trustedProxies: number }): Server {
  const server = createServer({
    maxHeaderSize: LIMITS.headers_max_bytes,
    requireHostHeader: false, // checkHead() refuses with an Error body, which Node would not send
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: LIMITS.request_timeout_ms,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    noDelay: true,
  });
  // Beyond proxies, callers share the proxies' addresses.
  if (options.trustedProxies > 0) server.maxConnections = LIMITS.connections_max;
  else {
    const connections = new Connections();
    server.on('connection', (socket: Socket) => connections.add(socket, socketAddress(socket)));
  }
  server.on('request', boundPipeline(listeners.request, listeners.cutAhead));
  server.on('checkContinue', boundPipeline(listeners.checkContinue, listeners.cutAhead));
  server.on('checkExpectation', boundPipeline(listeners.checkExpectation, listeners.cutAhead));
  server.on('connect', (_req: IncomingMessage, socket: Socket) =>
    listeners.malformed(new Error('The method CONNECT is for proxies.'), socket),
  );
  server.on('clientError', listeners.malformed);
  return server;
}

/**
 * Closes a connection that sends many requests ahead: Node hands over all that one packet holds in one turn of the
 * event loop, which thousands of the smallest would take for themselves.
 */
function boundPipeline(listener: RequestListener, cutAhead: () => void): RequestListener {
  return (req, res) => {
    const { socket } = req;
    if (socket.destroyed) return;
    const state = stateOf(socket);
    if (state.unanswered >= LIMITS.pipelined_requests_max) {
      cutAhead();
      socket.destroy();
      return;
    }
    state.unanswered++;
    res.once('close', () => state.unanswered--);
    listener(req, res);
  };
}

/** Answers 400 on the socket and closes it. Returns false when nobody is there to read the answer. */
export function refuseMalformed(
  error: NodeJS.ErrnoException,
  socket: Socket,
  options: { baseUrl: string; remaining: number },
): boolean {
  const isSilent = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0;
  if (!socket.writable || error.code === 'ECONNRESET' || isSilent) {
    socket.destroy();
    return false;
  }
  // A client that does not close its side would hold the connection for ever.
  setTimeout(() => socket.destroy(), CLOSE_REFUSED_MS).unref();
  const id = requestId();
  const refusal = new PlatformError('REQUEST_MALFORMED', malformedMessage(error.code));
  const body = JSON.stringify(errorBody(refusal, id, options.baseUrl));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nX-Request-Id: ${id}\r\nX-API-Version: ${API_VERSION}\r\n` +
      `X-RateLimit-Remaining: ${options.remaining}\r\nCache-Control: no-store\r\n` +
      `Vary: Authorization, Accept\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
  return true;
}

function malformedMessage(code: string | undefined): string {
  if (code === 'HPE_HEADER_OVERFLOW')
    return `The request line and headers exceed the limit of ${LIMITS.headers_max_bytes} bytes.`;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'The request was not received in time.';
  return 'The request is not well-formed HTTP.';
}

/** When the next part of a refused body may be read; in the time of performance.now(). */
let nextDiscard = 0;

/**
 * Reads and drops the rest of a body whose request has been answered, so that the client gets to read the answer: up to
 * a bound, and at a pace of all connections together that costs the others little. To be called before Node hears that
 * the answer is out, because it would read all that comes as fast as it comes.
 */
export function discardRest(req: IncomingMessage): void {
  if (req.complete || req.destroyed) return;
  let bytes = 0;
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARD_MAX_BYTES) return void req.destroy();
    req.pause();
    const now = performance.now();
    nextDiscard = Math.max(nextDiscard, now) + chunk.length / DISCARD_BYTES_PER_MS;
    setTimeout(() => req.resume(), nextDiscard - now).unref();
  });
  // At once: from now on Node leaves the body to us.
  req.read();
}

/**
 * Network address of the caller. Entries of X-Forwarded-For count only as far as the trusted proxies wrote them, and
 * only when they are addresses; some proxies write the port as well.
 */
export function callerAddress(req: IncomingMessage, trustedProxies: number): string {
  const direct = socketAddress(req.socket);
  if (trustedProxies === 0) return direct;
  const chain = [...String(req.headers['x-forwarded-for'] ?? '').split(','), direct]
    .map((one) => one.trim())
    .filter(Boolean);
  return addressOf(chain[Math.max(0, chain.length - 1 - trustedProxies)] ?? '') ?? direct;
}

function addressOf(text: string): string | null {
  if (text.length > ENTRY_MAX_CHARS) return null;
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return isIP(bare) === 0 ? null : plainAddress(bare);
}

/** Network address at the other end of a connection. */
export const socketAddress = (socket: Socket): string => plainAddress(socket.remoteAddress ?? '');

/** IPv4 addresses as such, also on a socket that speaks IPv6. */
const plainAddress = (address: string): string => address.replace(/^::ffff:/, '');

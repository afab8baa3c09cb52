/** The server of node:http with the bounds of docs/reference/http.md, and the answer to what is no HTTP request. */
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { API_VERSION } from '../../../lib/addresses.ts';
import { errorBody } from '../../../lib/errors/error-body.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { requestId } from '../../../lib/values/ids.ts';
import { Connections } from './connections.ts';
import { socketAddress } from './exchange.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 65_000;
const CHECK_INTERVAL_MS = 2_000;
/** To read why, before the connection is closed. */
const CLOSE_REFUSED_MS = 1_000;
/** Code of Node's error about headers that have not arrived in time; we give it to that about a body. */
export const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';

/** A server that does not listen yet. */
export function createHttpServer({ trustedProxies }: { trustedProxies: number }): Server {
  const server = createServer({
    maxHeaderSize: LIMITS.headers_max_bytes,
    requireHostHeader: false, // checkHead() refuses with an Error body, which Node would not send
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0, // HttpEdge bounds the arrival of a body by the time limit of its operation
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    noDelay: true,
  });
  // Beyond proxies, callers share the proxies' addresses.
  if (trustedProxies > 0) server.maxConnections = LIMITS.connections_max;
  else {
    const connections = new Connections();
    server.on('connection', (socket: Socket) => connections.add(socket, socketAddress(socket)));
  }
  return server;
}

/** Answers 400 on the socket and closes it. Returns false when the peer is gone. */
export function refuseMalformed(
  error: NodeJS.ErrnoException,
  socket: Socket,
  options: { baseUrl: string; remaining: number },
): boolean {
  const isSilent = error.code === REQUEST_TIMEOUT && socket.bytesRead === 0;
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
  if (code === REQUEST_TIMEOUT) return 'The request was not received in time.';
  return 'The request is not well-formed HTTP.';
}

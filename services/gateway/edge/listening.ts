/** The sockets on which the server of node:http takes connections. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { codeOf } from '../../../lib/errors/thrown.ts';

const LISTEN_BACKLOG = 1_024;
/** The machine has no IPv6, or none on the loopback. */
const NO_IPV6: ReadonlySet<unknown> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL']);

/** The second socket of a server that has two. */
const seconds = new WeakMap<Server, NetServer>();

/**
 * Listens; returns the public address. The host `localhost` is 127.0.0.1 and ::1. Rejects when it cannot, as when the port is in
 * use.
 */
export async function listen(
  server: Server,
  { host, baseUrl, ...options }: { port: number; host: string; baseUrl: string | null },
): Promise<string> {
  const isLoopback = host === 'localhost';
  server.listen(options.port, isLoopback ? '127.0.0.1' : host, LISTEN_BACKLOG);
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : options.port;
  if (isLoopback) await listenOnIpv6(server, port);
  return baseUrl ?? `http://localhost:${port}`;
}

async function listenOnIpv6(server: Server, port: number): Promise<void> {
  const second = new NetServer({ noDelay: true, allowHalfOpen: true });
  second.on('connection', (socket: Socket) => server.emit('connection', socket));
  second.listen({ port, host: '::1', ipv6Only: true, backlog: LISTEN_BACKLOG });
  try {
    await once(second, 'listening');
    seconds.set(server, second);
  } catch (error) {
    if (NO_IPV6.has(codeOf(error))) return;
    stopListening(server);
    throw error;
  }
}

/** Closes the sockets, and no connection: close() of node:http cuts those whose answer is written but not sent. */
export function stopListening(server: Server): void {
  seconds.get(server)?.close();
  NetServer.prototype.close.call(server);
}

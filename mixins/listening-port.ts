import type { Server } from 'node:net';

/** The TCP port of a server that listens. Throws for one that doesn't, or that listens on a path. */
export function listeningPort(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('Assertion failed: the server listens on no port');
  return address.port;
}

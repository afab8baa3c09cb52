/**
 * Answers to probes while a process waits for its database: alive, so that the cluster does not restart it,
 * and not ready, with the reason. Source: docs/reference/operations-cluster.md#start-and-stop.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';

interface WaitingServer {
  /** The port is free again. */
  close(): Promise<void>;
}

/** `reason`: what the process waits for; null while it is about to go on. */
export async function startWaitingServer(
  { port, host }: { port: number; host: string },
  reason: () => string | null,
): Promise<WaitingServer> {
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0];
    const waitingFor = reason();
    const [status, body] =
      path === '/healthz'
        ? [200, { status: 'alive' }]
        : path === '/readyz'
          ? [
              503,
              {
                status: 'unready',
                checks: { database: waitingFor === null, started: false },
                ...(waitingFor === null ? {} : { waitingFor }),
              },
            ]
          : [404, { status: 'not found' }];
    const text = JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
    response.end(request.method === 'HEAD' ? undefined : text);
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

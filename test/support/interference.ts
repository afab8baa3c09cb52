/** A proxy between a client and the platform, which does what networks and other people do. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Interference {
  /** Happens before a request is handed on. */
  first?: (method: string) => Promise<void>;
  /** The request is carried out, and then its answer is lost, or never comes. */
  answers?: (method: string, headers: IncomingHttpHeaders) => 'as it is' | 'lost' | 'never';
}

export interface Interfering {
  url: string;
  close(): void;
}

const HANDED_ON = ['authorization', 'accept', 'content-type', 'idempotency-key', 'if-match', 'if-none-match'];

export async function interfere(baseUrl: string, { first, answers }: Interference): Promise<Interfering> {
  const server = createServer(async (request, response) => {
    const { method = 'GET', url = '/' } = request;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    await first?.(method);
    const headers = new Headers();
    for (const name of HANDED_ON) {
      const value = request.headers[name];
      if (typeof value === 'string') headers.set(name, value);
    }
    const body = chunks.length ? { body: Buffer.concat(chunks) } : {};
    const answer = await fetch(`${baseUrl}${url}`, { method, headers, ...body });
    const text = await answer.text();
    const fate = answers?.(method, request.headers) ?? 'as it is';
    const etag = answer.headers.get('etag');
    if (fate === 'lost') request.socket.destroy();
    if (fate === 'as it is') response.writeHead(answer.status, etag ? { etag } : {}).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

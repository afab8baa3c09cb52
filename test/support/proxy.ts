/** A TCP proxy in front of a server, with which tests play a network: cut, away, and back. */
import { connect, createServer, type Server, type Socket } from 'node:net';

export interface TcpProxy {
  /** The address of the server by way of the proxy. */
  readonly url: string;
  /** Cuts all connections, and takes no new ones. */
  away(): Promise<void>;
  back(): Promise<void>;
  close(): Promise<void>;
}

export async function startProxy(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const forward = (client: Socket): void => {
    const server = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  };
  let listening: Server | null = null;
  const listen = (at: number): Promise<number> =>
    new Promise((resolve, reject) => {
      const server = createServer(forward);
      listening = server;
      server.once('error', reject);
      server.listen(at, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
    });
  const away = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => (listening ? listening.close(() => resolve()) : resolve()));
    listening = null;
    for (const socket of open) socket.destroy();
    await closed;
  };
  const own = await listen(0);
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String(own);
  return { url: url.toString(), away, back: async () => void (await listen(own)), close: away };
}

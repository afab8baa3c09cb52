/** A TCP proxy in front of PostgreSQL that breaks connections at a chosen stage of their set-up. */
import { connect, createServer, type Socket } from 'node:net';

/**
 * `accepted`: nothing has passed; `startup`: the server has the startup message; `authenticated`: the client has heard
 * that the server is ready; `statement`: the server has a first statement; `answered`: the client has its answer.
 */
export const STAGES = ['accepted', 'startup', 'authenticated', 'statement', 'answered'] as const;
type Stage = (typeof STAGES)[number];

export interface BreakingProxy {
  readonly url: string;
  /** Connections that were broken. */
  readonly broken: number;
  /** Says at which stage, and how, the next connection breaks; null: it does not. */
  breakBy(next: () => { stage: Stage; how: 'reset' | 'end' } | null): void;
  close(): Promise<void>;
}

const READY = 'Z'.charCodeAt(0);
const HEADER_BYTES = 5;

/** Counts the messages ReadyForQuery in what the server sends. */
class ReadyCounter {
  #rest = Buffer.alloc(0);
  count = 0;

  read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= HEADER_BYTES) {
      const length = 1 + this.#rest.readUInt32BE(1);
      if (this.#rest.length < length) return;
      if (this.#rest[0] === READY) this.count++;
      this.#rest = this.#rest.subarray(length);
    }
  }
}

export async function startBreakingProxy(target: string): Promise<BreakingProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let next: () => { stage: Stage; how: 'reset' | 'end' } | null = () => null;
  let broken = 0;
  const server = createServer((near) => {
    const plan = next();
    const far = connect(Number(port), hostname);
    const both = [near, far];
    for (const socket of both) {
      open.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        for (const other of both) other.destroy();
      });
    }
    const reach = (stage: Stage): boolean => {
      if (plan?.stage !== stage) return false;
      broken++;
      if (plan.how === 'reset') near.resetAndDestroy();
      else near.end();
      far.destroy();
      return true;
    };
    if (reach('accepted')) return;
    const ready = new ReadyCounter();
    let started = false;
    near.on('data', (chunk: Buffer) => {
      far.write(chunk);
      if (!started) {
        started = true;
        reach('startup');
      } else if (ready.count > 0) reach('statement');
    });
    far.on('data', (chunk: Buffer) => {
      const before = ready.count;
      ready.read(chunk);
      near.write(chunk, () => {
        if (before === 0 && ready.count > 0) reach('authenticated');
        if (before < 2 && ready.count > 1) reach('answered');
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.toString(),
    get broken() {
      return broken;
    },
    breakBy: (decide) => {
      next = decide;
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

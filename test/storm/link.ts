/** A TCP connection between a process and what it needs, which can be cut, delayed or made deaf in one direction. */
import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * `reset` ends all connections and refuses new ones; `drop` keeps them and lets nothing pass; `halfOpen` lets requests
 * pass and no answer; `delay` lets everything pass later.
 */
export type LinkState = 'whole' | 'reset' | 'drop' | 'halfOpen' | 'delay';

const DELAY_MS = 150;

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
}

export class Link {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #target: () => number;
  #state: LinkState = 'whole';

  private constructor(server: Server, target: () => number) {
    this.#server = server;
    this.#target = target;
    server.on('connection', (near) => this.#join(near));
  }

  /** Listens on `port`, by default a free one, and connects to what `target` says at that moment. */
  static async open(target: () => number, port = 0): Promise<Link> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    return new Link(server, target);
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  set(state: LinkState): void {
    this.#state = state;
    if (state === 'reset')
      for (const { near, far } of this.#pairs) for (const end of [near, far]) end.resetAndDestroy();
    for (const { near, far } of this.#pairs) {
      if (this.#passes('out')) near.resume();
      if (this.#passes('back')) far.resume();
    }
  }

  close(): void {
    this.#server.close();
    for (const { near, far } of this.#pairs) for (const end of [near, far]) end.destroy();
  }

  #passes(direction: 'out' | 'back'): boolean {
    return this.#state !== 'drop' && (direction === 'out' || this.#state !== 'halfOpen');
  }

  #join(near: Socket): void {
    if (this.#state === 'reset') {
      near.resetAndDestroy();
      return;
    }
    const far = connect(this.#target(), '127.0.0.1');
    const pair = { near, far };
    this.#pairs.add(pair);
    const part = (): void => {
      this.#pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const end of [near, far]) {
      end.setNoDelay(true);
      end.on('error', part);
      end.on('close', part);
    }
    this.#pump(near, far, 'out');
    this.#pump(far, near, 'back');
  }

  #pump(from: Socket, to: Socket, direction: 'out' | 'back'): void {
    const pass = (chunk: Buffer): void => {
      if (!to.writable || to.write(chunk)) return;
      from.pause();
      to.once('drain', () => this.#passes(direction) && from.resume());
    };
    // Data read while the link is blocked is kept until it opens.
    const held: Buffer[] = [];
    from.on('resume', () => {
      for (const chunk of held.splice(0)) pass(chunk);
    });
    from.on('data', (chunk: Buffer) => {
      if (!this.#passes(direction)) {
        held.push(chunk);
        from.pause();
      } else if (this.#state === 'delay') setTimeout(pass, DELAY_MS, chunk);
      else pass(chunk);
    });
    from.on('end', () => setTimeout(() => to.end(), this.#state === 'delay' ? DELAY_MS : 0));
  }
}

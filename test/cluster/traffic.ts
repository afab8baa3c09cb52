/**
 * Callers of a platform behind a load balancer, at a steady rate: many kinds of requests, none of them repeated. What
 * is not answered as expected is counted as failed.
 */
import { randomUUID } from 'node:crypto';
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { signIn } from '../../scripts/sign-in.ts';
import type { Certificate } from '../support/certificates.ts';
import { demoPassword } from '../support/client.ts';

const RAMP_MS = 4_000;
const SETTLE_MS = 1_000;

interface Backend {
  readonly port: number;
  /** Readiness address. */
  readonly probed: number;
  readonly agent: Agent;
  ready: boolean;
}

/** Round robin over the gateways that are ready, on connections that are kept; it repeats nothing. */
export class Balancer {
  readonly #server: Server;
  readonly #backends = new Map<number, Backend>();
  readonly #timer: NodeJS.Timeout;
  #next = 0;

  /** With `tls` callers come by https, as they do to an ingress. */
  constructor(port: number, probeMs: number, tls?: Certificate) {
    const answer = (req: IncomingMessage, res: ServerResponse): void => {
      const ready = [...this.#backends.values()].filter((backend) => backend.ready);
      const backend = ready[this.#next++ % ready.length];
      const fail = (why: string): void => {
        if (res.headersSent) res.destroy();
        else res.writeHead(502).end(`balancer: ${why}`);
      };
      if (!backend) {
        fail('no gateway is ready');
        return;
      }
      const { method, url, headers } = req;
      const forward = request({
        host: '127.0.0.1',
        port: backend.port,
        agent: backend.agent,
        method,
        path: url,
        headers: { ...headers, 'x-forwarded-for': req.socket.remoteAddress },
      });
      forward.on('response', (reply: IncomingMessage) => {
        const { connection: _, 'keep-alive': __, ...others } = reply.headers;
        res.writeHead(reply.statusCode!, others);
        reply.pipe(res);
        reply.on('error', (error) => fail(error.message));
      });
      forward.on('error', (error: NodeJS.ErrnoException) =>
        fail(`${error.code ?? error.message}${forward.reusedSocket ? ' on a kept connection' : ''}`),
      );
      req.pipe(forward);
    };
    // Its own connections to callers never end of themselves: a request that crosses the end would be lost.
    const keepAliveTimeout = 0;
    this.#server = tls
      ? createTlsServer({ ...tls, keepAliveTimeout }, answer)
      : createServer({ keepAliveTimeout }, answer);
    this.#server.listen(port, '127.0.0.1');
    this.#timer = setInterval(() => {
      for (const backend of this.#backends.values()) void this.#probe(backend);
    }, probeMs);
  }

  /** Resolves when the gateway at the port is ready; with its HEALTH_PORT, that is asked. */
  async add(port: number, probed = port): Promise<void> {
    const backend = { port, probed, agent: new Agent({ keepAlive: true, maxSockets: 200 }), ready: false };
    this.#backends.set(port, backend);
    while (!backend.ready) await pause(20);
  }

  remove(port: number): void {
    this.#backends.get(port)?.agent.destroy();
    this.#backends.delete(port);
  }

  close(): void {
    clearInterval(this.#timer);
    for (const port of this.#backends.keys()) this.remove(port);
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #probe(backend: Backend): Promise<void> {
    backend.ready = await new Promise((resolve) => {
      const probe = request({ host: '127.0.0.1', port: backend.probed, path: '/readyz', agent: false }, (answer) => {
        answer.resume();
        resolve(answer.statusCode === 200);
      });
      probe.on('error', () => resolve(false));
      probe.end();
    });
  }
}

interface Reply {
  readonly status: number;
  readonly etag: string | undefined;
  readonly text: string;
}

interface Stored {
  readonly id: string;
  etag: string;
}

export class Traffic {
  /** Answered as expected, by kind. */
  answered: Record<string, number> = {};
  /** Everything else, by kind and what came instead. */
  failed: Record<string, number> = {};
  readonly #port: number;
  readonly #token: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 200 });
  readonly #stored: Stored[] = [];
  readonly #under = new Set<Promise<void>>();
  #dashboard = '';
  #going = true;
  #sending: Promise<unknown> = Promise.resolve();

  constructor(port: number, token: string) {
    this.#port = port;
    this.#token = token;
  }

  get total(): number {
    return Object.values(this.answered).reduce((sum, count) => sum + count, 0);
  }

  /**
   * Sends so many requests a second, however long the answers take, and a sign-in every other second. Resolves when the
   * rate is reached, at which processes that have just started arrive slowly; only what comes then is counted.
   */
  async start(perSecond: number): Promise<void> {
    for (let n = 0; n < 10; n++) await this.#create();
    const { text } = await this.#send('POST', '/analytics/dashboards', {
      name: 'Rolling',
      widgets: [
        {
          widgetKey: 'count',
          title: 'Count',
          type: 'metric',
          layout: { x: 0, y: 0, w: 3, h: 2 },
          query: { objectApiName: 'Account', measures: [{ key: 'count', aggregation: 'count' }] },
        },
      ],
    });
    this.#dashboard = `/analytics/dashboards/${JSON.parse(text).dashboardId}`;
    this.#sending = Promise.all([this.#sendAll(perSecond), this.#signInAgain()]);
    await pause(RAMP_MS + SETTLE_MS);
    this.answered = {};
    this.failed = {};
  }

  async stop(): Promise<void> {
    this.#going = false;
    await this.#sending;
    await Promise.all(this.#under);
    this.#agent.destroy();
  }

  async #sendAll(perSecond: number): Promise<void> {
    const began = performance.now();
    const due = (): number => {
      const ms = performance.now() - began;
      return (perSecond / 1_000) * (ms < RAMP_MS ? (ms * ms) / (2 * RAMP_MS) : ms - RAMP_MS / 2);
    };
    for (let sent = 0; this.#going; await pause(5))
      for (; sent < due(); sent++) {
        const work = this.#one(sent % 20).finally(() => this.#under.delete(work));
        this.#under.add(work);
      }
  }

  async #signInAgain(): Promise<void> {
    const baseUrl = `http://127.0.0.1:${this.#port}`;
    for (; this.#going; await pause(2_000))
      await signIn({ baseUrl, user: 'mia@demo.example', password: demoPassword(), scope: 'data:read' }).then(
        () => this.#count(this.answered, 'sign-in'),
        (error: Error) => this.#count(this.failed, `sign-in: ${error.message}`),
      );
  }

  async #one(n: number): Promise<void> {
    if (n < 7) return this.#read('list', '/data/Account?take=10');
    if (n < 12) return this.#read('get', `/data/Account/${this.#stored[n % 10]!.id}`);
    if (n < 15) return this.#create();
    if (n < 18) return this.#update();
    if (n < 19) return this.#read('dashboard', this.#dashboard);
    return this.#expect('widget', 200, await this.#send('POST', `${this.#dashboard}/widgets/count/run`, {}));
  }

  async #read(kind: string, path: string): Promise<void> {
    this.#expect(kind, 200, await this.#send('GET', path));
  }

  async #create(): Promise<void> {
    const reply = await this.#send('POST', '/data/Account', { name: `Rolling ${randomUUID()}` });
    this.#expect('create', 201, reply);
    if (reply.status === 201) this.#stored.push({ id: JSON.parse(reply.text).id, etag: reply.etag! });
  }

  /** For a record without concurrent changes. */
  async #update(): Promise<void> {
    const stored = this.#stored.length > 10 ? this.#stored.pop()! : undefined;
    if (!stored) return;
    const body = { description: randomUUID() };
    const reply = await this.#send('PATCH', `/data/Account/${stored.id}`, body, { 'if-match': stored.etag });
    this.#expect('update', 200, reply);
    if (reply.status === 200) this.#stored.push({ id: stored.id, etag: reply.etag! });
  }

  #expect(kind: string, status: number, reply: Reply): void {
    if (reply.status === status) this.#count(this.answered, kind);
    else this.#count(this.failed, `${kind}: ${reply.status} ${reply.text.replace(/"requestId.*/, '').slice(0, 200)}`);
  }

  #count(where: Record<string, number>, what: string): void {
    where[what] = (where[what] ?? 0) + 1;
  }

  #send(method: string, path: string, body?: object, more: Record<string, string> = {}): Promise<Reply> {
    const text = body && JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${this.#token}`,
      ...(method === 'GET' ? {} : { 'idempotency-key': randomUUID() }),
      ...(text ? { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) } : {}),
      ...more,
    };
    return new Promise((resolve) => {
      const failed = (error: NodeJS.ErrnoException): void =>
        resolve({ status: 0, etag: undefined, text: `${error.code ?? ''} ${error.message}` });
      const sent = request(
        { host: '127.0.0.1', port: this.#port, agent: this.#agent, method, path: `/api/v1${path}`, headers },
        (answer) => {
          let got = '';
          answer.setEncoding('utf8').on('data', (chunk: string) => (got += chunk));
          answer.on('error', failed);
          answer.on('end', () => resolve({ status: answer.statusCode!, etag: answer.headers.etag, text: got }));
        },
      );
      sent.on('error', failed);
      sent.end(text);
    });
  }
}

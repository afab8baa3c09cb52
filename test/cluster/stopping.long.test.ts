/** A gateway's connections on SIGTERM, byte by byte, as the caller sees them. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { ALL_SERVICES } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { createPlatformDatabase, testEnvironment } from '../support/platform.ts';
import { processStarted, processStopped, type ServiceProcess, startProcess } from '../support/processes.ts';
import { root } from '../support/sources.ts';

const GRACE_SECONDS = 2;
/** So many that some always connect. */
const CALLERS = 120;

/** A connection whose bytes the test writes itself. */
class Line {
  readonly socket: Socket;
  text = '';
  error: string | null = null;
  closed = false;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('data', (chunk) => (this.text += chunk.toString('latin1')));
    this.socket.on('error', (error: NodeJS.ErrnoException) => (this.error = error.code ?? error.message));
    this.socket.once('close', () => (this.closed = true));
  }

  static async open(port: number): Promise<Line> {
    const line = new Line(port);
    await new Promise((resolve) => line.socket.once('connect', resolve).once('close', resolve));
    if (line.error) throw new Error(`No connection: ${line.error}`);
    return line;
  }

  /** Writes, and waits for the next answer with a length; returns it. */
  async ask(bytes: string): Promise<string> {
    const from = this.text.length;
    this.socket.write(bytes);
    return this.answer(from);
  }

  async answer(from = 0): Promise<string> {
    for (let i = 0; i < 1_000; i++) {
      const answer = this.text.slice(from);
      const body = answer.indexOf('\r\n\r\n') + 4;
      const length = /^content-length: (\d+)/im.exec(answer)?.[1];
      if (body > 3 && length !== undefined && answer.length >= body + Number(length)) return answer;
      if (this.closed) break;
      await pause(10);
    }
    throw new Error(`No answer (${this.error ?? (this.closed ? 'closed' : 'open')}): ${this.text.slice(from)}`);
  }

  async end(): Promise<void> {
    if (!this.closed) await new Promise((resolve) => this.socket.once('close', resolve));
  }
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
const closes = (answer: string): boolean => /^connection: close\r$/im.test(answer);
const request = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`;

describe('a gateway that gets SIGTERM', function () {
  this.timeout(120_000);
  let nats: NatsServer;
  let database: TestDatabase;
  let platform: ServiceProcess;
  let port: number;
  let healthPort: number;
  let token: string;

  before(async () => {
    [nats, database, healthPort] = await Promise.all([startNats(), createPlatformDatabase(), freePort()]);
  });
  after(async () => {
    await nats?.stop();
    await database?.drop();
  });
  const startGateway = async (env: Record<string, string> = {}): Promise<void> => {
    platform = await startProcess({
      services: ALL_SERVICES,
      databaseUrl: database.url,
      natsUrl: nats.url,
      env: { SHUTDOWN_GRACE_SECONDS: String(GRACE_SECONDS), HEALTH_PORT: String(healthPort), ...env },
    });
    port = Number(new URL(platform.baseUrl).port);
    token = await tokenFor(platform.baseUrl, 'sam');
  };
  afterEach(() => platform?.kill());

  it('is unready at once, answers during the grace period, and loses no accepted request', async () => {
    await startGateway();
    const post = (body: string): string =>
      `POST /api/v1/data/Account HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${token}\r\n` +
      `Idempotency-Key: ${randomUUID()}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const body = JSON.stringify({ name: 'Half before, half after' });
    const [idle, unused, silent, halfHead, halfBody, pipelined] = await Promise.all(
      Array.from({ length: 6 }, () => Line.open(port)),
    );
    for (const line of [idle!, unused!]) assert.ok(!closes(await line.ask(request('/healthz'))), 'kept before');
    halfHead!.socket.write('GET /healthz HTTP/1.1\r\nHo');
    halfBody!.socket.write(post(body) + body.slice(0, 5));
    pipelined!.socket.write(post(body) + body.slice(0, 5));
    await pause(100);

    const stopped = platform.stop();
    const began = performance.now();
    const since = (): number => (performance.now() - began) / 1_000;
    await pause(100);
    for (const one of [port, healthPort]) {
      const ready = await (await Line.open(one)).ask(request('/readyz'));
      assert.equal(statusOf(ready), 503, `/readyz on ${one} after ${since()} s`);
    }
    // Of two that follow each other on a connection, the last answer closes it.
    const both = await pipelined!.ask(body.slice(5) + request('/healthz'));
    while (!pipelined!.closed && since() < GRACE_SECONDS) await pause(10);
    const answers = pipelined!.text.split('HTTP/1.1 ').slice(1);
    assert.deepEqual(
      answers.map((answer) => [answer.slice(0, 3), closes(answer)]),
      [
        ['201', false],
        ['200', true],
      ],
      both,
    );
    const late = await idle!.ask(request('/healthz'));
    assert.ok(since() < GRACE_SECONDS);
    assert.equal(statusOf(late), 200);
    assert.ok(closes(late), 'the answer says that the connection ends');
    await idle!.end();
    const fresh = await (await Line.open(port)).ask(request('/healthz'));
    assert.equal(statusOf(fresh), 200, 'new connections are taken in the time of grace');
    assert.ok(closes(fresh));

    await pause(GRACE_SECONDS * 1_000 - since() * 1_000 + 700);
    const refused = new Line(port);
    await refused.end();
    assert.equal(refused.error, 'ECONNREFUSED', 'after the time of grace no connection is taken');
    halfHead!.socket.write('st: test\r\n\r\n');
    assert.equal(statusOf(await halfHead!.answer()), 200, 'a request that had begun to arrive');
    const created = await halfBody!.ask(body.slice(5));
    assert.equal(statusOf(created), 201, 'a request in flight');
    assert.ok(closes(created));
    assert.equal(await stopped, 0);
    assert.ok(since() < 10);
    for (const line of [idle!, unused!, silent!, halfHead!, halfBody!, pipelined!]) {
      await line.end();
      assert.equal(line.error, null, 'connections end without a reset');
    }
    assert.doesNotMatch(platform.output(), /Aborted/);
  });

  it('answers or refuses new connections, without a reset', async () => {
    await startGateway({ SHUTDOWN_GRACE_SECONDS: '1' });
    const outcomes = { answered: 0, refused: 0, lost: [] as string[] };
    let going = true;
    const knock = async (): Promise<void> => {
      const line = new Line(port);
      line.socket.write(request('/healthz'));
      const answer = await line.answer().catch(() => null);
      line.socket.destroy();
      if (answer) outcomes.answered++;
      else if (line.error === 'ECONNREFUSED') outcomes.refused++;
      else outcomes.lost.push(`${line.error}: ${line.text}`);
    };
    const knocking = (async () => {
      for (; going; await pause(10)) await knock();
    })();
    await pause(200);
    assert.equal(await platform.stop(), 0);
    going = false;
    await knocking;
    assert.ok(outcomes.answered > 10 && outcomes.refused > 0, JSON.stringify(outcomes));
    assert.deepEqual(outcomes.lost, []);
  });

  it('resets no busy connection, even without a grace period', async () => {
    await startGateway({ SHUTDOWN_GRACE_SECONDS: '0' });
    const outcomes = { answered: 0, refused: 0, lost: [] as string[] };
    const call = async (): Promise<void> => {
      for (let line = await Line.open(port); ; outcomes.answered++) {
        const answer = await line.ask(request('/healthz')).catch((error: Error) => error);
        if (answer instanceof Error) return void outcomes.lost.push(answer.message);
        if (!closes(answer)) continue;
        const next = await Line.open(port).catch((error: Error) => error);
        if (next instanceof Error) return void outcomes.refused++;
        line = next;
      }
    };
    const calling = Promise.all(Array.from({ length: CALLERS }, call));
    await pause(500);
    assert.equal(await platform.stop(), 0);
    await calling;
    assert.deepEqual(outcomes.lost, [], `${outcomes.answered} were answered`);
    assert.equal(outcomes.refused, CALLERS);
  });

  it('ends in time although a client does not read, and logs closed connections', async () => {
    await startGateway({ SHUTDOWN_SECONDS: '6', SHUTDOWN_GRACE_SECONDS: '0' });
    const line = await Line.open(port);
    line.socket.pause();
    line.socket.write(`GET /api/v1/openapi.json HTTP/1.1\r\nHost: test\r\n\r\n`.repeat(16));
    const stuck = await Line.open(port);
    stuck.socket.write(
      `POST /api/v1/data/Account HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    );
    await pause(500);
    const began = performance.now();
    assert.equal(await platform.stop(), 0);
    assert.ok(performance.now() - began < 6_000);
    assert.match(platform.output(), /"operations":\{.*"data\.records\.create":1.*Aborted requests/);
  });

  it('ends in time although the database hangs', async () => {
    await startGateway({ SHUTDOWN_SECONDS: '6', SHUTDOWN_GRACE_SECONDS: '0' });
    const client = new Client(database.url);
    await client.connect();
    const { rows } = await client.query(`SELECT schemaname FROM pg_tables WHERE tablename = 'Account'`);
    await client.query('BEGIN');
    for (const { schemaname } of rows) await client.query(`LOCK TABLE "${schemaname}"."Account"`);
    const body = JSON.stringify({ name: 'Waits for a lock' });
    const line = await Line.open(port);
    line.socket.write(
      `POST /api/v1/data/Account HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${token}\r\n` +
        `Idempotency-Key: ${randomUUID()}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    await pause(300);
    const began = performance.now();
    await platform.stop();
    assert.ok(performance.now() - began < 6_000);
    assert.match(platform.output(), /Aborted|did not end within 6 s; it was waiting for/);
    await client.end();
  });

  it('ends although the bus has never been there', async () => {
    const child = spawn(process.execPath, ['main.ts'], {
      cwd: root,
      stdio: 'ignore',
      env: {
        PATH: process.env['PATH'],
        ...testEnvironment(database.url, { SERVICES: 'data', NATS_URL: `nats://127.0.0.1:${await freePort()}` }),
      },
    });
    processStarted(child, 'data without a bus');
    await pause(10_000);
    assert.equal(child.exitCode, null);
    const began = performance.now();
    child.kill('SIGTERM');
    const code = await new Promise((resolve) => child.once('exit', resolve));
    processStopped(child);
    assert.equal(code, 0);
    assert.ok(performance.now() - began < 10_000);
  });

  it('ends at once at a second signal', async () => {
    await startGateway({ SHUTDOWN_GRACE_SECONDS: '5' });
    const stopped = platform.stop();
    await pause(1_000);
    const began = performance.now();
    process.kill(platform.pid, 'SIGTERM');
    assert.equal(await stopped, 1);
    assert.ok(performance.now() - began < 1_000);
    assert.match(platform.output(), /A second signal \(SIGTERM\) has ended the process at once/);
  });
});

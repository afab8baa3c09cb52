/** A process that starts before its database, and one that waits for nothing that could come. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../../mixins/database/embedded.ts';
import { STAGES, startBreakingProxy } from '../support/breaking-proxy.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { testEnvironment } from '../support/platform.ts';
import { compileCache, processStarted, processStopped } from '../support/processes.ts';
import { startProxy, type TcpProxy } from '../support/proxy.ts';
import { root } from '../support/sources.ts';

describe('a process that starts before its database', function () {
  this.timeout(120_000);
  let database: TestDatabase;
  let proxy: TcpProxy;
  let nats: NatsServer;
  let port: number;
  const launched: ChildProcess[] = [];
  before(async () => {
    [database, nats, port] = await Promise.all([createDatabase(), startNats(), freePort()]);
    proxy = await startProxy(database.url);
  });
  beforeEach(() => proxy.away());
  afterEach(async () => {
    for (const child of launched.splice(0))
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
  });
  after(async () => {
    await proxy?.close();
    await nats?.stop();
    await database?.drop();
  });

  const launch = (databaseUrl: string, services = 'ratelimit'): { child: ChildProcess; said: () => string } => {
    const env = { SERVICES: services, NATS_URL: nats.url, HEALTH_PORT: String(port), LOG_LEVEL: 'info' };
    const child = spawn(process.execPath, ['main.ts'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        ...compileCache(),
        ...testEnvironment(databaseUrl, env),
      },
    });
    launched.push(child);
    processStarted(child, 'waiting');
    child.once('exit', () => processStopped(child));
    let output = '';
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk: Buffer) => (output += chunk));
    return { child, said: () => output };
  };
  const probe = (path: string): Promise<Response | null> => fetch(`http://127.0.0.1:${port}${path}`).catch(() => null);
  const until = async (what: string, done: () => Promise<boolean> | boolean, ms = 60_000): Promise<number> => {
    const began = performance.now();
    for (; !(await done()); await pause(50)) assert.ok(performance.now() - began < ms, `Not in ${ms} ms: ${what}`);
    return performance.now() - began;
  };
  const isWaiting = async (): Promise<boolean> => (await probe('/readyz'))?.status === 503;

  it('waits for it: alive, not ready with the reason, and ready soon after it is there', async () => {
    const { said } = launch(proxy.url);
    await until('it waits', isWaiting);
    await until('it says so', () =>
      /^\{.*"msg":"Waiting for the database of DATABASE_URL \(connect ECONNREFUSED .+\)\."\}$/m.test(said()),
    );
    assert.equal((await probe('/healthz'))?.status, 200);
    const { checks, waitingFor } = (await (await probe('/readyz'))!.json()) as { checks: object; waitingFor: string };
    assert.deepEqual(checks, { database: false, started: false });
    assert.match(waitingFor, /^the database of DATABASE_URL \(connect ECONNREFUSED/);
    await pause(3_000);
    assert.equal(said().match(/Waiting for/g)?.length, 1, 'not with every attempt');
    await proxy.back();
    await until('it is ready', async () => (await probe('/readyz'))?.status === 200, 30_000);
    assert.match(said(), /The database of DATABASE_URL is there\./);
  });

  it('ends at once when it is stopped while it waits', async () => {
    const { child, said } = launch(proxy.url);
    await until('it waits', isWaiting);
    const asked = performance.now();
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
    const stops = /^\{.*"signal":"SIGTERM".*"msg":"Received SIGTERM, shutting down\."\}$/m;
    assert.match(said(), stops, 'the log says so at the beginning');
    assert.ok(performance.now() - asked < 10_000);
  });

  it('waits while the database is read-only, because a start writes', async () => {
    await proxy.back();
    const client = new pg.Client(database.url);
    await client.connect();
    await client.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`);
    const { said } = launch(proxy.url);
    await until('it says so', () =>
      /"msg":"Waiting for the database of DATABASE_URL \(it is read-only\)\."/.test(said()),
    );
    await client.query('SET default_transaction_read_only = off');
    await client.query(`ALTER DATABASE ${database.name} RESET default_transaction_read_only`);
    await client.end();
    await until('it is ready', async () => (await probe('/readyz'))?.status === 200);
  });

  it('waits while new connections break at any stage of their set-up, and starts when they no longer do', async () => {
    const breaking = await startBreakingProxy(database.url);
    const ways = STAGES.flatMap((stage) => (['reset', 'end'] as const).map((how) => ({ stage, how })));
    let connections = 0;
    // Whole ones in between, so that each step of the start meets breaks.
    breaking.breakBy(() => (++connections > 40 || connections % 3 === 0 ? null : ways[connections % ways.length]!));
    const { child, said } = launch(breaking.url, 'data,ratelimit');
    try {
      await until(
        'it is ready',
        async () => {
          assert.equal(child.exitCode, null, said());
          return (await probe('/readyz'))?.status === 200;
        },
        90_000,
      );
      assert.ok(breaking.broken > 4, `${breaking.broken}`);
    } finally {
      child.kill('SIGTERM');
      await once(child, 'exit');
      await breaking.close();
    }
  });

  it('exits with a message for an error that waiting cannot fix: a wrong password', async () => {
    await proxy.back();
    const wrong = new URL(proxy.url);
    wrong.password = 'wrong';
    const { child, said } = launch(wrong.toString());
    assert.deepEqual(await once(child, 'exit'), [1, null]);
    assert.match(said(), /^The database of DATABASE_URL refuses us: password authentication failed .+\n$/);
  });
});

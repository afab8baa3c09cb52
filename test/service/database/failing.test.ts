/** A database that answers and does not do everything: read-only, or out of space. What callers and operators see. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { Database } from '../../../mixins/database/database.ts';
import { freePort } from '../../../mixins/database/embedded.ts';
import type { Answer, Api } from '../../support/client.ts';
import { startTestServer } from '../../support/database.ts';
import { createTenantOverHttp } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { SmallDisk } from '../../support/small-disk.ts';
import { until } from '../../support/until.ts';

describe('a database that refuses writes', function () {
  this.timeout(120_000);
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let platform: TestPlatform;
  let superuser: pg.Client;
  let admin: Api;
  let userId: string;
  let health: string;
  before(async function () {
    this.timeout(240_000);
    server = await startTestServer();
    const { url } = server.server;
    const port = await freePort();
    health = `http://127.0.0.1:${port}`;
    platform = await startPlatform({
      seed: false,
      database: { name: 'platform', url, drop: async () => {} },
      env: { HEALTH_PORT: String(port) },
    });
    superuser = new pg.Client(url);
    await superuser.connect();
    admin = await createTenantOverHttp(platform);
    userId = (await admin.get('/identity')).body.user.id;
  });
  after(async () => {
    await superuser?.end();
    await platform?.stop();
    await server?.server.stop();
    await rm(server.folder, { recursive: true, force: true });
  });

  let names = 0;
  const write = async (): Promise<Answer> => {
    const path = `/data/User/${userId}`;
    const etag = (await admin.get(path)).headers.get('etag')!;
    return admin.patch(path, { displayName: `Name ${++names}` }, { etag });
  };
  /** Sets the server read-only or not. New connections have it then; older ones a moment later, each for itself. */
  const setReadOnly = async (on: boolean): Promise<void> => {
    await superuser.query(
      `ALTER SYSTEM ${on ? 'SET default_transaction_read_only = on' : 'RESET default_transaction_read_only'}`,
    );
    await superuser.query('SELECT pg_reload_conf()');
    const shown = 'SHOW default_transaction_read_only';
    await until(
      async () => (await superuser.query(shown)).rows[0].default_transaction_read_only === (on ? 'on' : 'off'),
    );
  };
  /** The first write that is refused. */
  const refusedWrite = async (): Promise<Answer> => {
    let answer = await write();
    await until(async () => {
      if (answer.status === 200) answer = await write();
      return answer.status !== 200;
    });
    return answer;
  };
  const name = async (): Promise<string> => (await admin.get(`/data/User/${userId}`)).body.displayName;
  const ready = async (): Promise<{ status: number; body: { status: string; degraded?: string[] } }> => {
    // Readiness is remembered for a second.
    await pause(1_100);
    const response = await fetch(`${health}/readyz`);
    return { status: response.status, body: (await response.json()) as never };
  };
  const unavailable = ({ status, headers, body, text }: Answer, message: RegExp): void => {
    assert.equal(status, 503, text);
    assert.equal(body.code, 'SERVICE_UNAVAILABLE');
    assert.match(body.message ?? body.detail, message);
    assert.ok(Number(headers.get('retry-after')) >= 1);
  };
  const metric = async (line: RegExp): Promise<void> => {
    await pause(1_100);
    assert.match(await (await fetch(`${health}/metrics`)).text(), line);
  };

  it('read-only: reads succeed, writes are 503, readiness reports it, and writes succeed afterwards', async () => {
    assert.equal((await write()).status, 200);
    try {
      await setReadOnly(true);
      unavailable(await refusedWrite(), /accepts no changes/);
      const before = await name();
      unavailable(await write(), /accepts no changes/);
      assert.equal(await name(), before);
      const forbidden = await admin.get(`/data/User/${'0'.repeat(8)}-0000-7000-8000-${'0'.repeat(12)}`);
      assert.equal(forbidden.status, 404);
      for (const path of [
        '/data/User',
        '/metadata/deployments',
        '/agent/runs',
        '/analytics/dashboards',
        '/events/audit',
        // Asks whether its grant lives, which is marked as used otherwise.
        '/me/limits',
      ]) {
        const { status, text } = await admin.get(path);
        assert.equal(status, 200, `${path}: ${text}`);
      }
      const signIn = await fetch(`${platform.baseUrl}/oauth/token`, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'client_credentials', client_id: 'x', client_secret: 'y' }),
      });
      assert.ok(signIn.status < 500 || signIn.status === 503, String(signIn.status));
      assert.deepEqual(await ready().then(({ status, body }) => [status, body.status, body.degraded]), [
        200,
        'ready',
        ['databaseReadOnly'],
      ]);
      await metric(/^erp_database_read_only 1$/m);
      await metric(/^erp_database_failures_total\{service="data",kind="readOnly"\} [1-9]/m);
    } finally {
      await setReadOnly(false);
    }
    await until(async () => (await write()).status === 200);
    assert.equal((await ready()).body.degraded, undefined);
    await metric(/^erp_database_read_only 0$/m);
  });

  it('closes connections to a read-only server, because the address may lead to another', async () => {
    const backends = async (): Promise<Set<number>> => {
      const { rows } = await superuser.query(
        "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'erp data %'",
      );
      return new Set(rows.map(({ pid }) => pid));
    };
    await admin.get('/data/User');
    const before = await backends();
    await setReadOnly(true);
    unavailable(await refusedWrite(), /accepts no changes/);
    await setReadOnly(false);
    await until(async () => (await write()).status === 200);
    const since = await superuser.query<{ moment: string }>('SELECT clock_timestamp()::text AS moment');
    for (let i = 0; i < 20; i++) assert.equal((await write()).status, 200);
    const used = await superuser.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'erp data %' AND state_change > $1::timestamptz",
      [since.rows[0]!.moment],
    );
    assert.ok(used.rows.length > 0);
    for (const { pid } of used.rows) assert.ok(!before.has(pid), 'A connection of before is still in use.');
  });

  it('closes them also without writes and readiness probes', async () => {
    const lines: string[] = [];
    const reader = new Database(server.server.url, {
      size: 1,
      applicationName: 'a reader',
      onTrouble: (line) => lines.push(line),
    });
    const backend = async (): Promise<number> =>
      (await reader.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]!.pid;
    try {
      await setReadOnly(true);
      const before = await backend();
      assert.equal(await backend(), before, 'not with each use');
      await pause(2_100);
      assert.notEqual(await backend(), before, 'after two seconds');
      // A server that changes repeatedly is logged once.
      const { client } = await reader.login(async ({ client }) => ({ client }));
      for (const value of ['off', 'on', 'off', 'on', 'off']) {
        await client.query(`SET default_transaction_read_only = ${value}`);
        await backend();
      }
      assert.deepEqual(
        lines.map((line) => line.replace(/[\d.]+ s/, 'n s')),
        [
          'The database is read-only: changes are answered with 503 until its address leads to one that takes them.',
          'The database takes changes again, after n s.',
        ],
      );
    } finally {
      await setReadOnly(false);
      await reader.close();
    }
  });

  it('does not block shutdown when a connection hangs', async () => {
    const database = new Database(server.server.url, { size: 1, applicationName: 'hangs' });
    let goOn = (): void => {};
    const hanging = database.login(() => new Promise<void>((resolve) => (goOn = resolve)));
    await pause(200);
    const began = performance.now();
    await database.close(500);
    assert.ok(performance.now() - began < 20_000);
    goOn();
    await hanging;
  });

  it('out of space: reads succeed, writes are 503 without partial changes, and succeed once there is space', async function () {
    const disk = await SmallDisk.mount(superuser);
    if (!disk) return this.skip();
    const { rows: tables } = await superuser.query<{ name: string }>(
      `SELECT oid::regclass::text AS name FROM pg_class
        WHERE relkind = 'r' AND relnamespace::regnamespace::text LIKE '%t\\_%' AND relname IN ('_history', '_audit')`,
    );
    assert.equal(tables.length, 2);
    try {
      await disk.take(tables.map(({ name }) => name));
      assert.equal((await write()).status, 200);
      await disk.fill();
      let before = await name();
      let answer = await write();
      // The last page of a table may have some room.
      for (let i = 0; answer.status === 200 && i < 500; i++) {
        before = await name();
        answer = await write();
      }
      unavailable(answer, /no space left/);
      assert.equal(await name(), before, 'The record was not changed without its history.');
      assert.deepEqual(await ready().then(({ status, body }) => [status, body.degraded]), [200, ['databaseFull']]);
      await metric(/^erp_database_failures_total\{service="data",kind="full"\} [1-9]/m);
      await disk.makeRoom();
      assert.equal((await write()).status, 200);
    } finally {
      await disk.unmount();
    }
  });
});

/** The database server is lost while statements of requests are under way: what callers get, and how soon. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { tenantSchema } from '../../../lib/context.ts';
import { Link } from '../../storm/link.ts';
import type { Answer, Api } from '../../support/client.ts';
import { startTestServer } from '../../support/database.ts';
import { createTenantOverHttp } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

/** A tenth is usual; the time limit of a read is 5 s. */
const AT_ONCE_MS = 3_000;
const WAITING = `SELECT count(DISTINCT application_name)::integer AS count
  FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
/** Those of data, analytics, agent and metadata wait at the same time. */
const SERVICES_THAT_WAIT = 4;

describe('a database lost during requests', function () {
  this.timeout(120_000);
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let link: Link;
  let platform: TestPlatform;
  let superuser: pg.Client;
  let admin: Api;
  let tables: string;

  before(async function () {
    this.timeout(240_000);
    server = await startTestServer();
    const url = new URL(server.server.url);
    superuser = new pg.Client(url.href);
    superuser.on('error', () => {});
    await superuser.connect();
    const port = Number(url.port);
    link = await Link.open(() => port);
    url.hostname = '127.0.0.1';
    url.port = String(link.port);
    platform = await startPlatform({
      seed: false,
      database: { name: 'platform', url: url.href, drop: async () => {} },
    });
    admin = await createTenantOverHttp(platform);
    const schema = tenantSchema((await admin.get('/identity')).body.tenant.id);
    tables = `"${schema}"._audit, analytics.dashboards, agent.runs, metadata.deployments`;
    // So that the first ones wait for nothing but the locks.
    for (const send of Object.values(REQUESTS)) assert.ok((await send()).status < 300);
  });
  after(async () => {
    await superuser?.end().catch(() => {});
    await platform?.stop();
    link?.close();
    await server?.server.stop();
    await rm(server.folder, { recursive: true, force: true });
  });

  let users = 0;
  const REQUESTS: Readonly<Record<string, () => Promise<Answer>>> = {
    audit: () => admin.get('/events/audit?take=1'),
    create: () =>
      admin.post('/data/User', { username: `lost${++users}@lost.example`, name: 'Lost', profileApiName: 'Standard' }),
    dashboards: () => admin.get('/analytics/dashboards'),
    'create a dashboard': () => admin.post('/analytics/dashboards', { name: 'Lost', widgets: [] }),
    runs: () => admin.get('/agent/runs'),
    'begin a run': () => admin.post('/agent/runs', { agentKey: 'lost', goal: 'Wait for the database.' }),
    deployments: () => admin.get('/metadata/deployments'),
  };

  /** Less than `lock_timeout`. */
  async function untilAllWait(): Promise<boolean> {
    for (const end = performance.now() + 1_500; performance.now() < end; await pause(20))
      if ((await superuser.query<{ count: number }>(WAITING)).rows[0]!.count >= SERVICES_THAT_WAIT) return true;
    return false;
  }

  /** Loses the database while all requests wait for locks; returns what was not 503 with `Retry-After` at once. */
  async function losing(lose: () => unknown): Promise<string[]> {
    for (let attempt = 1; ; attempt++) {
      await superuser.query('BEGIN');
      await superuser.query(`LOCK TABLE ${tables} IN ACCESS EXCLUSIVE MODE`);
      const sent = Object.entries(REQUESTS).map(async ([name, send]) => {
        const answer = await send();
        return { name, answer, answeredAt: performance.now() };
      });
      if (await untilAllWait()) {
        const lostAt = performance.now();
        await lose();
        return (await Promise.all(sent)).flatMap(({ name, answer: { status, headers, body, text }, answeredAt }) => {
          const took = answeredAt - lostAt;
          if (status !== 503 || body.code !== 'SERVICE_UNAVAILABLE') return `${name}: ${status} ${text}`;
          if (!(Number(headers.get('retry-after')) >= 1)) return `${name}: without Retry-After`;
          return took > 0 && took < AT_ONCE_MS ? [] : `${name}: after ${Math.round(took)} ms`;
        });
      }
      // The machine was too busy to bring all of them that far.
      await superuser.query('ROLLBACK');
      await Promise.all(sent);
      assert.ok(attempt < 5, 'The requests do not wait at the same time.');
    }
  }

  it('connections reset: all requests are 503 at once, and succeed when it is back', async () => {
    try {
      assert.deepEqual(await losing(() => link.set('reset')), []);
    } finally {
      link.set('whole');
      await superuser.query('ROLLBACK');
    }
    for (const [name, send] of Object.entries(REQUESTS)) {
      let answer = await send();
      for (const end = performance.now() + 10_000; answer.status === 503 && performance.now() < end; await pause(200))
        answer = await send();
      assert.ok(answer.status < 500, `${name}: ${answer.text}`);
    }
  });

  it('server stopped: all requests are 503 at once', async () => {
    assert.deepEqual(await losing(() => server.server.stop()), []);
  });
});

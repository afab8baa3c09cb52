/** The audit trail over HTTP, and the command that verifies it on a running platform. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ALL_SERVICES } from '../../../config/services.ts';
import { call } from '../../../contracts/call.ts';
import { Database } from '../../../mixins/database/database.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { compileCache, startProcess } from '../../support/processes.ts';

describe('the audit trail over HTTP', () => {
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    const sign = async (user: string) => api(platform.baseUrl, await tokenFor(platform.baseUrl, user));
    [ada, sam] = [await sign('ada'), await sign('sam')];
  });
  after(() => platform?.stop());

  it('shows a write to users who may see the trail, and to no others', async () => {
    const { body } = await sam.post('/data/Account', { name: 'Audited' });
    const reply = await ada.get(`/events/audit?recordId=${body.id}&outcome=committed&take=5`);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.records.length, 1);
    const [entry] = reply.body.records;
    assert.deepEqual([entry.operationId, entry.channel, entry.recordId], ['data.records.create', 'cli', body.id]);
    assert.deepEqual(entry.changes.map((change: { field: string }) => change.field).includes('name'), true);
    const refused = await sam.get('/events/audit');
    assert.deepEqual([refused.status, refused.body.details.layer], [403, 'objectPermission']);
    const history = await ada.get(`/data/Account/${body.id}/history`);
    assert.equal(history.status, 200, history.text);
    assert.equal(history.body.records[0].operation, 'create');
  });

  it('answers 400 to parameters that are malformed, all at once', async () => {
    const reply = await ada.get('/events/audit?actorId=ada&outcome=maybe&from=yesterday&recordId=1&take=x&color=red');
    assert.equal(reply.status, 400);
    assert.deepEqual(reply.body.errors.map((item: { pointer: string }) => item.pointer).sort(), [
      'query:actorId',
      'query:color',
      'query:from',
      'query:outcome',
      'query:recordId',
      'query:take',
    ]);
  });

  it('contains mutations that were refused before they reached the records', async () => {
    const id = randomUUID();
    const reader = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', 'data:read'));
    const refused = await reader.delete(`/data/Account/${id}`, { etag: '"1"' });
    assert.equal(refused.body.code, 'SCOPE_INSUFFICIENT');
    for (let n = 0; ; n++) {
      const [entry] = (await ada.get(`/events/audit?recordId=${id}`)).body.records;
      if (!entry && n < 100) {
        await pause(20);
        continue;
      }
      assert.deepEqual(
        [entry.outcome, entry.code, entry.operationId, entry.objectApiName, entry.requestId],
        ['denied', 'SCOPE_INSUFFICIENT', 'data.records.delete', 'Account', refused.body.requestId],
      );
      return;
    }
  });

  it('counts refusals beyond a number per user and minute, and keeps the count across a restart', async function () {
    this.timeout(60_000);
    const other = await startPlatform({ database: platform.database });
    const reader = api(other.baseUrl, await tokenFor(other.baseUrl, 'sam', 'data:read'));
    const ids = Array.from({ length: 40 }, (): string => randomUUID());
    const started = new Date().toISOString();
    for (const id of ids) assert.equal((await reader.delete(`/data/Account/${id}`, { etag: '"1"' })).status, 403);
    await other.stop();
    const list = async (operationId: string): Promise<{ recordId: string; changes: object[]; outcome: string }[]> =>
      (await ada.get(`/events/audit?operationId=${operationId}&from=${started}&take=100`)).body.records;
    const told = (await list('data.records.delete')).filter(({ recordId }) => ids.includes(recordId));
    assert.equal(told.length, 30);
    const [count] = await list('events.audit.suppressed');
    assert.equal(count?.outcome, 'denied');
    assert.deepEqual(count.changes[1], { field: 'suppressed', from: null, to: 10 });
  });

  it('drops refusals of a deleted tenant instead of reporting them repeatedly', async () => {
    const tenantId = randomUUID();
    const refusal = {
      tenantId,
      userId: randomUUID(),
      code: 'AUTHENTICATION_FAILED',
      clientId: 'c',
      ip: '192.0.2.1',
      requestId: 'r',
    };
    const count = { tenantId, count: 3, since: '2026-01-01T00:00:00.000Z' };
    assert.equal(await platform.broker.call('data.audit.denySignIn', refusal), null);
    assert.equal(await platform.broker.call('data.audit.suppress', count), null);
  });

  it('is sealed automatically, and verified by a command', async function () {
    this.timeout(60_000);
    const dataDir = await mkdtemp(join(tmpdir(), 'erp-audit-'));
    // Another process on the same database, with the operators' socket.
    const running = await startProcess({
      services: ALL_SERVICES,
      databaseUrl: platform.database.url,
      natsUrl: '',
      env: { DATA_DIR: dataDir },
    });
    const run = (...args: string[]): Promise<{ code: number | null; out: string; err: string }> =>
      new Promise((resolve, reject) => {
        const child = spawn(process.execPath, [join('scripts', 'audit.ts'), ...args], {
          cwd: join(import.meta.dirname, '../../..'),
          env: { PATH: process.env['PATH'], ...compileCache(), DATA_DIR: dataDir, LOG_LEVEL: 'silent' },
        });
        let [out, err] = ['', ''];
        child.stdout.on('data', (chunk) => (out += chunk));
        child.stderr.on('data', (chunk) => (err += chunk));
        child.once('error', reject);
        child.once('close', (code) => resolve({ code, out, err }));
      });
    const database = new Database(platform.database.url, { size: 1, applicationName: 'audit test' });
    try {
      const { rows } = await database.query<{ id: string }>(`SELECT id FROM metadata.tenants WHERE key = 'demo'`);
      const tenantId = rows[0]!.id;
      await call(platform.broker, 'data.audit.seal', { tenantId });
      const whole = await run('verify');
      assert.equal(whole.code, 0, whole.err);
      const [, head] =
        /^demo: intact, \d+ entries, \d+ not sealed yet, ends at (\d+:[0-9a-f]{64})$/m.exec(whole.out) ?? [];
      assert.ok(head, whole.out);
      assert.match(whole.out, /^acme: intact/m);
      assert.equal((await run('verify', '--tenant', 'demo', '--expect', head)).code, 0);
      const schema = `"t_${tenantId.replaceAll('-', '')}"`;
      const { rows: sealed } = await database.query<{ position: number; id: string; version: number }>(
        `SELECT position, record_id AS id, record_version AS version FROM ${schema}._audit_chain
          JOIN ${schema}._audit USING (audit_id) JOIN ${schema}._history USING (record_id, record_version)
          ORDER BY position LIMIT 1`,
      );
      const { position, id, version } = sealed[0]!;
      const ofChange = `record_id = '${id}' AND record_version = ${version}`;
      const another = (changed: string): string =>
        `INSERT INTO ${schema}._history SELECT (jsonb_populate_record(h, '{"change_id":"${randomUUID()}"${changed}}')).*
          FROM ${schema}._history h WHERE ${ofChange} LIMIT 1`;
      const altered = new RegExp(
        `^demo: BROKEN at position ${position}: the audit row, or the history of its change, is not what was sealed`,
        'm',
      );
      const kept = `${schema}.kept_history`;
      await database.query(`CREATE TABLE ${kept} AS SELECT * FROM ${schema}._history`);
      for (const [statement, reported] of [
        [`UPDATE ${schema}._history SET changes = '{"name":{"from":null,"to":"x"}}' WHERE ${ofChange}`, altered],
        [`DELETE FROM ${schema}._history WHERE ${ofChange}`, altered],
        [another(''), altered],
        [
          another(',"record_version":77'),
          new RegExp(
            `^demo: BROKEN: the history of a record has a row that belongs to no audit row \\(record ${id}\\)`,
            'm',
          ),
        ],
      ] as const) {
        await database.query(statement);
        const found = await run('verify', '--tenant', 'demo');
        assert.equal(found.code, 1, statement);
        assert.match(found.out, reported);
        await database.query(`DELETE FROM ${schema}._history`);
        await database.query(`INSERT INTO ${schema}._history SELECT * FROM ${kept}`);
      }
      await database.query(`DROP TABLE ${kept}`);
      assert.equal((await run('verify', '--tenant', 'demo')).code, 0);
      await database.query(
        `UPDATE ${schema}._audit SET ip = '203.0.113.1' WHERE audit_id = (SELECT audit_id FROM ${schema}._audit_chain WHERE position = 3)`,
      );
      const broken = await run('verify', '--tenant', 'demo');
      assert.equal(broken.code, 1, broken.err);
      assert.match(
        broken.out,
        /^demo: BROKEN at position 3: the audit row, or the history of its change, is not what was sealed \(entry .*\)\. 2 entries before it are intact\.$/m,
      );
      for (const args of [
        ['verify', '--tenant', 'nobody'],
        ['verify', '--expect', head],
      ])
        assert.equal((await run(...args)).code, 2, args.join(' '));
    } finally {
      await database.close();
      await running.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});

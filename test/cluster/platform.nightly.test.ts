/** Five processes on a real NATS with TLS and a user each: the main walk, and every one of them lost in the middle of it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { ALL_SERVICES, OPERATOR, type ServiceName } from '../../config/services.ts';
import { tenantSchema } from '../../lib/context.ts';
import type { Answer, Api } from '../support/client.ts';
import { assistantTokens } from '../support/mcp.ts';
import { fieldFile, wholePackage } from '../support/metadata-tenant.ts';
import { root } from '../support/sources.ts';
import { companyThrough, sealWhile } from './company.ts';
import { insist, type Stage, startStage, until } from './stage.ts';

const run = promisify(execFile);
const WRITES = 45;
const CONCURRENCY = 6;
/** A package that selects one object. */
const RETRIEVE = { package: { version: 1, types: [{ name: 'CustomObject', members: ['Invoice__c'] }] } };

describe('a cluster', function () {
  this.timeout(180_000);
  let stage: Stage;
  let sam: Api;

  before(async function () {
    this.timeout(330_000); // the start has a patience of its own
    stage = await startStage();
    sam = await stage.as('sam');
  });
  after(() => stage?.stop());
  // Reached after an earlier failure: another process may have ended already.
  afterEach('no process ended by itself', () => {
    for (const process of stage.processes.values()) assert.equal(process.crash(), null);
  });

  interface Stored {
    id: string;
    name: string;
    recordVersion: number;
    description: string | null;
  }
  const stored = async (prefix: string): Promise<Stored[]> => {
    const filters = { logic: 'and', conditions: [{ id: '1', field: 'name', operator: 'starts_with', value: prefix }] };
    const query = new URLSearchParams({
      filters: JSON.stringify(filters),
      fields: 'name,recordVersion,description',
      take: '200',
      includeTotal: 'true',
    });
    const answer = await insist(() => sam.get(`/data/Account?${query}`));
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.body.total, answer.body.records.length);
    return answer.body.records;
  };

  /**
   * Intentions, some at a time, each of them a create and an update with keys of their own; `fault` happens in the
   * middle. Every request is repeated with its key until it has an answer, and once more after that: what is stored must
   * be what one undisturbed run would have left.
   */
  async function writesThrough(prefix: string, fault: () => Promise<void>): Promise<void> {
    const intentions = Array.from({ length: WRITES }, (_, i) => ({
      name: `${prefix} ${i}`,
      createKey: randomUUID(),
      updateKey: randomUUID(),
    }));
    const queue = [...intentions];
    const outcomes = new Map<string, { id: string; created: string; updated: string }>();
    let troubled: Promise<void> | undefined;
    const create = ({ name, createKey }: (typeof intentions)[number]): Promise<Answer> =>
      insist(() => sam.post('/data/Account', { name }, { idempotencyKey: createKey }));
    const update = ({ name, updateKey }: (typeof intentions)[number], id: string, etag: string): Promise<Answer> =>
      insist(() =>
        sam.patch(`/data/Account/${id}`, { description: `About ${name}` }, { idempotencyKey: updateKey, etag }),
      );
    const etagOf = (answer: Answer): string => answer.headers.get('etag')!;
    const worker = async (): Promise<void> => {
      for (let intention = queue.shift(); intention; intention = queue.shift()) {
        const created = await create(intention);
        assert.equal(created.status, 201, created.text);
        const updated = await update(intention, created.body.id, etagOf(created));
        assert.equal(updated.status, 200, updated.text);
        outcomes.set(intention.name, { id: created.body.id, created: etagOf(created), updated: etagOf(updated) });
        if (outcomes.size === Math.floor(WRITES / 3)) troubled = fault();
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    await troubled;
    for (const intention of intentions) {
      const { id, created, updated } = outcomes.get(intention.name)!;
      assert.equal((await create(intention)).body.id, id, `${intention.name} is the one record of its key`);
      assert.equal(etagOf(await update(intention, id, created)), updated, `${intention.name} was changed once`);
    }
    const expected = intentions.map(({ name }) => ({
      id: outcomes.get(name)!.id,
      name,
      recordVersion: 2,
      description: `About ${name}`,
    }));
    const byName = (a: Stored, b: Stored): number => (a.name < b.name ? -1 : 1);
    assert.deepEqual((await stored(`${prefix} `)).sort(byName), expected.sort(byName));
  }

  it('serves the walk from sign-in to a deleted record', async () => {
    const identity = await sam.get('/identity');
    assert.equal(identity.body.user.username, 'sam@demo.example');
    const objects = await sam.get('/objects');
    assert.ok(objects.body.records.some((object: { apiName: string }) => object.apiName === 'Invoice__c'));
    const invoices = await sam.get('/data/Invoice__c?take=200');
    assert.equal(invoices.status, 200, invoices.text);
    assert.ok(invoices.body.records.length > 0);

    const mia = await stage.as('mia');
    const created = await mia.post('/data/Account', { name: 'Cluster Ltd' });
    assert.equal(created.status, 201, created.text);
    const path = `/data/Account/${created.body.id}`;
    const updated = await mia.patch(path, { name: 'Cluster GmbH' }, { etag: created.headers.get('etag')! });
    assert.equal(updated.status, 200, updated.text);
    const stale = await mia.patch(path, { name: 'Nobody' }, { etag: created.headers.get('etag')! });
    assert.equal(stale.status, 412);
    const deleted = await mia.delete(path, { etag: updated.headers.get('etag')! });
    assert.equal(deleted.status, 200, deleted.text);
    assert.equal((await mia.get(path)).status, 404);
    assert.equal((await sam.get('/me/limits')).status, 200);
    const ada = await stage.as('ada');
    const configuration = await ada.post('/metadata/retrieve', RETRIEVE);
    assert.equal(configuration.status, 200, configuration.text.slice(0, 500));
  });

  it('ends a connection that its user revokes, before the response', async () => {
    const scope = 'me:read me:write';
    const [kept, ended] = [await stage.as('sue', scope), await stage.as('sue', `${scope} data:read`)];
    const connectionId = (await ended.get('/identity')).body.connection.grantId;
    const listed = await kept.get('/me/connections');
    assert.ok(listed.body.records.some((one: { connectionId: string }) => one.connectionId === connectionId));
    const revoked = await kept.delete(`/me/connections/${connectionId}`);
    assert.equal(revoked.status, 204, revoked.text);
    assert.equal((await ended.get('/identity')).body.code, 'TOKEN_REVOKED');
    assert.equal((await kept.get('/identity')).status, 200);
  });

  it('deploys a new field that a record can have at once', async () => {
    const ada = await stage.as('ada');
    const files = fieldFile('Account', 'Cluster__c', 'fieldType: text\nlength: 40');
    const accepted = await ada.post('/metadata/deploy', { files, package: wholePackage(files) });
    assert.equal(accepted.status, 202, accepted.text);
    let deployment: Answer | undefined;
    await until(
      'the deployment has ended',
      async () => {
        deployment = await ada.get(`/metadata/deployments/${accepted.body.deploymentId}`);
        return ['SUCCEEDED', 'FAILED', 'CANCELED'].includes(deployment.body.status);
      },
      30_000,
    );
    assert.equal(deployment!.body.status, 'SUCCEEDED', deployment!.text);
    const created = await ada.post('/data/Account', { name: 'Deployed', Cluster__c: 'stored' });
    assert.equal(created.status, 201, created.text);
    assert.equal(created.body.Cluster__c, 'stored');
  });

  it('runs a widget over the records that its caller sees, which another process reads', async () => {
    const query = {
      objectApiName: 'Opportunity__c',
      dimensions: [{ field: 'ownerId' }],
      measures: [{ key: 'count', aggregation: 'count' }],
    };
    const layout = { x: 0, y: 0, w: 12, h: 4 };
    const widgets = [{ widgetKey: 'owners', title: 'By owner', type: 'bar', layout, query }];
    const made = await sam.post('/analytics/dashboards', { name: 'Mine', widgets });
    assert.equal(made.status, 201, made.text);
    const result = await sam.post(`/analytics/dashboards/${made.body.dashboardId}/widgets/owners/run`, {});
    assert.equal(result.status, 200, result.text);
    const list = await sam.get('/data/Opportunity__c?take=1&includeTotal=true');
    assert.equal(result.body.totals.count, list.body.total);
    assert.deepEqual(
      result.body.accessNotes.map(({ code }: { code: string }) => code),
      ['ROWS_RESTRICTED'],
    );
    const absent = { ...widgets[0], query: { ...query, objectApiName: 'Absent__c' } };
    const refused = await sam.post('/analytics/dashboards', { name: 'Mine', widgets: [absent] });
    assert.deepEqual([refused.status, refused.body.code], [422, 'WIDGET_QUERY_INVALID'], refused.text);
  });

  /** Calls a tool, of which the gateway runs the operation. */
  const askAssistant = (token: string): Promise<Response> =>
    fetch(`${stage.baseUrl}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'metadata_retrieve', arguments: RETRIEVE },
      }),
    });

  it('answers an assistant, whose tool runs where the request came in', async () => {
    const { access_token } = await assistantTokens(stage.baseUrl, 'ada');
    const answer = await askAssistant(access_token);
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    assert.match(text, /type: CustomObject/);
    assert.doesNotMatch(text, /"isError":true/);
  });

  it('signs each process in to the database as the login of its service', async () => {
    const client = new Client({ connectionString: stage.database.url });
    await client.connect();
    try {
      const { rows } = await client.query<{ login: string; service: string }>(
        `SELECT DISTINCT usename AS login, split_part(application_name, ' ', 2) AS service
         FROM pg_stat_activity WHERE application_name LIKE 'erp %'`,
      );
      assert.ok(rows.length > 1);
      for (const { login, service } of rows) assert.equal(login, `login_${service}`);
    } finally {
      await client.end();
    }
  });

  it('shows the state of every process in probes and metrics', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics'])
      assert.equal((await fetch(`${stage.baseUrl}${path}`)).status, 200, path);
  });

  for (const service of ALL_SERVICES)
    it(`killed ${service} in the middle of writes: the same keys again give each intention exactly once`, async () => {
      await writesThrough(`Killed ${service}`, async () => {
        await stage.processes.get(service)!.kill();
        await stage.restart(service);
      });
    });

  for (const service of ['data', 'agent'] as const)
    it(`killed ${service} in the middle of approved deletions: each approval is used for its one record, once`, async () => {
      const mia = await stage.as('mia');
      const ada = await stage.as('ada');
      const run = { agentKey: 'tidy', goal: 'Delete accounts.', budget: { maxMutations: 100 } };
      const beginning = { idempotencyKey: randomUUID() };
      const begun = await insist(() => mia.post('/agent/runs', run, beginning));
      assert.equal(begun.status, 201, begun.text);
      const { runId } = begun.body;
      const headers = { 'x-agent-run-id': runId };
      const deletions = await Promise.all(
        Array.from({ length: 16 }, async (_, i) => {
          // The process of the case before may be seen by some and not yet by others.
          const name = { name: `Approved ${service} ${i}` };
          const [creating, deciding] = [{ idempotencyKey: randomUUID() }, { idempotencyKey: randomUUID() }];
          const { body, headers: created } = await insist(() => mia.post('/data/Account', name, creating));
          const options = { headers, etag: created.get('etag')!, idempotencyKey: randomUUID() };
          const send = (): Promise<Answer> => mia.delete(`/data/Account/${body.id}`, options);
          const { approvalId, fingerprint } = (await insist(send)).body.details;
          const decision = { decision: 'approve', fingerprint };
          const decided = await insist(() => ada.post(`/agent/approvals/${approvalId}/decision`, decision, deciding));
          assert.equal(decided.status, 201, decided.text);
          return { id: body.id, approvalId, send };
        }),
      );
      const killing = pause(30).then(async () => {
        await stage.processes.get(service)!.kill();
        await stage.restart(service);
      });
      const answers = await Promise.all(deletions.map(({ send }) => insist(send)));
      await killing;
      for (const [i, { id, approvalId, send }] of deletions.entries()) {
        assert.deepEqual([answers[i]?.status, answers[i]?.body.id], [200, id], answers[i]?.text);
        const again = await insist(send);
        assert.deepEqual([again.text, again.headers.get('idempotency-replayed')], [answers[i]?.text, 'true']);
        const approval = await insist(() => ada.get(`/agent/approvals/${approvalId}`));
        assert.equal(approval.body.status, 'CONSUMED');
      }
      const { usage } = (await insist(() => mia.get(`/agent/runs/${runId}`))).body;
      assert.deepEqual([usage.mutations, usage.recordsChanged], [deletions.length, deletions.length]);
    });

  it('killed PostgreSQL in the middle of writes: the same folder again, and each intention exactly once', async () => {
    const before = stage.database.pid;
    await writesThrough('Killed database', async () => {
      process.kill(stage.database.pid, 'SIGKILL');
    });
    assert.notEqual(stage.database.pid, before);
  });

  it('killed PostgreSQL after changes were read: changes that reuse lost transaction ids are reported', async () => {
    const client = new Client({ connectionString: stage.database.url });
    client.on('error', () => {});
    await client.connect();
    // They leave nothing, not even on the disk: after the crash their numbers are given again.
    for (let i = 0; i < 300; i++) await client.query('BEGIN; SELECT pg_current_xact_id(); ROLLBACK');
    const { body: begun } = await sam.get('/data/Account/changes');
    process.kill(stage.database.pid, 'SIGKILL');
    await client.end().catch(() => {});
    const key = randomUUID();
    const made = await insist(() => sam.post('/data/Account', { name: 'After the crash' }, { idempotencyKey: key }));
    assert.equal(made.status, 201, made.text);
    const told = await insist(() => sam.get(`/data/Account/changes?cursor=${encodeURIComponent(begun.resumeCursor)}`));
    const ids = told.body.records.map((entry: { id: string }) => entry.id);
    assert.deepEqual(ids, [made.body.id], told.text);
  });

  it('killed data in the middle of a company at work: nothing is lost, done twice or left half done', async () => {
    await companyThrough(stage, 'Work without data', async () => {
      await stage.processes.get('data')!.kill();
      await stage.restart('data');
    });
  });

  it('killed PostgreSQL in the middle of a company at work: the same', async () => {
    await companyThrough(stage, 'Work without PostgreSQL', async () => {
      process.kill(stage.database.pid, 'SIGKILL');
    });
  });

  it('lost NATS in the middle of a company at work: the same', async () => {
    await companyThrough(stage, 'Work without NATS', async () => {
      await stage.nats.stop();
      await pause(1_000);
      await stage.nats.start();
    });
  });

  for (const victim of ['data', 'PostgreSQL'] as const)
    it(`killed ${victim} in the middle of sealing the audit trail: every entry is in the chain, and once`, async () => {
      const schema = `"${tenantSchema(await stage.tenantId())}"`;
      const client = new Client({ connectionString: stage.database.url });
      client.on('error', () => {});
      await client.connect();
      // Sealing adds the links of a batch, and then cannot move the head of the chain.
      await client.query(`BEGIN; LOCK TABLE ${schema}._audit_head IN SHARE MODE`);
      let working = true;
      const sealing = sealWhile(stage, () => working);
      try {
        const key = randomUUID();
        await insist(() => sam.post('/data/Account', { name: `Sealed without ${victim}` }, { idempotencyKey: key }));
        const halfSealed = `SELECT FROM pg_locks waits JOIN pg_locks holds USING (pid)
          WHERE NOT waits.granted AND waits.relation = '${schema}._audit_head'::regclass
            AND holds.granted AND holds.relation = '${schema}._audit_chain'::regclass AND holds.mode = 'RowExclusiveLock'`;
        await until('a batch is half sealed', async () => (await client.query(halfSealed)).rowCount === 1, 30_000);
        if (victim === 'data') {
          await stage.processes.get('data')!.kill();
          await client.query('ROLLBACK');
          await stage.restart('data');
        } else process.kill(stage.database.pid, 'SIGKILL');
        await until('everything is sealed', async () => (await unsealed(schema)) === 0, 60_000);
      } finally {
        await client.end().catch(() => {});
        working = false;
        await sealing;
      }
      await trailIsWhole();
    });

  /** Entries without a link in the chain; none is known while the database is away. */
  async function unsealed(schema: string): Promise<number | null> {
    const client = new Client({ connectionString: stage.database.url });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query(
        `SELECT count(*)::int FROM ${schema}._audit a FULL JOIN ${schema}._audit_chain c USING (audit_id)
          WHERE a.audit_id IS NULL OR c.audit_id IS NULL`,
      );
      return rows[0].count;
    } catch {
      return null;
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** As an operator finds out; answers how many entries were checked. */
  async function trailIsWhole(): Promise<number> {
    const env = { PATH: process.env['PATH'], ...stage.nats.environment(OPERATOR), LOG_LEVEL: 'silent' };
    const { stdout } = await run(process.execPath, ['scripts/audit.ts', 'verify'], { cwd: root, env });
    const checked = /^demo: intact, (\d+) entries, \d+ not sealed yet/m.exec(stdout)?.[1];
    assert.ok(checked, stdout);
    return Number(checked);
  }

  /** Asks until the service is missed, then sees that every answer is quick and says when to come again. */
  async function answers503(request: () => Promise<Response>): Promise<void> {
    for (let i = 0; i < 5; i++) {
      const began = performance.now();
      const response = await request();
      const took = performance.now() - began;
      const text = await response.text();
      assert.equal(response.status, 503, text);
      assert.ok(Number(response.headers.get('retry-after')) > 0, 'Retry-After');
      assert.ok(took < 1_500, `${Math.round(took)} ms`);
      if (i === 0) continue;
      assert.ok(took < 1_000, `${Math.round(took)} ms`);
    }
  }

  let assistant: string | undefined;
  const asks: Partial<Record<ServiceName, (token: string) => Promise<Response>>> = {
    data: (token) =>
      fetch(`${stage.baseUrl}/api/v1/data/Account?take=1`, { headers: { authorization: `Bearer ${token}` } }),
    metadata: (token) =>
      fetch(`${stage.baseUrl}/api/v1/metadata/retrieve`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
        },
        body: JSON.stringify(RETRIEVE),
      }),
    auth: () =>
      fetch(`${stage.baseUrl}/oauth2/token`, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'refresh_token', client_id: 'erp-cli', refresh_token: 'none' }),
      }),
    mcp: async () => askAssistant((assistant ??= (await assistantTokens(stage.baseUrl, 'ada')).access_token)),
  };

  for (const [service, ask] of Object.entries(asks) as [ServiceName, (token: string) => Promise<Response>][])
    it(`without ${service} answers 503 with Retry-After within a second, and finds it again by itself`, async () => {
      const { tokenFor } = await import('../support/client.ts');
      const token = await tokenFor(stage.baseUrl, 'ada');
      let status = 503;
      await until(`${service} answers`, async () => (status = (await ask(token)).status) !== 503, 10_000);
      const gateway = stage.processes.get('gateway')!.pid;
      await stage.processes.get(service)!.kill();
      try {
        await answers503(() => ask(token));
      } finally {
        await stage.restart(service);
      }
      await until(`${service} is found`, async () => (await ask(token)).status === status, 5_000);
      assert.equal(stage.processes.get('gateway')!.pid, gateway);
    });

  it('without ratelimit continues', async () => {
    await stage.processes.get('ratelimit')!.kill();
    await pause(500);
    for (let i = 0; i < 20; i++) {
      const answer = await sam.get('/data/Account?take=1');
      assert.equal(answer.status, 200, answer.text);
    }
    await stage.restart('ratelimit');
  });

  it('without NATS answers 503, and recovers without a restart', async () => {
    const pids = [...stage.processes.values()].map(({ pid }) => pid);
    await stage.nats.stop();
    await until('the gateway is not ready', async () => (await fetch(`${stage.baseUrl}/readyz`)).status === 503, 3_000);
    const began = performance.now();
    const lost = await sam.get('/data/Account?take=1');
    assert.equal(lost.status, 503, lost.text);
    assert.ok(performance.now() - began < 1_500);
    assert.ok(Number(lost.headers.get('retry-after')) > 0);
    await pause(5_000); // longer than processes wait for each other's heartbeats
    await stage.nats.start();
    await until('the cluster works', async () => (await sam.get('/data/Account?take=1')).status === 200, 10_000);
    await writesThrough('After NATS', async () => {});
    assert.deepEqual(
      [...stage.processes.values()].map(({ pid }) => pid),
      pids,
    );
  });

  it('NATS lost in the middle of writes: each intention exactly once', async () => {
    await writesThrough('Lost NATS', async () => {
      await stage.nats.stop();
      await pause(2_000);
      await stage.nats.start();
    });
  });

  it('with two copies of data, one killed, continues with the other', async () => {
    const second = await stage.startCopy('data');
    await writesThrough('Two copies', () => second.kill());
    const began = performance.now();
    assert.equal((await sam.get('/data/Account?take=1')).status, 200);
    assert.ok(performance.now() - began < 1_000);
  });

  it('has an intact audit trail afterwards', async () => {
    assert.ok((await trailIsWhole()) > 500);
  });

  it('stops every process within ten seconds when asked', async () => {
    const stopped = await Promise.all(
      [...stage.processes.entries()].map(async ([service, process]) => {
        const began = Date.now();
        const code = await process.stop();
        return { service, code, quick: Date.now() - began < 10_000 };
      }),
    );
    for (const { service, code, quick } of stopped)
      assert.deepEqual({ service, code, quick }, { service, code: 0, quick: true });
  });
});

/**
 * Every operation row, called by those who must be refused: without a token, with a token without the scope, by a user
 * without the API permission, and above all by an administrator of another tenant with real ids of this one. Generated
 * from the rows, so that a new operation is covered at once.
 */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { after, before, describe, it } from 'mocha';
import { OPERATIONS } from '../../contracts/operations.ts';
import type { Operation } from '../../lib/operation.ts';
import { uuidv7 } from '../../lib/values/ids.ts';
import { aDeletion, admit, contextOf } from '../support/agents.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

/** Path parameters that name no resource by themselves. */
const NAMES: ReadonlySet<string> = new Set(['objectApiName', 'externalIdField', 'partNumber']);

const guarded = OPERATIONS.filter((row) => row.scopes !== 'public');
const title = (row: Operation): string => `${row.operationId}: ${row.method} ${row.path}`;

/** A body that passes the form checks, so that the answer depends on access and not on the body. */
function bodyFor(row: Operation): unknown {
  if (!row.requestBody) return undefined;
  if (row.requestBody.kind === 'stream') return 'x';
  return row.requestBody.example ?? {};
}

const streamHeaders = ({ requestBody, headerParameters = [] }: Operation): Record<string, string> => ({
  'content-type': requestBody?.contentTypes?.[0] ?? 'text/plain',
  'content-digest': `sha-256=:${hash('sha256', 'x', 'base64')}:`,
  ...Object.fromEntries(headerParameters.map(({ name, example }) => [name, String(example)])),
});

const call = (
  client: Api,
  row: Operation,
  path: string,
  more: { idempotencyKey?: string | null } = {},
): Promise<Answer> =>
  client.send(row.method, path, bodyFor(row), {
    ...(row.precondition === 'ifMatch' ? { etag: '"1"' } : {}),
    ...(row.mutation ? more : { idempotencyKey: null }),
    headers: {
      ...(row.precondition === 'expectedRevision' ? { 'x-expected-revision': '1' } : {}),
      ...(row.requestBody?.kind === 'stream' ? streamHeaders(row) : {}),
    },
  });

/** An Error body without the parts that differ between any two requests. */
function shape(answer: Answer): unknown {
  const { requestId, instance, ...body } = answer.body as Record<string, unknown>;
  return { status: answer.status, body };
}

describe('isolation of every operation', () => {
  let platform: TestPlatform;
  let stranger: Api;
  let ada: Api;
  let eve: Api;
  let pat: Api;
  /** Real ids of the demo tenant, by path parameter. */
  const real: Record<string, string> = {};

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    stranger = api(platform.baseUrl);
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
    pat = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'pat'));
    const invoices = await ada.get('/data/Invoice__c?take=1');
    assert.equal(invoices.status, 200, invoices.text);
    real['objectApiName'] = 'Invoice__c';
    real['id'] = invoices.body.records[0].id;
    real['externalIdField'] = 'LedgerNumber__c';
    const numbered = await ada.put('/data/Invoice__c/by/LedgerNumber__c/ISOLATION-1', {
      AccountId__c: invoices.body.records[0].AccountId__c,
      Amount__c: 10,
    });
    assert.equal(numbered.status, 201, numbered.text);
    real['value'] = 'ISOLATION-1';
    const deployment = await ada.post('/metadata/deploy', {
      files: {},
      package: { version: 1, types: [] },
      checkOnly: true,
    });
    assert.equal(deployment.status, 202, deployment.text);
    real['deploymentId'] = deployment.body.deploymentId;
    const shared = await ada.post(`/data/Invoice__c/${real['id']}/shares`, {
      principalType: 'role',
      principalId: 'Finance',
      access: 'read',
    });
    assert.equal(shared.status, 201, shared.text);
    real['shareId'] = shared.body.shareId;
    real['transitionKey'] = 'send';
    const identity = await ada.get('/identity');
    assert.equal(identity.status, 200, identity.text);
    const dashboard = await ada.post('/analytics/dashboards', {
      name: 'Isolation',
      visibility: 'public',
      widgets: [{ widgetKey: 'note', title: '', type: 'text', layout: { x: 0, y: 0, w: 1, h: 1 } }],
    });
    assert.equal(dashboard.status, 201, dashboard.text);
    real['widgetKey'] = 'note';
    real['dashboardId'] = dashboard.body.dashboardId;
    const run = await ada.post('/agent/runs', { agentKey: 'isolation', goal: 'To be looked for by others.' });
    assert.equal(run.status, 201, run.text);
    real['runId'] = run.body.runId;
    const asked = await admit(platform, await contextOf(ada), aDeletion(run.body.runId)).catch((error) => error);
    assert.equal(asked.code, 'APPROVAL_REQUIRED', String(asked));
    real['approvalId'] = asked.details.approvalId;
    real['connectionId'] = identity.body.connection.grantId;
    real['userId'] = identity.body.user.id;
    const upload = await ada.post('/files/uploads', { name: 'a', contentType: 'text/plain', size: 1 });
    assert.equal(upload.status, 201, upload.text);
    real['uploadId'] = upload.body.uploadId;
    const file = await ada.send('POST', '/files', 'x', {
      headers: {
        'content-type': 'text/plain',
        'content-digest': `sha-256=:${hash('sha256', 'x', 'base64')}:`,
        'x-file-name': 'a',
      },
    });
    assert.equal(file.status, 201, file.text);
    real['fileId'] = file.body.fileId;
    const job = await ada.post('/bulk/jobs', { operation: 'create', objectApiName: 'Account', format: 'csv' });
    assert.equal(job.status, 201, job.text);
    real['jobId'] = job.body.jobId;
    real['partNumber'] = '1';
    const told = { type: 'Isolation', recipients: [real['userId']], data: { title: 'Isolation' } };
    assert.equal((await ada.post('/notifications', told)).status, 201);
    real['notificationId'] = (await ada.get('/notifications?type=Isolation')).body.records[0].notificationId;
    const event = await ada.post('/calendar/events', {
      title: 'Isolation',
      start: { date: '2026-11-23' },
      end: { date: '2026-11-24' },
    });
    assert.equal(event.status, 201, event.text);
    real['eventId'] = event.body.eventId;
    const subscription = { name: 'Isolation', url: 'https://shop.example/hooks', eventTypes: ['data.record.created'] };
    const subscribed = await ada.post('/events/subscriptions', subscription);
    assert.equal(subscribed.status, 201, subscribed.text);
    real['subscriptionId'] = subscribed.body.subscriptionId;
    real['calendarId'] = event.body.calendarId;
  });

  after(() => platform?.stop());

  const pathOf = (row: Operation, values: Record<string, string>): string =>
    row.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = values[name];
      assert.ok(value, `this suite knows no real value for the path parameter ${name} of ${row.operationId}`);
      return encodeURIComponent(value);
    });

  for (const row of guarded) {
    describe(title(row), () => {
      it('answers 401 without a token, and names the authorization server', async () => {
        const answer = await call(stranger, row, pathOf(row, real));
        assert.equal(answer.status, 401, answer.text);
        assert.equal(answer.body.code, 'TOKEN_MISSING');
        assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer resource_metadata="[^"]+"$/);
      });

      it('refuses a made-up token', async () => {
        const answer = await call(api(platform.baseUrl, 'eyJhbGciOiJub25lIn0.e30.'), row, pathOf(row, real));
        assert.equal(answer.status, 401, answer.text);
        assert.equal(answer.body.code, 'TOKEN_INVALID');
      });

      if (row.operationId !== 'me.identity.get')
        it('refuses a user without the API permission', async () => {
          const answer = await call(pat, row, pathOf(row, real));
          assert.equal(answer.status, 403, answer.text);
          assert.equal(answer.body.code, 'API_ACCESS_DISABLED');
        });

      if (Array.isArray(row.scopes))
        it('refuses a token without its scope', async () => {
          const other = row.scopes.includes('me:read') ? 'me:write' : 'me:read';
          const client = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada', other));
          const answer = await call(client, row, pathOf(row, real));
          assert.equal(answer.status, 403, answer.text);
          assert.equal(answer.body.code, 'SCOPE_INSUFFICIENT');
          assert.deepEqual(answer.body.details.required, row.scopes);
        });

      if (row.oneOfScopes)
        it('refuses a token with none of its scopes', async () => {
          const client = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada', 'me:read'));
          const answer = await call(client, row, pathOf(row, real));
          assert.deepEqual([answer.status, answer.body.code], [403, 'SCOPE_INSUFFICIENT'], answer.text);
        });

      it('refuses an unknown parameter', async () => {
        const path = pathOf(row, real);
        const answer = await call(ada, row, `${path}?nosuchparameter=1`);
        assert.equal(answer.status, 400, answer.text);
        assert.equal(answer.body.code, 'PARAMETER_UNKNOWN');
      });

      if (row.mutation)
        it('refuses changes without an idempotency key', async () => {
          const answer = await call(ada, row, pathOf(row, real), { idempotencyKey: null });
          assert.equal(answer.status, 400, answer.text);
          assert.equal(answer.body.code, 'IDEMPOTENCY_KEY_REQUIRED');
        });

      const ids = [...row.path.matchAll(/\{(\w+)\}/g)].map((m) => m[1]!).filter((name) => !NAMES.has(name));
      if (ids.length)
        it('treats resources of another tenant exactly like unknown ones', async () => {
          const foreign = await call(eve, row, pathOf(row, real));
          const absent = await call(
            eve,
            row,
            pathOf(row, {
              ...real,
              ...Object.fromEntries(ids.map((n) => [n, n === 'value' ? 'ISOLATION-2' : uuidv7()])),
            }),
          );
          // An unknown record is created by an upsert, if the body allows it: this one does not.
          assert.equal(foreign.status, row.operationId === 'data.records.upsert' ? 422 : 404, foreign.text);
          assert.deepEqual(shape(foreign), shape(absent));
        });
      else if (row.path.includes('{objectApiName}'))
        it('treats an object that only another tenant has like an unknown one', async () => {
          const mine = await ada.get('/objects');
          assert.ok(mine.body.records.length > 0);
          const foreign = await call(eve, row, pathOf(row, { objectApiName: 'OnlyInDemo__c' }));
          const absent = await call(eve, row, pathOf(row, { objectApiName: 'Nowhere__c' }));
          assert.equal(foreign.status, 404, foreign.text);
          assert.equal(absent.status, 404);
          assert.equal(foreign.body.code, absent.body.code);
        });
    });
  }

  it('previews nothing on the records of another tenant', async () => {
    const changes = [
      { operation: 'update', ifMatch: '"1"', fields: { Amount__c: 1 } },
      { operation: 'delete', ifMatch: '"1"' },
      { operation: 'restore' },
      { operation: 'transition', ifMatch: '"1"', transitionKey: 'send' },
    ];
    for (const change of changes) {
      const tried = (id: string): Promise<Answer> => eve.post('/data/Invoice__c/check', { ...change, id });
      const foreign = await tried(real['id']!);
      assert.equal(foreign.status, 404, foreign.text);
      assert.deepEqual(shape(foreign), shape(await tried(uuidv7())));
    }
  });

  it('shows a tenant only its own records', async () => {
    const mine = await ada.get('/data/Account?take=200&fields=id');
    const theirs = await eve.get('/data/Account?take=200&fields=id');
    assert.equal(mine.status, 200, mine.text);
    assert.equal(theirs.status, 200, theirs.text);
    const ids = new Set(mine.body.records.map((r: { id: string }) => r.id));
    for (const record of theirs.body.records) assert.ok(!ids.has(record.id));
  });
});

describe('row-level security and roles', () => {
  let platform: TestPlatform;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
  });
  after(() => platform?.stop());

  it('PostgreSQL denies a tenant role access to another tenant, even when our own check is disabled on purpose', async () => {
    const { Database } = await import('../../mixins/database/database.ts');
    const { tenantSchema } = await import('../../lib/context.ts');
    const database = new Database(platform.database.url, { size: 1, applicationName: 'isolation test' });
    try {
      const { rows } = await database.query<{ id: string; key: string }>('SELECT id, key FROM metadata.tenants');
      const demo = rows.find((t) => t.key === 'demo')!;
      const acme = rows.find((t) => t.key === 'acme')!;
      // The wrong schema name in a statement simulates a bug of ours.
      const crossing = database.tenant(acme.id, (tx) => tx.query(`SELECT * FROM "${tenantSchema(demo.id)}"."Account"`));
      await assert.rejects(crossing, /permission denied for schema/);
      // A shared table shows only rows of the transaction's tenant, whatever the statement selects.
      const shared = await database.shared('metadata', acme.id, (tx) =>
        tx.query<{ tenant_id: string }>('SELECT DISTINCT tenant_id FROM metadata.components'),
      );
      assert.deepEqual(
        shared.rows.map((r) => r.tenant_id),
        [acme.id],
      );
      const unbound = await database.shared('metadata', null, (tx) => tx.query('SELECT FROM metadata.components'));
      assert.equal(unbound.rowCount, 0);
    } finally {
      await database.close();
    }
  });
});

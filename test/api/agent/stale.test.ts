/**
 * An approval covers the effects that were shown: when these change before the execution, the request is refused,
 * and approval is requested again. Source: docs/reference/agents.md#stale-approvals.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { Database } from '../../../mixins/database/database.ts';
import type { Answer, Api } from '../../support/client.ts';
import { fieldFile, wholePackage } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from '../data/deals.ts';
import { digest } from '../files/world.ts';

const FILES = {
  ...fieldFile('Deal__c', 'Number__c', 'fieldType: text\nlength: 40\nexternalId: true\nunique: true'),
  ...fieldFile('Deal__c', 'Before__c', 'fieldType: reference\nreferenceTo: [Deal__c]'),
  'agentPolicies/Everything.yaml': JSON.stringify({
    type: 'AgentPolicy',
    apiName: 'Everything',
    appliesTo: { clients: ['*'] },
    rules: [{ operationIds: ['data.*', 'me.*', 'analytics.*', 'metadata.*', 'bulk.*'], decision: 'approve' }],
  }),
};

const grants = (system: readonly string[]): Record<string, string> => ({
  'permissionSets/Helpers.yaml': JSON.stringify({
    type: 'PermissionSet',
    apiName: 'Helpers',
    label: 'Helpers',
    system: ['apiEnabled', ...system].sort(),
  }),
});

/** A request, and the change that happens before it is executed. */
interface Scene {
  readonly send: (headers: Record<string, string>, idempotencyKey: string) => Promise<Answer>;
  readonly change: () => Promise<unknown>;
  readonly changed: readonly string[];
}

describe('an approval whose request would have another effect by now', function () {
  this.timeout(240_000);
  let deals: Deals;
  let database: Database;
  let ada: Api;
  let mia: Api;
  let runId: string;
  before(async () => {
    deals = await startDeals();
    ({ ada, mia } = deals.as);
    database = new Database(deals.platform.database.url, { size: 2, applicationName: 'stale test' });
    await deals.deploy(FILES);
    await deals.setUser('mia', { profileApiName: 'Administrator' });
    const run = await ada.post('/agent/runs', {
      agentKey: 'tester',
      goal: 'Change the world.',
      budget: { maxMutations: 100 },
    });
    runId = run.body.runId;
  });
  after(async () => {
    await database?.close();
    await deals?.platform.stop();
  });

  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  const approve = async (reply: Answer): Promise<string> => {
    refused(reply, 403, 'APPROVAL_REQUIRED');
    const { approvalId, fingerprint } = reply.body.details;
    const decided = await mia.post(`/agent/approvals/${approvalId}/decision`, { decision: 'approve', fingerprint });
    assert.deepEqual([decided.status, decided.body.status], [201, 'APPROVED'], decided.text);
    return approvalId;
  };
  const fields = ['One__c', 'Two__c', 'Three__c', 'Four__c', 'Five__c', 'Six__c', 'Seven__c'];
  const configure = (object: string): Promise<unknown> =>
    deals.deploy(fieldFile(object, fields.pop()!, 'fieldType: text\nlength: 40'));
  const aDeal = async (more: Record<string, unknown> = {}): Promise<{ path: string; id: string; etag: string }> => {
    const { body, headers } = await deals.deal(ada, more);
    return { path: `/data/Deal__c/${body.id}`, id: body.id, etag: headers.get('etag')! };
  };
  const deploy = (files: Record<string, string>) => ({ files, package: wholePackage(files) });

  /** Every operation with a preview that can be approved. */
  const SCENES: Readonly<Record<string, () => Promise<Scene>>> = {
    'data.records.create': async () => {
      const number = randomUUID();
      const [one, two] = [await aDeal({ Number__c: number }), await aDeal()];
      const move = async (path: string, Number__c: string | null): Promise<void> => {
        const etag = (await ada.get(path)).headers.get('etag')!;
        assert.equal((await ada.patch(path, { Number__c }, { etag })).status, 200);
      };
      const body = { name: 'Follows', Before__c: { Number__c: number } };
      return {
        send: (headers, idempotencyKey) => ada.post('/data/Deal__c', body, { headers, idempotencyKey }),
        change: async () => {
          await move(one.path, null);
          await move(two.path, number);
        },
        changed: ['references'],
      };
    },
    'data.records.update': async () => {
      const number = randomUUID();
      const [one, two, deal] = [await aDeal({ Number__c: number }), await aDeal(), await aDeal()];
      return {
        send: (headers, idempotencyKey) =>
          ada.patch(deal.path, { Before__c: { Number__c: number } }, { headers, idempotencyKey, etag: deal.etag }),
        change: async () => {
          assert.equal((await ada.patch(one.path, { Number__c: null }, { etag: one.etag })).status, 200);
          assert.equal((await ada.patch(two.path, { Number__c: number }, { etag: two.etag })).status, 200);
        },
        changed: ['references'],
      };
    },
    'data.records.upsert': async () => {
      const number = randomUUID();
      return {
        send: (headers, idempotencyKey) =>
          ada.put(`/data/Deal__c/by/Number__c/${number}`, { name: 'New' }, { headers, idempotencyKey }),
        change: () => aDeal({ Number__c: number }),
        changed: ['record'],
      };
    },
    'data.records.delete': async () => {
      const deal = await aDeal();
      return {
        send: (headers, idempotencyKey) => ada.delete(deal.path, { headers, idempotencyKey, etag: deal.etag }),
        change: async () => {
          const line = await ada.post('/data/DealLine__c', { name: 'Line', Deal__c: deal.id });
          assert.equal(line.status, 201, line.text);
        },
        changed: ['effects'],
      };
    },
    'data.records.restore': async () => {
      const deal = await aDeal();
      assert.equal((await ada.delete(deal.path, { etag: deal.etag })).status, 200);
      return {
        send: (headers, idempotencyKey) => ada.post(`${deal.path}/restore`, undefined, { headers, idempotencyKey }),
        change: () => configure('Deal__c'),
        changed: ['configuration'],
      };
    },
    'data.transitions.execute': async () => {
      const account = (await ada.post('/data/Account', { name: 'Order Test GmbH' })).body.id;
      const { id } = (await ada.post('/data/SalesOrder__c', { AccountId__c: account })).body;
      const product = (await ada.get('/data/Product?take=1')).body.records[0].id;
      const line = { SalesOrderId__c: id, ProductId__c: product, Position__c: 1, Quantity__c: 2, UnitPrice__c: 10 };
      const made = await ada.post('/data/SalesOrderLine__c', { ...line, TaxRate__c: 19 });
      assert.equal(made.status, 201, made.text);
      const path = `/data/SalesOrder__c/${id}`;
      const etag = (await ada.get(path)).headers.get('etag')!;
      return {
        send: (headers, idempotencyKey) =>
          ada.post(`${path}/transitions/submit`, {}, { headers, idempotencyKey, etag }),
        change: () => configure('SalesOrder__c'),
        changed: ['configuration'],
      };
    },
    'data.shares.create': async () => {
      const deal = await aDeal();
      const body = { principalType: 'user', principalId: deals.ids.sue, access: 'read' };
      return {
        send: (headers, idempotencyKey) => ada.post(`${deal.path}/shares`, body, { headers, idempotencyKey }),
        // Users who had edit access by then would be reduced to reading.
        change: async () => {
          const shared = await ada.post(`${deal.path}/shares`, { ...body, access: 'edit' });
          assert.equal(shared.status, 201, shared.text);
        },
        changed: ['effects'],
      };
    },
    'data.shares.delete': async () => {
      const deal = await aDeal();
      const body = { principalType: 'user', principalId: deals.ids.sue, access: 'read' };
      const { shareId } = (await ada.post(`${deal.path}/shares`, body)).body;
      return {
        send: (headers, idempotencyKey) => ada.delete(`${deal.path}/shares/${shareId}`, { headers, idempotencyKey }),
        change: () => ada.post(`${deal.path}/shares`, { ...body, access: 'edit' }),
        changed: ['effects'],
      };
    },
    'metadata.deployments.create': async () => {
      await deals.deploy(grants(['manageAccess', 'manageUsers']));
      // The same bytes except for a label, until another user removes the rights.
      const files = {
        ...grants(['manageAccess', 'manageUsers']),
        ...fieldFile('Deal__c', 'Label__c', 'fieldType: text\nlength: 40'),
      };
      return {
        send: (headers, idempotencyKey) => ada.post('/metadata/deploy', deploy(files), { headers, idempotencyKey }),
        change: () => deals.deploy(grants([])),
        changed: ['plan'],
      };
    },
    'bulk.jobs.start': async () => {
      // Deployments that were accepted before have ended with this one.
      await configure('Contact');
      const job = { operation: 'create', objectApiName: 'Deal__c', format: 'ndjson' };
      const { jobId } = (await ada.post('/bulk/jobs', job)).body;
      const upload = async (name: string): Promise<void> => {
        const part = Buffer.from(`${JSON.stringify({ name })}\n`);
        const type = { 'content-type': 'application/x-ndjson', 'content-digest': digest(part) };
        const sent = await ada.send('PUT', `/bulk/jobs/${jobId}/parts/1`, part, { headers: type });
        assert.equal(sent.status, 201, sent.text);
      };
      await upload('approved');
      return {
        send: (headers, idempotencyKey) =>
          ada.post(`/bulk/jobs/${jobId}/start`, undefined, { headers, idempotencyKey }),
        change: () => upload('another'),
        changed: ['effects'],
      };
    },
  };

  /** Nothing changes the effect of these: the request names a revision, or its whole effect. */
  const FIXED: ReadonlySet<string> = new Set([
    'me.connections.revoke',
    'me.preferences.update',
    'analytics.dashboards.create',
    'analytics.dashboards.update',
    'analytics.dashboards.delete',
    'analytics.dashboards.publish',
    'metadata.deployments.cancel',
    'bulk.jobs.create',
    'bulk.jobs.cancel',
    'bulk.jobs.delete',
  ]);

  const approvable = OPERATIONS.filter((row) => row.mutation && row.agentApproval !== 'never')
    .filter((row) => 'dryRun' in row && row.dryRun === true)
    // A part that needs an approval is sent as a request of its own.
    .filter((row) => !('parts' in row));

  it('is detected for every operation that can be approved', () => {
    const names = approvable.map(({ operationId }) => operationId).sort();
    assert.deepEqual([...Object.keys(SCENES), ...FIXED].sort(), names);
  });

  for (const operationId of Object.keys(SCENES))
    it(`does nothing, and requests approval again: ${operationId}`, async () => {
      const { send, change, changed } = await SCENES[operationId]!();
      const key = randomUUID();
      const headers = { 'x-agent-run-id': runId };
      const approvalId = await approve(await send(headers, key));
      await change();
      const reply = await send(headers, key);
      refused(reply, 409, 'APPROVAL_STALE');
      assert.deepEqual(
        [reply.body.details.approvalId, reply.body.details.changed, reply.body.details.runId],
        [approvalId, changed, runId],
      );
      assert.equal((await mia.get(`/agent/approvals/${approvalId}`)).body.status, 'CANCELED');
      const again = await send(headers, key);
      const renewed = await approve(again);
      assert.notEqual(renewed, approvalId);
      const done = await send(headers, key);
      assert.ok(done.status < 300, done.text);
      assert.equal((await mia.get(`/agent/approvals/${renewed}`)).body.status, 'CONSUMED');
    });

  it('is executed when nothing relevant has changed, whatever else was deployed', async () => {
    // After the deployments that were accepted before.
    await configure('Contact');
    for (const operationId of Object.keys(SCENES)) {
      const { send } = await SCENES[operationId]!();
      const key = randomUUID();
      const headers = { 'x-agent-run-id': runId };
      await approve(await send(headers, key));
      if (operationId === 'data.records.create')
        await deals.deploy(fieldFile('Contact', 'Unrelated__c', 'fieldType: text\nlength: 40'));
      const done = await send(headers, key);
      assert.ok(done.status < 300, `${operationId}: ${done.text}`);
    }
  });

  it('has a basis for every preview', async () => {
    const created = await ada.post(
      '/analytics/dashboards',
      { name: 'Deals', visibility: 'private', widgets: [] },
      { headers: { 'x-agent-run-id': runId } },
    );
    refused(created, 403, 'APPROVAL_REQUIRED');
    const { rows } = await database.query<{ operation: string; basis: string | null }>(
      'SELECT operation_id AS operation, basis FROM agent.approvals',
    );
    for (const { operation, basis } of rows) assert.match(basis ?? 'none', /^\{"at":/, operation);
  });

  it('is held to the plan by the worker, under the lock of the configuration', async () => {
    const files = fieldFile('Deal__c', 'Worker__c', 'fieldType: text\nlength: 40');
    const headers = { 'x-agent-run-id': runId };
    const key = randomUUID();
    await approve(await ada.post('/metadata/deploy', deploy(files), { headers, idempotencyKey: key }));
    const accepted = await ada.post('/metadata/deploy', deploy(files), { headers, idempotencyKey: key });
    assert.equal(accepted.status, 202, accepted.text);
    const { rows } = await database.query<{ held: boolean }>(
      `SELECT expected_plan_hash IS NOT NULL AS held FROM metadata.deployments WHERE deployment_id = '${accepted.body.deploymentId}'`,
    );
    assert.deepEqual(rows, [{ held: true }]);
  });
});

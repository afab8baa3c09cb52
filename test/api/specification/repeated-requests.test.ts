/**
 * Mutations of dashboards and of agent runs under their idempotency key: repetitions return the first answer and change
 * nothing again, another body is refused, and simultaneous requests are applied once.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'mocha';
import { aDeletion, admit, contextOf } from '../../support/agents.ts';
import { type Answer, type Api, api, type CallOptions, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

interface Repeated {
  readonly name: string;
  readonly method: 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: object;
  /** Another request under the same key. */
  readonly other: { readonly body?: object; readonly headers?: Record<string, string> };
  readonly headers?: Record<string, string>;
  readonly status: number;
  readonly who: Api;
}

describe('repeated mutations of dashboards and agent runs', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
  });
  after(() => platform?.stop());

  const made = (reply: Answer, status = 201): Answer['body'] => {
    assert.equal(reply.status, status, reply.text);
    return reply.body;
  };
  const DASHBOARD = {
    name: 'Repeated',
    widgets: [{ widgetKey: 'note', title: '', type: 'text', layout: { x: 0, y: 0, w: 1, h: 1 } }],
  };
  const RUN = { agentKey: 'repeated', goal: 'To be repeated.' };
  const aDashboard = async (): Promise<string> => made(await ada.post('/analytics/dashboards', DASHBOARD)).dashboardId;
  const aRun = async (): Promise<string> => made(await sam.post('/agent/runs', RUN)).runId;
  const revision = { 'x-expected-revision': '1' };

  const cases: Record<string, () => Promise<Omit<Repeated, 'name'>>> = {
    'analytics.dashboards.create': async () => ({
      ...{ method: 'POST', path: '/analytics/dashboards', body: DASHBOARD, status: 201, who: ada },
      other: { body: { ...DASHBOARD, name: 'Other' } },
    }),
    'analytics.dashboards.update': async () => ({
      ...{ method: 'PATCH', path: `/analytics/dashboards/${await aDashboard()}`, status: 200, who: ada },
      ...{ body: { name: 'One' }, headers: revision, other: { body: { name: 'Two' }, headers: revision } },
    }),
    'analytics.dashboards.publish': async () => ({
      ...{ method: 'POST', path: `/analytics/dashboards/${await aDashboard()}/publish`, status: 201, who: ada },
      ...{ body: { expectedRevision: 1 }, other: { body: { expectedRevision: 2 } } },
    }),
    'analytics.dashboards.delete': async () => ({
      ...{ method: 'DELETE', path: `/analytics/dashboards/${await aDashboard()}`, status: 204, who: ada },
      ...{ headers: revision, other: { headers: { 'x-expected-revision': '2' } } },
    }),
    'agent.runs.create': async () => ({
      ...{ method: 'POST', path: '/agent/runs', body: RUN, status: 201, who: sam },
      other: { body: { ...RUN, goal: 'Another one.' } },
    }),
    'agent.runs.complete': async () => ({
      ...{ method: 'POST', path: `/agent/runs/${await aRun()}/complete`, status: 201, who: sam },
      ...{ body: { outcome: 'succeeded', summary: 'One.' }, other: { body: { outcome: 'failed', summary: 'Two.' } } },
    }),
    'agent.approvals.decide': async () => {
      const runId = await aRun();
      const invoice = (await ada.get('/data/Invoice__c?take=1')).body.records[0].id;
      const asked = await admit(platform, await contextOf(sam), aDeletion(runId, { id: invoice })).catch((e) => e);
      const { approvalId, fingerprint } = asked.details;
      return {
        ...{ method: 'POST', path: `/agent/approvals/${approvalId}/decision`, status: 201, who: ada },
        ...{ body: { decision: 'approve', fingerprint }, other: { body: { decision: 'reject', fingerprint } } },
      };
    },
  };

  for (const [name, prepare] of Object.entries(cases))
    describe(name, () => {
      it('repeats its answer, and refuses another request under the key', async () => {
        const { method, path, body, headers = {}, other, status, who } = await prepare();
        const key: CallOptions = { idempotencyKey: randomUUID(), headers };
        const first = await who.send(method, path, body, key);
        assert.equal(first.status, status, first.text);
        const again = await who.send(method, path, body, key);
        assert.deepEqual([again.status, again.text], [status, first.text]);
        assert.equal(again.headers.get('idempotency-replayed'), 'true');
        const different = await who.send(method, path, other.body, { ...key, headers: other.headers ?? {} });
        assert.deepEqual([different.status, different.body.code], [409, 'IDEMPOTENCY_KEY_REUSED'], different.text);
      });

      it('is applied once for simultaneous requests', async () => {
        const { method, path, body, headers = {}, status, who } = await prepare();
        const key: CallOptions = { idempotencyKey: randomUUID(), headers };
        const replies = await Promise.all(Array.from({ length: 8 }, () => who.send(method, path, body, key)));
        const done = replies.filter((reply) => reply.status === status);
        assert.ok(done.length > 0, replies[0]!.text);
        assert.equal(new Set(done.map(({ text }) => text)).size, 1);
        assert.equal(done.filter((reply) => reply.headers.get('idempotency-replayed') === null).length, 1);
        for (const reply of replies)
          if (reply.status !== status) assert.equal(reply.body.code, 'IDEMPOTENCY_IN_PROGRESS', reply.text);
      });
    });

  it('a run is canceled once', async () => {
    const path = `/agent/runs/${await aRun()}/cancel`;
    const key: CallOptions = { idempotencyKey: randomUUID() };
    const first = await sam.send('POST', path, undefined, key);
    assert.equal(first.status, 201, first.text);
    const again = await sam.send('POST', path, undefined, key);
    assert.deepEqual([again.status, again.text], [201, first.text]);
    const other = await sam.send('POST', `/agent/runs/${await aRun()}/cancel`, undefined, key);
    assert.deepEqual([other.status, other.body.code], [409, 'IDEMPOTENCY_KEY_REUSED'], other.text);
  });
});

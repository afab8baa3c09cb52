/** Calls under a run over HTTP: exactly the approved request is executed, once and within the budget. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { signIn } from '../../../scripts/sign-in.ts';
import { type Answer, type Api, api, type CallOptions } from '../../support/client.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const GOAL = { agentKey: 'tester', goal: 'Tidy deals.' };

/** Creating and changing deals wait for approval, in addition to the defaults. */
const POLICY = {
  'agentPolicies/Deals.yaml': [
    'type: AgentPolicy',
    'apiName: Deals',
    'appliesTo:',
    '  clients:',
    '    - "*"',
    'rules:',
    '  - operationIds:',
    '      - data.records.upsert',
    '    decision: deny',
    '  - operationIds:',
    '      - data.records.update',
    '    objects:',
    '      - DealLine__c',
    '    decision: approve',
    '  - operationIds:',
    '      - data.records.create',
    '    objects:',
    '      - Contact',
    '      - DealLine__c',
    '    decision: approve',
    '',
  ].join('\n'),
};

describe('calls under a run over HTTP', () => {
  let deals: Deals;
  let database: Client;
  let sam: Api;
  let mia: Api;
  before(async function () {
    this.timeout(180_000);
    deals = await startDeals();
    ({ sam, mia } = deals.as);
    await deals.deploy(POLICY);
    database = new Client({ connectionString: deals.platform.database.url, application_name: 'agent test' });
    await database.connect();
    const { rows } = await database.query(`SELECT id FROM metadata.tenants WHERE key = 'demo'`);
    await database.query(`SET search_path = "t_${rows[0].id.replaceAll('-', '')}"`);
  });
  after(async () => {
    await database?.end();
    await deals?.platform.stop();
  });

  const begin = async (more: object = {}, who = sam): Promise<string> => {
    const reply = await who.post('/agent/runs', { ...GOAL, ...more });
    assert.equal(reply.status, 201, reply.text);
    return reply.body.runId;
  };
  const under = (runId: string, more: CallOptions = {}): CallOptions => ({
    ...more,
    headers: { ...more.headers, 'x-agent-run-id': runId },
  });
  const at = (id: string): string => `/data/Deal__c/${id}`;
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  const decide = (reply: Answer, decision = 'approve', more: object = {}, who = mia): Promise<Answer> => {
    const { approvalId, fingerprint } = reply.body.details;
    return who.post(`/agent/approvals/${approvalId}/decision`, { decision, fingerprint, ...more });
  };
  const approve = async (reply: Answer): Promise<void> => {
    refused(reply, 403, 'APPROVAL_REQUIRED');
    const decided = await decide(reply);
    assert.deepEqual([decided.status, decided.body.status], [201, 'APPROVED'], decided.text);
  };
  const approvalOf = async (reply: Answer) => (await mia.get(`/agent/approvals/${reply.body.details.approvalId}`)).body;
  const newDeal = async (more: object = {}): Promise<{ id: string; etag: string }> => {
    const reply = await deals.deal(sam, { name: `Deal ${randomUUID()}`, ...more });
    return { id: reply.body.id, etag: reply.headers.get('etag')! };
  };
  const remove = (runId: string, { id, etag }: { id: string; etag: string }, key: string = randomUUID()) =>
    sam.delete(at(id), under(runId, { etag, idempotencyKey: key }));
  /** Resolves when a request waits for a lock of our transaction. */
  const somebodyWaits = async (): Promise<void> => {
    for (;;) {
      await database.query('SELECT pg_stat_clear_snapshot()');
      const { rows } = await database.query(
        'SELECT count(*)::int AS n FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))',
      );
      if (rows[0].n > 0) return;
    }
  };
  /** The steps of a run once all of them have their status, which is written asynchronously. */
  const settledSteps = async (runId: string): Promise<{ status: number; approvalId: string | null }[]> => {
    for (let i = 0; ; i++) {
      const { records } = (await sam.get(`/agent/runs/${runId}/steps`)).body;
      if (i > 20 || !records.some(({ status }: { status: number | null }) => status === null)) return records;
    }
  };
  const isThere = async (id: string): Promise<boolean> => (await sam.get(at(id))).status === 200;

  it('are approved by a user, executed once, and replayed afterwards', async () => {
    const runId = await begin();
    const deal = await newDeal({ Stage__c: 'won' });
    const key = randomUUID();
    const asked = await remove(runId, deal, key);
    refused(asked, 403, 'APPROVAL_REQUIRED');
    const { approvalId } = asked.body.details;
    const pending = await remove(runId, deal, key);
    refused(pending, 403, 'APPROVAL_PENDING');
    assert.equal(pending.body.details.approvalId, approvalId);
    assert.ok(await isThere(deal.id));
    const shown = await approvalOf(asked);
    assert.equal(shown.status, 'PENDING');
    assert.equal(shown.preview.valid, true);
    assert.equal(shown.preview.before.Stage__c, 'won');
    assert.equal(shown.preview.effects[0].kind, 'delete');
    assert.equal(shown.preview.effects[0].id, deal.id);
    await approve(asked);
    const done = await remove(runId, deal, key);
    assert.deepEqual([done.status, done.body.deleted], [200, true], done.text);
    const { status, consumedRequestId } = await approvalOf(asked);
    assert.deepEqual([status, consumedRequestId], ['CONSUMED', done.headers.get('x-request-id')]);
    const again = await remove(runId, deal, key);
    assert.deepEqual([again.status, again.text], [200, done.text]);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    const run = (await sam.get(`/agent/runs/${runId}`)).body;
    assert.equal(run.status, 'RUNNING');
    assert.deepEqual([run.usage.mutations, run.usage.recordsChanged], [1, 1]);
    assert.equal((await sam.post(`/agent/runs/${runId}/cancel`)).status, 201);
    const late = await remove(runId, deal, key);
    assert.deepEqual([late.status, late.text], [200, done.text]);
    refused(await remove(runId, deal), 409, 'RUN_NOT_ACTIVE');
  });

  it('record the run in history and audit trail', async () => {
    const runId = await begin();
    const deal = await newDeal();
    const changed = await sam.patch(at(deal.id), { Stage__c: 'lost' }, under(runId, { etag: deal.etag }));
    assert.equal(changed.status, 200, changed.text);
    const history = await sam.get(`${at(deal.id)}/history`);
    assert.equal(history.body.records[0].actor.agentRunId, runId);
    const { rows } = await database.query(
      `SELECT outcome FROM _audit WHERE agent_run_id = $1 AND operation_id = 'data.records.update'`,
      [runId],
    );
    assert.deepEqual(rows, [{ outcome: 'committed' }]);
  });

  /** A busy machine refuses some of very many requests for a moment: those are sent again. */
  const patiently = async (send: () => Promise<Answer>): Promise<Answer> => {
    for (;;) {
      const reply = await send();
      if (reply.status !== 503) return reply;
    }
  };

  it('change a record once when 200 simultaneous attempts use one approval', async function () {
    this.timeout(120_000);
    const runId = await begin({ budget: { maxCost: 10_000, maxMutations: 1_000, maxRecords: 10_000 } });
    const { id } = await newDeal();
    const line = { name: `Line ${randomUUID()}`, Deal__c: id };
    const create = () => sam.post('/data/DealLine__c', line, under(runId));
    const asked = await create();
    await approve(asked);
    const replies = await Promise.all(Array.from({ length: 200 }, () => patiently(create)));
    assert.equal(replies.filter(({ status }) => status === 201).length, 1);
    for (const reply of replies.filter(({ status }) => status !== 201))
      assert.ok(
        reply.status === 403 && /^APPROVAL_(REQUIRED|PENDING)$/.test(reply.body.code),
        `${reply.status} ${reply.text}`,
      );
    // The late ones get the used approval in their error; another one is requested once.
    const late = replies.filter(({ body }) => body.details?.approvalId === asked.body.details.approvalId);
    for (const { body } of late) assert.deepEqual([body.code, body.details.status], ['APPROVAL_REQUIRED', 'CONSUMED']);
    const { rows: approvals } = await database.query('SELECT status FROM agent.approvals WHERE run_id = $1', [runId]);
    assert.ok(approvals.filter(({ status }) => status === 'PENDING').length <= 1);
    const { rows } = await database.query('SELECT count(*)::int AS n FROM "DealLine__c" WHERE name = $1', [line.name]);
    assert.equal(rows[0].n, 1);
    assert.equal((await approvalOf(asked)).status, 'CONSUMED');
    assert.equal((await sam.get(`/agent/runs/${runId}`)).body.usage.recordsChanged, 1);
  });

  it('execute a request once when it is sent 200 times at once under one key', async function () {
    this.timeout(120_000);
    const runId = await begin({ budget: { maxCost: 10_000, maxMutations: 1_000, maxRecords: 10_000 } });
    const deal = await newDeal();
    const key = randomUUID();
    await approve(await remove(runId, deal, key));
    const replies = await Promise.all(Array.from({ length: 200 }, () => patiently(() => remove(runId, deal, key))));
    const done = replies.filter(({ status }) => status === 200);
    assert.equal(done.filter(({ headers }) => headers.get('idempotency-replayed') === null).length, 1);
    for (const reply of replies.filter(({ status }) => status !== 200)) refused(reply, 409, 'IDEMPOTENCY_IN_PROGRESS');
    assert.equal((await sam.get(`/agent/runs/${runId}`)).body.usage.recordsChanged, 1);
  });

  it('can be approved only by users who may set every field themselves', async () => {
    const { ada } = deals.as;
    const runId = await begin({}, ada);
    const secret = await ada.post(
      '/data/Contact',
      { lastName: `Ng ${randomUUID()}`, birthDate: '1990-01-02' },
      under(runId),
    );
    refused(secret, 403, 'APPROVAL_REQUIRED');
    const answer = await decide(secret);
    refused(answer, 403, 'FIELD_PERMISSION_DENIED');
    assert.deepEqual(answer.body.errors ?? [], [], 'the hidden field is not named');
    const shown = await approvalOf(secret);
    assert.equal(shown.status, 'PENDING');
    assert.equal(typeof shown.request.body.lastName, 'string');
    assert.doesNotMatch(JSON.stringify(shown), /birthDate|1990/, 'it is like one that does not exist');
    const open = await ada.post('/data/Contact', { lastName: `Ng ${randomUUID()}` }, under(runId));
    await approve(open);
  });

  it('reveal nothing of a record to users with whom it is not shared', async () => {
    const { ada } = deals.as;
    const { body, headers } = await deals.deal(ada, { name: `Deal ${randomUUID()}` });
    const runId = await begin({ context: { objectApiName: 'Deal__c', recordId: body.id } }, ada);
    const asked = await ada.delete(at(body.id), under(runId, { etag: headers.get('etag') ?? '' }));
    refused(asked, 403, 'APPROVAL_REQUIRED');
    refused(await mia.get(at(body.id)), 404, 'RECORD_NOT_FOUND');
    for (const path of [
      `/agent/approvals/${asked.body.details.approvalId}`,
      '/agent/approvals?status=PENDING',
      `/agent/runs/${runId}`,
      '/agent/runs',
      `/agent/runs/${runId}/steps`,
    ]) {
      const shown = await mia.get(path);
      assert.equal(shown.status, 200, shown.text);
      assert.ok(!shown.text.includes(body.id), `${path}: ${shown.text}`);
      assert.ok((await ada.get(path)).text.includes(body.id), path);
    }
    refused(await decide(asked), 404, 'RECORD_NOT_FOUND');
    const canceled = await mia.post(`/agent/runs/${runId}/cancel`);
    assert.deepEqual([canceled.status, canceled.body.context], [201, null], canceled.text);
  });

  it('show the values of a change only to users who can see its record', async () => {
    const { ada } = deals.as;
    const deal = await deals.deal(ada, { name: `Deal ${randomUUID()}` });
    const { body: line, headers } = await ada.post('/data/DealLine__c', { name: 'Line', Deal__c: deal.body.id });
    const secret = `Offer ${randomUUID()}`;
    const runId = await begin({}, ada);
    const etag = headers.get('etag') ?? '';
    const asked = await ada.patch(`/data/DealLine__c/${line.id}`, { name: secret }, under(runId, { etag }));
    refused(asked, 403, 'APPROVAL_REQUIRED');
    const shown = await approvalOf(asked);
    assert.equal(shown.request.body, '[hidden]');
    assert.ok(!JSON.stringify(shown).includes(secret));
    const own = await ada.get(`/agent/approvals/${asked.body.details.approvalId}`);
    assert.equal(own.body.request.body.name, secret);
  });

  it('request no approval when the plan is too long to be shown in full', async () => {
    const { ada } = deals.as;
    const names = Array.from({ length: 120 }, (_, i) => `Bulk${i}`);
    const label = 'x'.repeat(3_000);
    const files = Object.fromEntries(
      names.map((name) => [
        `permissionSets/${name}.yaml`,
        `type: PermissionSet\napiName: ${name}\nlabel: ${name}\ndescription: ${label}\n`,
      ]),
    );
    const body = { files, package: { version: 1, types: [{ name: 'PermissionSet', members: names }] } };
    const runId = await begin({}, ada);
    const asked = await ada.post('/metadata/deploy', body, under(runId));
    refused(asked, 413, 'APPROVAL_TOO_LARGE');
    assert.deepEqual(asked.body.details, { part: 'preview', maxBytes: 262_144 });
    assert.equal((await ada.get(`/agent/runs/${runId}`)).body.status, 'RUNNING');
  });

  it('need another approval when one byte of the body differs', async () => {
    const runId = await begin();
    const { id } = await newDeal();
    const create = (name: string) => sam.post('/data/DealLine__c', { name, Deal__c: id }, under(runId));
    const asked = await create('Line 1');
    await approve(asked);
    const other = await create('Line 2');
    refused(other, 403, 'APPROVAL_REQUIRED');
    assert.notEqual(other.body.details.approvalId, asked.body.details.approvalId);
    assert.equal((await create('Line 1')).status, 201);
    refused(await create('Line 2'), 403, 'APPROVAL_PENDING');
  });

  it('do not use an approval up when the record has changed since', async () => {
    const runId = await begin();
    const deal = await newDeal();
    const asked = await remove(runId, deal);
    await approve(asked);
    const changed = await sam.patch(at(deal.id), { Stage__c: 'later' }, { etag: deal.etag });
    assert.equal(changed.status, 200, changed.text);
    refused(await remove(runId, deal), 412, 'ETAG_MISMATCH');
    assert.equal((await approvalOf(asked)).status, 'APPROVED');
    assert.ok(await isThere(deal.id));
  });

  it('request no approval for operations that the caller may not execute', async () => {
    const runId = await begin();
    const deal = await newDeal();
    const pending = async () => (await sam.get(`/agent/runs/${runId}`)).body.pendingApprovals.length;
    refused(await remove(runId, { id: randomUUID(), etag: deal.etag }), 404, 'RECORD_NOT_FOUND');
    refused(await remove(runId, { id: deal.id, etag: '"zz"' }), 412, 'ETAG_MISMATCH');
    const line = { name: 'Line', Deal__c: deal.id, Unknown__c: 1 };
    assert.equal(await pending(), 0);
    // They are charged, and are steps with the answer; nothing else of them is stored.
    const { rows } = await database.query('SELECT FROM agent.approvals WHERE run_id = $1', [runId]);
    assert.equal(rows.length, 0);
    const run = (await sam.get(`/agent/runs/${runId}`)).body;
    assert.deepEqual([run.usage.requests, run.usage.cost, run.usage.mutations], [2, 4, 0]);
    const steps = await settledSteps(runId);
    assert.deepEqual(
      steps.map(({ status, approvalId }) => [status, approvalId]),
      [
        [404, null],
        [412, null],
      ],
    );
    // The reason for refusing the content is shown to deciders.
    const asked = await sam.post('/data/DealLine__c', line, under(runId));
    refused(asked, 403, 'APPROVAL_REQUIRED');
    const { preview } = await approvalOf(asked);
    assert.deepEqual([preview.valid, preview.errors[0].code], [false, 'FIELD_UNKNOWN']);
    // A read-only field: the answer does not distinguish it from a hidden one.
    refused(await decide(asked), 403, 'FIELD_PERMISSION_DENIED');
    const nameless = await sam.post('/data/DealLine__c', { name: '', Deal__c: deal.id }, under(runId));
    await approve(nameless);
    refused(
      await sam.post('/data/DealLine__c', { name: '', Deal__c: deal.id }, under(runId)),
      422,
      'VALIDATION_FAILED',
    );
    assert.equal((await approvalOf(nameless)).status, 'APPROVED');
  });

  it('are shown to deciders only after a preview, and each attempt gets its own current result', async () => {
    const runId = await begin();
    const deal = await newDeal();
    const other = await newDeal();
    await database.query('BEGIN');
    await database.query('SELECT FROM "Deal__c" WHERE id = $1 FOR UPDATE', [deal.id]);
    const waiting = [remove(runId, deal), remove(runId, deal)];
    await somebodyWaits();
    const approvals = async (): Promise<string[]> =>
      (await mia.get('/agent/approvals?take=200')).body.records
        .filter((one: { runId: string }) => one.runId === runId)
        .map(({ approvalId }: { approvalId: string }) => approvalId);
    assert.deepEqual(await approvals(), []);
    assert.equal((await sam.get(`/agent/runs/${runId}`)).body.status, 'RUNNING');
    await database.query(`UPDATE "Deal__c" SET "recordVersion" = "recordVersion" + 1 WHERE id = $1`, [deal.id]);
    await database.query('COMMIT');
    for (const reply of await Promise.all(waiting)) refused(reply, 412, 'ETAG_MISMATCH');
    assert.deepEqual(await approvals(), []);
    const replies = await Promise.all(Array.from({ length: 5 }, () => remove(runId, other)));
    const codes = replies.map(({ body }) => body.code).sort();
    assert.deepEqual(codes, [...Array(4).fill('APPROVAL_PENDING'), 'APPROVAL_REQUIRED']);
    assert.equal((await approvals()).length, 1);
  });

  it('answer their outcome also when the same request has asked again since', async () => {
    const runId = await begin();
    const { id } = await newDeal();
    const key = randomUUID();
    const create = (idempotencyKey: string = randomUUID()) =>
      sam.post('/data/DealLine__c', { name: 'Line', Deal__c: id }, under(runId, { idempotencyKey }));
    await approve(await create(key));
    const done = await create(key);
    assert.equal(done.status, 201, done.text);
    const usage = async () => (await sam.get(`/agent/runs/${runId}`)).body.usage;
    refused(await create(), 403, 'APPROVAL_REQUIRED');
    const { cost, mutations, recordsChanged } = await usage();
    for (let i = 0; i < 3; i++) {
      const again = await create(key);
      assert.deepEqual([again.status, again.text], [201, done.text]);
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
    }
    const later = await usage();
    assert.deepEqual([later.cost, later.mutations, later.recordsChanged], [cost, mutations, recordsChanged]);
    assert.equal(recordsChanged, 1);
  });

  it('need no approval for dry runs, which report that the call itself does', async () => {
    const runId = await begin();
    const deal = await newDeal();
    const check = { operation: 'delete', id: deal.id, ifMatch: deal.etag };
    const tried = await sam.post('/data/Deal__c/check', check, under(runId));
    assert.deepEqual([tried.status, tried.body.valid, tried.body.approvalRequired], [200, true, true], tried.text);
    const { usage } = (await sam.get(`/agent/runs/${runId}`)).body;
    assert.deepEqual([usage.requests, usage.mutations, usage.recordsChanged], [1, 0, 0]);
    assert.ok(await isThere(deal.id));
  });

  it('need no approval for deployments whose body makes them recorded validations', async () => {
    const { ada } = deals.as;
    const runId = await begin({}, ada);
    const files = { 'groups/Tried.yaml': 'type: Group\napiName: Tried\nlabel: Tried\n' };
    const body = { files, package: { version: 1, types: [{ name: 'Group', members: ['Tried'] }] } };
    const recorded = await ada.post('/metadata/deploy', { ...body, checkOnly: true }, under(runId));
    assert.deepEqual([recorded.status, recorded.body.checkOnly], [202, true], recorded.text);
    refused(await ada.post('/metadata/deploy', { ...body, checkOnly: false }, under(runId)), 403, 'APPROVAL_REQUIRED');
    const { usage } = (await ada.get(`/agent/runs/${runId}`)).body;
    assert.equal(usage.mutations, 0);
  });

  it('are refused after a rejection, with its reason', async () => {
    const runId = await begin();
    const deal = await newDeal();
    const asked = await remove(runId, deal);
    const decided = await decide(asked, 'reject', { comment: 'Keep it.' });
    assert.equal(decided.status, 201, decided.text);
    const again = await remove(runId, deal);
    refused(again, 403, 'APPROVAL_REJECTED');
    assert.equal(again.body.details.comment, 'Keep it.');
    assert.ok(await isThere(deal.id));
  });

  it('are denied by a policy', async () => {
    const denied = await sam.put('/data/Account/by/code/x', { name: 'X' }, under(await begin()));
    refused(denied, 403, 'AGENT_POLICY_DENIED');
  });

  describe('within a budget', () => {
    const name = (): string => `Budget ${randomUUID()}`;

    it('never exceed the budget of mutations, however many come at once', async () => {
      const runId = await begin({ budget: { maxMutations: 5 } });
      const marker = name();
      const replies = await Promise.all(
        Array.from({ length: 25 }, () => sam.post('/data/Deal__c', { name: marker }, under(runId))),
      );
      assert.equal(replies.filter(({ status }) => status === 201).length, 5);
      for (const reply of replies.filter(({ status }) => status !== 201)) refused(reply, 403, 'AGENT_BUDGET_EXCEEDED');
      const { rows } = await database.query('SELECT count(*)::int AS n FROM "Deal__c" WHERE name = $1', [marker]);
      assert.equal(rows[0].n, 5);
    });

    it('never exceed the budget of cost, reads included', async () => {
      const runId = await begin({ budget: { maxCost: 7 } });
      const replies = await Promise.all(Array.from({ length: 20 }, () => sam.get('/data/Deal__c', under(runId))));
      assert.equal(replies.filter(({ status }) => status === 200).length, 7);
      refused(replies.find(({ status }) => status !== 200)!, 403, 'AGENT_BUDGET_EXCEEDED');
      const run = await sam.get(`/agent/runs/${runId}`, under(runId));
      assert.deepEqual([run.status, run.body.usage.cost], [200, 7]);
      const completed = await sam.post(
        `/agent/runs/${runId}/complete`,
        { outcome: 'failed', summary: 'The budget is used up.' },
        under(runId),
      );
      assert.equal(completed.status, 201, completed.text);
    });

    it('never exceed the budget of changed records, counting those that change with them', async () => {
      const runId = await begin({ budget: { maxRecords: 3 } });
      const deal = await newDeal();
      for (const line of ['one', 'two']) {
        const reply = await sam.post('/data/DealLine__c', { name: line, Deal__c: deal.id });
        assert.equal(reply.status, 201, reply.text);
      }
      const etag = (await sam.get(at(deal.id))).headers.get('etag')!;
      // No approval is requested for a call that exceeds the budget.
      const small = await begin({ budget: { maxRecords: 2 } });
      const refusals = [await remove(small, { id: deal.id, etag })];
      assert.deepEqual((await sam.get(`/agent/runs/${small}`)).body.pendingApprovals, []);
      const asked = await remove(runId, { id: deal.id, etag });
      await approve(asked);
      assert.equal((await sam.post('/data/Deal__c', { name: name() }, under(runId))).status, 201);
      refusals.push(await remove(runId, { id: deal.id, etag }));
      for (const reply of refusals) {
        refused(reply, 403, 'AGENT_BUDGET_EXCEEDED');
        assert.equal(reply.body.details.records, 3);
      }
      assert.equal((await approvalOf(asked)).status, 'APPROVED');
      assert.ok(await isThere(deal.id));
    });

    it('count a mutation repeated under its key once', async () => {
      const runId = await begin({ budget: { maxMutations: 1, maxCost: 2, maxRecords: 1 } });
      const options = under(runId, { idempotencyKey: randomUUID() });
      const body = { name: name() };
      assert.equal((await sam.post('/data/Deal__c', body, options)).status, 201);
      for (let i = 0; i < 3; i++) {
        const again = await sam.post('/data/Deal__c', body, options);
        assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [201, 'true'], again.text);
      }
      const { usage } = (await sam.get(`/agent/runs/${runId}`)).body;
      assert.deepEqual([usage.cost, usage.mutations, usage.recordsChanged], [2, 1, 1]);
      refused(await sam.post('/data/Deal__c', body, under(runId)), 403, 'AGENT_BUDGET_EXCEEDED');
    });
  });

  it('change nothing once the run ends while they are in flight', async () => {
    const runId = await begin();
    const deal = await newDeal();
    await database.query('BEGIN');
    await database.query('SELECT FROM "Deal__c" WHERE id = $1 FOR UPDATE', [deal.id]);
    const waiting = sam.patch(at(deal.id), { Stage__c: 'late' }, under(runId, { etag: deal.etag }));
    await somebodyWaits();
    assert.equal((await sam.post(`/agent/runs/${runId}/cancel`)).status, 201);
    await database.query('COMMIT');
    refused(await waiting, 409, 'RUN_NOT_ACTIVE');
    assert.notEqual((await sam.get(at(deal.id))).body.Stage__c, 'late');
    refused(await sam.get(at(deal.id), under(runId)), 409, 'RUN_NOT_ACTIVE');
  });

  it('answer a run of another user as not found', async () => {
    const runId = await begin();
    const unknown = await sam.get('/data/Deal__c', under(randomUUID()));
    refused(unknown, 404, 'RUN_NOT_FOUND');
    for (const who of [mia, deals.as.ada, deals.as.eve]) {
      const theirs = await who.get('/data/User', under(runId));
      refused(theirs, 404, 'RUN_NOT_FOUND');
      assert.equal(theirs.body.message, unknown.body.message);
      assert.deepEqual(theirs.body.details, unknown.body.details);
    }
  });

  describe('under a dry run', () => {
    let runId: string;
    before(async () => {
      runId = await begin({ dryRun: true });
    });

    it('answer their effect, and change nothing', async () => {
      const deal = await newDeal({ Stage__c: 'open' });
      const name = `Tried ${randomUUID()}`;
      const tried = [
        await sam.post('/data/Deal__c', { name }, under(runId)),
        await sam.patch(at(deal.id), { Stage__c: 'won' }, under(runId, { etag: deal.etag })),
        await remove(runId, deal),
        await sam.post('/data/DealLine__c', { name, Deal__c: deal.id }, under(runId)),
      ];
      for (const reply of tried)
        assert.deepEqual([reply.status, reply.body.checkOnly, reply.body.valid], [200, true, true], reply.text);
      assert.equal(tried[1]?.body.record.Stage__c, 'won');
      const needed = tried.map(({ body }) => body.approvalRequired);
      assert.deepEqual(needed, [false, false, true, true]);
      assert.equal((await sam.get(at(deal.id))).body.Stage__c, 'open');
      const { rows } = await database.query('SELECT count(*)::int AS n FROM "Deal__c" WHERE name = $1', [name]);
      assert.equal(rows[0].n, 0);
      const run = (await sam.get(`/agent/runs/${runId}`)).body;
      assert.deepEqual([run.usage.recordsChanged, run.pendingApprovals], [0, []]);
    });

    it('do the same for resources other than records', async () => {
      const name = `Tried ${randomUUID()}`;
      const tried = await sam.post('/analytics/dashboards', { name }, under(runId));
      assert.deepEqual([tried.status, tried.body.valid, tried.body.record.name], [200, true, name], tried.text);
      const { records } = (await sam.get('/analytics/dashboards')).body;
      assert.ok(!records.some((one: { name: string }) => one.name === name));
    });

    it('answer the plan of a deployment, and deploy nothing', async () => {
      const files = { 'groups/Tried.yaml': 'type: Group\napiName: Tried\nlabel: Tried\n' };
      const body = { files, package: { version: 1, types: [{ name: 'Group', members: ['Tried'] }] } };
      const ada = deals.as.ada;
      const plan = await ada.post('/metadata/deploy', body, under(await begin({ dryRun: true }, ada)));
      assert.deepEqual([plan.status, plan.body.valid, plan.body.creates.length], [200, true, 1], plan.text);
    });

    it('are refused for operations without a preview', async () => {
      const own = await begin({ dryRun: true }, mia);
      const reply = await mia.post(`/agent/runs/${own}/revert`, undefined, under(own));
      refused(reply, 403, 'AGENT_POLICY_DENIED');
      assert.match(reply.body.message, /dry run/);
    });
  });

  describe('that end a connection', () => {
    const connection = async (): Promise<{ id: string; api: Api }> => {
      const { baseUrl } = deals.platform;
      const { access_token } = await signIn({ baseUrl, user: 'sam@demo.example', password: 'demo-password' });
      const connected = api(baseUrl, access_token);
      return { id: (await connected.get('/identity')).body.connection.grantId, api: connected };
    };
    const end = (id: string, runId: string): Promise<Answer> => sam.delete(`/me/connections/${id}`, under(runId));

    it('wait for approval, which names the user of the connection', async () => {
      const runId = await begin();
      const { id, api: connected } = await connection();
      const asked = await end(id, runId);
      refused(asked, 403, 'APPROVAL_REQUIRED');
      const { preview } = await approvalOf(asked);
      assert.deepEqual([preview.valid, preview.record], [true, { connectionId: id, clientId: 'erp-cli' }]);
      assert.equal((await connected.get('/identity')).status, 200);
      await approve(asked);
      assert.equal((await end(id, runId)).status, 204);
      refused(await connected.get('/identity'), 401, 'TOKEN_REVOKED');
    });

    it('are refused at once when there is no such connection, without an approval', async () => {
      const runId = await begin();
      refused(await end(randomUUID(), runId), 404, 'CONNECTION_NOT_FOUND');
      const { connection: other } = (await mia.get('/identity')).body;
      refused(await end(other.grantId, runId), 404, 'CONNECTION_NOT_FOUND');
      assert.deepEqual((await sam.get(`/agent/runs/${runId}`)).body.pendingApprovals, []);
    });

    it('end no connection under a dry run', async () => {
      const runId = await begin({ dryRun: true });
      const { id, api: connected } = await connection();
      const tried = await end(id, runId);
      assert.deepEqual([tried.status, tried.body.valid, tried.body.approvalRequired], [200, true, true], tried.text);
      assert.equal((await connected.get('/identity')).status, 200);
      refused(await end(randomUUID(), runId), 404, 'CONNECTION_NOT_FOUND');
    });
  });

  it('are the only calls open to a client that is an agent', async () => {
    const { baseUrl } = deals.platform;
    const { access_token } = await signIn({
      baseUrl,
      user: 'sam@demo.example',
      password: 'demo-password',
      clientId: 'demo-DunningAgent',
      scope: 'agent:run data:read data:write',
    });
    const agent = api(baseUrl, access_token);
    refused(await agent.get('/data/Deal__c'), 403, 'AGENT_POLICY_DENIED');
    refused(await agent.post('/data/Deal__c', { name: 'X' }), 403, 'AGENT_POLICY_DENIED');
    assert.equal((await agent.get('/identity')).body.connection.agent, true);
    assert.equal((await agent.get('/scopes')).status, 200);
    const runId = await begin({}, agent);
    assert.equal((await agent.get('/data/Deal__c', under(runId))).status, 200);
    refused(await sam.get('/data/Deal__c', under(runId)), 404, 'RUN_NOT_FOUND');
    assert.equal((await agent.get(`/agent/runs/${runId}`)).status, 200);
    const completed = await agent.post(`/agent/runs/${runId}/complete`, { outcome: 'succeeded', summary: 'Done.' });
    assert.equal(completed.status, 201, completed.text);
    refused(await agent.get('/data/Deal__c', under(runId)), 409, 'RUN_NOT_ACTIVE');
  });

  it("are refused at once when the agent's authorization ends", async () => {
    const { baseUrl } = deals.platform;
    const signedIn = await signIn({
      baseUrl,
      user: 'sam@demo.example',
      password: 'demo-password',
      clientId: 'demo-DunningAgent',
      scope: 'agent:run data:read data:write',
    });
    const agent = api(baseUrl, signedIn.access_token);
    const runId = await begin({}, agent);
    const { id } = await newDeal();
    const create = () => agent.post('/data/DealLine__c', { name: 'Line', Deal__c: id }, under(runId));
    const asked = await create();
    await approve(asked);
    const { connectionId } = (await sam.get('/me/connections')).body.records.find(
      (one: { clientId: string }) => one.clientId === 'demo-DunningAgent',
    );
    assert.equal((await sam.delete(`/me/connections/${connectionId}`)).status, 204);
    refused(await create(), 401, 'TOKEN_REVOKED');
  });

  it('are steps of the run, reads included', async () => {
    const runId = await begin();
    const deal = await newDeal();
    await sam.get(at(deal.id), under(runId));
    await sam.get(at(randomUUID()), under(runId));
    await remove(runId, deal);
    for (let i = 0; ; i++) {
      const { records } = (await sam.get(`/agent/runs/${runId}/steps`)).body;
      const seen = records.map((step: { operationId: string; status: number }) => [step.operationId, step.status]);
      if (i < 20 && records.some(({ status }: { status: number | null }) => status === null)) continue;
      assert.deepEqual(seen, [
        ['data.records.get', 200],
        ['data.records.get', 404],
        ['data.records.delete', 403],
      ]);
      break;
    }
  });
});

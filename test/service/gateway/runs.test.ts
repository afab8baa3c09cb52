import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Admission } from '../../../contracts/agent.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { type Answer, type SendOptions, type Stage, startStage } from './stage.ts';

const RUN = uuidv7();
const APPROVAL = uuidv7();
const STEP = uuidv7();
const admitted = { stepId: STEP, dryRun: false, approvalId: null, approvalRequired: false, asks: false };
const needsApproval = () =>
  new PlatformError('APPROVAL_REQUIRED', 'Somebody has to approve this.', { details: { approvalId: APPROVAL } });

describe('The edge: calls under a run', () => {
  let stage: Stage;
  let asked: Admission[];
  let contexts: (RequestContext | undefined)[];

  before(async () => {
    stage = await startStage({ RATE_CONNECTION_UNITS: '1000000', RATE_ANONYMOUS_REQUESTS: '1000000' });
  });
  after(() => stage.stop());
  beforeEach(() => {
    asked = [];
    contexts = [];
    stage.told.length = 0;
    stage.grant = {};
    stage.admit = (admission) => {
      asked.push(admission);
      return admitted;
    };
    stage.answer = (_call, context) => {
      contexts.push(context);
      return { body: Buffer.from('{"done":true}') };
    };
    stage.record = () => ({ body: Buffer.from('{"id":"r-1","amount":"10.50"}') });
  });

  const key = () => ({ 'idempotency-key': `key-${uuidv7()}` });
  const under = (headers: Record<string, string> = {}): Record<string, string> => ({
    'x-agent-run-id': RUN,
    ...headers,
  });
  const remove = (options: SendOptions = {}, path = '/stub/Account/r-1'): Promise<Answer> =>
    stage.send('DELETE', path, { headers: under({ ...key(), 'if-match': '"k7"' }), ...options });
  /** Resolves to the agent service's notifications once there is one. */
  const heard = async (): Promise<Stage['told']> => {
    for (let i = 0; i < 100 && stage.told.length === 0; i++) await sleep(5);
    return stage.told;
  };
  /** A token of a client whose grant says so; the answer about a grant is remembered for its id. */
  const agentToken = (): Promise<string> => {
    stage.grant = { agent: true };
    return stage.token({ grant_id: uuidv7() });
  };

  it('are admitted by one question, are forwarded with their run, and settled with the status', async () => {
    const answer = await stage.send('GET', '/stub/Account?take=3', {
      headers: { 'x-agent-run-id': RUN.toUpperCase() },
    });
    assert.equal(answer.status, 200);
    assert.equal(asked.length, 1);
    const { runId, operationId, method, path, query, mutation, fingerprint, cost, requestId } = asked[0]!;
    assert.deepEqual(
      { runId, operationId, method, path, query, mutation, fingerprint, cost, requestId },
      {
        runId: RUN,
        operationId: 'stub.records.list',
        method: 'GET',
        path: '/api/v1/stub/Account',
        query: { take: 3 },
        mutation: false,
        fingerprint: null,
        cost: 1,
        requestId: answer.headers['x-request-id'],
      },
    );
    assert.equal(contexts[0]?.agentRunId, RUN);
    assert.deepEqual(await heard(), [['settle', { stepId: STEP, status: 200 }]]);
  });

  it('are settled with the status of a refusal', async () => {
    stage.answer = () => {
      throw new PlatformError('ETAG_MISMATCH', 'The record has changed.');
    };
    assert.equal((await remove()).status, 412);
    assert.deepEqual(await heard(), [['settle', { stepId: STEP, status: 412 }]]);
  });

  it('send the binding of an approval, and pass the approval to the change', async () => {
    stage.admit = (admission) => {
      asked.push(admission);
      return { ...admitted, approvalId: APPROVAL };
    };
    await remove();
    await remove({ headers: under({ ...key(), 'if-match': '"k8"' }) });
    const [first, second] = asked;
    assert.equal(first?.risk, 'high');
    assert.equal(first?.agentApproval, 'policy');
    assert.deepEqual(first?.headers, { 'if-match': '"k7"' });
    assert.deepEqual(first?.pathParameters, { objectApiName: 'Account', id: 'r-1' });
    assert.match(first?.fingerprint ?? '', /^[0-9a-f]{64}$/);
    assert.notEqual(first?.fingerprint, second?.fingerprint);
    assert.deepEqual(contexts[0]?.approval, { id: APPROVAL, fingerprint: first?.fingerprint });
  });

  it('have another fingerprint when one byte of the body differs, and none besides', async () => {
    const send = (name: string) =>
      stage.send('POST', '/stub/Account', { headers: under(key()), body: `{ "name": "${name}" }` });
    await send('Acme');
    await send('Acme');
    await send('Acne');
    const [first, again, other] = asked.map(({ fingerprint }) => fingerprint);
    assert.equal(first, again);
    assert.notEqual(first, other);
    assert.deepEqual(asked[0]?.body, { name: 'Acme' });
  });

  it('say when they confirm duplicates', async () => {
    await stage.send('POST', '/stub/Account', {
      headers: under({ ...key(), 'x-duplicate-confirmation': 'dct_1' }),
      body: {},
    });
    assert.equal(asked[0]?.duplicateConfirmation, true);
    assert.deepEqual(asked[0]?.headers, { 'x-duplicate-confirmation': 'dct_1' });
  });

  it('are refused as agent refuses them, and not forwarded', async () => {
    for (const [code, status] of [
      ['RUN_NOT_FOUND', 404],
      ['RUN_NOT_ACTIVE', 409],
      ['AGENT_POLICY_DENIED', 403],
      ['AGENT_BUDGET_EXCEEDED', 403],
      ['APPROVAL_PENDING', 403],
      ['APPROVAL_REJECTED', 403],
    ] as const) {
      stage.admit = () => {
        throw new PlatformError(code, 'No.');
      };
      const answer = await remove();
      assert.deepEqual([answer.status, answer.json.code], [status, code]);
    }
    assert.ok(contexts.every((context) => context?.dryRun));
    assert.deepEqual(stage.told, []);
  });

  it('answer their outcome when the run has ended since', async () => {
    stage.admit = () => {
      throw new PlatformError('RUN_NOT_ACTIVE', 'No.');
    };
    stage.answer = (_call, context) => {
      contexts.push(context);
      return { headers: { 'Idempotency-Replayed': 'true' }, body: Buffer.from('{"deleted":true}') };
    };
    const answer = await remove();
    assert.deepEqual([answer.status, answer.json], [200, { deleted: true }]);
    assert.equal(contexts[0]?.dryRun, true);
    stage.answer = () => {
      throw new PlatformError('ETAG_MISMATCH', 'No.');
    };
    assert.equal((await remove()).json.code, 'RUN_NOT_ACTIVE');
    assert.equal((await stage.send('GET', '/stub/Account', { headers: under() })).json.code, 'RUN_NOT_ACTIVE');
  });

  it('are refused for their form, permission and price before agent is asked', async () => {
    const refused = [
      await stage.send('GET', '/stub/Account?nonsense=1', { headers: under() }),
      await stage.send('DELETE', '/stub/Account/r-1', { headers: under(key()) }),
      await stage.send('GET', '/stub/Account', { headers: { 'x-agent-run-id': 'my-run' } }),
      await remove({ token: await stage.token({ scope: 'data:read' }) }),
    ];
    assert.deepEqual(
      refused.map(({ status }) => status),
      [400, 400, 400, 403],
    );
    assert.deepEqual(asked, []);
  });

  describe('that need an approval', () => {
    const dryRun = { checkOnly: true, valid: true, record: null, effects: [] };
    beforeEach(() => {
      stage.admit = (admission) => {
        asked.push(admission);
        if (!admission.previewable) throw needsApproval();
        return { ...admitted, asks: true };
      };
      stage.asked = needsApproval;
      stage.answer = (_call, context) => {
        contexts.push(context);
        return { status: 200, body: Buffer.from(JSON.stringify(dryRun)) };
      };
    });

    it('are tried out in the name of the caller, and asked for with before and after', async () => {
      const answer = await remove();
      assert.deepEqual([answer.status, answer.json.code], [403, 'APPROVAL_REQUIRED']);
      assert.equal(answer.json.details.approvalId, APPROVAL);
      assert.equal(contexts.length, 1);
      assert.equal(contexts[0]?.dryRun, true);
      assert.equal(contexts[0]?.approval, undefined);
      assert.deepEqual(stage.told.slice(0, 1), [
        [
          'request',
          {
            admission: asked[0],
            stepId: STEP,
            preview: { ...dryRun, approvalRequired: true, before: { id: 'r-1', amount: '10.50' } },
          },
        ],
      ]);
    });

    it('answer the error of the dry run, without requesting approval', async () => {
      for (const [code, status] of [
        ['RECORD_NOT_FOUND', 404],
        ['OBJECT_PERMISSION_DENIED', 403],
        ['ETAG_MISMATCH', 412],
        ['IDEMPOTENCY_KEY_REUSED', 409],
        ['INTERNAL_ERROR', 500],
        ['SERVICE_UNAVAILABLE', 503],
      ] as const) {
        stage.told.length = 0;
        stage.answer = () => {
          throw new PlatformError(code, 'No.');
        };
        const answer = await remove();
        assert.deepEqual([answer.status, answer.json.code], [status, code]);
        assert.deepEqual(await heard(), [['settle', { stepId: STEP, status }]]);
      }
    });

    it('answer the stored outcome when the same request was carried out before', async () => {
      stage.answer = () => ({
        status: 200,
        headers: { 'Idempotency-Replayed': 'true' },
        body: Buffer.from('{"deleted":true}'),
      });
      const answer = await remove();
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['idempotency-replayed'], 'true');
      assert.deepEqual(answer.json, { deleted: true });
      assert.deepEqual(await heard(), [['settle', { stepId: STEP, status: 200 }]]);
    });

    it('have no preview where the operation cannot be tried out', async () => {
      const answer = await stage.send('POST', '/stub/Account', { headers: under(key()), body: {} });
      assert.deepEqual([answer.status, answer.json.code], [403, 'APPROVAL_REQUIRED']);
      assert.deepEqual(contexts, []);
      assert.deepEqual(stage.told, []);
    });

    it('are shown as new where there is no record yet', async () => {
      stage.record = () => {
        throw new PlatformError('RECORD_NOT_FOUND', 'No.');
      };
      await remove();
      const [, told] = stage.told[0]!;
      assert.equal((told['preview'] as { before: unknown }).before, null);
    });
  });

  describe('of a run that is a dry run', () => {
    beforeEach(() => {
      stage.admit = () => ({ ...admitted, dryRun: true });
    });

    it('are tried out', async () => {
      assert.equal((await remove()).status, 200);
      assert.equal(contexts[0]?.dryRun, true);
    });

    it('are refused, and settled, where the operation cannot be tried out', async () => {
      const answer = await stage.send('POST', '/stub/Account', { headers: under(key()), body: {} });
      assert.deepEqual([answer.status, answer.json.code], [403, 'AGENT_POLICY_DENIED']);
      assert.match(answer.json.message, /dry run/);
      assert.deepEqual(contexts, []);
      assert.deepEqual(await heard(), [['settle', { stepId: STEP, status: 403 }]]);
    });
  });

  it('are evaluated as the checked operation, and report whether it needs an approval', async () => {
    stage.admit = (admission) => {
      asked.push(admission);
      return { ...admitted, approvalRequired: true };
    };
    const body = { operation: 'delete', id: 'r-1', duplicateConfirmation: 'dct_1' };
    await stage.send('POST', '/stub/Account/check', { headers: under(), body });
    const { operationId, mutation, risk, cost, fingerprint, checked } = asked[0]!;
    assert.deepEqual(
      { operationId, mutation, risk, cost, fingerprint, checked },
      {
        operationId: 'stub.records.check',
        mutation: false,
        risk: 'low',
        cost: 2,
        fingerprint: null,
        checked: {
          operationId: 'stub.records.delete',
          risk: 'high',
          agentApproval: 'policy',
          duplicateConfirmation: true,
        },
      },
    );
    assert.equal(contexts[0]?.approvalRequired, true);
  });

  describe('of clients that are agents', () => {
    it('are refused without a run', async () => {
      const token = await agentToken();
      for (const answer of [
        await stage.send('GET', '/stub/Account', { token }),
        await stage.send('POST', '/costly', { token }),
        await stage.send('GET', '/stub/Account', { token: await stage.token({ act: { sub: 'agent' } }) }),
      ])
        assert.deepEqual([answer.status, answer.json.code], [403, 'AGENT_POLICY_DENIED']);
      assert.deepEqual(contexts, []);
      assert.equal((await stage.send('GET', '/stub/Account', { token, headers: under() })).status, 200);
    });

    it('may read the public documents without one', async () => {
      const token = await agentToken();
      assert.equal((await stage.send('GET', '/scopes', { token })).status, 200);
      assert.equal(asked.length, 0);
    });
  });

  it('add no call for requests without a run', async () => {
    const before = stage.calls['runs.admit'] ?? 0;
    assert.equal((await stage.send('GET', '/stub/Account')).status, 200);
    assert.equal(stage.calls['runs.admit'] ?? 0, before);
    assert.equal(contexts[0]?.agentRunId, null);
    assert.equal(contexts[0] && 'approval' in contexts[0], false);
  });
});

describe('The edge: calls under a run while agent is away', () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage({}, { agent: false });
  });
  after(() => stage.stop());

  it('are answered with 503, and not carried out', async () => {
    let forwarded = 0;
    stage.answer = () => {
      forwarded++;
      return { body: {} };
    };
    const answer = await stage.send('GET', '/stub/Account', { headers: { 'x-agent-run-id': RUN } });
    assert.deepEqual([answer.status, answer.json.code], [503, 'SERVICE_UNAVAILABLE']);
    assert.equal(forwarded, 0);
    assert.equal((await stage.send('GET', '/stub/Account')).status, 200);
  });
});

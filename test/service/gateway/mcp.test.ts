/**
 * The door for assistants, in front of an mcp that does whatever it likes: who gets in, and what a request in flight lets
 * it do.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { GrantState } from '../../../contracts/auth.ts';
import type { ActionContext } from '../../../contracts/call.ts';
import type { McpDoorActions, McpOutcome, McpRequest } from '../../../contracts/mcp.ts';
import { MCP_OPERATIONS } from '../../../contracts/mcp-offers.ts';
import { OPERATIONS } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import type { Operation, OperationCall } from '../../../lib/operation.ts';
import { type Answer, dailyLimit, type Stage, startStage, TENANT, USER } from './stage.ts';

type Run = Partial<McpDoorActions['gateway.operations.run']['params']>;

const TYPES = 'metadata.types.list';
const RETRIEVE = 'metadata.components.retrieve';
const SCOPE = 'setup:read metadata:deploy';
/** Of the operations that assistants reach, those that the stage does not have already. */
const ROWS: readonly Operation[] = [...MCP_OPERATIONS.values()]
  .filter(({ operationId }) => operationId !== 'schema.openapi.get')
  .map((row) => ({ ...row, action: 'stub.answer' }));

describe('MCP requests at the gateway', () => {
  let stage: Stage;
  /** The mcp service's handling of a request. */
  let handle: (request: McpRequest, run: (asked: Run) => Promise<McpOutcome>) => Promise<unknown> | unknown;
  let grants = 0;
  const handled: McpRequest[] = [];

  before(async () => {
    stage = await startStage({ RATE_CONNECTION_UNITS: '200', RATE_ANONYMOUS_REQUESTS: '1000' }, { operations: ROWS });
    stage.broker.createService({
      name: 'mcp',
      actions: {
        async 'http.handle'(ctx: ActionContext<McpRequest>) {
          handled.push(ctx.params);
          const { ticket } = ctx.params;
          const said = await handle(ctx.params, (asked) =>
            stage.broker.call('gateway.operations.run', { ticket, path: {}, body: null, ...asked }),
          );
          return { status: 200, contentType: 'application/json', body: Buffer.from(JSON.stringify(said ?? {})) };
        },
      },
    });
    await stage.broker.waitForServices('mcp');
  });
  after(() => stage.stop());
  beforeEach(() => {
    handled.length = 0;
    handle = () => ({});
    stage.answer = () => ({ body: { types: [] } });
    stage.grant = {};
    stage.apiEnabled = true;
    stage.permissions = ['metadataRead', 'metadataManage'];
    stage.origins = [];
  });

  const claims = (): Record<string, unknown> => ({
    aud: `${stage.baseUrl}/mcp`,
    scope: SCOPE,
    grant_id: `assistant-${++grants}`,
  });
  const post = async (given: Record<string, unknown> = {}, token?: string, headers = {}): Promise<Answer> =>
    stage.send('POST', '//mcp', { token: token ?? (await stage.token({ ...claims(), ...given })), body: {}, headers });
  const isError = (answer: Answer, status: number, code: string): string => {
    assert.deepEqual([answer.status, answer.json?.code], [status, code], answer.text.slice(0, 300));
    return String(answer.headers['www-authenticate']);
  };
  const run = (asked: Run): void => {
    handle = async (_request, runs) => {
      const { body, error } = await runs(asked);
      return { body: body && Buffer.from(body).toString(), error };
    };
  };
  const refusedTo = (asked: () => PromiseLike<unknown>): Promise<void> =>
    assert.rejects(async () => asked(), { code: 'INTERNAL_ERROR' });

  it('refuses invalid tokens as the API does, without forwarding', async () => {
    const metadata = `resource_metadata="${stage.baseUrl}/.well-known/oauth-protected-resource/mcp"`;
    for (const [answer, code] of [
      [await post({}, await stage.token(claims(), { expiresIn: -60 })), 'TOKEN_EXPIRED'],
      [await post({ aud: `${stage.baseUrl}/api/v1` }), 'TOKEN_AUDIENCE_INVALID'],
      [await post({ aud: `${stage.baseUrl}/mcp/` }), 'TOKEN_AUDIENCE_INVALID'],
      [await post({ iss: 'https://evil.example' }), 'TOKEN_INVALID'],
      [await post({}, 'nonsense'), 'TOKEN_INVALID'],
    ] as const) {
      const challenge = isError(answer, 401, code);
      assert.match(challenge, /error="invalid_token".*scope="setup:read"/);
      assert.ok(challenge.includes(metadata), challenge);
    }
    const refusals: [Partial<GrantState>, number, string][] = [
      [{ active: false }, 401, 'TOKEN_REVOKED'],
      [{ clientActive: false, active: false }, 403, 'CLIENT_DISABLED'],
      [{ tenantSuspended: true, active: false }, 403, 'TENANT_SUSPENDED'],
      [{ ipRanges: ['10.0.0.0/8'] }, 403, 'IP_NOT_ALLOWED'],
    ];
    for (const [grant, status, code] of refusals) {
      stage.grant = grant;
      isError(await post(), status, code);
    }
    stage.grant = {};
    stage.apiEnabled = false;
    isError(await post({ sub: '01939c3e-8f00-7a3b-9c52-6d1f2a7b4c11' }), 403, 'API_ACCESS_DISABLED');
    assert.deepEqual(handled, []);
  });

  it('caches a token for its own audience, until it expires', async () => {
    const token = await stage.token(claims(), { expiresIn: 3 });
    assert.equal((await post({}, token)).status, 200);
    isError(await stage.send('GET', '/who', { token }), 401, 'TOKEN_AUDIENCE_INVALID');
    await new Promise((resolve) => setTimeout(resolve, 3_100));
    isError(await post({}, token), 401, 'TOKEN_EXPIRED');
  });

  it('accepts only origins that a client lists', async () => {
    const origin = 'https://app.example';
    isError(await post({}, undefined, { origin }), 403, 'ORIGIN_NOT_ALLOWED');
    isError(await post({}, undefined, { origin: 'null' }), 403, 'ORIGIN_NOT_ALLOWED');
    assert.deepEqual(handled, []);
    const listed = 'https://listed.example';
    stage.origins = [listed];
    const answer = await post({}, undefined, { origin: listed });
    assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [200, listed]);
  });

  it('forwards the message and protocol headers, without the token', async () => {
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'ping', cookie: 'c=1', 'x-other': 'x' };
    assert.equal((await post({}, undefined, headers)).status, 200);
    const [request] = handled;
    assert.deepEqual(Object.keys(request!.headers).sort(), ['content-type', 'mcp-method', 'mcp-protocol-version']);
    assert.doesNotMatch(JSON.stringify(request), /Bearer|eyJ/);
  });

  it('runs an operation as the caller, on the channel mcp', async () => {
    let context: RequestContext | undefined;
    stage.answer = (_call, given) => {
      context = given;
      return { body: { types: [] } };
    };
    run({ operationId: TYPES });
    const answer = await post();
    assert.deepEqual(answer.json, { body: '{"types":[]}', error: null });
    assert.deepEqual(
      [context?.tenantId, context?.userId, context?.channel, context?.requestId],
      [TENANT, USER, 'mcp', answer.headers['x-request-id']],
    );
  });

  it('requires a run of an agent, except for public operations', async () => {
    stage.grant = { agent: true };
    run({ operationId: 'schema.openapi.get' });
    const described = await post();
    assert.deepEqual([described.status, described.json.error], [200, null], described.text.slice(0, 300));
    run({ operationId: TYPES });
    assert.equal((await post()).json.error.code, 'AGENT_POLICY_DENIED');
  });

  it('answers a missing scope itself, regardless of mcp', async () => {
    run({ operationId: 'metadata.components.validate', body: Buffer.from('{}') });
    const challenge = isError(await post({ scope: 'setup:read' }), 403, 'SCOPE_INSUFFICIENT');
    assert.match(challenge, /error="insufficient_scope".*scope="setup:read metadata:deploy"/);
  });

  it('answers itself when the grant ends while mcp is working', async () => {
    const given = claims();
    let answered = 0;
    stage.answer = () => {
      answered++;
      return { body: {} };
    };
    handle = async (_request, runs) => {
      await runs({ operationId: TYPES });
      await stage.broker.broadcast('auth.grants.revoked', { grantIds: [String(given['grant_id'])] });
      const { error } = await runs({ operationId: TYPES });
      return error;
    };
    isError(await post(given), 401, 'TOKEN_REVOKED');
    assert.equal(answered, 1);
  });

  it('leaves other refusals to mcp, as the Error body', async () => {
    stage.permissions = [];
    run({ operationId: RETRIEVE, body: Buffer.from('{"package":{"version":1,"types":[]}}') });
    const answer = await post({ sub: '01939c3e-8f00-7a3b-9c52-6d1f2a7b4c12' });
    assert.deepEqual([answer.status, answer.json.error.code], [200, 'METADATA_PERMISSION_DENIED']);
    assert.equal(answer.json.error.requestId, answer.headers['x-request-id']);
  });

  it('runs only read operations of the contract', async () => {
    let answered = 0;
    stage.answer = () => {
      answered++;
      return { body: {} };
    };
    const others = [...OPERATIONS.map(({ operationId }) => operationId), 'stub.records.create', '', '__proto__'].filter(
      (operationId) => !MCP_OPERATIONS.has(operationId),
    );
    handle = async (_request, runs) => {
      for (const operationId of others) await refusedTo(() => runs({ operationId, body: Buffer.from('{}') }));
      return { tried: others.length };
    };
    const answer = await post({ scope: OPERATIONS.flatMap(({ scopes }) => scopes).join(' ') });
    assert.deepEqual([answer.status, answer.json], [200, { tried: others.length }]);
    assert.ok(others.length > OPERATIONS.length - MCP_OPERATIONS.size);
    assert.equal(answered, 0);
    for (const [operationId, { mutation, risk }] of MCP_OPERATIONS)
      assert.deepEqual([mutation, risk], [false, 'low'], operationId);
  });

  it('keeps parameters of a path within it', async () => {
    for (const deploymentId of [
      '../types',
      '..',
      '.',
      'a/b',
      '',
      'x?a=b',
      'x#y',
      '%2e%2e%2f',
      '\ud800',
      'x'.repeat(20_000),
    ]) {
      let called: OperationCall | undefined;
      stage.answer = (given) => {
        called = given;
        return { body: {} };
      };
      run({ operationId: 'metadata.deployments.get', path: { deploymentId } });
      const answer = await post();
      const shown = deploymentId.slice(0, 20);
      assert.equal(answer.status, 200, `${shown}: ${answer.text}`);
      if (called)
        assert.deepEqual(
          [called.operationId, called.path, called.query],
          ['metadata.deployments.get', { deploymentId: deploymentId.toWellFormed() }, {}],
        );
      else assert.equal(answer.json.error.status >= 400 && answer.json.error.status < 500, true, shown);
    }
  });

  it('lets a request run an operation at most three times, and only until its response', async () => {
    handle = async (_request, runs) => {
      for (let i = 0; i < 3; i++) await runs({ operationId: TYPES });
      await refusedTo(() => runs({ operationId: TYPES }));
      return {};
    };
    assert.equal((await post()).status, 200);
    const { ticket } = handled[0]!;
    assert.match(ticket, /^[\w-]{32}$/);
    const late = (given: string): PromiseLike<unknown> =>
      stage.broker.call('gateway.operations.run', { ticket: given, operationId: TYPES, path: {}, body: null });
    for (const given of [ticket, '', 'x'.repeat(32)]) await refusedTo(() => late(given));
  });

  /** A token of a tenant that has 100 units a day. */
  const limited = (): Promise<string> => {
    stage.grant = dailyLimit(100);
    return stage.token({ ...claims(), tenant_id: randomUUID() });
  };

  it('charges a request and the operations that it runs', async () => {
    const remaining = (answer: Answer): number => Number(answer.headers['x-ratelimit-remaining']);
    const token = await limited();
    const first = remaining(await post({}, token));
    assert.equal(remaining(await post({}, token)), first - 1);
    run({ operationId: RETRIEVE, body: Buffer.from('{"package":{"version":1,"types":[]}}') });
    const cost = MCP_OPERATIONS.get(RETRIEVE)?.cost ?? 0;
    assert.equal(remaining(await post({}, token)), first - 2 - cost);
  });

  it('reports an exhausted limit, to mcp when the request itself was charged', async () => {
    const token = await limited();
    const fill = async (left: number): Promise<void> => {
      const answer = await post({}, token);
      for (let more = Number(answer.headers['x-ratelimit-remaining']) - left; more > 0; more--) await post({}, token);
    };
    await fill(2);
    run({ operationId: RETRIEVE, body: Buffer.from('{"package":{"version":1,"types":[]}}') });
    const { status, json } = await post({}, token);
    assert.deepEqual([status, json.error.code, json.error.retryable], [200, 'DAILY_LIMIT_EXCEEDED', true]);
    assert.ok(json.error.retryAfterSeconds > 0);
    handle = () => ({});
    await fill(0);
    isError(await post({}, token), 429, 'DAILY_LIMIT_EXCEEDED');
  });

  it('answers 503 while mcp is unavailable, without affecting the API', async () => {
    await stage.broker.destroyService('mcp');
    isError(await post(), 503, 'SERVICE_UNAVAILABLE');
    assert.equal((await stage.send('GET', '/who')).status, 200);
  });
});

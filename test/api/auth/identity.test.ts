import assert from 'node:assert/strict';
import Ajv from 'ajv';
import addFormats from 'ajv-formats';
import { AUTH_OPERATIONS } from '../../../contracts/auth.ts';
import { call } from '../../../contracts/call.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { type AuthHarness, DEMO, SAM, startAuth } from './harness.ts';

const operation = AUTH_OPERATIONS.find(({ operationId }) => operationId === 'me.identity.get')!;

const validate = addFormats.default(new Ajv.default({ strict: false })).compile(operation.response.schema!);

describe('GET /identity', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());

  const request = (more: Partial<RequestContext> = {}): RequestContext => ({
    requestId: 'req_0',
    clientRequestId: null,
    tenantId: DEMO,
    userId: SAM,
    clientId: 'erp-cli',
    grantId: 'a-grant',
    scopes: ['data:read'],
    agent: false,
    person: true,
    agentRunId: null,
    tokenExpiresAt: '2026-11-21T01:01:22+00:00',
    ip: null,
    channel: 'api',
    deadline: Date.now() + 30_000,
    ...more,
  });
  const ask = (context: RequestContext) =>
    call(
      auth.broker,
      'auth.identity.get',
      { operationId: 'me.identity.get', path: {}, query: {}, headers: {} },
      { meta: { request: context } },
    );

  it('answers tenant, user and connection of the token', async () => {
    const { body } = await ask(request());
    assert.ok(validate(body), JSON.stringify(validate.errors));
    assert.deepEqual(body, {
      tenant: {
        id: DEMO,
        name: 'demo',
        region: 'local',
        defaultLocale: 'en',
        defaultTimezone: 'Europe/Berlin',
        defaultCurrency: 'EUR',
        edition: 'standard',
        sandbox: false,
      },
      user: {
        id: SAM,
        username: 'sam@demo.example',
        displayName: 'Sam Keller',
        email: 'sam@demo.example',
        locale: 'de',
        timezone: 'Europe/Berlin',
        profileApiName: 'SalesRep',
        roleApiName: 'SalesRep',
        active: true,
        apiEnabled: true,
      },
      connection: {
        clientId: 'erp-cli',
        clientName: 'ERP command line',
        grantId: 'a-grant',
        scopes: ['data:read'],
        agent: false,
        actingFor: null,
        tokenExpiresAt: '2026-11-21T01:01:22+00:00',
      },
      apiVersion: '1.0.0',
    });
  });

  it('has an example in its description that fits its schema', () => {
    assert.ok(validate(operation.response.example), JSON.stringify(validate.errors));
  });

  it('answers 401 when the tenant of the token no longer exists', async () => {
    await assert.rejects(ask(request({ tenantId: '01990000-0000-7000-8000-00000000dead' })), { code: 'TOKEN_REVOKED' });
  });
});

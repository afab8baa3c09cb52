import assert from 'node:assert/strict';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { until } from '../../support/until.ts';
import { type Answer, type Stage, startStage } from './stage.ts';

const isError = (answer: Answer, status: number, code: string): void => {
  assert.equal(answer.json?.code, code, `${answer.status} ${answer.text.slice(0, 300)}`);
  assert.equal(answer.status, status);
};

describe('The edge: authentication', () => {
  let stage: Stage;
  let grants = 0;
  const freshGrant = (): { grant_id: string } => ({ grant_id: `grant-${++grants}-x` });

  before(async () => {
    stage = await startStage({ RATE_CONNECTION_UNITS: '1000000', RATE_ANONYMOUS_REQUESTS: '1000000' });
  });
  after(() => stage.stop());
  beforeEach(() => {
    stage.grant = {};
    stage.apiEnabled = true;
    stage.origins = [];
  });

  const withToken = (token: string, path = '/stub/A') => stage.send('GET', path, { token });

  it('asks for a token without an error code when there is none', async () => {
    const answer = await stage.send('GET', '/stub/A', { token: null });
    isError(answer, 401, 'TOKEN_MISSING');
    assert.equal(
      answer.headers['www-authenticate'],
      `Bearer resource_metadata="${stage.baseUrl}/.well-known/oauth-protected-resource/api/v1"`,
    );
    isError(
      await stage.send('GET', '/stub/A', { token: null, headers: { authorization: 'Basic eDp5' } }),
      401,
      'TOKEN_MISSING',
    );
  });

  it('names the error when the token is bad', async () => {
    for (const token of ['x', 'a.b.c', 'x'.repeat(10_000), `${await stage.token()}x`]) {
      const answer = await withToken(token);
      isError(answer, 401, 'TOKEN_INVALID');
      assert.match(String(answer.headers['www-authenticate']), /^Bearer error="invalid_token", .*resource_metadata="/);
    }
  });

  it('refuses tokens of another key, algorithm, type, issuer, audience or time', async () => {
    const foreign = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
    isError(await withToken(await stage.token({}, { key: foreign.privateKey })), 401, 'TOKEN_INVALID');
    isError(await withToken(await stage.token({}, { type: 'JWT' })), 401, 'TOKEN_INVALID');
    isError(await withToken(await stage.token({ iss: 'https://evil.example' })), 401, 'TOKEN_INVALID');
    isError(await withToken(await stage.token({ aud: `${stage.baseUrl}/mcp` })), 401, 'TOKEN_AUDIENCE_INVALID');
    isError(await withToken(await stage.token({}, { expiresIn: -60 })), 401, 'TOKEN_EXPIRED');
    isError(await withToken(await stage.token({ tenant_id: undefined })), 401, 'TOKEN_INVALID');
    const [header, payload] = (await stage.token()).split('.');
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt', kid: 'key-1' })).toString('base64url');
    isError(await withToken(`${none}.${payload}.`), 401, 'TOKEN_INVALID');
    isError(await withToken(`${header}.${payload}.AAAA`), 401, 'TOKEN_INVALID');
    const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(foreign.publicKey)));
    const confused = await new SignJWT({})
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: 'key-1' })
      .sign(secret);
    isError(await withToken(confused), 401, 'TOKEN_INVALID');
  });

  it('verifies a token once and caches it until it expires', async () => {
    const token = await stage.token({}, { expiresIn: 3 });
    assert.equal((await withToken(token)).status, 200);
    assert.equal((await withToken(token)).status, 200);
    await until(async () => (await withToken(token)).status !== 200);
    isError(await withToken(token), 401, 'TOKEN_EXPIRED');
  });

  it('discovers a new signing key, and looks up unknown ones at most once a second', async () => {
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await stage.rotateKeys();
    assert.equal((await withToken(await stage.token())).status, 200);
    const before = stage.calls['keys.list']!;
    const start = Date.now();
    for (let i = 0; i < 20; i++)
      isError(await withToken(await stage.token({}, { kid: `invented-${i}` })), 401, 'TOKEN_INVALID');
    const asked = stage.calls['keys.list']! - before;
    assert.ok(asked <= Math.ceil((Date.now() - start) / 1_000), `asked ${asked} times`);
  });

  it('checks the liveness of a grant without a call per request', async () => {
    const token = await stage.token(freshGrant());
    const before = stage.calls['grants.check'] ?? 0;
    for (let i = 0; i < 10; i++) assert.equal((await withToken(token)).status, 200);
    assert.equal(stage.calls['grants.check']! - before, 1);
  });

  it('refuses a token as soon as its grant is revoked, even with a lookup in flight', async () => {
    const claims = freshGrant();
    const token = await stage.token(claims);
    assert.equal((await withToken(token)).status, 200);
    await stage.broker.broadcast('auth.grants.revoked', { grantIds: [claims.grant_id] });
    const answer = await withToken(token);
    isError(answer, 401, 'TOKEN_REVOKED');
    assert.match(String(answer.headers['www-authenticate']), /error="invalid_token"/);
  });

  it('reads a grant again within five seconds if the event is lost', async function () {
    this.timeout(15_000);
    const token = await stage.token(freshGrant());
    assert.equal((await withToken(token)).status, 200);
    stage.grant = { active: false };
    await new Promise((resolve) => setTimeout(resolve, 5_050));
    isError(await withToken(token), 401, 'TOKEN_REVOKED');
  });

  it('refuses disabled clients, suspended tenants and foreign networks', async () => {
    stage.grant = { clientActive: false, active: false };
    isError(await withToken(await stage.token(freshGrant())), 403, 'CLIENT_DISABLED');
    stage.grant = { tenantSuspended: true, active: false };
    isError(await withToken(await stage.token(freshGrant())), 403, 'TENANT_SUSPENDED');
    stage.grant = { ipRanges: ['10.0.0.0/8', '2001:db8::/32'] };
    isError(await withToken(await stage.token(freshGrant())), 403, 'IP_NOT_ALLOWED');
    stage.grant = { ipRanges: ['10.0.0.0/8', '127.0.0.0/8'] };
    assert.equal((await withToken(await stage.token(freshGrant()))).status, 200);
  });

  it('refuses users without the API permission, except for their own identity', async () => {
    stage.apiEnabled = false;
    const token = await stage.token({ ...freshGrant(), sub: '01939c3e-8f00-7a3b-9c52-6d1f2a7b4c10' });
    isError(await withToken(token), 403, 'API_ACCESS_DISABLED');
  });

  it('allows no origin by default, and those that a client lists', async () => {
    const origin = 'https://app.example';
    const refused = await stage.send('GET', '/stub/A', { headers: { origin } });
    assert.equal(refused.headers['access-control-allow-origin'], undefined);
    const no = await stage.send('OPTIONS', '/stub/A', {
      token: null,
      headers: { origin: 'https://no.example', 'access-control-request-method': 'POST' },
    });
    assert.equal(no.headers['access-control-allow-origin'], undefined);
    assert.equal(no.headers['access-control-allow-methods'], undefined);
    stage.origins = ['https://good.example'];
    const headers = { origin: 'https://good.example', 'access-control-request-method': 'POST' };
    const preflight = await stage.send('OPTIONS', '/stub/A', { token: null, headers });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers['access-control-allow-origin'], 'https://good.example');
    assert.match(String(preflight.headers['access-control-allow-methods']), /GET, POST, HEAD/);
    assert.match(String(preflight.headers['access-control-allow-headers']), /Idempotency-Key/);
    const answer = await stage.send('GET', '/stub/A', { headers: { origin: 'https://good.example' } });
    assert.equal(answer.headers['access-control-allow-origin'], 'https://good.example');
    assert.match(String(answer.headers['access-control-expose-headers']), /X-Request-Id.*ETag/);
    assert.match(String(answer.headers.vary), /Origin/);
    const unauthorized = await stage.send('GET', '/stub/A', {
      token: null,
      headers: { origin: 'https://good.example' },
    });
    assert.equal(unauthorized.headers['access-control-allow-origin'], 'https://good.example');
  });

  it('forwards sign-in and token requests to auth unchanged, with the real addresses of caller and platform', async () => {
    let seen: Record<string, unknown> = {};
    stage.authAnswer = (request) => {
      seen = { ...request, body: request.body?.toString() };
      return {
        status: 302,
        headers: { location: '/x', 'set-cookie': ['a=1', 'b=2'], 'cache-control': 'no-store' },
        body: Buffer.from('moved'),
      };
    };
    const answer = await stage.send('POST', '//oauth2/token?x=1', {
      token: null,
      body: 'grant_type=x',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'x-platform-base-url': 'https://evil.example',
        'x-forwarded-for': '6.6.6.6',
        cookie: 'c=1',
      },
    });
    assert.equal(answer.status, 302);
    assert.equal(answer.text, 'moved');
    assert.deepEqual(answer.headers['set-cookie'], ['a=1', 'b=2']);
    assert.equal(answer.headers.location, '/x');
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.match(String(answer.headers['x-request-id']), /^req_/);
    assert.equal(seen['url'], '/oauth2/token?x=1');
    assert.equal(seen['body'], 'grant_type=x');
    assert.equal(seen['remoteAddress'], '127.0.0.1');
    const headers = seen['headers'] as Record<string, string>;
    assert.equal(headers['x-platform-base-url'], stage.baseUrl);
    assert.equal(headers['x-forwarded-for'], undefined);
    assert.equal(headers['cookie'], 'c=1');
    const big = await stage.send('POST', '//oauth2/token', { token: null, body: 'x'.repeat(70_000) });
    isError(big, 413, 'REQUEST_TOO_LARGE');
  });
});

/** The section Authentication of the specification, rule by rule, with real sign-ins. */
import assert from 'node:assert/strict';
import { SCOPES } from '../../lib/operation.ts';
import { api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('Authentication', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let sam: string;
  before(async () => {
    platform = await startPlatform();
    sam = await tokenFor(platform.baseUrl, 'sam');
  });
  after(() => platform?.stop());

  it('1. requests carry Authorization: Bearer, and act as the user', async () => {
    const { status, body } = await api(platform.baseUrl, sam).get('/identity');
    assert.equal(status, 200);
    assert.equal(body.user.username, 'sam@demo.example');
  });

  it('2. the connection scopes are the contract for what an operation may do', async () => {
    const scopes = await api(platform.baseUrl).get('/scopes');
    assert.deepEqual(
      scopes.body.map((one: { scope: string }) => one.scope),
      Object.keys(SCOPES),
    );
    const reader = await tokenFor(platform.baseUrl, 'sam', 'data:read');
    const refused = await api(platform.baseUrl, reader).post('/data/Account', { name: 'x' });
    assert.equal(refused.status, 403);
    assert.equal(refused.body.code, 'SCOPE_INSUFFICIENT');
    assert.deepEqual(refused.body.details.required, ['data:write']);
    assert.equal((await api(platform.baseUrl, reader).get('/objects')).status, 200);
  });

  it('3. a scope grants no more than the user has', async () => {
    const { body, status } = await api(platform.baseUrl, sam).get('/objects');
    assert.equal(status, 200);
    assert.ok(body.records.length > 0);
  });

  it('4. the API permission of the user is required, except by GET /identity', async () => {
    const pat = await tokenFor(platform.baseUrl, 'pat');
    const refused = await api(platform.baseUrl, pat).get('/objects');
    assert.equal(refused.status, 403);
    assert.equal(refused.body.code, 'API_ACCESS_DISABLED');
    const identity = await api(platform.baseUrl, pat).get('/identity');
    assert.equal(identity.status, 200);
    assert.equal(identity.body.user.apiEnabled, false);
  });

  it('5. the public documents need no authentication; identity, objects, describe and data do', async () => {
    const stranger = api(platform.baseUrl);
    for (const path of ['/openapi.json', '/scopes', '/capabilities'])
      assert.equal((await stranger.get(path)).status, 200, path);
    for (const path of ['/identity', '/objects', '/objects/Account/describe', '/data/Account'])
      assert.equal((await stranger.get(path)).status, 401, path);
  });

  it('6. a missing or invalid token is 401 with the way to one; missing scope or permission is 403', async () => {
    const missing = await api(platform.baseUrl).get('/identity');
    assert.equal(missing.body.code, 'TOKEN_MISSING');
    const challenge = missing.headers.get('www-authenticate')!;
    const metadata = /^Bearer resource_metadata="([^"]+)"$/.exec(challenge)?.[1];
    assert.ok(metadata, challenge);
    const resource = (await (await fetch(metadata)).json()) as { authorization_servers: string[] };
    const [issuer] = resource.authorization_servers;
    const server = (await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json()) as {
      issuer: string;
    };
    assert.equal(server.issuer, issuer);
    const invalid = await api(platform.baseUrl, `${sam}x`).get('/identity');
    assert.equal(invalid.status, 401);
    assert.equal(invalid.body.code, 'TOKEN_INVALID');
    assert.match(invalid.headers.get('www-authenticate')!, /error="invalid_token"/);
  });
});

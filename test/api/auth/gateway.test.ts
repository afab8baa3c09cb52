/** Sign-in through the whole platform: gateway, bus, auth, metadata and data as they run together. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as oauth from 'openid-client';
import { SCOPES } from '../../../lib/operation.ts';
import { tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { until } from '../../support/until.ts';
import { authorize, Browser, claims, REDIRECT } from './browser.ts';

const run = promisify(execFile);

describe('sign-in through the gateway', () => {
  let platform: TestPlatform;
  let baseUrl: string;
  let client: oauth.Configuration;
  before(async function (this: Mocha.Context) {
    this.timeout(180_000);
    platform = await startPlatform();
    baseUrl = platform.baseUrl;
    client = await oauth.discovery(new URL(baseUrl), 'erp-cli', undefined, oauth.None(), {
      algorithm: 'oauth2',
      execute: [oauth.allowInsecureRequests],
    });
  });
  after(() => platform.stop());

  const signIn = async (scope: string) => {
    const pkceCodeVerifier = oauth.randomPKCECodeVerifier();
    const url = oauth.buildAuthorizationUrl(client, {
      redirect_uri: REDIRECT,
      scope,
      code_challenge: await oauth.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    });
    return oauth.authorizationCodeGrant(client, await authorize(new Browser(), url), { pkceCodeVerifier });
  };
  const get = async (path: string, token: string) => {
    const response = await fetch(`${baseUrl}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
    // biome-ignore lint/suspicious/noExplicitAny: asserted member by member
    return { status: response.status, headers: response.headers, body: (await response.json()) as any };
  };

  it('leads from a 401 to the first record by discovery alone', async () => {
    const refused = await fetch(`${baseUrl}/api/v1/identity`);
    assert.equal(refused.status, 401);
    const [, metadata] = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate')!)!;
    const resource = (await (await fetch(metadata!)).json()) as { resource: string; authorization_servers: string[] };
    assert.equal(resource.authorization_servers[0], client.serverMetadata().issuer);
    const { access_token } = await signIn('data:read offline_access');
    assert.equal(claims(access_token).aud, resource.resource);
    const { status, body } = await get('/identity', access_token);
    assert.equal(status, 200);
    assert.equal(body.user.username, 'sam@demo.example');
    assert.equal(body.connection.clientId, 'erp-cli');
    assert.deepEqual(body.connection.scopes, ['data:read', 'offline_access']);
    assert.equal((await get('/objects', access_token)).status, 200);
  });

  it('ends access at the moment a token is revoked', async () => {
    const answer = await signIn('data:read offline_access');
    assert.equal((await get('/identity', answer.access_token)).status, 200);
    await oauth.tokenRevocation(client, answer.refresh_token!);
    const { status, body } = await get('/identity', answer.access_token);
    assert.equal(status, 401);
    assert.equal(body.code, 'TOKEN_REVOKED');
  });

  it('keeps tokens working while the signing key is replaced', async () => {
    const before = (await signIn('data:read')).access_token;
    await platform.broker.call('auth.keys.rotate', {});
    const after = (await signIn('data:read')).access_token;
    for (const token of [before, after]) assert.equal((await get('/identity', token)).status, 200);
  });

  it('prints a token, and nothing else, from the script', async () => {
    const script = ['scripts/token.ts', '--user', 'sam@demo.example', '--base-url', baseUrl];
    const { stdout, stderr } = await run(process.execPath, [...script, '--scope', 'data:read data:write']);
    assert.match(stdout, /^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    assert.equal(stderr, '');
    assert.equal(claims(stdout).scope, 'data:read data:write');
    const all = await run(process.execPath, script);
    assert.equal(claims(all.stdout).scope.split(' ').length, Object.keys(SCOPES).length, 'every one of the API');
  });

  it('prints the reason for a missing token to stderr, and exits with 1', async () => {
    const script = ['scripts/token.ts', '--user', 'sam@demo.example', '--base-url', baseUrl];
    await assert.rejects(
      run(process.execPath, script, { env: { ...process.env, DEMO_PASSWORD: 'wrong' } }),
      (error: { code: number; stdout: string; stderr: string }) => {
        assert.equal(error.code, 1);
        assert.equal(error.stdout, '');
        assert.match(error.stderr, /Username and password do not match/);
        return true;
      },
    );
  });

  it("shows the time of the last sign-in on the user's record", async () => {
    const before = Date.now();
    const token = await tokenFor(baseUrl, 'ada', 'data:read');
    const where = encodeURIComponent(JSON.stringify({ username: 'ada@demo.example' }));
    await until(async () => {
      const { body } = await get(`/data/User?fields=lastSignInAt&where=${where}`, token);
      const at = Date.parse(body.records[0].lastSignInAt);
      return at >= before && at <= Date.now();
    });
  });
});

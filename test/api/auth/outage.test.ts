import assert from 'node:assert/strict';
import { call } from '../../../contracts/call.ts';
import { authorizeUrl, Browser, claims, pkce, post, refresh, tokens } from './browser.ts';
import { type AuthHarness, DEMO, externalClient, SAM, startAuth } from './harness.ts';

describe('auth while other services are unavailable', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
    auth.clients['Portal'] = externalClient({
      apiName: 'Portal',
      redirectUris: ['https://app.example/cb'],
      scopes: ['data:read'],
    });
    await auth.bump();
  });
  after(() => auth.stop());
  afterEach(() => {
    auth.metadataAway = false;
  });

  it('confirms grants of a known tenant, and signs its users in, without metadata', async () => {
    const answer = await tokens(auth.baseUrl);
    const check = () =>
      call(auth.broker, 'auth.grants.check', {
        grants: [{ tenantId: DEMO, grantId: claims(answer.access_token).grant_id, clientId: 'erp-cli', userId: SAM }],
      });
    await check();
    auth.metadataAway = true;
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    assert.equal((await check())[0]!.active, true);
    assert.equal((await refresh(auth.baseUrl, answer.refresh_token)).status, 200);
  });

  it('answers 503 with Retry-After while the client is unknown, and recovers by itself', async () => {
    const other = authorizeUrl(auth.baseUrl, pkce().challenge, {
      client_id: 'acme-Portal',
      redirect_uri: 'https://app.example/cb',
      scope: 'data:read',
    });
    auth.metadataAway = true;
    const seen = await new Browser().open(other);
    assert.equal(seen.status, 503);
    assert.equal(seen.headers.get('retry-after'), '1');
    assert.match(seen.html, /not available at this moment/);
    const token = await post(`${auth.baseUrl}/oauth2/token`, {
      grant_type: 'refresh_token',
      client_id: 'acme-Portal',
      refresh_token: 'x',
    });
    assert.equal(token.status, 503);
    assert.equal(token.body.error, 'temporarily_unavailable');
    auth.metadataAway = false;
    assert.equal((await new Browser().open(other)).status, 400);
  });

  it('answers 503, never 500, while PostgreSQL drops its connections, and recovers by itself', async () => {
    const browser = new Browser();
    const page = await browser.visit(authorizeUrl(auth.baseUrl, pkce().challenge));
    const kill = async (): Promise<void> => {
      await auth.database
        .query(
          'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
        )
        .catch(() => {});
    };
    const statuses: number[] = [];
    for (let i = 0; i < 15; i++) {
      const answers = await Promise.all([
        kill(),
        browser.open(authorizeUrl(auth.baseUrl, pkce().challenge)),
        new Browser().open(page.url),
        post(`${auth.baseUrl}/oauth2/token`, { grant_type: 'refresh_token', client_id: 'erp-cli', refresh_token: 'x' }),
      ]);
      for (const answer of answers) if (answer) statuses.push(answer.status);
      const { status, body } = answers[3];
      if (status === 503) assert.equal(body.error, 'temporarily_unavailable');
    }
    assert.deepEqual(
      statuses.filter((status) => ![200, 303, 400, 503].includes(status)),
      [],
    );
    await tokens(auth.baseUrl);
  });
});

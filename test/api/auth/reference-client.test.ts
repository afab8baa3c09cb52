/** The client of the API reference: public, requires consent, returns to its page only, and exists only where enabled. */
import assert from 'node:assert/strict';
import { REFERENCE_SCOPES } from '../../../contracts/auth.ts';
import { authorizeUrl, Browser, claims, exchange, pkce, post } from './browser.ts';
import { type AuthHarness, PASSWORD, startAuth } from './harness.ts';

describe('the client of the API reference', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());

  const client = (): { client_id: string; redirect_uri: string } => ({
    client_id: 'erp-api-reference',
    redirect_uri: `${auth.baseUrl}/api-reference`,
  });
  const start = (challenge: string, more: Record<string, string> = {}): URL =>
    authorizeUrl(auth.baseUrl, challenge, { ...client(), scope: 'data:read', ...more });

  /** Submits the form of a page with a decision. */
  const decide = async (browser: Browser, html: string, decision: string, more: Record<string, string> = {}) =>
    browser.open(
      new URL(/action="([^"]+)"/.exec(html)![1]!, auth.baseUrl),
      new URLSearchParams({ csrf: /name="csrf" value="([^"]+)"/.exec(html)![1]!, ...more, decision }),
    );

  /** Signs in and consents; returns the redirect to the page. */
  const signIn = async (browser: Browser, challenge: string, scope = 'data:read'): Promise<URL> => {
    const form = await browser.visit(start(challenge, { scope }));
    let page = await decide(browser, form.html, 'signIn', { username: 'sam@demo.example', password: PASSWORD });
    let asked = 0;
    while (page.location?.pathname !== '/api-reference') {
      if (page.location) page = await browser.open(page.location);
      else {
        asked++;
        page = await decide(browser, page.html, 'allow');
      }
    }
    assert.equal(asked, 1, 'the person is asked for a yes');
    return page.location;
  };

  it('gets the scopes that the user granted, for a quarter of an hour and without a refresh token', async () => {
    const { verifier, challenge } = pkce();
    const back = await signIn(new Browser(), challenge, 'data:read data:write');
    const { status, body } = await exchange(auth.baseUrl, back.searchParams.get('code')!, verifier, client());
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(body.scope.split(' ').sort(), ['data:read', 'data:write']);
    assert.equal(body.refresh_token, undefined);
    assert.ok(body.expires_in <= 900);
    assert.equal(claims(body.access_token).client_id, 'erp-api-reference');
  });

  it('gets no offline access, also when it requests it', async () => {
    const { verifier, challenge } = pkce();
    const back = await signIn(new Browser(), challenge, 'data:read offline_access');
    const { body } = await exchange(auth.baseUrl, back.searchParams.get('code')!, verifier, client());
    assert.deepEqual([body.scope, body.refresh_token], ['data:read', undefined]);
  });

  it('gets no scope to decide about agents, and none that does not exist', async () => {
    assert.deepEqual(
      REFERENCE_SCOPES.filter((scope: string) => ['offline_access', 'agent:approve', 'openid'].includes(scope)),
      [],
    );
    for (const scope of ['agent:approve', 'data:read agent:approve', 'openid', 'everything']) {
      const seen = await new Browser().open(start(pkce().challenge, { scope }));
      assert.equal(seen.location?.searchParams.get('error'), 'invalid_scope', scope);
    }
  });

  it('returns to the page of this address only, character by character', async () => {
    for (const redirect_uri of [
      'https://evil.example/api-reference',
      `${auth.baseUrl}/api-reference/`,
      `${auth.baseUrl}/api-reference?x=1`,
      `${auth.baseUrl}/api-reference/oauth2-redirect.html`,
      `${auth.baseUrl}/dashboards`,
    ]) {
      const seen = await new Browser().open(start(pkce().challenge, { redirect_uri }));
      assert.deepEqual([seen.status, seen.location], [400, null], redirect_uri);
    }
  });

  it('gets nothing without PKCE, with a plain challenge or another verifier', async () => {
    for (const remove of [['code_challenge'], ['code_challenge', 'code_challenge_method']]) {
      const url = start(pkce().challenge);
      for (const name of remove) url.searchParams.delete(name);
      const seen = await new Browser().open(url);
      assert.equal(seen.location?.searchParams.get('error'), 'invalid_request', remove.join(' '));
    }
    const plain = await new Browser().open(start(pkce().challenge, { code_challenge_method: 'plain' }));
    assert.equal(plain.location?.searchParams.get('error'), 'invalid_request');
    const { challenge } = pkce();
    const code = (await signIn(new Browser(), challenge)).searchParams.get('code')!;
    const { status, body } = await exchange(auth.baseUrl, code, pkce().verifier, client());
    assert.deepEqual([status, body.error], [400, 'invalid_grant']);
  });

  it('gets its token from a page of this origin only', async () => {
    const { verifier, challenge } = pkce();
    const code = (await signIn(new Browser(), challenge)).searchParams.get('code')!;
    const form = { grant_type: 'authorization_code', ...client(), code, code_verifier: verifier };
    const answer = await post(`${auth.baseUrl}/oauth2/token`, form, { origin: 'https://evil.example' });
    assert.equal(answer.status, 400);
  });

  it('gets no token for the endpoint of assistants', async () => {
    const resource = `${auth.baseUrl}/mcp`;
    const seen = await new Browser().open(start(pkce().challenge, { scope: 'setup:read', resource }));
    assert.equal(seen.location?.searchParams.get('error'), 'invalid_target');
  });

  it('has no other grant', async () => {
    for (const grant_type of ['client_credentials', 'urn:ietf:params:oauth:grant-type:device_code', 'password']) {
      const { status } = await post(`${auth.baseUrl}/oauth2/token`, { grant_type, client_id: client().client_id });
      assert.equal(status, 400, grant_type);
    }
  });

  it('does not exist in production or without demo tenants, unless the operator enables it', async () => {
    const cases: [Record<string, string>, boolean][] = [
      [{ SEED_DEMO: 'false' }, false],
      [{ DATABASE_ALLOW_DEVELOPMENT: 'true' }, false],
      [{ API_REFERENCE_SIGN_IN: 'false' }, false],
      [{ SEED_DEMO: 'false', API_REFERENCE_SIGN_IN: 'true' }, true],
    ];
    for (const [env, isThere] of cases) {
      const other = await startAuth({ env });
      try {
        const redirect_uri = `${other.baseUrl}/api-reference`;
        const url = authorizeUrl(other.baseUrl, pkce().challenge, { ...client(), redirect_uri, scope: 'data:read' });
        const seen = await new Browser().open(url);
        assert.equal(seen.status === 400, !isThere, JSON.stringify(env));
        assert.equal(seen.location === null, !isThere, JSON.stringify(env));
      } finally {
        await other.stop();
      }
    }
  });
});

/** The client of the dashboards page: built in, public, and limited to dashboards. */
import assert from 'node:assert/strict';
import { authorizeUrl, Browser, claims, exchange, pkce, post } from './browser.ts';
import { type AuthHarness, DEMO, PASSWORD, SAM, startAuth } from './harness.ts';

describe('the client of the dashboards page', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());

  const client = (): { client_id: string; redirect_uri: string } => ({
    client_id: 'erp-dashboards',
    redirect_uri: `${auth.baseUrl}/dashboards`,
  });
  const start = (challenge: string, more: Record<string, string> = {}): URL =>
    authorizeUrl(auth.baseUrl, challenge, {
      ...client(),
      scope: 'analytics:read analytics:run notifications:read',
      ...more,
    });
  /** Signs in; returns the redirect to the page. */
  const signIn = async (browser: Browser, challenge: string): Promise<URL> => {
    const form = await browser.visit(start(challenge));
    let page = await browser.open(
      new URL(/action="([^"]+)"/.exec(form.html)![1]!, auth.baseUrl),
      new URLSearchParams({
        csrf: /name="csrf" value="([^"]+)"/.exec(form.html)![1]!,
        username: 'sam@demo.example',
        password: PASSWORD,
        decision: 'signIn',
      }),
    );
    while (page.location && page.location.pathname !== '/dashboards') page = await browser.open(page.location);
    assert.ok(page.location, `the way back, not: ${page.html.slice(-500)}`);
    return page.location;
  };
  const token = async (browser: Browser): Promise<{ access_token: string; scope: string; refresh_token?: string }> => {
    const { verifier, challenge } = pkce();
    const code = (await signIn(browser, challenge)).searchParams.get('code')!;
    const { status, body } = await exchange(auth.baseUrl, code, verifier, client());
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };

  it('gets a token for dashboards and the unread count alone, without a refresh token and without consent', async () => {
    const answer = await token(new Browser());
    assert.deepEqual(answer.scope.split(' ').sort(), ['analytics:read', 'analytics:run', 'notifications:read']);
    assert.equal(answer.refresh_token, undefined);
    const { sub, tenant_id, client_id } = claims(answer.access_token);
    assert.deepEqual([sub, tenant_id, client_id], [SAM, DEMO, 'erp-dashboards']);
  });

  it('is answered at once, under the same grant, in a browser that has signed in', async () => {
    const browser = new Browser();
    const first = await token(browser);
    const { verifier, challenge } = pkce();
    const back = await browser.open(start(challenge));
    assert.equal(back.location?.pathname, '/dashboards');
    const { body } = await exchange(auth.baseUrl, back.location.searchParams.get('code')!, verifier, client());
    assert.equal(claims(body.access_token).grant_id, claims(first.access_token).grant_id);
  });

  it('needs no consent to a scope that an upgrade has added', async () => {
    const browser = new Browser();
    const { grant_id } = claims((await token(browser)).access_token);
    await auth.database.query(
      "UPDATE auth.grants SET payload = replace(payload::text, ' notifications:read', '')::jsonb WHERE id = $1",
      [grant_id],
    );
    const { verifier, challenge } = pkce();
    const back = await browser.open(start(challenge));
    assert.equal(back.location?.pathname, '/dashboards');
    const { body } = await exchange(auth.baseUrl, back.location.searchParams.get('code')!, verifier, client());
    assert.ok(body.scope.split(' ').includes('notifications:read'), body.scope);
    assert.notEqual(claims(body.access_token).grant_id, grant_id);
  });

  it('gets no other scope', async () => {
    for (const scope of ['analytics:read data:read', 'analytics:run metadata:deploy', 'openid']) {
      const seen = await new Browser().open(start(pkce().challenge, { scope }));
      assert.equal(seen.location?.searchParams.get('error'), 'invalid_scope', scope);
    }
  });

  it('returns to the page of this address only', async () => {
    for (const redirect_uri of ['https://evil.example/dashboards', `${auth.baseUrl}/dashboards/`, auth.baseUrl]) {
      const seen = await new Browser().open(start(pkce().challenge, { redirect_uri }));
      assert.deepEqual([seen.status, seen.location], [400, null], redirect_uri);
    }
  });

  it('gets its token from a page of this origin only', async () => {
    const form = { grant_type: 'authorization_code', ...client() };
    for (const [origin, status] of [
      ['https://evil.example', 400],
      [auth.baseUrl, 200],
    ] as const) {
      const { verifier, challenge } = pkce();
      const code = (await signIn(new Browser(), challenge)).searchParams.get('code')!;
      const answer = await post(`${auth.baseUrl}/oauth2/token`, { ...form, code, code_verifier: verifier }, { origin });
      assert.equal(answer.status, status, `${origin}: ${JSON.stringify(answer.body)}`);
    }
  });
});

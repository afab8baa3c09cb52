import assert from 'node:assert/strict';
import { exportJWK, generateKeyPair } from 'jose';
import { call } from '../../../contracts/call.ts';
import type { ExternalClientMeta } from '../../../lib/schema/snapshot.ts';
import { authorize, authorizeUrl, Browser, claims, pkce, post, type Seen, type TokenAnswer } from './browser.ts';
import { type AuthHarness, DEMO, externalClient, SAM, startAuth } from './harness.ts';

const HOME = 'https://portal.example/cb';
const EVIL = 'https://evil.example/cb';

describe('a client whose declaration changes after consent', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());
  beforeEach(() => declare({}));

  async function declare(changes: Partial<ExternalClientMeta>): Promise<void> {
    auth.clients['Portal'] = externalClient({
      apiName: 'Portal',
      redirectUris: [HOME],
      scopes: ['data:read', 'offline_access'],
      ...changes,
    });
    await auth.bump();
  }
  const ask = (more: Record<string, string> = {}, challenge = pkce().challenge): URL =>
    authorizeUrl(auth.baseUrl, challenge, { client_id: 'demo-Portal', redirect_uri: HOME, ...more });
  /** Without a page: the redirect to the client. */
  const silent = async (browser: Browser, redirect_uri = HOME): Promise<URLSearchParams> => {
    const { location } = await browser.visit(ask({ redirect_uri, prompt: 'none' }));
    assert.equal(location?.origin, new URL(redirect_uri).origin);
    return location.searchParams;
  };
  async function consented(): Promise<{ browser: Browser; tokens: TokenAnswer }> {
    const browser = new Browser();
    const { verifier, challenge } = pkce();
    const back = await authorize(browser, ask({}, challenge));
    const { status, body } = await post(`${auth.baseUrl}/oauth2/token`, {
      grant_type: 'authorization_code',
      client_id: 'demo-Portal',
      redirect_uri: HOME,
      code: back.searchParams.get('code') ?? '',
      code_verifier: verifier,
    });
    assert.equal(status, 200, JSON.stringify(body));
    return { browser, tokens: body };
  }
  const renew = (refresh_token: string) =>
    post(`${auth.baseUrl}/oauth2/token`, { grant_type: 'refresh_token', client_id: 'demo-Portal', refresh_token });
  const state = async ({ access_token }: TokenAnswer) => {
    const grant = { tenantId: DEMO, grantId: claims(access_token).grant_id, clientId: 'demo-Portal', userId: SAM };
    const [found] = await call(auth.broker, 'auth.grants.check', { grants: [grant] });
    assert.ok(found);
    return found;
  };

  const grantsOfPortal = async (): Promise<number> =>
    (await auth.database.query("SELECT FROM auth.grants WHERE client_id = 'demo-Portal'")).rowCount;

  it('needs no further consent while it stays the same', async () => {
    const { browser } = await consented();
    assert.ok((await silent(browser)).get('code'));
    await declare({ name: 'A new name', accessTokenSeconds: 300 });
    assert.ok((await silent(browser)).get('code'));
  });

  it('gets no code for a redirect address added later, before consent to it', async () => {
    const { browser, tokens } = await consented();
    await declare({ redirectUris: [HOME, EVIL] });
    for (const address of [EVIL, HOME]) {
      const answer = await silent(browser, address);
      assert.deepEqual([answer.get('code'), answer.get('error')], [null, 'consent_required']);
    }
    const page = await browser.visit(ask({ redirect_uri: EVIL }));
    assert.match(page.html, /you return to <b>evil\.example<\/b>/);
    assert.equal((await renew(tokens.refresh_token)).status, 200, 'the grant itself goes on');
    await authorize(browser, ask());
    assert.ok((await silent(browser)).get('code'), 'asked once');
  });

  const others: Record<string, Partial<ExternalClientMeta>> = {
    'a browser origin': { origins: ['https://evil.example'] },
    'an integration user': { integrationUser: 'ada@demo.example' },
    'another way to get tokens': { grantTypes: ['authorization_code', 'refresh_token', 'device_code'] },
  };
  for (const [what, changes] of Object.entries(others))
    it(`needs consent again after a change of ${what}`, async () => {
      const { browser, tokens } = await consented();
      await declare(changes);
      assert.equal((await silent(browser)).get('error'), 'consent_required');
      assert.equal((await renew(tokens.refresh_token)).status, 200);
    });

  it('gets no code by a consent page opened before the change', async () => {
    const browser = new Browser();
    let page: Seen = await browser.visit(ask());
    page = await browser.submit(page, { username: 'sam@demo.example', password: 'demo-password' });
    assert.match(page.html, /Allow Portal\?/);
    await declare({ redirectUris: [HOME, EVIL] });
    const answer = await browser.submit(page);
    assert.deepEqual([answer.status, answer.location], [400, null]);
    assert.equal((await silent(browser, EVIL)).get('error'), 'consent_required');
  });

  it('loses its grants when it is deleted', async () => {
    const { tokens } = await consented();
    assert.equal((await state(tokens)).active, true);
    delete auth.clients['Portal'];
    await auth.bump();
    assert.equal((await state(tokens)).active, false);
    assert.equal((await renew(tokens.refresh_token)).status, 401);
  });

  it('loses its grants also when it is declared again unchanged', async () => {
    const { browser, tokens } = await consented();
    delete auth.clients['Portal'];
    await auth.bump();
    while ((await grantsOfPortal()) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    await declare({});
    assert.equal((await state(tokens)).active, false);
    assert.equal((await renew(tokens.refresh_token)).body.error, 'invalid_grant');
    assert.equal((await silent(browser)).get('error'), 'consent_required');
  });

  it('loses its grants when it changes its authentication, or becomes an agent', async () => {
    const { publicKey } = await generateKeyPair('ES256');
    const jwks = { keys: [{ ...(await exportJWK(publicKey)) }] };
    for (const changes of [{ confidential: true }, { confidential: true, jwks }, { agent: true }]) {
      await declare({});
      const { browser, tokens } = await consented();
      assert.equal((await state(tokens)).active, true);
      await declare(changes);
      assert.equal((await state(tokens)).active, false, JSON.stringify(changes));
      assert.equal((await silent(browser)).get('error'), 'consent_required');
      if (changes.agent) assert.equal((await renew(tokens.refresh_token)).body.error, 'invalid_grant');
    }
  });

  it('keeps step-up for users when it is an agent', async () => {
    auth.secondFactor.set(DEMO, 'administrators');
    await declare({ agent: true });
    const { tokens } = await consented();
    const { active, agent, stepUp } = await state(tokens);
    assert.deepEqual({ active, agent, stepUp }, { active: true, agent: true, stepUp: true });
  });
});

/** The consent page: its content, and the actions that it offers. */
import assert from 'node:assert/strict';
import { SCOPES } from '../../../lib/operation.ts';
import { authorizeUrl, Browser, claims, pkce, post, type Seen } from './browser.ts';
import { ADA, type AuthHarness, externalClient, PASSWORD, startAuth } from './harness.ts';

const HOME = 'https://portal.example/callback';
const SAM_SIGNS_IN = { username: 'sam@demo.example', password: PASSWORD };
const ADA_SIGNS_IN = { username: 'ada@demo.example', password: PASSWORD };

describe('the consent page', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
    const scopes = ['openid', 'profile', 'email', ...Object.keys(SCOPES)];
    auth.clients['Portal'] = externalClient({ apiName: 'Portal', name: 'Portal', redirectUris: [HOME], scopes });
    auth.clients['Robot'] = externalClient({
      apiName: 'Robot',
      name: 'Robot',
      redirectUris: [HOME],
      scopes,
      agent: true,
    });
    await auth.bump();
  });
  after(() => auth.stop());

  const ask = (scope: string, more: Record<string, string> = {}, challenge = pkce().challenge): URL =>
    authorizeUrl(auth.baseUrl, challenge, { client_id: 'demo-Portal', redirect_uri: HOME, scope, ...more });
  async function shown(scope: string, more: Record<string, string> = {}): Promise<Seen> {
    const browser = new Browser();
    return browser.submit(await browser.visit(ask(scope, more)), SAM_SIGNS_IN);
  }
  const scopesOn = ({ html }: Seen): string[] =>
    [...html.matchAll(/<li[^>]*>[^<]*<code>([^<]*)/g)].map(([, scope]) => scope ?? '');

  it('names the application, the user and the company, and explains how to revoke the access', async () => {
    const page = await shown('data:read');
    assert.match(page.html, /<h1>Allow Portal\?<\/h1>/);
    assert.match(page.html, /You are <strong>sam@demo\.example<\/strong> in <strong>demo<\/strong>\./);
    assert.match(page.html, /1 permission:/);
    assert.match(page.html, /Afterwards you return to <b>portal\.example<\/b>/);
    assert.match(page.html, /take this back at any time on the page <a href="\/account"/);
    assert.doesNotMatch(page.html, /AI agent/);
    assert.match((await shown('data:read', { client_id: 'demo-Robot' })).html, /It is an AI agent/);
  });

  it('shows every scope by area with counts, the far-reaching ones first and marked', async () => {
    const page = await shown(['openid', 'profile', 'email', ...Object.keys(SCOPES)].join(' '));
    assert.equal(scopesOn(page).length, Object.keys(SCOPES).length + 3);
    assert.equal(
      /<p class="sum">(.*?):<\/p>/.exec(page.html)?.[1],
      '28 permissions, <strong>12 of them far-reaching</strong>',
    );
    const marked = [...page.html.matchAll(/<code>([^<]*)<\/code> <span class="mark">Far-reaching/g)].map(
      ([, one]) => one,
    );
    assert.deepEqual(marked.toSorted(), [
      'actions:execute',
      'agent:approve',
      'analytics:run',
      'bulk:run',
      'calendar:write',
      'data:delete',
      'data:write',
      'events:manage',
      'files:write',
      'me:write',
      'metadata:deploy',
      'users:manage',
    ]);
    const areas = [...page.html.matchAll(/id="area-(\w+)">[^<]*<span class="count">(\d+)</g)].map(([, area, n]) => [
      area,
      Number(n),
    ]);
    assert.deepEqual(areas, [
      ['records', 8],
      ['dashboards', 2],
      ['agents', 2],
      ['configuration', 2],
      ['users', 1],
      ['events', 2],
      ['calendar', 2],
      ['you', 7],
      ['audit', 1],
      ['away', 1],
    ]);
    for (const list of page.html.match(/<ul class="scopes"[\s\S]*?<\/ul>/g) ?? []) {
      const far = [...list.matchAll(/<li( class="far")?>/g)].map(([, mark]) => mark !== undefined);
      assert.deepEqual(
        far,
        far.toSorted((a, b) => Number(b) - Number(a)),
        list,
      );
    }
  });

  it("shows when an application requests only the user's identity", async () => {
    const page = await shown('openid email');
    assert.match(page.html, /gets no access to the data of demo/);
    assert.doesNotMatch(page.html, /act for you|change nothing/);
    assert.deepEqual(scopesOn(page), ['openid', 'email']);
  });

  for (const pushed of [false, true])
    it(`allows switching to another user${pushed ? ', also in a pushed request' : ''}`, async () => {
      const { verifier, challenge } = pkce();
      let url = ask('data:read', { login_hint: 'sam@demo.example' }, challenge);
      if (pushed) {
        const { body } = await post(`${auth.baseUrl}/oauth2/par`, Object.fromEntries(url.searchParams));
        url = new URL(
          `/oauth2/authorize?${new URLSearchParams({ client_id: 'demo-Portal', request_uri: body.request_uri })}`,
          auth.baseUrl,
        );
      }
      const browser = new Browser();
      const sams = await browser.submit(await browser.visit(url), SAM_SIGNS_IN);
      const signIn = await browser.submit(sams, { decision: 'switch' });
      assert.match(signIn.html, /<h1>Sign in<\/h1>/);
      assert.doesNotMatch(signIn.html, /value="sam@demo\.example"/);
      let page = await browser.submit(signIn, ADA_SIGNS_IN);
      // The provider ends the first user's session with a form of its own.
      for (let i = 0; i < 3 && !/Allow Portal/.test(page.html) && !page.location; i++)
        page = await browser.submit(page);
      assert.match(page.html, /You are <strong>ada@demo\.example<\/strong>/);
      assert.equal(
        (await browser.submit(sams, { decision: 'allow' })).status,
        400,
        'the first page is of no use any more',
      );
      const back = await browser.submit(page);
      assert.equal(back.location?.searchParams.get('state'), 'the-state');
      const { body } = await post(`${auth.baseUrl}/oauth2/token`, {
        grant_type: 'authorization_code',
        client_id: 'demo-Portal',
        redirect_uri: HOME,
        code: back.location!.searchParams.get('code')!,
        code_verifier: verifier,
      });
      assert.equal(claims(body.access_token).sub, ADA);
    });

  it('ignores a form of another origin', async () => {
    const browser = new Browser();
    const page = await browser.submit(await browser.visit(ask('data:read')), SAM_SIGNS_IN);
    for (const decision of ['switch', 'allow']) {
      const forged = await browser.submit(page, { decision, csrf: 'guessed' });
      assert.equal(forged.status, 400);
      const foreign = await browser.submit(page, { decision }, { 'sec-fetch-site': 'cross-site' });
      assert.equal(foreign.status, 403);
    }
  });

  it('asks a user at a device to start again instead of switching', async () => {
    const device = await post(`${auth.baseUrl}/oauth2/device_authorization`, {
      client_id: 'erp-cli',
      scope: 'data:read',
    });
    const browser = new Browser();
    let page = await browser.visit(device.body.verification_uri_complete);
    page = await browser.submit(await browser.submit(page));
    page = await browser.submit(page, SAM_SIGNS_IN);
    assert.match(page.html, /Choose “Do not allow”, and <a href="\/oauth2\/logout">sign out/);
    assert.doesNotMatch(page.html, /value="switch"/);
    assert.match((await browser.submit(page, { decision: 'switch' })).html, /Allow ERP command line/);
  });
});

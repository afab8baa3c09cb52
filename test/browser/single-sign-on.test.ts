/** Sign-in at the provider of a company in a real browser, whose rules for forms, cookies and redirects count. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import type { Browser } from 'playwright-core';
import { call } from '../../contracts/call.ts';
import { type AuthHarness, DEMO, startAuth } from '../api/auth/harness.ts';
import { startChromium, visit } from '../support/chromium.ts';
import { CLIENT_ID, CLIENT_SECRET, IdentityProvider } from '../support/identity-provider.ts';

describe('single sign-on in Chromium', () => {
  const idp = new IdentityProvider();
  let auth: AuthHarness;
  let chromium: Browser;

  before(async function () {
    this.timeout(60_000);
    await idp.listen();
    auth = await startAuth({ env: { SSO_PRIVATE_HOSTS: idp.host } });
    await idp.serve(`${auth.baseUrl}/oauth2/sso/callback/demo/Corp`);
    auth.identityProviders.set(DEMO, [
      {
        apiName: 'Corp',
        label: 'Corp login',
        active: true,
        issuer: idp.issuer,
        clientId: CLIENT_ID,
        domains: ['demo.example'],
        usernameClaim: 'email',
        createUsers: null,
        passwordSignIn: false,
      },
    ]);
    await auth.bump();
    const secret = { tenantId: DEMO, apiName: 'Corp', secret: CLIENT_SECRET };
    await call(auth.broker, 'auth.identityProviders.setSecret', secret);
    idp.people.set('sam', { sub: 'sam', email: 'sam@demo.example', email_verified: true });
    chromium = await startChromium();
  });
  after(async () => {
    await chromium?.close();
    await auth?.stop();
    await idp.close();
  });

  it('redirects there, and returns signed in', async function () {
    this.timeout(60_000);
    const { page, complaints } = await visit(chromium, auth.baseUrl);
    await page.goto(`${auth.baseUrl}/account`);
    await page.fill('#username', 'sam@demo.example');
    await page.click('button[value=signIn]');
    await page.waitForURL((url) => url.origin === idp.issuer);
    await page.fill('input[name=login]', 'sam');
    await page.fill('input[name=password]', 'any');
    await page.click('button[type=submit]');
    await page.waitForURL(`${auth.baseUrl}/account*`);
    assert.match((await page.textContent('main')) ?? '', /sam@demo\.example/);
    assert.deepEqual(
      complaints.filter((text) => text.includes('Content Security Policy')),
      [],
    );
  });
});

import assert from 'node:assert/strict';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { call } from '../../../contracts/call.ts';
import { Keys } from '../../../services/auth/keys.ts';
import { AuthStore } from '../../../services/auth/store/store.ts';
import { Vault } from '../../../services/auth/vault.ts';
import { authorizeUrl, Browser, claims, exchange, pkce, tokens } from './browser.ts';
import { type AuthHarness, DEMO, SAM, startAuth } from './harness.ts';

const vault = (secret: string | null, previousSecret: string | null = null): Vault =>
  new Vault({ secret, previousSecret });

const kidOf = (token: string): string => JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()).kid;

describe('signing keys', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());

  const published = async () => (await call(auth.broker, 'auth.keys.list', {})).keys;

  it('are published without their private part, identically over HTTP and the bus', async () => {
    const overHttp = (await (await fetch(`${auth.baseUrl}/oauth2/jwks`)).json()) as { keys: Record<string, unknown>[] };
    for (const key of [...overHttp.keys, ...(await published())]) {
      for (const secret of ['d', 'p', 'q', 'k']) assert.ok(!(secret in key));
      assert.equal(key['alg'], 'ES256');
    }
    assert.deepEqual(
      overHttp.keys.map((key) => key['kid']),
      (await published()).map((key) => key['kid']),
    );
  });

  it('rotate: new tokens are signed with the new key, old ones are still verified', async () => {
    const before = (await tokens(auth.baseUrl)).access_token;
    await call(auth.broker, 'auth.keys.rotate', {});
    const after = (await tokens(auth.baseUrl)).access_token;
    assert.notEqual(kidOf(before), kidOf(after));
    const keys = (await published()) as never;
    for (const token of [before, after])
      await jwtVerify(token, createLocalJWKSet({ keys }), { issuer: auth.baseUrl, typ: 'at+jwt' });
  });

  it('stay published for at least two generations, until the last token they signed has expired', async () => {
    for (let i = 0; i < 3; i++) await call(auth.broker, 'auth.keys.rotate', {});
    assert.ok((await published()).length >= 4, 'retired a moment ago');
    await auth.database.query("UPDATE auth.keys SET retired_at = retired_at - interval '3 hours'");
    await call(auth.broker, 'auth.keys.rotate', {});
    assert.equal((await published()).length, 2);
  });

  it('do not interrupt a sign-in', async () => {
    const browser = new Browser();
    const { verifier, challenge } = pkce();
    const page = await browser.visit(authorizeUrl(auth.baseUrl, challenge));
    await call(auth.broker, 'auth.keys.rotate', {});
    let next = await browser.submit(page, { username: 'sam@demo.example', password: 'demo-password' });
    next = await browser.submit(next);
    const answer = await exchange(auth.baseUrl, next.location!.searchParams.get('code')!, verifier);
    assert.equal(answer.status, 200);
  });

  it('are created once when two nodes start or rotate at the same moment', async () => {
    await auth.database.query("UPDATE auth.keys SET created_at = created_at - interval '100 days'");
    const nodes = [1, 2, 3].map(() => new Keys(new AuthStore(auth.database), vault(null)));
    const made = await Promise.all(nodes.map((keys) => keys.ensure(90 * 86_400)));
    assert.equal(made.filter(Boolean).length, 1);
  });

  it('are sealed in the database when the deployment has a secret, and open with it alone', async () => {
    const sealed = await startAuth({ env: { PLATFORM_SECRET: 'a secret of the deployment, long enough' } });
    try {
      const { rows } = await sealed.database.query<{ plain: unknown }>('SELECT plain FROM auth.keys');
      assert.ok(rows.length >= 2);
      for (const row of rows) assert.equal(row.plain, null);
      await tokens(sealed.baseUrl);
      const store = new AuthStore(sealed.database);
      await assert.rejects(
        new Keys(store, vault('another secret of the deployment, as long')).load(),
        /another PLATFORM_SECRET/,
      );
      await assert.rejects(new Keys(store, vault(null)).load(), /PLATFORM_SECRET must be set/);
    } finally {
      await sealed.stop();
    }
  });
});

describe('several nodes of auth', () => {
  let one: AuthHarness;
  let two: AuthHarness;
  const address = 'https://erp.example';
  before(async () => {
    one = await startAuth({ env: { BASE_URL: address } });
    two = await startAuth({ env: { BASE_URL: address }, on: one });
  });
  after(async () => {
    await two.stop();
    await one.stop();
  });

  it('share a sign-in: each step may reach another node, or one that was just started', async () => {
    const nodes = [one, two];
    let turn = 0;
    const ask = async (method: string, url: string, cookies: string, body: string | null) =>
      call(nodes[turn++ % 2]!.broker, 'auth.http.handle', {
        method,
        url,
        headers: {
          host: 'erp.example',
          cookie: cookies,
          accept: 'text/html',
          ...(body === null ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        },
        body: body === null ? null : Buffer.from(body),
        remoteAddress: '192.0.2.1',
      });
    const { verifier, challenge } = pkce();
    const start = authorizeUrl(address, challenge);
    const cookies = new Map<string, string>();
    let url = start.pathname + start.search;
    let body: string | null = null;
    let code: string | null = null;
    for (let step = 0; step < 12 && code === null; step++) {
      const jar = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const reply = await ask(body === null ? 'GET' : 'POST', url, jar, body);
      for (const cookie of [reply.headers['set-cookie'] ?? []].flat()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
        cookies.set(name!, value!);
      }
      const location = [reply.headers['location']].flat()[0];
      if (location?.startsWith('http://127.0.0.1')) code = new URL(location).searchParams.get('code');
      else if (location) {
        url = new URL(location, address).pathname + new URL(location, address).search;
        body = null;
      } else {
        const html = reply.body.toString();
        const csrf = /name="csrf" value="([^"]*)"/.exec(html)?.[1];
        assert.ok(csrf, html.slice(-800));
        url = /action="([^"]*)"/.exec(html)![1]!;
        const form = new URLSearchParams({ csrf, decision: /value="allow"/.test(html) ? 'allow' : 'signIn' });
        if (/name="password"/.test(html)) {
          form.set('username', 'sam@demo.example');
          form.set('password', 'demo-password');
        }
        body = form.toString();
      }
    }
    assert.ok(code);
    const token = async (node: AuthHarness, form: Record<string, string>) => {
      const reply = await call(node.broker, 'auth.http.handle', {
        method: 'POST',
        url: '/oauth2/token',
        headers: { host: 'erp.example', 'content-type': 'application/x-www-form-urlencoded' },
        body: Buffer.from(new URLSearchParams({ client_id: 'erp-cli', ...form }).toString()),
        remoteAddress: '192.0.2.1',
      });
      return JSON.parse(reply.body.toString());
    };
    const answer = await token(one, {
      grant_type: 'authorization_code',
      redirect_uri: 'http://127.0.0.1:49876/callback',
      code,
      code_verifier: verifier,
    });
    assert.equal(claims(answer.access_token).iss, address);
    const renewed = await token(two, { grant_type: 'refresh_token', refresh_token: answer.refresh_token });
    assert.ok(renewed.access_token, JSON.stringify(renewed));
    const [state] = await call(two.broker, 'auth.grants.check', {
      grants: [{ tenantId: DEMO, grantId: claims(answer.access_token).grant_id, clientId: 'erp-cli', userId: SAM }],
    });
    assert.equal(state!.active, true);
  });

  it('notice a rotation by another node, even when its event was lost', async () => {
    await call(two.broker, 'auth.keys.list', {});
    await call(one.broker, 'auth.keys.rotate', {});
    // The brokers of this test cannot reach each other, so the event is certainly lost.
    const newest = (await call(one.broker, 'auth.keys.list', {})).keys[0]!['kid'];
    const { now } = performance;
    performance.now = () => now.call(performance) + 31_000;
    try {
      assert.equal((await call(two.broker, 'auth.keys.list', {})).keys[0]!['kid'], newest);
    } finally {
      performance.now = now;
    }
  });
});

/** Clients that describe themselves by a document at their id, for tenants that declare them. */
import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, beforeEach, describe, it } from 'mocha';
import { call } from '../../../contracts/call.ts';
import type { ExternalClientMeta } from '../../../lib/schema/snapshot.ts';
import { type GuardedFetch, guardedFetch } from '../../../mixins/outbound.ts';
import { authorize, authorizeUrl, Browser, claims, pkce, post, type TokenAnswer } from './browser.ts';
import { ACME, type AuthHarness, DEMO, EVE, externalClient, SAM, startAuth } from './harness.ts';

const CLIENT = 'https://assistant.example/oauth/client.json';
const UNKNOWN = 'https://elsewhere.example/oauth/client.json';
const CALLBACK = 'http://127.0.0.1/callback';

describe('a client with a metadata document', () => {
  let auth: AuthHarness;
  /** Stands in for the internet: documents by address, and the addresses fetched. */
  const documents = new Map<string, () => Response>();
  const fetched: string[] = [];
  let asked: RequestInit | undefined;
  let node = 0;
  const published: GuardedFetch = async (address, options) => {
    fetched.push(address);
    asked = options as RequestInit;
    return documents.get(address)?.() ?? new Response('', { status: 404 });
  };
  let internet = published;

  before(async () => {
    auth = await startAuth({ outbound: (...request) => internet(...request) });
  });
  after(async () => {
    await auth.stop();
  });
  beforeEach(async () => {
    publish({});
    fetched.length = 0;
    await declare({});
  });
  afterEach(() => documents.clear());

  function publish(more: object, address = CLIENT): void {
    const document = {
      client_id: address,
      client_name: 'Your bank',
      redirect_uris: [CALLBACK, 'https://assistant.example/callback'],
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      token_endpoint_auth_method: 'none',
      ...more,
    };
    documents.set(address, () => Response.json(document));
  }
  async function declare(changes: Partial<ExternalClientMeta>, address = CLIENT): Promise<void> {
    auth.clients['Assistant'] = externalClient({
      apiName: 'Assistant',
      name: 'The assistant',
      clientId: address,
      metadataDocument: address,
      scopes: ['offline_access', 'setup:read'],
      ...changes,
    });
    await auth.bump();
  }
  /** The provider caches documents for a minute: each test of one has an address of its own. */
  const anotherAddress = (): string => `https://assistant.example/${++node}.json`;

  const ask = (more: Record<string, string> = {}, challenge = pkce().challenge): URL =>
    authorizeUrl(auth.baseUrl, challenge, {
      client_id: CLIENT,
      redirect_uri: CALLBACK,
      scope: 'setup:read metadata:deploy offline_access',
      resource: `${auth.baseUrl}/mcp`,
      ...more,
    });
  const exchange = (form: Record<string, string>) =>
    post(`${auth.baseUrl}/oauth2/token`, { client_id: CLIENT, ...form });
  async function consented(browser = new Browser()): Promise<TokenAnswer> {
    const { verifier, challenge } = pkce();
    const redirect_uri = 'http://127.0.0.1:50123/callback';
    const back = await authorize(browser, ask({ redirect_uri }, challenge));
    const code = back.searchParams.get('code');
    assert.ok(code, back.href);
    const { status, body } = await exchange({
      grant_type: 'authorization_code',
      redirect_uri,
      code,
      code_verifier: verifier,
    });
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  }
  const state = async ({ access_token }: TokenAnswer) => {
    const grant = { tenantId: DEMO, grantId: claims(access_token).grant_id, clientId: CLIENT, userId: SAM };
    const [found] = await call(auth.broker, 'auth.grants.check', { grants: [grant] });
    assert.ok(found);
    return found;
  };
  const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
    const end = Date.now() + 5_000;
    while (!(await isSo()) && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  const refused = async (url: URL): Promise<string> => {
    const { location, html } = await new Browser().visit(url);
    assert.equal(location, null, String(location));
    return html;
  };

  it('is announced in the metadata of the server', async () => {
    const metadata = await (await fetch(`${auth.baseUrl}/.well-known/oauth-authorization-server`)).json();
    assert.equal((metadata as TokenAnswer).client_id_metadata_document_supported, true);
    assert.equal((metadata as TokenAnswer).registration_endpoint, undefined);
  });

  it('gets tokens with the scopes that the tenant allows it, and no others', async () => {
    const tokens = await consented();
    assert.deepEqual(tokens.scope.split(' ').sort(), ['offline_access', 'setup:read']);
    const { client_id, aud, tenant_id } = claims(tokens.access_token);
    assert.deepEqual([client_id, aud, tenant_id], [CLIENT, `${auth.baseUrl}/mcp`, DEMO]);
    const { active, clientActive, clientName } = await state(tokens);
    assert.deepEqual([active, clientActive, clientName], [true, true, 'The assistant']);
    const renewed = await exchange({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token });
    assert.equal(renewed.status, 200, JSON.stringify(renewed.body));
    assert.deepEqual(fetched, [CLIENT]);
    assert.equal(asked?.redirect, 'manual');
    assert.ok(asked?.signal);
  });

  it('shows its publishing host, and its name only as the tenant configures it', async () => {
    const browser = new Browser();
    let page = await browser.visit(ask());
    assert.match(page.html, /assistant\.example/);
    page = await browser.submit(page, { username: 'sam@demo.example', password: 'demo-password' });
    assert.match(page.html, /Allow The assistant\?/);
    assert.match(page.html, /published by <b>assistant\.example<\/b>/);
    assert.doesNotMatch(page.html, /Your bank|metadata:deploy/);
  });

  it('asks for consent each time: the earlier document is not stored', async () => {
    const browser = new Browser();
    await consented(browser);
    const { location } = await browser.visit(ask({ prompt: 'none' }));
    assert.match(String(location?.searchParams.get('error')), /^(consent|interaction)_required$/);
  });

  it('gets no refresh token unless the tenant allows one', async () => {
    await declare({ grantTypes: ['authorization_code'] });
    const tokens = await consented();
    assert.deepEqual([tokens.scope, tokens.refresh_token], ['setup:read', undefined]);
  });

  it('loses a scope when the tenant removes it, and all of them when it is deactivated', async () => {
    const tokens = await consented();
    await declare({ scopes: ['offline_access'] });
    const renew = (refresh_token: string) => exchange({ grant_type: 'refresh_token', refresh_token });
    const less = await renew(tokens.refresh_token);
    assert.equal(less.body.scope, 'offline_access', JSON.stringify(less.body));
    await declare({ active: false });
    assert.equal((await state(tokens)).clientActive, false);
    assert.equal((await renew(less.body.refresh_token)).body.error, 'invalid_client');
    assert.match(await refused(ask()), /invalid_client/);
  });

  it('ends with its declaration', async () => {
    const tokens = await consented();
    delete auth.clients['Assistant'];
    await auth.bump();
    await until(async () => !(await state(tokens)).active);
    assert.equal((await state(tokens)).active, false);
    await declare({});
    assert.equal((await state(tokens)).active, false, 'not even when it comes back');
  });

  it('serves users of the tenants that declare it', async () => {
    const browser = new Browser();
    const page = await browser.visit(ask());
    const { location } = await browser.submit(page, { username: 'eve@acme.example', password: 'demo-password' });
    assert.equal(location?.searchParams.get('error'), 'access_denied');
    assert.equal(location?.searchParams.get('code'), null);
    await until(() => auth.refusals.length > 0);
    const { tenantId, userId, code, clientId } = auth.refusals[0]!;
    assert.deepEqual([tenantId, userId, code, clientId], [ACME, EVE, 'CLIENT_NOT_ALLOWED', CLIENT]);
  });

  it('is neither fetched nor known unless a tenant declares it', async () => {
    publish({}, UNKNOWN);
    for (const client_id of [UNKNOWN, `${CLIENT}?x=1`, `${CLIENT}x`, `${CLIENT}#x`, 'https://127.0.0.1/client.json'])
      assert.match(await refused(ask({ client_id })), /invalid_client|client is invalid|invalid_request/, client_id);
    const { body } = await exchange({ client_id: UNKNOWN, grant_type: 'authorization_code', code: 'x' });
    assert.equal(body.error, 'invalid_client');
    assert.deepEqual(fetched, []);
  });

  it('returns to addresses of its document only', async () => {
    for (const redirect_uri of ['https://evil.example/callback', 'https://assistant.example/callback/x'])
      assert.match(await refused(ask({ redirect_uri })), /redirect_uri/);
  });

  it('controls nothing else by its document', async () => {
    const address = anotherAddress();
    publish(
      {
        tenantId: DEMO,
        integrationUser: 'ada@demo.example',
        origins: ['https://evil.example'],
        scope: 'data:write',
        accessTokenSeconds: 9_999,
        agent: true,
        jwks_uri: 'https://evil.example/jwks',
      },
      address,
    );
    await declare({ accessTokenSeconds: 120 }, address);
    const { verifier, challenge } = pkce();
    const back = await authorize(new Browser(), ask({ client_id: address, scope: 'setup:read data:write' }, challenge));
    const { body } = await exchange({
      client_id: address,
      grant_type: 'authorization_code',
      redirect_uri: CALLBACK,
      code: back.searchParams.get('code') ?? '',
      code_verifier: verifier,
    });
    assert.deepEqual([body.scope, body.expires_in], ['setup:read', 120], JSON.stringify(body));
    const own = await exchange({ client_id: address, grant_type: 'client_credentials', scope: 'setup:read' });
    assert.equal(own.status, 400);
    assert.deepEqual(fetched, [address]);
  });

  it('is refused when its document is invalid, and not fetched again at once', async () => {
    const bad: (() => Response)[] = [
      () => new Response('', { status: 404 }),
      () => new Response('', { status: 302, headers: { location: UNKNOWN } }),
      () => new Response('nonsense'),
      () => Response.json([]),
      () => Response.json({ client_id: UNKNOWN, redirect_uris: [CALLBACK] }),
      () => Response.json({ client_id: 'itself' }),
      ...[['javascript:alert(1)'], ['http://evil.example/'], [CALLBACK, 'http://evil.example/'], ['/callback']].map(
        (redirect_uris) => () => Response.json({ client_id: 'itself', redirect_uris }),
      ),
      () => Response.json({ client_id: 'itself', redirect_uris: [CALLBACK, 'https://localhost/callback'] }),
      () => Response.json({ client_id: 'itself', redirect_uris: [CALLBACK, 'https://app.example/callback#'] }),
      () =>
        Response.json({
          client_id: 'itself',
          redirect_uris: [CALLBACK],
          token_endpoint_auth_method: 'client_secret_basic',
        }),
      () => Response.json({ client_id: 'itself', redirect_uris: [CALLBACK], padding: 'x'.repeat(20_000) }),
    ];
    for (const [i, answer] of bad.entries()) {
      const address = anotherAddress();
      await declare({}, address);
      documents.set(address, () => {
        const response = answer();
        return response.headers.get('content-type') === 'application/json' ? itself(response, address) : response;
      });
      fetched.length = 0;
      for (let round = 0; round < 2; round++)
        assert.match(await refused(ask({ client_id: address })), /invalid_client/, `${i}`);
      assert.equal(fetched.length, 1, `${i}`);
    }
  });

  it('is asked to retry while its document cannot be read, and keeps its tokens', async () => {
    const { refresh_token } = await consented();
    const renew = () => exchange({ grant_type: 'refresh_token', refresh_token });
    const revoke = () => post(`${auth.baseUrl}/oauth2/revoke`, { client_id: CLIENT, token: refresh_token });
    const failures: (() => Response)[] = [
      () => new Response('', { status: 404 }),
      () => new Response('', { status: 500 }),
      () => {
        throw new TypeError('fetch failed');
      },
    ];
    // Documents are cached by generation of keys.
    const forget = () => call(auth.broker, 'auth.keys.rotate', {});
    for (const failure of failures) {
      documents.set(CLIENT, failure);
      await forget();
      for (const send of [renew, revoke, renew]) {
        const { status, headers, body } = await send();
        assert.deepEqual([status, body.error], [503, 'temporarily_unavailable']);
        assert.equal(headers.get('retry-after'), '10');
      }
    }
    publish({ redirect_uris: ['javascript:alert(1)'] });
    await forget();
    assert.equal((await renew()).body.error, 'invalid_client', 'it was read, and is no document of a client');
    publish({});
    await forget();
    const renewed = await renew();
    assert.equal(renewed.status, 200, JSON.stringify(renewed.body));
  });

  it("is not redirected to over plain http, except on the user's machine", async () => {
    const address = anotherAddress();
    const redirect_uri = 'http://evil.example/callback';
    publish({ redirect_uris: [redirect_uri] }, address);
    await declare({}, address);
    assert.match(await refused(ask({ client_id: address, redirect_uri })), /invalid_client/);
  });

  it('is not fetched from internal network addresses', async () => {
    let requests = 0;
    const server = createServer(await selfSigned(), (_request, response) => {
      requests++;
      response.end('{}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `https://localhost:${(server.address() as AddressInfo).port}/client.json`;
    // The certificate is valid here, so only the address can cause a refusal.
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    internet = guardedFetch([]);
    try {
      assert.equal((await fetch(address)).status, 200);
      await declare({}, address);
      assert.match(await refused(ask({ client_id: address })), /invalid_client/);
      assert.equal(requests, 1, 'none but the one to see that it would answer');
    } finally {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
      internet = published;
      server.closeAllConnections();
      server.close();
    }
  });

  async function selfSigned(): Promise<{ key: string; cert: string }> {
    const { X509CertificateGenerator } = await import('@peculiar/x509');
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
    const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
    const cert = await X509CertificateGenerator.createSelfSigned({
      name: 'CN=localhost',
      keys,
      signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    });
    const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
    return { key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----`, cert: cert.toString('pem') };
  }

  /** A body that names its own address. */
  const itself = (response: Response, address: string): Response => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    void response.text().then(async (text) => {
      const writer = writable.getWriter();
      await writer.write(Buffer.from(text.replace('itself', address))).catch(() => {});
      await writer.close().catch(() => {});
    });
    return new Response(readable, { headers: { 'content-type': 'application/json' } });
  };
});

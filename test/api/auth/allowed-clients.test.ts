/** Every configuration allowed for a client works: each kind of client uses each of its grants over HTTP. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import { call } from '../../../contracts/call.ts';
import type { ExternalClientMeta } from '../../../lib/schema/snapshot.ts';
import { EXTERNAL_CLIENT, externalClient } from '../../../services/metadata/kinds/external-client.ts';
import { authorize, authorizeUrl, Browser, claims, pkce, post } from './browser.ts';
import { ADA, type AuthHarness, DEMO, PASSWORD, SAM, startAuth } from './harness.ts';

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';
const HOME = 'https://portal.example/callback';
const PEOPLE = ['authorization_code', 'refresh_token'];
const SCOPES = ['profile', 'data:read', 'setup:read', 'offline_access'];

interface Key {
  alg: string;
  privateKey: KeyObject;
  jwk: object;
}
function key(alg: string, type: string, options: object = {}): Key {
  const { publicKey, privateKey } = generateKeyPairSync(type as 'ec', options as { namedCurve: string });
  return { alg, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), alg, kid: alg, use: 'sig' } };
}
const KEYS = [
  key('ES256', 'ec', { namedCurve: 'P-256' }),
  key('EdDSA', 'ed25519'),
  key('PS256', 'rsa', { modulusLength: 2_048 }),
  key('RS256', 'rsa', { modulusLength: 2_048 }),
];

interface Case {
  what: string;
  body: Record<string, unknown>;
  /** Its credential. */
  key?: Key;
  /** Redirect addresses, as the client requests them. */
  returnsTo?: string[];
}

const server = { confidential: true, redirectUris: [HOME], integrationUser: 'ada@demo.example' };
const ALL_GRANTS = [...PEOPLE, 'client_credentials', DEVICE_CODE];

const CASES: Case[] = [
  { what: 'a website with a secret', body: { ...server, grantTypes: ALL_GRANTS }, returnsTo: [HOME] },
  ...KEYS.map((one) => ({
    what: `a website with a key for ${one.alg}`,
    body: { ...server, grantTypes: ALL_GRANTS, jwks: { keys: [one.jwk] } },
    key: one,
    returnsTo: [HOME],
  })),
  {
    what: 'a website that is tried out on a loopback address',
    body: { confidential: true, grantTypes: PEOPLE, redirectUris: [HOME, 'http://localhost:3999/callback'] },
    returnsTo: [HOME, 'http://localhost:3999/callback'],
  },
  {
    what: 'a page in the browser',
    body: { grantTypes: ['authorization_code'], redirectUris: [HOME] },
    returnsTo: [HOME],
  },
  {
    what: 'a program that listens on a loopback address',
    body: { grantTypes: PEOPLE, redirectUris: ['http://127.0.0.1/cb', 'http://[::1]/cb', 'http://localhost/cb'] },
    returnsTo: [
      'http://127.0.0.1:49152/cb',
      'http://[::1]:49152/cb',
      'http://localhost:49152/cb',
      'http://127.0.0.1/cb',
    ],
  },
  {
    what: 'an installed application with a private scheme',
    body: { grantTypes: PEOPLE, redirectUris: ['com.example.app:/callback'] },
    returnsTo: ['com.example.app:/callback'],
  },
  {
    what: 'an installed application with a private scheme and claimed https addresses',
    body: { grantTypes: PEOPLE, redirectUris: ['com.example.app:/callback', 'http://127.0.0.1/cb', HOME] },
    returnsTo: ['com.example.app:/callback', 'http://127.0.0.1:49152/cb', HOME],
  },
  { what: 'a public device', body: { grantTypes: [DEVICE_CODE, 'refresh_token'] } },
  { what: 'a device with a secret', body: { grantTypes: [DEVICE_CODE], confidential: true } },
  { what: 'a key alone', body: { grantTypes: [DEVICE_CODE], jwks: { keys: [KEYS[0]!.jwk] } }, key: KEYS[0]! },
  {
    what: 'a job',
    body: { grantTypes: ['client_credentials'], confidential: true, integrationUser: 'ada@demo.example' },
  },
  {
    what: 'an agent with short tokens, for assistants alone',
    body: {
      grantTypes: PEOPLE,
      redirectUris: [HOME],
      agent: true,
      accessTokenSeconds: 60,
      resources: ['mcp'],
      ipRanges: ['127.0.0.0/8', '::1'],
      origins: ['https://portal.example'],
      rateLimits: { connection: 10, concurrency: 2 },
    },
    returnsTo: [HOME],
  },
];

/** The client as compiled from its component, without problems. */
function declared(body: Record<string, unknown>): ExternalClientMeta {
  const component = {
    type: EXTERNAL_CLIENT.type,
    fullName: 'App',
    body: { type: 'ExternalClient', apiName: 'App', name: 'App', scopes: SCOPES, active: true, ...body },
  } as unknown as Parameters<NonNullable<typeof externalClient.check>>[0];
  const problems: string[] = [];
  const problem = (...[code, , pointer, message]: unknown[]): void =>
    void problems.push(`${code} ${pointer} ${message}`);
  externalClient.check!(component, { before: new Map(), ceilings: null, problem, warning: () => {} } as never);
  assert.deepEqual(problems, []);
  const draft = { externalClients: {} as Record<string, ExternalClientMeta>, tenant: { key: 'demo' } };
  externalClient.compile!(component, draft as never, new Map());
  return draft.externalClients['App']!;
}

describe('an allowed ExternalClient', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());

  /** The client's authentication, in the form or in the header. */
  type Proof = () => Promise<{ form: Record<string, string>; headers: Record<string, string> }>;
  async function proofOf(meta: ExternalClientMeta, by: Key | undefined): Promise<Proof> {
    if (by)
      return async () => ({
        headers: {},
        form: {
          client_id: meta.clientId,
          client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          client_assertion: await new SignJWT({ jti: randomUUID() })
            .setProtectedHeader({ alg: by.alg, kid: by.alg })
            .setIssuer(meta.clientId)
            .setSubject(meta.clientId)
            .setAudience(auth.baseUrl)
            .setIssuedAt()
            .setExpirationTime('1m')
            .sign(by.privateKey),
        },
      });
    if (!meta.confidential) return async () => ({ headers: {}, form: { client_id: meta.clientId } });
    const { secret } = await call(auth.broker, 'auth.clients.rotateSecret', { tenantId: DEMO, apiName: 'App' });
    const basic = Buffer.from(`${meta.clientId}:${secret}`).toString('base64');
    return async () => ({ headers: { authorization: `Basic ${basic}` }, form: {} });
  }
  async function send(path: string, proof: Proof, form: Record<string, string>) {
    const { form: more, headers } = await proof();
    const { status, body } = await post(`${auth.baseUrl}${path}`, { ...form, ...more }, headers);
    assert.ok(status < 300, `${path} ${form['grant_type'] ?? ''}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** Checks what every access token of a user can do, and that it ends. */
  async function use(meta: ExternalClientMeta, proof: Proof, tokens: Record<string, string>): Promise<void> {
    const { access_token: token = '', refresh_token, id_token } = tokens;
    assert.equal(claims(token).sub, SAM);
    if (meta.accessTokenSeconds !== null) assert.equal(tokens['expires_in'], meta.accessTokenSeconds);
    assert.ok(id_token, 'an ID token');
    const userinfo = (): Promise<Response> =>
      fetch(`${auth.baseUrl}/oauth2/userinfo`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal((await userinfo()).status, 200);
    assert.equal((await send('/oauth2/introspect', proof, { token })).active, true);
    assert.equal(refresh_token !== undefined, meta.grantTypes.includes('refresh_token'));
    if (refresh_token) {
      const renewed = await send('/oauth2/token', proof, { grant_type: 'refresh_token', refresh_token });
      assert.equal(claims(renewed.access_token).sub, SAM);
    }
    await send('/oauth2/revoke', proof, { token });
    assert.equal((await userinfo()).status, 401);
  }

  async function byCode(meta: ExternalClientMeta, proof: Proof, redirect_uri: string, pushed: boolean): Promise<void> {
    const { verifier, challenge } = pkce();
    let url = authorizeUrl(auth.baseUrl, challenge, {
      client_id: meta.clientId,
      redirect_uri,
      scope: 'openid profile setup:read offline_access',
    });
    if (pushed) {
      const { request_uri } = await send('/oauth2/par', proof, Object.fromEntries(url.searchParams));
      url = new URL(
        `/oauth2/authorize?${new URLSearchParams({ client_id: meta.clientId, request_uri })}`,
        auth.baseUrl,
      );
    }
    const back = await authorize(new Browser(), url);
    assert.ok(back.href.startsWith(redirect_uri), `${back.href} leads back to ${redirect_uri}`);
    const code = back.searchParams.get('code') ?? assert.fail(back.href);
    const form = { grant_type: 'authorization_code', redirect_uri, code, code_verifier: verifier };
    await use(meta, proof, await send('/oauth2/token', proof, form));
  }

  async function byDevice(meta: ExternalClientMeta, proof: Proof): Promise<void> {
    const scope = 'openid profile setup:read offline_access';
    const device = await send('/oauth2/device_authorization', proof, { scope });
    const browser = new Browser();
    const confirmed = await browser.submit(await browser.submit(await browser.visit(device.verification_uri_complete)));
    const consent = await browser.submit(confirmed, { username: 'sam@demo.example', password: PASSWORD });
    assert.match((await browser.submit(consent)).html, /Your device is connected/);
    const form = { grant_type: DEVICE_CODE, device_code: device.device_code };
    await use(meta, proof, await send('/oauth2/token', proof, form));
  }

  for (const { what, body, key: by, returnsTo = [] } of CASES)
    it(`works: ${what}`, async () => {
      const meta = declared(body);
      auth.clients['App'] = meta;
      await auth.bump();
      const proof = await proofOf(meta, by);
      for (const address of returnsTo) await byCode(meta, proof, address, false);
      if (returnsTo.length > 0) await byCode(meta, proof, returnsTo[0]!, true);
      if (meta.grantTypes.includes(DEVICE_CODE)) await byDevice(meta, proof);
      if (meta.grantTypes.includes('client_credentials')) {
        const form = { grant_type: 'client_credentials', scope: 'data:read' };
        const { access_token } = await send('/oauth2/token', proof, form);
        assert.equal(claims(access_token).sub, ADA);
        const { form: more, headers } = await proof();
        const withOpenid = { ...form, scope: 'openid data:read', ...more };
        const refused = await post(`${auth.baseUrl}/oauth2/token`, withOpenid, headers);
        assert.equal(refused.body.error, 'invalid_scope', 'nobody signs in');
      }
      assert.ok(returnsTo.length > 0 || !meta.grantTypes.includes('authorization_code'), 'every grant was walked');
    });

  it('finds in discovery exactly the grants that configuration allows', async () => {
    const offered = (await (await fetch(`${auth.baseUrl}/.well-known/openid-configuration`)).json()) as {
      grant_types_supported: string[];
    };
    assert.deepEqual(offered.grant_types_supported.toSorted(), ALL_GRANTS.toSorted());
  });
});

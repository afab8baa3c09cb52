/** A client may be declared only with what the authorization server can use. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import type { State } from '../../../services/metadata/kinds/component.ts';
import { makePlan, type Plan } from '../../../services/metadata/planner/plan.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { acting } from '../../support/plans.ts';

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';

const client = (body: object): string =>
  JSON.stringify({ type: 'ExternalClient', apiName: 'App', name: 'An application', ...body });
const plan = async (before: State, yaml: string): Promise<Plan> =>
  makePlan(before, await readProject({ 'externalClients/App.yaml': yaml }, null), {
    allowDestructiveChanges: false,
    platform: false,
    ...acting(),
  });
const found = (problems: Plan['blocked']): string[] => problems.map(({ code, message }) => `${code} ${message}`);

const publicKey = (type: string, options: object = {}): object =>
  generateKeyPairSync(type as 'ec', options as { namedCurve: string }).publicKey.export({ format: 'jwk' });
const EC = publicKey('ec', { namedCurve: 'P-256' });
const withKey = (key: object): object => ({
  grantTypes: ['client_credentials'],
  confidential: true,
  integrationUser: 'ada@demo.example',
  jwks: { keys: [key] },
});

describe('metadata: an ExternalClient', () => {
  const refused: [what: string, body: object, message: RegExp][] = [
    ['token exchange', { grantTypes: [DEVICE_CODE, TOKEN_EXCHANGE] }, /Token exchange is not offered/],
    ['nothing that could be refreshed', { grantTypes: ['refresh_token'] }, /needs authorization_code or device_code/],
    [
      'an https loopback address beside a private scheme',
      { grantTypes: ['authorization_code'], redirectUris: ['com.example.app:/cb', 'https://localhost/cb'] },
      /no https loopback address/,
    ],
    ['a key of another curve', withKey(publicKey('ec', { namedCurve: 'P-384' })), /EC with crv P-256/],
    ['a key for encryption', withKey(publicKey('x25519')), /EC with crv P-256/],
    ['a key without its members', withKey({ kty: 'EC', crv: 'P-256' }), /no public key/],
    ['a key that is no point of its curve', withKey({ ...EC, x: 'AAAA' }), /no public key/],
    ['a short RSA key', withKey(publicKey('rsa', { modulusLength: 1_024 })), /2048 to 8192 bits/],
    ['an RSA key of any length', withKey({ kty: 'RSA', e: 'AQAB', n: 'A'.repeat(100_000) }), /2048 to 8192 bits/],
    ['a key with the alg of another one', withKey({ ...EC, alg: 'RS256' }), /alg of this key is ES256/],
    ['a key that does not sign', withKey({ ...EC, use: 'enc' }), /use is sig/],
    ['the private half', withKey({ ...EC, d: 'secret' }), /Only the public half/],
  ];
  for (const [what, body, message] of refused)
    it(`is refused with ${what}`, async () => {
      const yaml = client(body);
      const first = await plan(new Map(), yaml);
      assert.deepEqual(
        first.blocked.map(({ code }) => code),
        ['YAML_SCHEMA_INVALID'],
      );
      assert.match(first.blocked[0]!.message, message);
    });

  it('accepts every key that the authorization server verifies', async () => {
    for (const key of [
      { ...EC, alg: 'ES256', use: 'sig', kid: 'one' },
      publicKey('ed25519'),
      { ...publicKey('rsa', { modulusLength: 2_048 }), alg: 'PS256' },
    ])
      assert.deepEqual(found((await plan(new Map(), client(withKey(key)))).blocked), []);
  });

  it('may name the scopes of OpenID Connect', async () => {
    const scopes = ['openid', 'profile', 'email', 'data:read'];
    assert.deepEqual(found((await plan(new Map(), client({ grantTypes: [DEVICE_CODE], scopes }))).blocked), []);
  });

  it('gets a warning when only half of the refresh settings is present', async () => {
    for (const [body, message] of [
      [{ grantTypes: [DEVICE_CODE, 'refresh_token'], scopes: ['data:read'] }, /Without the scope offline_access/],
      [{ grantTypes: [DEVICE_CODE], scopes: ['offline_access'] }, /Without the grant refresh_token/],
    ] as const) {
      const { blocked, warnings } = await plan(new Map(), client(body));
      assert.deepEqual([blocked, warnings.length], [[], 1]);
      assert.match(warnings[0]!.message, message);
    }
  });
});

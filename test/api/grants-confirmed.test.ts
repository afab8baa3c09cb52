/**
 * The state of a grant is answered by auth, and by data while auth is unavailable: both end it for the same causes,
 * by the current tables and configuration.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'mocha';
import { CLI_CLIENT_ID } from '../../contracts/auth.ts';
import { call } from '../../contracts/call.ts';
import { marksOf } from '../../lib/access/client-marks.ts';
import type { ExternalClientMeta, Snapshot } from '../../lib/schema/snapshot.ts';
import { Database } from '../../mixins/database/database.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const CLIENT_ID = 'demo-Portal';
/** auth caches a tenant for a second. */
const FRESH_MS = 1_500;

describe('a grant that auth and data confirm', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let database: Database;
  let ada: Api;
  let user: { tenantId: string; userId: string };
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    database = new Database(platform.database.url, { size: 1, applicationName: 'grants test' });
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    const sue = await api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sue')).get('/identity');
    user = { tenantId: sue.body.tenant.id, userId: sue.body.user.id };
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const key = (kid: string) => ({
    ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }),
    kid,
  });
  const KEYS = { keys: [key('first')] };
  const declare = async (changes: object = {}): Promise<void> => {
    const client = {
      type: 'ExternalClient',
      apiName: 'Portal',
      name: 'Portal',
      active: true,
      confidential: true,
      grantTypes: ['authorization_code', 'refresh_token'],
      redirectUris: ['https://portal.example/cb'],
      scopes: ['data:read'],
      jwks: KEYS,
      ...changes,
    };
    // JSON is YAML.
    await deployOverHttp(ada, { 'externalClients/Portal.yaml': JSON.stringify(client) });
  };
  const declared = async (): Promise<ExternalClientMeta> => {
    const found = await call(platform.broker, 'metadata.snapshots.get', { tenantId: user.tenantId });
    const snapshot = JSON.parse(Buffer.from(found!.snapshot).toString('utf8')) as Snapshot;
    return snapshot.externalClients['Portal']!;
  };
  /** A grant as created by a sign-in. */
  const granted = async (clientId = CLIENT_ID): Promise<string> => {
    const meta = clientId === CLIENT_ID ? await declared() : null;
    const grantId = randomUUID();
    await database.query(
      `INSERT INTO auth.grants (tenant_id, id, user_id, client_id, payload, expires_at)
       VALUES ($1, $2, $3, $4, $5, now() + interval '1 day')`,
      [user.tenantId, grantId, user.userId, clientId, JSON.stringify({ clientMarks: marksOf({ meta }) })],
    );
    return grantId;
  };
  /** The answers of auth, and of data while auth is unavailable. */
  async function asked(grantId: string, clientId = CLIENT_ID): Promise<[auth: boolean, data: boolean]> {
    const grants = [{ ...user, grantId, clientId }];
    const [state] = await call(platform.broker, 'auth.grants.check', { grants });
    const living = await call(platform.broker, 'data.grants.confirm', { grants });
    return [state!.active && state!.clientActive, living.includes(grantId)];
  }
  const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, FRESH_MS));

  const HARMLESS: Record<string, object> = {
    'a new name': { name: 'The portal' },
    'another redirect address': { redirectUris: ['https://portal.example/other'] },
    'its keys in another order of members': {
      jwks: { keys: KEYS.keys.map((one) => Object.fromEntries(Object.entries(one).reverse())) },
    },
  };
  const ENDING: Record<string, object> = {
    'other keys': { jwks: { keys: [key('second')] } },
    'one key more': { jwks: { keys: [...KEYS.keys, key('second')] } },
    'a secret in place of its keys': { jwks: undefined },
    'no authentication': { confidential: false, jwks: undefined },
    'the mark of an agent': { agent: true },
    'an end': { active: false },
  };

  for (const [changes, expected] of [
    [HARMLESS, true],
    [ENDING, false],
  ] as const)
    for (const [what, change] of Object.entries(changes))
      it(`${expected ? 'continues' : 'has ended'} after its client got ${what}`, async () => {
        await declare();
        await pause();
        const grantId = await granted();
        assert.deepEqual(await asked(grantId), [true, true]);
        await declare(change);
        await pause();
        assert.deepEqual(await asked(grantId), [expected, expected]);
      });

  it('has ended when it expired, for another client, and when its user may not sign in', async () => {
    const [over, other, mine] = [
      await granted(CLI_CLIENT_ID),
      await granted(CLI_CLIENT_ID),
      await granted(CLI_CLIENT_ID),
    ];
    const of = (grantId: string) => asked(grantId, CLI_CLIENT_ID);
    assert.deepEqual(await of(mine), [true, true]);
    await database.query("UPDATE auth.grants SET expires_at = now() - interval '1 s' WHERE id = $1", [over]);
    assert.deepEqual(await of(over), [false, false]);
    assert.deepEqual(await asked(other, 'erp-dashboards'), [false, false]);
    const setActive = (active: boolean) =>
      database.query('UPDATE auth.credentials SET active = $1 WHERE user_id = $2', [active, user.userId]);
    await setActive(false);
    assert.deepEqual(await of(mine), [false, false]);
    await setActive(true);
    assert.deepEqual(await of(mine), [true, true]);
  });
});

/** Which access tokens open a session, signed with a key that the gateway knows. */
import assert from 'node:assert/strict';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { Sessions } from '../../../services/gateway/pipeline/session.ts';

const BASE = 'https://erp.example';
const NOW = Date.UTC(2026, 10, 22);
const SECONDS = NOW / 1_000;

const CLAIMS: JWTPayload = {
  iss: BASE,
  aud: `${BASE}/api/v1`,
  iat: SECONDS,
  exp: SECONDS + 600,
  sub: 'user',
  client_id: 'erp-cli',
  tenant_id: 'tenant',
  grant_id: 'grant',
  scope: 'data:read data:write',
};

describe('A session', () => {
  let keys: Awaited<ReturnType<typeof generateKeyPair>>;
  let sessions: Sessions;
  before(async () => {
    keys = await generateKeyPair('EdDSA', { extractable: true });
    const known = { ...(await exportJWK(keys.publicKey)), kid: 'one', alg: 'EdDSA' };
    const away = (): never => assert.fail('opening a session asks for keys alone');
    sessions = new Sessions(BASE, {
      keys: async () => ({ keys: [known] }),
      grants: away,
      living: away,
      users: away,
      look: away,
      authChanged: away,
    });
  });

  const token = (claims: JWTPayload, header: object = {}, key = keys.privateKey): Promise<string> =>
    new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', kid: 'one', typ: 'at+jwt', ...header }).sign(key);
  const open = async (given: string) => sessions.open(`Bearer ${given}`, NOW);
  const refusedWith = (code: string) => (error: unknown) => error instanceof PlatformError && error.code === code;

  it('is opened by an access token of this server', async () => {
    const { userId, tenantId, clientId, grantId, scopes } = await open(await token(CLAIMS));
    assert.deepEqual([userId, tenantId, clientId, grantId], ['user', 'tenant', 'erp-cli', 'grant']);
    assert.deepEqual(scopes, ['data:read', 'data:write']);
  });

  for (const name of ['iss', 'exp', 'sub', 'client_id', 'tenant_id', 'grant_id'])
    it(`is not opened by a token without ${name}`, async () => {
      const { [name]: _, ...claims } = CLAIMS;
      await assert.rejects(open(await token(claims)), refusedWith('TOKEN_INVALID'));
    });

  for (const iss of ['https://other.example', `${BASE}/`, '', `${BASE}.other.example`])
    it(`is not opened by a token of the issuer "${iss}"`, async () => {
      await assert.rejects(open(await token({ ...CLAIMS, iss })), refusedWith('TOKEN_INVALID'));
    });

  it('is not opened by a token for another audience', async () => {
    const { aud: _, ...nobody } = CLAIMS;
    for (const claims of [nobody, { ...CLAIMS, aud: BASE }, { ...CLAIMS, aud: [`${BASE}/api/v2`] }])
      await assert.rejects(open(await token(claims)), refusedWith('TOKEN_AUDIENCE_INVALID'));
    await open(await token({ ...CLAIMS, aud: ['https://other.example', `${BASE}/api/v1`] }));
  });

  it('is not opened by a token of another type or key, an expired one, or one from the future', async () => {
    for (const typ of ['JWT', 'dpop+jwt', undefined])
      await assert.rejects(open(await token(CLAIMS, { typ })), refusedWith('TOKEN_INVALID'));
    await assert.rejects(open(await token(CLAIMS, { kid: 'two' })), refusedWith('TOKEN_INVALID'));
    await assert.rejects(open(await token(CLAIMS, { kid: undefined })), refusedWith('TOKEN_INVALID'));
    const { privateKey } = await generateKeyPair('EdDSA');
    await assert.rejects(open(await token(CLAIMS, {}, privateKey)), refusedWith('TOKEN_INVALID'));
    await assert.rejects(open(await token({ ...CLAIMS, exp: SECONDS - 6 })), refusedWith('TOKEN_EXPIRED'));
    await assert.rejects(open(await token({ ...CLAIMS, nbf: SECONDS + 60 })), refusedWith('TOKEN_INVALID'));
  });

  describe('while auth is unavailable', () => {
    const LIVE = { active: true, tenantSuspended: false, clientActive: true, clientName: 'known' };
    const unavailable = (): never => {
      throw new PlatformError('SERVICE_UNAVAILABLE', 'Away.');
    };
    let clock: number;
    let present: boolean;
    let living: string[];
    let asked: string[][];
    let told: string[];
    let known: Sessions;
    let { now, performance: monotonic } = { now: Date.now, performance: performance.now };

    beforeEach(async () => {
      ({ now } = Date);
      monotonic = performance.now;
      clock = 1_000_000;
      Date.now = () => NOW + clock;
      performance.now = () => clock;
      [present, living, asked, told] = [true, ['grant'], [], []];
      const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'one', alg: 'EdDSA' };
      known = new Sessions(BASE, {
        keys: async () => (present ? { keys: [jwk] } : unavailable()),
        grants: async (grants) =>
          present ? grants.map(({ grantId }) => ({ ...LIVE, grantId }) as never) : unavailable(),
        living: async (grants) => {
          asked.push(grants.map(({ grantId }) => grantId));
          return living;
        },
        users: () => assert.fail('nobody asks for the user'),
        look: async () => (present ? [] : unavailable()),
        authChanged: (away) => told.push(away === null ? 'back' : 'away'),
      });
    });
    afterEach(() => {
      Date.now = now;
      performance.now = monotonic;
    });
    const opened = async (claims: JWTPayload = CLAIMS) => known.open(`Bearer ${await token(claims)}`, NOW);

    it('a confirmed grant stays valid for 15 minutes when data agrees', async () => {
      const session = await opened();
      await known.grant(session);
      present = false;
      for (let minute = 1; minute < 15; minute++) {
        clock += 60_000;
        assert.deepEqual(await known.grant(session), { ...LIVE, grantId: 'grant' });
      }
      assert.equal(asked.length, 14);
      assert.deepEqual([told, known.authAwayAt], [['away'], clock], 'it is told once');
      clock += 61_000;
      await assert.rejects(async () => known.grant(session), refusedWith('SERVICE_UNAVAILABLE'));
      present = true;
      clock += 5_001;
      assert.equal((await known.grant(session)).active, true);
      assert.deepEqual([told, known.authAwayAt], [['away', 'back'], null]);
    });

    it('the start and end of the outage are detected without a request', async () => {
      const session = await opened();
      await known.grant(session);
      await known.askAuthAgain();
      assert.deepEqual(told, []);
      present = false;
      clock += 5_001;
      await known.grant(session);
      for (let second = 0; second < 60; second++) {
        clock += 1_000;
        await known.askAuthAgain();
        assert.equal(known.authAwayAt, clock);
      }
      present = true;
      await known.askAuthAgain();
      assert.deepEqual([told, known.authAwayAt], [['away', 'back'], null]);
      assert.equal(asked.length, 1, 'data is not asked for it');
    });

    it('a grant that has ended is refused within seconds', async () => {
      const session = await opened();
      await known.grant(session);
      [present, living] = [false, []];
      clock += 5_001;
      assert.equal((await known.grant(session)).active, false);
    });

    it('an unconfirmed grant is unavailable, and does not delay others', async () => {
      const session = await opened();
      await known.grant(session);
      const other = await opened({ ...CLAIMS, grant_id: 'other' });
      present = false;
      clock += 5_001;
      const [mine, theirs] = await Promise.allSettled([known.grant(session), known.grant(other)]);
      assert.equal(mine.status === 'fulfilled' && mine.value.active, true);
      assert.ok(theirs.status === 'rejected' && refusedWith('SERVICE_UNAVAILABLE')(theirs.reason));
      assert.deepEqual(asked, [['grant']]);
    });
  });
});

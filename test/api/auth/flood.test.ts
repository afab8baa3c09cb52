/** Limits on the storage and request rate of callers who have not signed in. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { AuthStore } from '../../../services/auth/store/store.ts';
import { authorize, authorizeUrl, Browser, pkce, post } from './browser.ts';
import { type AuthHarness, startAuth } from './harness.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

describe('a flood of unauthenticated requests', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
  });
  after(() => auth.stop());

  const { challenge } = pkce();
  const parameters = (more: Record<string, string> = {}): Record<string, string> =>
    Object.fromEntries(authorizeUrl(auth.baseUrl, challenge, more).searchParams);
  const from = (address: string) => ({ 'x-test-address': address });
  const noise = (chars: number): string => randomBytes(chars).toString('base64url').slice(0, chars);
  const query = async (text: string, values: unknown[] = []): Promise<number> =>
    (await auth.database.query<{ n: number }>(text, values)).rows[0]!.n;
  const bytes = (): Promise<number> => query("SELECT pg_total_relation_size('auth.artifacts')::int AS n");
  const waiting = (model: string, network: string): Promise<number> =>
    query('SELECT count(*)::int AS n FROM auth.artifacts WHERE model = $1 AND network = $2', [model, network]);
  const begin = async (address = '192.0.2.1') =>
    (
      await post(
        `${auth.baseUrl}/oauth2/device_authorization`,
        { client_id: 'erp-cli', scope: 'data:read' },
        from(address),
      )
    ).body;

  it('cannot store long parameters: 400 requests store next to nothing', async () => {
    const before = await bytes();
    const [long, rather] = [noise(50_000), noise(10_000)];
    const browser = new Browser();
    for (let i = 0; i < 100; i++) {
      const answers = [
        await post(`${auth.baseUrl}/oauth2/par`, parameters({ state: noise(100) + long })),
        await post(`${auth.baseUrl}/oauth2/device_authorization`, {
          client_id: 'erp-cli',
          scope: 'data:read',
          p: long,
        }),
      ];
      const pages = [
        await browser.open(authorizeUrl(auth.baseUrl, challenge, { login_hint: rather })),
        await browser.open(`${auth.baseUrl}/oauth2/logout?state=${rather}`),
      ];
      if (i > 0) continue;
      assert.deepEqual(
        answers.map(({ status, body }) => [status, body.error, body.error_description]),
        [
          [400, 'invalid_request', 'state is longer than 2048 characters'],
          [400, 'invalid_request', 'a parameter is longer than 1024 characters'],
        ],
      );
      for (const { status, html } of pages) {
        assert.equal(status, 400);
        assert.match(html, /(login_hint|state) is longer than \d+ characters/);
      }
    }
    assert.ok((await bytes()) - before < 300_000, `${(await bytes()) - before} bytes more`);
  });

  it('cannot store the User-Agent of a device', async () => {
    const { device_code } = (
      await post(
        `${auth.baseUrl}/oauth2/device_authorization`,
        { client_id: 'erp-cli', scope: 'data:read' },
        { 'user-agent': noise(10_000) },
      )
    ).body;
    const length = await query('SELECT length(payload::text)::int AS n FROM auth.artifacts WHERE id = $1', [
      device_code,
    ]);
    assert.ok(length < 1_000, `${length} characters`);
  });

  it('may use every parameter up to its limit, but not all of them at once', async () => {
    const push = async (more: Record<string, string>) =>
      (await post(`${auth.baseUrl}/oauth2/par`, parameters(more))).body.error_description ?? 'taken';
    assert.equal(
      await push({ scope: 'openid data:read', state: noise(2_048), nonce: noise(512), login_hint: noise(255) }),
      'taken',
    );
    assert.equal(await push({ unknown: noise(1_025) }), 'a parameter is longer than 1024 characters');
    const many = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`p${i}`, noise(1_000)]));
    assert.equal(await push(many), 'the parameters are longer than 8192 characters');
    const count = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`p${i}`, 'x']));
    assert.equal(await push(count), 'a request may have at most 50 parameters');
  });

  it('replaces its own oldest requests: of each kind a network has at most 200 pending', async function () {
    this.timeout(60_000);
    const network = '2001:db8:7';
    const neighbour = new Browser(from('2001:db8:8::1'));
    const page = await neighbour.visit(authorizeUrl(auth.baseUrl, challenge));
    let last = new Browser();
    for (let i = 0; i < 210; i++) {
      last = new Browser(from(`${network}:${i.toString(16)}::1`));
      await last.open(authorizeUrl(auth.baseUrl, challenge));
    }
    assert.equal(await waiting('Interaction', network), 200);
    assert.ok((await waiting('Session', network)) <= 200);
    for (let i = 0; i < 205; i++) await begin(`${network}:${i.toString(16)}::1`);
    assert.equal(await waiting('DeviceCode', network), 200);
    const signedIn = await neighbour.submit(page, { username: 'sam@demo.example', password: 'demo-password' });
    assert.match(signedIn.html, /Allow ERP command line\?/, 'another network is not disturbed');
    assert.ok((await authorize(last, authorizeUrl(auth.baseUrl, challenge))).searchParams.has('code'));
  });

  it('leaves no session without a user for longer than an hour', async () => {
    await new Browser(from('192.0.2.9')).visit(`${auth.baseUrl}/device`);
    const seconds = await query(
      `SELECT extract(epoch FROM max(expires_at) - now())::int AS n FROM auth.artifacts
       WHERE model = 'Session' AND network = '192.0.2.9'`,
    );
    assert.ok(seconds > 3_500 && seconds <= 3_600, `${seconds} s`);
  });

  it('is deleted in short statements once it has expired', async () => {
    await auth.database.query(
      `INSERT INTO auth.artifacts (model, id, payload, network, expires_at)
       SELECT 'Interaction', 'flood-' || n, '{}', '192.0.2.7', now() - interval '1 second' FROM generate_series(1, 5000) n`,
    );
    await auth.database.query(
      `INSERT INTO auth.attempts SELECT 'user ' || n, 1, now() - interval '1 day', now() - interval '61 minutes'
       FROM generate_series(1, 100) n`,
    );
    await new AuthStore(auth.database).deleteExpired();
    assert.equal(await query('SELECT count(*)::int AS n FROM auth.artifacts WHERE expires_at < now()'), 0);
    assert.equal(await query("SELECT count(*)::int AS n FROM auth.attempts WHERE key LIKE 'user %'"), 0);
  });

  it('slows down a device that polls too often by five seconds each time, until it is answered', async () => {
    const { device_code } = await begin();
    const poll = async (): Promise<string> =>
      (await post(`${auth.baseUrl}/oauth2/token`, { grant_type: DEVICE_GRANT, client_id: 'erp-cli', device_code })).body
        .error;
    const letSecondsPass = (seconds: number) =>
      auth.database.query('UPDATE auth.artifacts SET polled_at = polled_at - make_interval(secs => $1) WHERE id = $2', [
        seconds,
        device_code,
      ]);
    assert.equal(await poll(), 'authorization_pending');
    assert.equal(await poll(), 'slow_down');
    await letSecondsPass(6);
    assert.equal(await poll(), 'slow_down', 'five seconds are not enough any more');
    await letSecondsPass(15);
    assert.equal(await poll(), 'authorization_pending');
    const many = await Promise.all(Array.from({ length: 10 }, poll));
    assert.ok(many.every((error) => error === 'slow_down'));
    await auth.database.query(
      'UPDATE auth.artifacts SET payload = payload || \'{"error": "access_denied"}\' WHERE id = $1',
      [device_code],
    );
    assert.equal(await poll(), 'access_denied', 'an answer does not wait');
  });

  it('gives a network twenty attempts at unknown device codes, and then ever fewer', async () => {
    const { user_code } = await begin();
    const type = async (code: string, address: string) => {
      const browser = new Browser(from(address));
      return browser.submit(await browser.visit(`${auth.baseUrl}/device`), { user_code: code });
    };
    let refused = 0;
    // The whole site of an attacker: its /48 has 65,536 networks of the usual size.
    for (let i = 0; i < 30; i++) if ((await type('BBBB-BBBB', `2001:db8:9:${i}::1`)).status === 429) refused++;
    assert.ok(refused >= 8, `${refused} refused`);
    const page = await type(user_code, '2001:db8:9:ffff::1');
    assert.equal(page.status, 429, 'also the right one');
    assert.ok(Number(page.headers.get('retry-after')) > 0);
    for (let i = 0; i < 30; i++)
      assert.match(
        (await type(user_code, '198.51.100.4')).html,
        /Is this your device\?/,
        'right codes are not counted',
      );
  });
});

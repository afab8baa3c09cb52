/** The published client: keys, retries, pages, versions and tokens (docs/reference/client.md). */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ServiceBroker } from 'moleculer';
import { connect, type Erp } from '../../client/erp.ts';
import { ConflictError, ErpError, NetworkError, SignInError } from '../../client/errors.ts';
import { clientCredentials, refreshing } from '../../client/tokens.ts';
import { call } from '../../contracts/call.ts';
import { signIn } from '../../scripts/sign-in.ts';
import { api, demoPassword, tokenFor } from '../support/client.ts';
import { type Interfering, interfere } from '../support/interference.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { claims } from './auth/browser.ts';

interface Account {
  id: string;
  name: string;
  city: string | null;
  creditLimit: number | null;
  accountNumber: string | null;
}
type Written = { name?: string; city?: string | null; creditLimit?: number | string | null };
interface Objects {
  Account: { read: Account; create: Written & { name: string }; update: Written };
}

const ROBOT = `type: ExternalClient
apiName: Robot
name: Robot
scopes:
  - data:read
grantTypes:
  - client_credentials
confidential: true
integrationUser: sam@demo.example
active: true
`;

/** An error that a test expects. */
async function thrown(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => assert.fail('nothing was thrown'),
    (error: unknown) => error,
  );
}

describe('the client', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let network: Interfering;
  let erp: Erp<Objects>;
  /** Keys of the changes that have reached the platform. */
  let keys: unknown[] = [];
  /** Outcomes of the responses to the next changes. */
  let fates: ('lost' | 'never')[] = [];
  const accounts = () => erp.object('Account');
  /** Names of the accounts of a city. */
  const inCity = async (city: string): Promise<string[]> =>
    (
      await accounts()
        .list({ fields: ['name'], where: { city }, sort: ['name'] })
        .page()
    ).records.map(({ name }) => name);

  before(async () => {
    platform = await startPlatform();
    network = await interfere(platform.baseUrl, {
      answers: (_method, headers) => {
        const key = headers['idempotency-key'];
        if (key === undefined) return 'as it is';
        keys.push(key);
        return fates.shift() ?? 'as it is';
      },
    });
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    erp = connect<Objects>({ baseUrl: network.url, token: () => token, timeoutMs: 3_000 });
  });
  beforeEach(() => {
    keys = [];
    fates = [];
  });
  after(async () => {
    network?.close();
    await platform?.stop();
  });

  it('repeats a change whose response is lost under its key, and applies it once', async () => {
    fates = ['lost', 'lost'];
    const made = await accounts().create({ name: 'Lost', city: 'Lostwithiel' });
    assert.equal(made.name, 'Lost');
    assert.equal(keys.length, 3);
    assert.equal(new Set(keys).size, 1);
    assert.deepEqual(await inCity('Lostwithiel'), ['Lost']);
  });

  it('reuses the key of a call that ended without an outcome when the same call is made again', async () => {
    fates = Array<'lost'>(5).fill('lost');
    assert.ok((await thrown(accounts().create({ name: 'Twice', city: 'Retry' }))) instanceof NetworkError);
    await accounts().create({ name: 'Twice', city: 'Retry' });
    assert.equal(new Set(keys).size, 1);
    assert.deepEqual(await inCity('Retry'), ['Twice']);
    const another = await thrown(accounts().create({ name: 'Twice', city: 'Retry' }));
    assert.equal(new Set(keys).size, 2, 'its outcome was known: this is another intention');
    assert.ok(another instanceof ErpError);
    assert.equal(another.code, 'DUPLICATE_RULE');
  });

  it('makes simultaneous equal calls under keys of their own', async () => {
    const equal = { name: 'Both', city: 'Pair' };
    await Promise.allSettled([accounts().create(equal), accounts().create(equal)]);
    assert.equal(new Set(keys).size, 2);
  });

  it("upserts without the caller's key; the latest content holds when an earlier one is repeated", async () => {
    const put = (city: string) => accounts().upsert('accountNumber', 'UP-1000', { name: 'Upserted', city });
    fates = ['lost'];
    const { id } = await put('A');
    await put('B');
    const last = await put('A');
    assert.deepEqual([last.id, last.city], [id, 'A']);
    assert.equal((await accounts().get(id, { fields: ['city'] })).city, 'A');
    assert.equal(keys.length, 4);
    const refused = await thrown(
      accounts().upsert('accountNumber', 'UP-1000', { name: 'Second' }, { createOnly: true }),
    );
    assert.ok(refused instanceof ErpError);
    assert.equal(refused.status, 412);
  });

  it('reads records page by page, with their fields, ids and versions', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await accounts().create({ name, city: 'Paging' });
    const list = accounts().list({
      fields: ['name'],
      where: { city: 'Paging' },
      sort: ['-name'],
      take: 2,
      includeTotal: true,
    });
    const names: string[] = [];
    for await (const record of list) {
      assert.deepEqual(Object.keys(record).sort(), ['_etag', 'id', 'name']);
      names.push(record.name);
    }
    assert.deepEqual(names, ['e', 'd', 'c', 'b', 'a']);
    const first = await list.page();
    assert.equal(first.total, 5);
    const sizes: number[] = [];
    for await (const { records } of list.pages()) sizes.push(records.length);
    assert.deepEqual(sizes, [2, 2, 1]);
  });

  it("changes the version that was read, and throws both versions after another user's change", async () => {
    const read = await accounts().create({ name: 'Contested', city: 'Start' });
    await accounts().update(read, { city: 'Theirs' });
    const error = await thrown(accounts().update(read, { city: 'Ours' }));
    assert.ok(error instanceof ConflictError);
    assert.equal(error.code, 'ETAG_MISMATCH');
    assert.deepEqual([error.base.city, error.changes.city, error.current.city], ['Start', 'Ours', 'Theirs']);
    const merged = await accounts().update(error.current, { city: 'Ours' });
    await accounts().delete(merged);
    assert.ok((await thrown(accounts().get(merged.id))) instanceof ErpError);
  });

  it('reports violations by field, and under an empty name those of no field', async () => {
    const error = await thrown(accounts().create({ name: '', creditLimit: 'much' }));
    assert.ok(error instanceof ErpError);
    assert.deepEqual(Object.keys(error.byField).sort(), ['creditLimit', 'name']);
    assert.match(error.byField['creditLimit']?.[0] ?? '', /\w/);
    assert.match(error.requestId, /^req_/);
    const missing = await thrown(accounts().get('0193d3a8-0000-7000-8000-000000000000'));
    assert.ok(missing instanceof ErpError);
    assert.deepEqual(missing.byField, { '': [missing.message] });
  });

  it('gets another token when the last has expired, and waits for a request of its key that is in flight', async () => {
    const seen: string[] = [];
    const refusals: Record<string, { status: number; code: string; retryAfterSeconds?: number }> = {
      'Bearer old': { status: 401, code: 'TOKEN_EXPIRED' },
      'Bearer new': { status: 409, code: 'IDEMPOTENCY_IN_PROGRESS', retryAfterSeconds: 1 },
    };
    // A stub gateway that controls the expiry of tokens and requests in flight.
    const gateway = createServer((request, response) => {
      const { authorization = '', 'idempotency-key': key } = request.headers;
      const refusal = seen.length < 2 ? refusals[authorization] : undefined;
      seen.push(`${authorization} ${key}`);
      const body = refusal && {
        message: 'Refused.',
        requestId: 'req_1',
        retryable: refusal.status === 409,
        ...refusal,
      };
      response.writeHead(refusal?.status ?? 201, { etag: '"1"' }).end(JSON.stringify(body ?? { id: 'made' }));
    });
    await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
    try {
      const baseUrl = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
      let token = 'old';
      const source = (renew: boolean): string => {
        if (renew) token = 'new';
        return token;
      };
      const started = performance.now();
      const made = await connect({ baseUrl, token: source }).object('Account').create({ name: 'x' });
      assert.deepEqual([made.id, made._etag], ['made', '"1"']);
      assert.ok(performance.now() - started >= 1_000);
      assert.deepEqual(
        seen.map((one) => one.split(' ')[1]),
        ['old', 'new', 'new'],
      );
      assert.equal(new Set(seen.map((one) => one.split(' ')[2])).size, 1);
    } finally {
      gateway.close();
    }
  });

  it('works for a program with its own credentials, and for a user by refresh tokens that it passes on', async () => {
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada@demo.example'));
    await deployOverHttp(ada, { 'externalClients/Robot.yaml': ROBOT });
    const { tenant_id: tenantId } = claims(await tokenFor(platform.baseUrl, 'ada@demo.example'));
    const broker: ServiceBroker = platform.broker;
    const { secret } = await call(broker, 'auth.clients.rotateSecret', { tenantId, apiName: 'Robot' });
    const server = { baseUrl: platform.baseUrl, clientId: 'demo-Robot', scope: 'data:read' };
    const robot = connect({ baseUrl: platform.baseUrl, token: clientCredentials({ ...server, clientSecret: secret }) });
    assert.equal((await robot.object('Account').list({ take: 1 }).page()).records.length, 1);
    const refused = await thrown(Promise.resolve(clientCredentials({ ...server, clientSecret: 'wrong' })(false)));
    assert.ok(refused instanceof SignInError);
    assert.equal(refused.code, 'invalid_client');

    const scope = 'data:read offline_access';
    const answer = await signIn({
      baseUrl: platform.baseUrl,
      user: 'sam@demo.example',
      password: demoPassword(),
      scope,
    });
    const stored: string[] = [];
    const token = refreshing({
      baseUrl: platform.baseUrl,
      clientId: 'erp-cli',
      scope,
      refreshToken: answer.refresh_token ?? '',
      onRefreshed: (next) => void stored.push(next),
    });
    const [one, same] = await Promise.all([token(false), token(false)]);
    assert.equal(one, same, 'calls that come together share a renewal');
    assert.equal(stored.length, 1);
    assert.notEqual(await token(true), one);
    assert.equal(stored.length, 2);
  });
});

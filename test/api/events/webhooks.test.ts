/** Webhooks: what a receiver gets, when it fails, and who may have what sent. */
import assert from 'node:assert/strict';
import { createHmac, createPublicKey, randomUUID, verify } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { signIn } from '../../../scripts/sign-in.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { until } from '../../support/until.ts';

interface Received {
  readonly path: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
  readonly event: any;
}

describe('webhooks', function () {
  this.timeout(90_000);
  let platform: TestPlatform;
  let server: Server;
  let host: string;
  let ada: Api;
  let sam: Api;
  let sql: pg.Client;
  const received: Received[] = [];
  /** Status by path; 204 elsewhere. */
  const answers = new Map<string, number>();
  /** What a request to a path waits for before it is answered. */
  const held = new Map<string, () => Promise<void>>();
  before(async () => {
    server = createServer(async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      const path = request.url ?? '';
      received.push({ path, headers: request.headers, text, event: JSON.parse(text) });
      await held.get(path)?.();
      // An answer without an end: its beginning is enough.
      if (path === '/long') response.writeHead(200).write('x'.repeat(64 * 1024));
      else response.writeHead(answers.get(path) ?? 204, { location: `http://${host}/elsewhere` }).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    platform = await startPlatform({ env: { WEBHOOK_PRIVATE_HOSTS: host } });
    const as = async (user: string): Promise<Api> => api(platform.baseUrl, await tokenFor(platform.baseUrl, user));
    [ada, sam] = await Promise.all([as('ada'), as('sam')]);
    sql = new pg.Client({ connectionString: platform.database.url });
    await sql.connect();
  });
  after(async () => {
    await sql?.end();
    await platform?.stop();
    server?.close();
  });

  const subscribe = async (who: Api, path: string, more: object = {}) => {
    const made = await who.post('/events/subscriptions', {
      name: path,
      url: `http://${host}${path}`,
      eventTypes: ['data.record.created', 'data.record.updated'],
      objects: ['Account'],
      ...more,
    });
    assert.equal(made.status, 201, made.text);
    return made.body;
  };
  const account = async (): Promise<{ id: string; etag: string }> => {
    const made = await sam.post('/data/Account', { name: `Hook ${randomUUID()}` });
    return { id: made.body.id, etag: made.headers.get('etag')! };
  };
  const at = (path: string, id: string): Received[] =>
    received.filter((one) => one.path === path && one.event.data.id === id);
  const deliveries = async (who: Api, subscriptionId: string, query = '') =>
    (await who.get(`/events/subscriptions/${subscriptionId}/deliveries${query}`)).body.records;

  it('are signed by Standard Webhooks, once in 24 hours with two secrets', async () => {
    const { subscriptionId, secret } = await subscribe(sam, '/signed', { payload: 'full' });
    const first = await account();
    await until(() => at('/signed', first.id).length > 0);
    const [one] = at('/signed', first.id);
    const sign = (key: string, { headers, text }: Received): string =>
      `v1,${createHmac('sha256', Buffer.from(key.replace('whsec_', ''), 'base64'))
        .update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`)
        .digest('base64')}`;
    assert.equal(one!.headers['webhook-signature'], sign(secret, one!));
    assert.equal(one!.headers['webhook-id'], one!.event.id);
    assert.equal(one!.event.data.after.name.startsWith('Hook'), true);
    const rotated = await sam.post(`/events/subscriptions/${subscriptionId}/rotate-secret`);
    const second = await account();
    await until(() => at('/signed', second.id).length > 0);
    const [two] = at('/signed', second.id);
    assert.equal(two!.headers['webhook-signature'], `${sign(rotated.body.secret, two!)} ${sign(secret, two!)}`);
    const [delivery] = await deliveries(sam, subscriptionId);
    assert.deepEqual([delivery.status, delivery.attempts.length, delivery.attempts[0].status], ['delivered', 1, 204]);
    assert.equal(JSON.stringify(await sam.get('/events/subscriptions')).includes('whsec_'), false);
    const { rows } = await sql.query('SELECT secrets::text FROM events.subscriptions');
    assert.doesNotMatch(JSON.stringify(rows), /whsec_/);
  });

  it('of one host wait for each other, and no attempt fails for it', async () => {
    const paths = ['/busy1', '/busy2', '/busy3'];
    for (const path of paths) held.set(path, () => pause(400));
    const made = await Promise.all(paths.map((path) => subscribe(sam, path, { eventTypes: ['data.record.created'] })));
    const records = Array.from({ length: 40 }, (_, n) => ({ fields: { name: `Busy ${randomUUID()} ${n}` } }));
    const written = await sam.post('/composite/records', { objectApiName: 'Account', operation: 'create', records });
    assert.equal(written.status, 200, written.text);
    const arrived = (path: string): number => received.filter((one) => one.path === path).length;
    await until(() => paths.every((path) => arrived(path) >= records.length), 60);
    await until(async () => {
      const all = await Promise.all(made.map(({ subscriptionId }) => deliveries(sam, subscriptionId, '?take=200')));
      return all.flat().every(({ status }: { status: string }) => status === 'delivered');
    }, 20);
    for (const { subscriptionId } of made)
      for (const { attempts } of await deliveries(sam, subscriptionId, '?take=200'))
        assert.deepEqual(
          attempts.map(({ status }: { status: number }) => status),
          [204],
        );
  });

  it('are signed with a key pair where that is asked for', async () => {
    const { publicKey, secret } = await subscribe(sam, '/pair', { signing: 'ed25519' });
    assert.equal(secret, null, 'the private key stays here');
    const { id } = await account();
    await until(() => at('/pair', id).length > 0);
    const [one] = at('/pair', id);
    const { headers, text } = one!;
    const raw = Buffer.from(publicKey.replace('whpk_', ''), 'base64');
    const key = createPublicKey({
      key: Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), raw]),
      format: 'der',
      type: 'spki',
    });
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
    const signature = String(headers['webhook-signature']).replace('v1a,', '');
    assert.ok(verify(null, Buffer.from(signed), key, Buffer.from(signature, 'base64')));
  });

  it('are tried again, and keep the order of a record', async () => {
    answers.set('/failing', 503);
    const { subscriptionId } = await subscribe(sam, '/failing', { ordering: 'perRecord' });
    const { id, etag } = await account();
    let version = etag;
    for (let n = 0; n < 8; n++) {
      const changed = await sam.patch(`/data/Account/${id}`, { city: `Bonn ${n}` }, { etag: version });
      assert.equal(changed.status, 200, changed.text);
      version = changed.headers.get('etag')!;
    }
    await until(async () => (await deliveries(sam, subscriptionId)).length > 0);
    assert.deepEqual(new Set(at('/failing', id).map(({ event }) => event.type)), new Set(['data.record.created']));
    const attempts = async () => (await deliveries(sam, subscriptionId)).at(-1).attempts.length;
    await sql.query(
      `UPDATE events.deliveries SET next_at = now() + interval '1 day' WHERE subscription_id = $1 AND tries > 0`,
      [subscriptionId],
    );
    const before = await attempts();
    const replay = async (body: object) =>
      (await sam.post(`/events/subscriptions/${subscriptionId}/replay`, body)).body;
    const fromTime = new Date(Date.now() + 3_600_000).toISOString();
    const backwards = await sam.post(`/events/subscriptions/${subscriptionId}/replay`, {
      fromTime,
      toTime: new Date().toISOString(),
    });
    assert.deepEqual([backwards.status, backwards.body.errors[0].pointer], [400, '/toTime'], backwards.text);
    assert.equal((await replay({ onlyFailed: true, fromTime })).events, 0);
    // The time is that of the event, also when it was put into the list later.
    await sql.query(`UPDATE events.deliveries SET created_at = now() + interval '1 day' WHERE subscription_id = $1`, [
      subscriptionId,
    ]);
    assert.equal((await replay({ onlyFailed: true, toTime: fromTime })).events, 1);
    await until(async () => (await attempts()) > before);
    answers.delete('/failing');
    await replay({ onlyFailed: true });
    // The receiver has it before its answer is stored.
    await until(async () => (await deliveries(sam, subscriptionId, '?status=delivered')).length === 9, 15);
    const made = await deliveries(sam, subscriptionId);
    assert.ok(made.at(-1).attempts.length > 1 && made[0].attempts.length === 1);
    const told = at('/failing', id).map(({ event }) => event.data.recordVersion);
    assert.deepEqual([...new Set(told)], [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert.deepEqual(
      told,
      told.toSorted((a, b) => a - b),
      'in the order of the versions',
    );
  });

  it('read the beginning of an answer, and follow no redirect', async () => {
    const long = await subscribe(sam, '/long');
    answers.set('/moved', 307);
    const moved = await subscribe(sam, '/moved');
    await account();
    const first = async ({ subscriptionId }: { subscriptionId: string }) => (await deliveries(sam, subscriptionId))[0];
    await until(async () => (await first(moved))?.attempts.length > 0);
    await until(async () => (await first(long))?.status === 'delivered');
    assert.equal((await first(long)).attempts[0].responseHead.length, 500);
    assert.equal((await first(moved)).attempts[0].status, 307);
    assert.ok(!received.some(({ path }) => path === '/elsewhere'));
  });

  it('end with a receiver that is gone, and go on when they are told to', async () => {
    answers.set('/gone', 410);
    const { subscriptionId } = await subscribe(sam, '/gone');
    await account();
    const path = `/events/subscriptions/${subscriptionId}`;
    await until(async () => (await sam.get(path)).body.state === 'suspended');
    const read = await sam.get(path);
    assert.equal(read.body.reason, 'gone');
    const notices = async () => (await sam.get('/notifications?type=webhookSuspended')).body.records;
    await until(async () => (await notices()).length > 0);
    assert.equal((await notices())[0].title, 'Webhook suspended: /gone');
    assert.deepEqual((await notices())[0].actions, [
      { label: 'View the subscription', operationId: 'events.subscriptions.get', params: { subscriptionId } },
    ]);
    answers.delete('/gone');
    const active = await sam.patch(path, { state: 'active' }, { etag: read.headers.get('etag')! });
    assert.deepEqual([active.body.state, active.body.reason], ['active', null], active.text);
    const { id } = await account();
    await until(() => at('/gone', id).length > 0);
    const replayed = await sam.post(`${path}/replay`, {});
    assert.equal(replayed.status, 202, replayed.text);
    await until(() => at('/gone', id).length > 1);
    assert.equal(at('/gone', id)[0]!.headers['webhook-id'], at('/gone', id)[1]!.headers['webhook-id']);
    // What was tried before stays in the list.
    await until(async () =>
      (await deliveries(sam, subscriptionId, '?take=200')).some(
        ({ attempts: [first, ...others] }: { attempts: { status: number }[] }) =>
          first?.status === 410 && others.some(({ status }) => status === 204),
      ),
    );
    const test = await sam.post(`${path}/test`);
    assert.equal(test.status, 201, test.text);
    const tests = (): number =>
      received.filter((one) => one.path === '/gone' && one.event.type === 'events.subscription.tested').length;
    await until(() => tests() > 0);
    const arrived = at('/gone', id).length;
    await sam.post(`${path}/replay`, {});
    await until(() => at('/gone', id).length > arrived);
    const { id: next } = await account();
    await until(() => at('/gone', next).length > 0);
    assert.equal(tests(), 1, 'tests are not sent again');
  });

  it('go to public https addresses of their own user, and nowhere else', async () => {
    const input = { name: 'Inside', eventTypes: ['data.record.created'] };
    for (const url of [
      'http://shop.example',
      'https://10.0.0.7/x',
      'https://[::1]/',
      'https://localhost./',
      'https://vm/',
      'https://a:b@shop.example',
      'nowhere',
    ]) {
      const reply = await sam.post('/events/subscriptions', { ...input, url });
      assert.deepEqual([reply.status, reply.body.code], [422, 'WEBHOOK_URL_INVALID'], url);
    }
    const unknown = await sam.post('/events/subscriptions', {
      ...input,
      url: 'https://shop.example',
      eventTypes: ['x'],
    });
    assert.deepEqual([unknown.status, unknown.body.code], [400, 'PARAMETER_INVALID']);
    const { subscriptionId } = await subscribe(sam, '/own');
    const path = `/events/subscriptions/${subscriptionId}`;
    assert.equal((await ada.get(path)).body.code, 'SUBSCRIPTION_NOT_FOUND');
    assert.equal((await ada.get(`${path}/deliveries`)).body.code, 'SUBSCRIPTION_NOT_FOUND');
    assert.equal((await sam.patch(path, { state: 'paused' }, { etag: '"9"' })).body.code, 'ETAG_MISMATCH');
    const etag = (await sam.get(path)).headers.get('etag')!;
    assert.equal((await sam.delete(path, { etag })).status, 204);
    assert.equal((await sam.get(path)).status, 404);
  });

  it('are sent to nobody once their user is not active any more', async () => {
    const mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    const { subscriptionId } = await subscribe(mia, '/inactive');
    const { user } = (await mia.get('/identity')).body;
    const before = await account();
    await until(() => at('/inactive', before.id).length > 0);
    const { headers } = await ada.get(`/data/User/${user.id}`);
    const ended = await ada.patch(`/data/User/${user.id}`, { active: false }, { etag: headers.get('etag')! });
    assert.equal(ended.status, 200, ended.text);
    const after = await account();
    const state = async () =>
      (await sql.query('SELECT state, reason FROM events.subscriptions WHERE subscription_id = $1', [subscriptionId]))
        .rows[0];
    await until(async () => (await state()).state === 'suspended');
    assert.deepEqual([(await state()).reason, at('/inactive', after.id)], ['userInactive', []]);
  });

  it('need a person where an agent asks for them, as they outlive its run', async () => {
    const run = await sam.post('/agent/runs', { agentKey: 'tester', goal: 'Have everything sent elsewhere.' });
    const headers = { 'x-agent-run-id': run.body.runId };
    const { subscriptionId } = await subscribe(sam, '/before-the-run');
    const path = `/events/subscriptions/${subscriptionId}`;
    const etag = (await sam.get(path)).headers.get('etag')!;
    const body = { name: 'Elsewhere', url: `http://${host}/agent`, eventTypes: ['data.record.updated'] };
    for (const reply of [
      await sam.post('/events/subscriptions', body, { headers }),
      await sam.patch(path, { url: body.url }, { etag, headers }),
      await sam.post(`${path}/replay`, {}, { headers }),
    ])
      assert.deepEqual([reply.status, reply.body.code], [403, 'APPROVAL_REQUIRED'], reply.text);
    assert.equal((await sam.get(path)).headers.get('etag'), etag);
  });

  it('say nothing of events that their user may not know of', async () => {
    const fay = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'fay'));
    const { subscriptionId } = await subscribe(fay, '/hidden', {
      eventTypes: ['data.record.created', 'calendar.event.created'],
      objects: [],
    });
    const hours = { dateTime: '2027-03-01T09:00:00', timezone: 'Europe/Berlin' };
    const end = { ...hours, dateTime: '2027-03-01T10:00:00' };
    assert.equal((await sam.post('/calendar/events', { title: 'Own', start: hours, end })).status, 201);
    const { id } = await account();
    await until(() => at('/hidden', id).length > 0);
    const replayed = await fay.post(`/events/subscriptions/${subscriptionId}/replay`, {});
    assert.deepEqual([replayed.status, replayed.body.events], [202, null], replayed.text);
    await until(() => at('/hidden', id).length > 1);
    const types = async (query = '') =>
      new Set((await deliveries(fay, subscriptionId, query)).map(({ eventType }: { eventType: string }) => eventType));
    await until(async () => (await types('?status=delivered')).size > 0);
    assert.deepEqual(await types(), new Set(['data.record.created']));
    assert.equal((await fay.get(`/events/subscriptions/${subscriptionId}/deliveries?status=hidden`)).status, 400);
  });

  it('of one subscription are tested without the others', async () => {
    const spying = { eventTypes: ['events.subscription.tested'], objects: [] };
    await Promise.all(['/spy-1', '/spy-2'].map((path) => subscribe(sam, path, spying)));
    const { subscriptionId } = await subscribe(ada, '/tested');
    assert.equal((await ada.post(`/events/subscriptions/${subscriptionId}/test`)).status, 201);
    await until(() =>
      received.some((one) => one.path === '/tested' && one.event.type === 'events.subscription.tested'),
    );
    const { id } = await account();
    await until(() => at('/tested', id).length > 0);
    assert.ok(!received.some(({ path }) => path.startsWith('/spy')));
  });

  it('end with the connection that made them, and go on for the one that activates them', async () => {
    const scope = 'events:manage events:read me:write me:read data:read data:write';
    const connect = async (): Promise<Api> => {
      const signedIn = { baseUrl: platform.baseUrl, user: 'sue@demo.example', password: 'demo-password', scope };
      return api(platform.baseUrl, (await signIn(signedIn)).access_token);
    };
    const sue = await connect();
    const { subscriptionId } = await subscribe(sue, '/connected');
    const path = `/events/subscriptions/${subscriptionId}`;
    const current = (await sue.get('/identity')).body.connection.grantId;
    assert.equal((await sue.delete(`/me/connections/${current}`)).status, 204);
    const { id } = await account();
    const again = await connect();
    await until(async () => (await again.get(path)).body.state === 'suspended');
    const read = await again.get(path);
    assert.equal(read.body.reason, 'connectionEnded');
    assert.deepEqual(at('/connected', id), []);
    const active = await again.patch(path, { state: 'active' }, { etag: read.headers.get('etag')! });
    assert.equal(active.status, 200, active.text);
    await until(() => at('/connected', id).length > 0);
  });

  it('end when the configuration has their client no more', async () => {
    const { subscriptionId } = await subscribe(sam, '/client');
    const path = `/events/subscriptions/${subscriptionId}`;
    await sql.query(`UPDATE events.subscriptions SET client_id = 'removed' WHERE subscription_id = $1`, [
      subscriptionId,
    ]);
    const { id } = await account();
    await until(async () => (await sam.get(path)).body.reason === 'clientDisabled');
    assert.deepEqual(at('/client', id), []);
  });

  it('are not suspended for what an earlier receiver has answered, nor when they are deleted meanwhile', async () => {
    let answer = (): void => {};
    const asked = new Promise<void>((resolve) => {
      held.set('/slow', () => {
        resolve();
        return new Promise<void>((go) => {
          answer = go;
        });
      });
    });
    answers.set('/slow', 410);
    const { subscriptionId } = await subscribe(sam, '/slow');
    const path = `/events/subscriptions/${subscriptionId}`;
    await account();
    await asked;
    const etag = (await sam.get(path)).headers.get('etag')!;
    const moved = await sam.patch(path, { url: `http://${host}/fast` }, { etag });
    assert.equal(moved.status, 200, moved.text);
    answer();
    const { id } = await account();
    await until(() => at('/fast', id).length > 0);
    assert.equal((await sam.get(path)).body.state, 'active');
  });
});

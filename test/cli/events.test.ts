/** `erp events` and `erp webhooks`: what happens, followed from a terminal and sent to programs. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { signedHeaders } from '../../services/events/webhooks/signature.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { keptErpOf, startErp, userEnvironment } from '../support/erp.ts';
import { type Interfering, interfere } from '../support/interference.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { until } from '../support/until.ts';

interface Received {
  readonly headers: Record<string, string>;
  readonly body: string;
}

describe('erp events', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let proxy: Interfering;
  let receiver: Server;
  let hook: string;
  let ada: Api;
  let env: Record<string, string>;
  let erp: ReturnType<typeof keptErpOf>;
  const received: Received[] = [];
  /** Answers to reads that get lost on their way. */
  let losses = 0;

  before(async () => {
    receiver = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      received.push({ headers: request.headers as Record<string, string>, body });
      response.writeHead(request.url === '/broken' ? 500 : 204).end();
    });
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    const host = `127.0.0.1:${(receiver.address() as AddressInfo).port}`;
    hook = `http://${host}/hooks`;
    platform = await startPlatform({ env: { WEBHOOK_PRIVATE_HOSTS: host } });
    proxy = await interfere(platform.baseUrl, {
      answers: (method) => (method === 'GET' && losses-- > 0 ? 'lost' : 'as it is'),
    });
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    ada = api(platform.baseUrl, token);
    env = userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl });
    erp = keptErpOf(env);
  });
  after(async () => {
    proxy?.close();
    receiver?.close();
    await platform?.stop();
  });
  beforeEach(() => {
    received.length = 0;
  });

  const done = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await erp(args);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const account = async (name: string): Promise<string> => (await ada.post('/data/Account', { name })).body.id;
  /** Where a command begins that is to see what happens from now on. */
  const now = async (): Promise<string> => (await ada.get('/events')).body.resumeCursor;
  const continued = (stderr: string): string => /^Continue with --cursor (\S+)$/m.exec(stderr)?.[1] ?? '';
  const CREATED = ['--types', 'data.record.created', '--objects', 'Account'];

  it('tail prints each event once, over lost answers and Ctrl-C', async () => {
    const child = startErp({ ...env, ERP_BASE_URL: proxy.url }, ['events', 'tail', ...CREATED]);
    let [stdout, stderr] = ['', ''];
    child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk));
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk));
    try {
      await until(() => stderr.includes('Waiting for events.'));
      const first = await account('Tail one');
      await until(() => stdout.includes(first));
      losses = 2;
      const second = await account('Tail two');
      await until(() => stdout.includes(second));
      child.kill('SIGINT');
      assert.deepEqual(await once(child, 'close'), [130, null]);
      const third = await account('Tail three');
      await until(
        async () => (await done('events', 'tail', ...CREATED, '--cursor', continued(stderr), '--no-follow')) !== '',
      );
      const rest = await done('events', 'tail', ...CREATED, '--cursor', continued(stderr), '--no-follow', '--json');
      assert.deepEqual(
        stdout.split('\n').map((line) => line.split('\t').slice(1, 3)),
        [['data.record.created', `Account/${first}`], ['data.record.created', `Account/${second}`], []],
      );
      assert.deepEqual(
        rest.split('\n').map((line) => JSON.parse(line).data.id),
        [third],
      );
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('tail shows values with --payload full', async () => {
    const cursor = await now();
    const id = await account('Full');
    const etag = (await ada.get(`/data/Account/${id}`)).headers.get('etag') ?? '';
    await ada.patch(`/data/Account/${id}`, { city: 'Bath' }, { etag });
    const args = ['events', 'tail', '--types', 'data.record.updated', '--payload', 'full', '--cursor', cursor];
    await until(async () => /city: {2}→ Bath/.test(await done(...args, '--no-follow')));
  });

  it('tail fails where events are gone, and names the way on', async () => {
    const cursor = await now();
    const id = await account('Gone');
    await until(async () => (await ada.get(`/events?cursor=${cursor}`)).body.records.length > 0);
    const sql = new pg.Client({ connectionString: platform.database.url });
    await sql.connect();
    const { rows } = await sql.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE 't%'");
    for (const { nspname: schema } of rows)
      await sql.query(
        `DELETE FROM "${schema}"._outbox WHERE sequence <= (SELECT sequence FROM "${schema}"._outbox WHERE record_id = $1)`,
        [id],
      );
    await sql.end();
    const { code, stderr } = await erp(['events', 'tail', '--cursor', cursor, '--no-follow']);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /SYNC_TOKEN_EXPIRED|not kept any more/);
    const next = /continue with --cursor (\S+)/.exec(stderr)?.[1] ?? '';
    assert.equal(await done('events', 'tail', '--cursor', next, '--no-follow'), '');
  });

  it('listen signs what it sends as webhooks are signed, and goes on after failures', async () => {
    const cursor = await now();
    const ids = [await account('Listen one'), await account('Listen two')];
    const args = ['events', 'listen', ...CREATED, '--cursor', cursor, '--no-follow', '--forward'];
    await until(async () => (await ada.get(`/events?cursor=${cursor}`)).body.records.length > 1);
    const { code, stdout, stderr } = await erp([...args, hook]);
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      stdout.split('\n').map((line) => line.replace(/\d+ ms/, 'ms')),
      [...ids.map((id) => `204\tms\tdata.record.created\tAccount/${id}`), ''],
    );
    const secret = /whsec_\S+/.exec(stderr)?.[0] ?? '';
    for (const { headers, body } of received) {
      const { id } = JSON.parse(body);
      const seconds = Number(headers['webhook-timestamp']);
      assert.equal(headers['content-type'], 'application/cloudevents+json');
      for (const [name, value] of Object.entries(signedHeaders([secret], { id, seconds, body })))
        assert.equal(headers[name], value);
    }
    assert.match(await done(...args, hook.replace('hooks', 'broken')), /^500\t.*\n500\t/);
    assert.match(await done(...args, 'http://127.0.0.1:9/'), /^The connection.*\n|cannot be reached/);
    const refused = await erp([...args, 'https://shop.example/hooks']);
    assert.deepEqual([refused.code, /is no address of this machine/.test(refused.stderr)], [2, true]);
  });

  it('webhooks are made, tested, paused, replayed and deleted', async () => {
    const settings = ['--name', 'Shop', '--url', hook, '--types', 'data.record.created', '--objects', 'Account'];
    const made = await erp(['webhooks', 'create', ...settings]);
    assert.equal(made.code, 0, made.stderr);
    const [, id = '', secret = ''] = /^id\t(\S+)\nsecret\t(whsec_\S+)\n$/.exec(made.stdout) ?? [];
    assert.match(made.stderr, /^Store the secret/);
    assert.equal(await done('webhooks', 'list'), `${id}\tactive\tShop\t${hook}\tdata.record.created`);
    const delivery = await done('webhooks', 'test', id);
    await until(() => received.length > 0);
    const [{ headers, body }] = received as [Received];
    const sent = { id: JSON.parse(body).id, seconds: Number(headers['webhook-timestamp']), body };
    assert.equal(headers['webhook-signature'], signedHeaders([secret], sent)['webhook-signature']);
    await until(async () => (await done('webhooks', 'deliveries', id)).startsWith(`${delivery}\tdelivered\t`));
    assert.equal(await done('webhooks', 'deliveries', id, '--status', 'parked'), '');
    assert.equal(await done('webhooks', 'pause', id), id);
    assert.match(await done('webhooks', 'get', id), /^state\tpaused$/m);
    assert.equal(await done('webhooks', 'activate', id), id);
    assert.match(await done('webhooks', 'replay', id, '--only-failed'), /^0 events are sent again\.$/);
    const rotated = await done('webhooks', 'rotate', id);
    assert.ok(/^secret\twhsec_/m.test(rotated) && !rotated.includes(secret));
    assert.equal(await done('webhooks', 'delete', id), id);
    assert.equal((await erp(['webhooks', 'get', id])).code, 1);
  });
});

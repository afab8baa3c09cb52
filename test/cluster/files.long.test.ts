/**
 * Files while something fails: processes are killed in the middle of a chunk and of completing, the store refuses, hangs and breaks
 * off, clients go. Every failure has a name, uploads go on, and nothing is left behind that the sweep does not remove.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { ALL_SERVICES, type ServiceName } from '../../config/services.ts';
import { S3Blobs } from '../../mixins/blobs/s3.ts';
import { Database } from '../../mixins/database/database.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { sweepTenant } from '../../services/files/sweep.ts';
import { digest, post, refused, sha256 } from '../api/files/world.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { tool } from '../support/tools.ts';
import { until } from '../support/until.ts';
import { insist } from './stage.ts';

const MIB = 1024 * 1024;
const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };
const GROUPS = {
  gateway: ['gateway'],
  files: ['files'],
  others: ALL_SERVICES.filter((name) => name !== 'gateway' && name !== 'files'),
} as const;
type Group = keyof typeof GROUPS;

describe('files while something fails', function () {
  this.timeout(300_000);
  const folder = temporaryFolder('s3-faults');
  const processes = new Map<Group, ServiceProcess>();
  const hanging = new Set<ServerResponse>();
  let store: 'whole' | 'refuses' | 'hangs' | 'breaks' | 'silent' | 'drips' | 'stops' = 'whole';
  let bucket: Server;
  let nats: NatsServer;
  let database: TestDatabase;
  let owner: Database;
  let port: number;
  let endpoint: string;
  let baseUrl: string;
  let sam: Api;
  let tenantId: string;

  const start = async (group: Group): Promise<void> => {
    processes.set(
      group,
      await startProcess({
        services: GROUPS[group] as readonly ServiceName[],
        databaseUrl: database.url,
        natsUrl: nats.url,
        env: {
          ...CREDENTIALS,
          BASE_URL: baseUrl,
          PORT: group === 'gateway' ? String(port) : '0',
          HEALTH_PORT: '0',
          SEED_DEMO: 'false',
          FILES_URL: `s3://erp?region=eu-central-1&endpoint=${encodeURIComponent(endpoint)}`,
        },
      }),
    );
  };
  const killAndStart = async (group: Group): Promise<void> => {
    await processes.get(group)!.kill();
    await start(group);
  };

  before(async () => {
    const { default: S3rver } = await import(tool('@20minutes/s3rver', 'lib', 's3rver.js'));
    const s3 = new S3rver({
      silent: true,
      directory: folder,
      configureBuckets: [{ name: 'erp' }],
    });
    await s3.configureBuckets();
    const answer = s3.callback() as (req: IncomingMessage, res: ServerResponse) => void;
    bucket = createServer((req, res) => {
      if (store === 'whole') return answer(req, res);
      if (store === 'hangs') return void hanging.add(res);
      if (store === 'refuses') return void res.writeHead(503).end();
      // Does what it is asked to, and nobody hears of it.
      if (store === 'silent') {
        res.end = () => res.destroy();
        return answer(req, res);
      }
      if (store === 'drips' || store === 'stops') {
        hanging.add(res);
        res.writeHead(206, { 'content-length': String(MIB) }).write(Buffer.alloc(1_000));
        if (store === 'stops') return;
        const drip = setInterval(() => res.write(Buffer.alloc(1)), 1_000);
        return void res.on('close', () => clearInterval(drip));
      }
      // A content of which a part comes, and no more.
      res.writeHead(206, { 'content-length': String(MIB) }).write(Buffer.alloc(1_000), () => res.destroy());
    }).listen(0, '127.0.0.1');
    await once(bucket, 'listening');
    endpoint = `http://127.0.0.1:${(bucket.address() as AddressInfo).port}`;
    [database, nats, port] = await Promise.all([createPlatformDatabase(), startNats(), freePort()]);
    baseUrl = `http://127.0.0.1:${port}`;
    owner = new Database(database.url, { size: 2, applicationName: 'test' });
    await Promise.all((['gateway', 'files', 'others'] as const).map(start));
    sam = api(baseUrl, await tokenFor(baseUrl, 'sam'));
    tenantId = (await insist(() => sam.get('/identity'))).body.tenant.id;
  });
  after(async () => {
    for (const one of processes.values()) await one.stop();
    await nats?.stop();
    await owner?.close();
    await database?.drop();
    bucket?.close();
    bucket?.closeAllConnections();
  });
  afterEach(() => {
    store = 'whole';
    for (const res of hanging) res.destroy();
    hanging.clear();
  });

  const blobs = async (where = 'true'): Promise<string[]> =>
    (
      await owner.query<{ key: string }>(`SELECT key FROM files.blobs WHERE tenant_id = $1 AND ${where}`, [tenantId])
    ).rows.map(({ key }) => key);
  const begin = async (size: number): Promise<string> => {
    const reply = await insist(() => sam.post('/files/uploads', { name: 'a.bin', contentType: 'a/b', size }));
    assert.equal(reply.status, 201, reply.text);
    return `/files/uploads/${reply.body.uploadId}`;
  };
  const headersAt = (offset: number): Record<string, string> => ({
    'content-type': 'application/offset+octet-stream',
    'upload-offset': String(offset),
  });
  const append = (at: string, offset: number, bytes: Uint8Array): Promise<Answer> =>
    sam.send('PATCH', at, bytes, { idempotencyKey: null, headers: headersAt(offset) });
  const offsetOf = async (at: string): Promise<number> => (await insist(() => sam.get(at))).body.offset;
  /** Sends half a chunk; `finish` sends the rest and answers the status, null: the connection was cut. */
  const halfChunk = async (at: string, offset: number, bytes: Uint8Array) => {
    const known = (await blobs()).length;
    const sent = request(`${baseUrl}/api/v1${at}`, {
      method: 'PATCH',
      headers: {
        ...headersAt(offset),
        authorization: `Bearer ${await tokenFor(baseUrl, 'sam')}`,
        'content-length': String(bytes.length),
      },
    });
    const ended = new Promise<number | null>((resolve) => {
      sent.on('error', () => resolve(null));
      sent.on('response', (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? null);
      });
    });
    sent.write(bytes.subarray(0, bytes.length / 2));
    await until(async () => (await blobs()).length > known, 60);
    return {
      leave: () => sent.destroy(),
      finish: () => {
        sent.end(bytes.subarray(bytes.length / 2));
        return ended;
      },
      ended,
    };
  };
  const complete = (at: string, bytes: Uint8Array, key: string): Promise<Answer> =>
    sam.post(`${at}/complete`, { sha256: sha256(bytes) }, { idempotencyKey: key });
  const read = async (fileId: string, headers: Record<string, string> = {}): Promise<Buffer> => {
    const token = await tokenFor(baseUrl, 'sam');
    const answer = await fetch(`${baseUrl}/api/v1/files/${fileId}/content`, {
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
    return Buffer.from(await answer.arrayBuffer());
  };

  for (const group of ['files', 'gateway'] as const)
    it(`an upload goes on after kill -9 of ${group} in the middle of a chunk and of completing`, async () => {
      const bytes = randomBytes(2 * MIB + 3);
      const at = await begin(bytes.length);
      assert.equal((await insist(() => append(at, 0, bytes.subarray(0, MIB)))).status, 204);
      const chunk = await halfChunk(at, MIB, bytes.subarray(MIB));
      const restarted = killAndStart(group);
      const status = await chunk.finish();
      assert.ok([null, 204, 503].includes(status), String(status));
      await restarted;
      // As a whole or not at all; a restarted process may have answered a call that was repeated.
      const offset = await offsetOf(at);
      assert.ok(offset === bytes.length || (offset === MIB && status !== 204), `${status}, ${offset}`);
      if (offset === MIB) assert.equal((await insist(() => append(at, MIB, bytes.subarray(MIB)))).status, 204);
      const key = randomUUID();
      const first = complete(at, bytes, key).catch(() => null);
      await killAndStart(group);
      const early = await first;
      assert.ok(early === null || [201, 503].includes(early.status), early?.text);
      const made = await insist(() => complete(at, bytes, key));
      assert.equal(made.status, 201, made.text);
      assert.ok((await read(made.body.fileId)).equals(bytes));
      const listed = (await insist(() => sam.get('/files?take=200'))).body.records;
      assert.equal(listed.filter((one: { sha256: string }) => one.sha256 === sha256(bytes)).length, 1);
    });

  it('what needs the store is a named 503 while it refuses, and goes on afterwards', async () => {
    const bytes = randomBytes(MIB + 1);
    const at = await begin(bytes.length);
    const kept = (await insist(() => post(sam, Buffer.from('kept')))).body.fileId;
    store = 'refuses';
    const answers = [
      await post(sam, Buffer.from('refused')),
      await append(at, 0, bytes),
      await sam.get(`/files/${kept}/content`),
    ];
    for (const reply of answers) {
      refused(reply, 503, 'SERVICE_UNAVAILABLE');
      assert.ok(Number(reply.headers.get('retry-after')) >= 1);
      assert.match(reply.body.message, /store/);
    }
    // What needs no byte goes on.
    assert.equal((await sam.get(`/files/${kept}`)).status, 200);
    assert.equal(await offsetOf(at), 0);
    store = 'whole';
    assert.equal((await sam.get(`/files/${kept}/content`)).text, 'kept');
    assert.equal((await append(at, 0, bytes)).status, 204);
    assert.equal((await complete(at, bytes, randomUUID())).status, 201);
  });

  it('a chunk whose client gives up while the store hangs is not there, and is sent again', async () => {
    const bytes = randomBytes(MIB);
    const at = await begin(bytes.length);
    store = 'hangs';
    const chunk = await halfChunk(at, 0, bytes);
    void chunk.finish();
    await until(() => hanging.size > 0, 60);
    chunk.leave();
    assert.equal(await chunk.ended, null);
    assert.equal(await offsetOf(at), 0);
    store = 'whole';
    assert.equal((await insist(() => append(at, 0, bytes))).status, 204);
    assert.equal((await complete(at, bytes, randomUUID())).status, 201);
  });

  for (const failing of ['breaks', 'stops'] as const)
    it(`a download is cut, not ended, when the store ${failing} in the middle, and goes on with a range`, async () => {
      const bytes = randomBytes(MIB);
      const { fileId } = (await insist(() => post(sam, bytes))).body;
      store = failing;
      await assert.rejects(read(fileId));
      store = 'whole';
      assert.ok((await read(fileId, { range: 'bytes=1000-' })).equals(bytes.subarray(1_000)));
    });

  it('the bytes that a store has kept without saying so are not forgotten', async () => {
    const bytes = randomBytes(1_000);
    store = 'silent';
    refused(await post(sam, bytes), 503, 'SERVICE_UNAVAILABLE');
    store = 'whole';
    // The last test finds what is left in the bucket.
    assert.equal((await insist(() => post(sam, bytes))).status, 201);
  });

  it('completing an upload whose bytes take long to read is a 503 in time, and goes on with a whole store', async () => {
    const bytes = randomBytes(2 * MIB);
    const at = await begin(bytes.length);
    assert.equal((await insist(() => append(at, 0, bytes.subarray(0, MIB)))).status, 204);
    // The next gateway does not know the hash of the first chunk.
    await killAndStart('gateway');
    assert.equal((await insist(() => append(at, MIB, bytes.subarray(MIB)))).status, 204);
    const key = randomUUID();
    store = 'drips';
    const early = await complete(at, bytes, key);
    refused(early, 503, 'SERVICE_UNAVAILABLE');
    assert.ok(Number(early.headers.get('retry-after')) >= 1);
    store = 'whole';
    for (const res of hanging) res.destroy();
    assert.equal((await insist(() => complete(at, bytes, key))).status, 201);
  });

  it('a content that is not in the store is a 503 that the operator hears of', async () => {
    const { fileId } = (await insist(() => post(sam, Buffer.from('lost')))).body;
    await owner.query(`UPDATE files.blobs SET key = key || '-gone' WHERE sha256 = $1`, [sha256(Buffer.from('lost'))]);
    const reply = await sam.get(`/files/${fileId}/content`);
    await owner.query(`UPDATE files.blobs SET key = replace(key, '-gone', '') WHERE sha256 = $1`, [
      sha256(Buffer.from('lost')),
    ]);
    refused(reply, 503, 'SERVICE_UNAVAILABLE');
    assert.match(processes.get('gateway')!.output(), /There is no blob/);
  });

  it('a client that goes in the middle of a file leaves none', async () => {
    const count = async (): Promise<number> => (await sam.get('/files?take=200')).body.records.length;
    const before = await count();
    const known = (await blobs()).length;
    const bytes = randomBytes(MIB);
    const sent = request(`${baseUrl}/api/v1/files`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await tokenFor(baseUrl, 'sam')}`,
        'idempotency-key': randomUUID(),
        'x-file-name': 'a.bin',
        'content-type': 'application/octet-stream',
        'content-digest': digest(bytes),
        'content-length': String(bytes.length),
      },
    });
    sent.on('error', () => {});
    sent.write(bytes.subarray(0, 1_000));
    await until(async () => (await blobs()).length > known, 60);
    sent.destroy();
    // Told at once: nothing waits for the sweep.
    await until(async () => (await blobs()).length === known, 60);
    assert.equal(await count(), before);
  });

  it('nothing of it is left for ever: the sweep leaves the bytes of files alone', async () => {
    await owner.query(`UPDATE files.blobs SET noted_at = noted_at - interval '2 days'`);
    const saved = Object.keys(CREDENTIALS).map((name) => [name, process.env[name]] as const);
    Object.assign(process.env, CREDENTIALS);
    try {
      const blobsInBucket = new S3Blobs({
        by: 's3',
        bucket: 'erp',
        prefix: '',
        endpoint,
        region: 'eu-central-1',
        redirects: false,
      });
      const jobs = { enqueue: () => assert.fail('no content waits for a scan') } as never;
      await sweepTenant(
        { database: owner, blobs: blobsInBucket, jobs, referenced: () => assert.fail('no file is old') },
        tenantId,
        new AbortController().signal,
      );
    } finally {
      for (const [name, value] of saved)
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
    }
    const ofContents = (await blobs('sha256 IS NOT NULL')).sort();
    assert.deepEqual((await blobs()).sort(), ofContents);
    const stored = readdirSync(join(folder, 'erp'), { recursive: true, encoding: 'utf8' });
    assert.deepEqual(stored.flatMap((name) => /^(.*)\._S3rver_object$/.exec(name)?.[1] ?? []).sort(), ofContents);
  });
});

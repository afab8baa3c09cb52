import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { S3Config } from '../../../config/files.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { S3Blobs } from '../../../mixins/blobs/s3.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { tool } from '../../support/tools.ts';
import { describeStore } from './stores.ts';

const at = (server: Server): S3Config => ({
  by: 's3',
  bucket: 'erp',
  prefix: 'files/',
  endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  region: 'eu-central-1',
  redirects: false,
});

describe('Blobs in a bucket', function () {
  this.timeout(60_000);
  const credentials = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };
  const saved = Object.keys(credentials).map((name) => [name, process.env[name]] as const);
  let server: Server;
  before(async () => {
    Object.assign(process.env, credentials);
    const { default: S3rver } = await import(tool('@20minutes/s3rver', 'lib', 's3rver.js'));
    const store = new S3rver({ silent: true, directory: temporaryFolder('s3'), configureBuckets: [{ name: 'erp' }] });
    await store.configureBuckets();
    server = createServer(store.callback()).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => {
    server.close();
    server.closeAllConnections();
    for (const [name, value] of saved)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });

  describeStore(() => new S3Blobs(at(server)));

  it('have signed addresses where callers reach the bucket, and none elsewhere', async () => {
    const blobs = new S3Blobs({ ...at(server), redirects: true });
    const key = blobs.newKey('tenant-1');
    const source = (async function* () {
      yield Buffer.from('x');
    })();
    await blobs.write(key, source);
    const disposition = 'attachment; filename="a.txt"';
    const download = { contentType: 'text/plain', disposition, validSeconds: 60 };
    const url = new URL((await blobs.signedUrl(key, download)) ?? '');
    assert.equal(url.searchParams.get('X-Amz-Expires'), '60');
    const answer = await fetch(url);
    assert.deepEqual(
      [
        answer.status,
        answer.headers.get('content-disposition'),
        answer.headers.get('content-type'),
        await answer.text(),
      ],
      [200, disposition, 'text/plain', 'x'],
    );
    for (const [name, value] of [
      ['X-Amz-Expires', '600'],
      ['response-content-disposition', 'inline'],
      ['X-Amz-Signature', 'f'.repeat(64)],
    ] as const) {
      const other = new URL(url);
      other.searchParams.set(name, value);
      assert.equal((await fetch(other)).status, 403, name);
    }
    assert.equal(await new S3Blobs(at(server)).signedUrl(key, download), null);
  });

  it('stop waiting for a store that does not answer when the signal is aborted', async () => {
    const hanging = createServer().listen(0, '127.0.0.1');
    await once(hanging, 'listening');
    const abortion = new AbortController();
    const reason = new Error('The time is up.');
    hanging.once('request', () => abortion.abort(reason));
    const source = (async function* () {
      yield Buffer.from('x');
    })();
    await assert.rejects(new S3Blobs(at(hanging)).write('a', source, abortion.signal), reason);
    hanging.close();
    hanging.closeAllConnections();
  });

  it('answer 503 when the store fails or is away', async () => {
    const failing = createServer((_req, res) => res.writeHead(500).end()).listen(0, '127.0.0.1');
    await once(failing, 'listening');
    const config = at(failing);
    const isUnavailable = (error: unknown) => error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE';
    await assert.rejects(new S3Blobs(config).read('a', { from: 0, bytes: 1 }), isUnavailable);
    failing.close();
    failing.closeAllConnections();
    const write = new S3Blobs(config).write('a', (async function* () {})());
    await assert.rejects(write, isUnavailable);
  });
});

/** Contents in a bucket: encrypted ones as in a folder, and others from the bucket itself. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tokenFor } from '../../support/client.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { tool } from '../../support/tools.ts';
import type { Deals } from '../data/deals.ts';
import { refused, sha256, startFiles, store } from './world.ts';

const MIB = 1024 * 1024;

for (const encrypted of [true, false])
  describe(encrypted ? 'encrypted files in a bucket' : 'files in a bucket that callers reach', function () {
    this.timeout(120_000);
    const credentials = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };
    const saved = Object.keys(credentials).map((name) => [name, process.env[name]] as const);
    let server: Server;
    let bucket: { allowMismatchedSignatures: boolean; configureBuckets(): Promise<void>; callback(): RequestListener };
    let deals: Deals;
    before(async () => {
      Object.assign(process.env, credentials);
      const { default: S3rver } = await import(tool('@20minutes/s3rver', 'lib', 's3rver.js'));
      bucket = new S3rver({
        silent: true,
        directory: temporaryFolder('s3-files'),
        configureBuckets: [{ name: 'erp' }],
      });
      await bucket.configureBuckets();
      server = createServer(bucket.callback()).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const endpoint = encodeURIComponent(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      deals = await startFiles({
        env: {
          FILES_URL: `s3://erp/files?region=eu-central-1&endpoint=${endpoint}&redirects=true`,
          ...(encrypted ? { FILES_KEY: 'the key of this test, of at least 32 characters' } : {}),
        },
      });
    });
    after(async () => {
      await deals?.platform.stop();
      server?.close();
      server?.closeAllConnections();
      for (const [name, value] of saved)
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
    });

    it(`are read ${encrypted ? 'from the platform alone' : 'from the bucket'} by clients that follow redirections`, async () => {
      const { sam, sue, eve } = deals.as;
      const { fileId } = await store(sam, 'in a bucket', { name: 'a b.txt' });
      const at = `/files/${fileId}/content`;
      for (const who of [sue, eve]) refused(await who.get(`${at}?redirect=true`), 404, 'FILE_NOT_FOUND');
      refused(await sam.get(`${at}?redirect=x`), 400, 'PARAMETER_INVALID');
      assert.equal((await sam.get(`${at}?redirect=false`)).status, 200);
      const answer = await sam.get(`${at}?redirect=true`);
      if (encrypted) return assert.deepEqual([answer.status, answer.text], [200, 'in a bucket']);
      assert.deepEqual([answer.status, answer.text, answer.headers.get('cache-control')], [302, '', 'no-store']);
      // It leaves the quotes and the asterisk of a Content-Disposition as they are, which are encoded in what is signed.
      bucket.allowMismatchedSignatures = true;
      const read = await fetch(answer.headers.get('location')!);
      bucket.allowMismatchedSignatures = false;
      assert.deepEqual(
        [read.status, read.headers.get('content-type'), await read.text()],
        [200, 'text/plain', 'in a bucket'],
      );
      assert.match(read.headers.get('content-disposition') ?? '', /^attachment; .*a%20b\.txt/);
    });

    it('are what was sent, in one request and in chunks', async () => {
      const { sam } = deals.as;
      const { fileId } = await store(sam, 'in a bucket');
      assert.equal((await sam.get(`/files/${fileId}/content`)).text, 'in a bucket');
      const bytes = randomBytes(13 * MIB + 1);
      const begun = await sam.post('/files/uploads', { name: 'a.bin', contentType: 'a/b', size: bytes.length });
      const at = `/files/uploads/${begun.body.uploadId}`;
      for (let offset = 0; offset < bytes.length; offset += 6 * MIB) {
        const reply = await sam.send('PATCH', at, bytes.subarray(offset, offset + 6 * MIB), {
          idempotencyKey: null,
          headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset) },
        });
        assert.equal(reply.status, 204, reply.text);
      }
      const made = await sam.post(`${at}/complete`, { sha256: sha256(bytes) });
      assert.equal(made.status, 201, made.text);
      const { baseUrl } = deals.platform;
      const read = (range: Record<string, string> = {}) =>
        tokenFor(baseUrl, 'sam')
          .then((token) =>
            fetch(`${baseUrl}/api/v1/files/${made.body.fileId}/content`, {
              headers: { authorization: `Bearer ${token}`, ...range },
            }),
          )
          .then(async (answer) => Buffer.from(await answer.arrayBuffer()));
      assert.ok((await read()).equals(bytes));
      const [from, to] = [6 * MIB - 3, 6 * MIB + 2];
      assert.ok((await read({ range: `bytes=${from}-${to}` })).equals(bytes.subarray(from, to + 1)));
    });
  });

/** Answers that are the content of blobs: in whole, in part, only when it has changed, and to clients that do not read. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rmSync, truncateSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { LIMITS } from '../../../lib/limits.ts';
import { FolderBlobs } from '../../../mixins/blobs/folder.ts';
import { until } from '../../support/until.ts';
import { type StreamedStage, startStreamedStage } from './streamed-service.ts';

const PARTS = [700_001, 1, 300_000].map((size) => randomBytes(size));
const ALL = Buffer.concat(PARTS);
const sha256 = (encoding: 'hex' | 'base64', bytes = ALL): string => createHash('sha256').update(bytes).digest(encoding);
const ETAG = `"${sha256('hex')}"`;

describe('A file as an answer', function () {
  this.timeout(60_000);
  let streamed: StreamedStage;
  const blobs = (): FolderBlobs => new FolderBlobs(join(streamed.folder, 'files'));
  const store = async (key: string, bytes: Buffer): Promise<{ key: string; bytes: number }> => {
    await blobs().write(
      key,
      (async function* () {
        yield bytes;
      })(),
    );
    return { key, bytes: bytes.length };
  };
  const show = async (key: string, ...parts: Buffer[]): Promise<void> => {
    streamed.file = {
      parts: await Promise.all(parts.map((part, i) => store(`${key}/${i}`, part))),
      sha256: sha256('hex', Buffer.concat(parts)),
      contentType: 'image/png',
    };
  };
  before(async () => {
    streamed = await startStreamedStage();
  });
  after(() => streamed.stage.stop());
  beforeEach(() => show('test', ...PARTS));
  const get = (headers: Record<string, string> = {}, method = 'GET') =>
    streamed.stage.send(method, '/files/content', { headers });

  it('is sent whole, with its digest', async () => {
    const { status, body, headers } = await get();
    assert.equal(status, 200);
    assert.ok(body.equals(ALL));
    assert.equal(headers['content-type'], 'image/png');
    assert.equal(headers['content-length'], String(ALL.length));
    assert.equal(headers.etag, ETAG);
    assert.equal(headers['repr-digest'], `sha-256=:${sha256('base64')}:`);
    assert.equal(headers['accept-ranges'], 'bytes');
    assert.equal(headers['content-disposition'], 'attachment');
    assert.equal(headers['cache-control'], 'private, no-cache');
    assert.equal(headers['x-content-type-options'], 'nosniff');
  });

  it('is sent in part, across its blobs', async () => {
    const last = ALL.length - 1;
    for (const [range, from, to] of [
      ['bytes=0-0', 0, 0],
      ['bytes=10-', 10, last],
      ['bytes=-5', last - 4, last],
      ['bytes=-99999999', 0, last],
      ['bytes=700000-700002', 700_000, 700_002],
      ['bytes=700001-700001', 700_001, 700_001],
      ['bytes=700002-700002', 700_002, 700_002],
      ['bytes=5-99999999999', 5, last],
    ] as const) {
      const { status, body, headers } = await get({ range });
      assert.equal(status, 206, range);
      assert.equal(headers['content-range'], `bytes ${from}-${to}/${ALL.length}`);
      assert.ok(body.equals(ALL.subarray(from, to + 1)), range);
    }
  });

  it('is sent whole for ranges that a server may ignore', async () => {
    for (const range of [
      'bytes=',
      'bytes=5-2',
      'bytes=0-1,5-6',
      'records=0-1',
      'bytes=a-b',
      'bytes=-',
      'x'.repeat(1_000),
    ])
      assert.deepEqual([(await get({ range })).status, range], [200, range]);
  });

  it('answers 416 with its length for what is behind its end', async () => {
    for (const range of [`bytes=${ALL.length}-`, 'bytes=-0']) {
      const { status, json, headers } = await get({ range });
      assert.deepEqual([status, json.code, json.details], [416, 'RANGE_NOT_SATISFIABLE', { bytes: ALL.length }]);
      assert.equal(headers['content-range'], `bytes */${ALL.length}`);
    }
  });

  it('answers conditions by its digest', async () => {
    const notModified = await get({ 'if-none-match': `"x", ${ETAG}` });
    assert.deepEqual([notModified.status, notModified.body.length, notModified.headers.etag], [304, 0, ETAG]);
    assert.equal((await get({ 'if-none-match': '"x"' })).status, 200);
    assert.equal((await get({ 'if-match': ETAG })).status, 200);
    const failed = await get({ 'if-match': '"x"' });
    assert.deepEqual([failed.status, failed.json.code], [412, 'ETAG_MISMATCH']);
    assert.equal((await get({ range: 'bytes=0-0', 'if-range': ETAG })).status, 206);
    for (const other of ['"x"', `W/${ETAG}`, 'Sat, 28 Nov 2026 16:00:00 GMT'])
      assert.equal((await get({ range: 'bytes=0-0', 'if-range': other })).status, 200);
  });

  it('answers HEAD with its length and no byte', async () => {
    const { status, headers, body } = await get({ range: 'bytes=0-0' }, 'HEAD');
    assert.deepEqual(
      [status, headers['content-length'], body.length, headers.etag],
      [200, String(ALL.length), 0, ETAG],
    );
  });

  it('may be empty', async () => {
    await show('empty', Buffer.alloc(0));
    const { status, headers, body } = await get();
    assert.deepEqual([status, headers['content-length'], body.length], [200, '0', 0]);
    assert.equal((await get({ range: 'bytes=0-' })).status, 416);
  });

  it('is an error when a blob is missing, and ends early when one is shorter than noted', async () => {
    rmSync(join(streamed.folder, 'files/test/0'));
    assert.equal((await get()).status, 503);
    await show('test', ...PARTS);
    truncateSync(join(streamed.folder, 'files/test/2'), 10);
    await assert.rejects(get(), /aborted|socket hang up/);
  });

  it('is cut when its client does not read for the idle time of the row, and its place is free', async () => {
    const big = Buffer.alloc(8 * 1024 * 1024, 'x');
    await show('big', big, big, big, big);
    const ignore = async (): Promise<IncomingMessage> => {
      const request = await streamed.open('GET', '/files/content');
      request.on('error', () => {});
      request.end();
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      response.on('error', () => {});
      return response.pause();
    };
    const responses = await Promise.all(Array.from({ length: LIMITS.file_answers_of_caller_max }, ignore));
    const refused = await get();
    assert.deepEqual([refused.status, refused.json.code], [429, 'CONCURRENCY_LIMIT_EXCEEDED']);
    const metrics = async (): Promise<string> => (await streamed.stage.send('GET', '//metrics', { token: null })).text;
    assert.match(await metrics(), new RegExp(`erp_http_streams\\{kind="file"\\} ${responses.length}`));
    // None wait while the next chunk is read from the store and the system has taken the last one.
    const unsent = async (): Promise<number> => Number(/^erp_http_unsent_bytes (\d+)$/m.exec(await metrics())?.[1]);
    await until(async () => {
      const bytes = await unsent();
      assert.ok(bytes <= responses.length * 1024 * 1024, `${bytes} bytes wait`);
      return bytes > 0;
    });
    await until(async () => (await get({ range: 'bytes=0-0' })).status === 206);
    assert.match(await metrics(), /erp_http_connections_cut_total\{reason="stalled"\} \d+/);
    for (const response of responses) response.destroy();
  });
});

/** Files over HTTP: each operation works, malformed, forbidden, from another tenant. Source: docs/reference/files.md. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { Api } from '../../support/client.ts';
import type { Deals } from '../data/deals.ts';
import { digest, post, refused, sha256, startFiles, store } from './world.ts';

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

describe('files over HTTP', () => {
  let deals: Deals;
  let sam: Api;
  let sue: Api;
  let eve: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startFiles();
    ({ sam, sue, eve } = deals.as);
  });
  after(() => deals?.platform.stop());

  it('are stored in one request and read as they were', async () => {
    const bytes = Buffer.from('Dear Sir or Madam,\n');
    const reply = await post(sam, bytes, { name: 'Größe & „Preis“.txt' });
    assert.equal(reply.status, 201, reply.text);
    const { fileId, createdAt, updatedAt, ...rest } = reply.body;
    assert.deepEqual(rest, {
      name: 'Größe & „Preis“.txt',
      description: null,
      contentType: 'text/plain',
      size: bytes.length,
      sha256: sha256(bytes),
      state: 'ready',
      version: 1,
      attachedTo: [],
      createdById: deals.ids.sam,
    });
    assert.equal(reply.headers.get('location'), `/api/v1/files/${fileId}`);
    const got = await sam.get(`/files/${fileId}`);
    assert.deepEqual(got.body, reply.body);
    assert.equal(got.headers.get('etag'), reply.headers.get('etag'));
    const content = await sam.get(`/files/${fileId}/content`);
    assert.equal(content.text, bytes.toString());
    const header = (name: string) => content.headers.get(name);
    assert.equal(header('repr-digest'), digest(bytes));
    assert.equal(header('x-content-type-options'), 'nosniff');
    assert.equal(header('content-security-policy'), "sandbox; default-src 'none'");
    assert.equal(
      header('content-disposition'),
      `attachment; filename="Gr__e & _Preis_.txt"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%26%20%E2%80%9EPreis%E2%80%9C.txt`,
    );
  });

  it('are read in ranges, and not at all by those who have them', async () => {
    const { fileId, sha256: hash } = await store(sam, '0123456789');
    const read = (headers: Record<string, string>) => sam.get(`/files/${fileId}/content`, { headers });
    const part = await read({ range: 'bytes=2-4' });
    assert.deepEqual([part.status, part.text, part.headers.get('content-range')], [206, '234', 'bytes 2-4/10']);
    assert.equal((await read({ range: 'bytes=2-4', 'if-range': `"${hash}"` })).status, 206);
    assert.equal((await read({ range: 'bytes=2-4', 'if-range': '"another"' })).text, '0123456789');
    refused(await read({ range: 'bytes=10-' }), 416, 'RANGE_NOT_SATISFIABLE');
    assert.equal((await read({ 'if-none-match': `"${hash}"` })).status, 304);
    const head = await sam.send('HEAD', `/files/${fileId}/content`);
    assert.deepEqual([head.status, head.headers.get('content-length')], [200, '10']);
  });

  it('have the type that their bytes show, and never one that a browser runs', async () => {
    const typeOf = async (bytes: Buffer | string, type: string): Promise<string> =>
      (await store(sam, bytes, { type })).contentType;
    assert.equal(await typeOf(PNG, 'text/plain'), 'image/png');
    assert.equal(await typeOf('a;b\n1;2\n', 'text/csv; charset=utf-8'), 'text/csv');
    for (const [bytes, type] of [
      ['<html><script>alert(1)</script></html>', 'text/html'],
      ['<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>', 'image/svg+xml'],
      ['alert(1)', 'text/javascript'],
      ['no picture', 'image/png'],
      [randomBytes(100), 'text/plain'],
      ['x', 'not a type'],
    ] as const)
      assert.equal(await typeOf(Buffer.from(bytes), type), 'application/octet-stream', type);
  });

  it('may be empty', async () => {
    const { fileId, size } = await store(sam, '');
    assert.equal(size, 0);
    const content = await sam.get(`/files/${fileId}/content`);
    assert.deepEqual([content.status, content.text, content.headers.get('content-length')], [200, '', '0']);
  });

  it('are made once for each key, whatever is sent again', async () => {
    const options = { idempotencyKey: randomUUID() };
    const first = await post(sam, Buffer.from('once'), options);
    const again = await post(sam, Buffer.from('once'), options);
    assert.deepEqual(again.body, first.body);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    refused(await post(sam, Buffer.from('twice'), options), 409, 'IDEMPOTENCY_KEY_REUSED');
    refused(await post(sam, Buffer.from('once'), { ...options, name: 'other.txt' }), 409, 'IDEMPOTENCY_KEY_REUSED');
  });

  it('count with their size each, also when their content is the same', async () => {
    const bytes = randomBytes(1_000);
    const used = async (who: Api): Promise<number> => (await who.get('/me/limits')).body.storage.files.usedBytes;
    const before = [await used(sam), await used(eve)];
    await Promise.all([store(sam, bytes), store(sue, bytes), store(sam, bytes)]);
    await store(eve, bytes);
    assert.deepEqual([await used(sam), await used(eve)], [before[0]! + 3_000, before[1]! + 1_000]);
  });

  it('are refused when bytes, name or type are not in order', async () => {
    const bytes = Buffer.from('x');
    refused(
      await post(sam, bytes, { headers: { 'content-digest': digest(Buffer.from('y')) } }),
      409,
      'UPLOAD_CHECKSUM_MISMATCH',
    );
    refused(await post(sam, bytes, { headers: { 'content-digest': 'md5=:x:' } }), 400, 'PARAMETER_INVALID');
    const tooLong = await post(sam, Buffer.alloc(10 * 1024 * 1024 + 1));
    refused(tooLong, 413, 'REQUEST_TOO_LARGE');
    assert.match(tooLong.body.message, /POST \/files\/uploads/);
    refused(await post(sam, bytes, { headers: { 'content-encoding': 'gzip' } }), 415, 'MEDIA_TYPE_UNSUPPORTED');
    refused(await post(sam, bytes, { idempotencyKey: null }), 400, 'IDEMPOTENCY_KEY_REQUIRED');
    for (const name of ['../../etc/passwd', 'a\\b', 'a\nb', 'a\0b', '..', 'invoice\u202efdp.exe', 'x'.repeat(256)]) {
      const reply = await post(sam, bytes, { name });
      refused(reply, 400, 'PARAMETER_INVALID');
      assert.equal(reply.body.errors[0].pointer, 'header:X-File-Name');
    }
    for (const name of ['%zz', Buffer.from('für.txt').toString('latin1')]) {
      const reply = await post(sam, bytes, { headers: { 'x-file-name': name } });
      refused(reply, 400, 'PARAMETER_INVALID');
      assert.match(reply.body.message, /percent-encoded/);
    }
    refused(await post(sam, bytes, { query: '?objectApiName=Deal__c' }), 400, 'PARAMETER_REQUIRED');
    refused(await post(sam, bytes, { query: '?objectApiName=Deal__c&recordId=x' }), 400, 'PARAMETER_INVALID');
  });

  it('are renamed and described in the version that was read', async () => {
    const { fileId } = await store(sam, 'to be renamed');
    const at = `/files/${fileId}`;
    const etag = (await sam.get(at)).headers.get('etag')!;
    const reply = await sam.patch(at, { name: 'b.txt', description: 'Second draft' }, { etag });
    assert.deepEqual(
      [reply.status, reply.body.name, reply.body.description, reply.body.version],
      [200, 'b.txt', 'Second draft', 2],
    );
    refused(await sam.patch(at, { name: 'c.txt' }, { etag }), 412, 'ETAG_MISMATCH');
    refused(await sam.patch(at, { name: 'c.txt' }), 400, 'IF_MATCH_REQUIRED');
    const now = reply.headers.get('etag')!;
    assert.equal(
      (await sam.patch(at, { name: 'b.txt' }, { etag: now })).headers.get('etag'),
      now,
      'nothing has changed',
    );
    refused(await sam.patch(at, { name: 'a/b' }, { etag: now }), 400, 'PARAMETER_INVALID');
    refused(await sam.patch(at, { size: 1 }, { etag: now }), 400, 'BODY_PROPERTY_UNKNOWN');
    assert.equal((await sam.patch(at, { description: null }, { etag: now })).body.description, null);
  });

  it('are deleted by their owner, and gone', async () => {
    const { fileId } = await store(sam, 'to be deleted');
    const at = `/files/${fileId}`;
    const etag = (await sam.get(at)).headers.get('etag')!;
    refused(await sam.delete(at), 400, 'IF_MATCH_REQUIRED');
    const renaming = { etag, idempotencyKey: randomUUID() };
    const renamed = await sam.patch(at, { name: 'gone.txt' }, renaming);
    const deleting = { etag: renamed.headers.get('etag') ?? '', idempotencyKey: randomUUID() };
    const reply = await sam.delete(at, deleting);
    assert.deepEqual([reply.status, reply.body.fileId, reply.body.deleted], [200, fileId, true]);
    const again = [await sam.delete(at, deleting), await sam.patch(at, { name: 'gone.txt' }, renaming)];
    assert.deepEqual(
      again.map(({ status, text }) => [status, text]),
      [reply, renamed].map(({ status, text }) => [status, text]),
      'the same request has its outcome when the file is gone',
    );
    refused(await sam.get(at), 404, 'FILE_NOT_FOUND');
    refused(await sam.get(`${at}/content`), 404, 'FILE_NOT_FOUND');
  });

  it('are nobody else’s, and look like none', async () => {
    const { fileId } = await store(sam, 'private');
    const unknown = (await sue.get(`/files/${randomUUID()}`)).body;
    for (const who of [sue, eve, deals.as.ada]) {
      const reply = await who.get(`/files/${fileId}`);
      refused(reply, 404, 'FILE_NOT_FOUND');
      assert.equal(reply.body.message, unknown.message);
      refused(await who.get(`/files/${fileId}/content`), 404, 'FILE_NOT_FOUND');
      refused(await who.patch(`/files/${fileId}`, { name: 'x' }, { etag: '"1"' }), 404, 'FILE_NOT_FOUND');
      refused(await who.delete(`/files/${fileId}`, { etag: '"1"' }), 404, 'FILE_NOT_FOUND');
    }
    refused(await sam.get('/files/x'), 400, 'PARAMETER_INVALID');
    const reader = await deals.sign('sam', 'files:read');
    refused(await post(reader, Buffer.from('x')), 403, 'SCOPE_INSUFFICIENT');
    refused(await (await deals.sign('sam', 'data:read')).get(`/files/${fileId}`), 403, 'SCOPE_INSUFFICIENT');
  });

  it('are listed page by page, the newest first', async () => {
    const mia = deals.as.mia;
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift((await store(mia, `number ${i}`)).fileId);
    const listed: string[] = [];
    let cursor = '';
    do {
      const { status, body, text } = await mia.get(`/files?take=2${cursor}`);
      assert.equal(status, 200, text);
      listed.push(...body.records.map((one: { fileId: string }) => one.fileId));
      cursor = body.nextCursor === null ? '' : `&cursor=${encodeURIComponent(body.nextCursor)}`;
    } while (cursor !== '');
    assert.deepEqual(listed, ids);
    refused(await mia.get('/files?cursor=x'), 400, 'CURSOR_INVALID');
  });
});

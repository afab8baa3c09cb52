/** Ways by which somebody could get at a file that is not theirs, or make a browser run one. Source: docs/reference/files.md. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { type Answer, type Api, tokenFor } from '../../support/client.ts';
import { deploymentEnded, fieldFile, wholePackage } from '../../support/metadata-tenant.ts';
import { until } from '../../support/until.ts';
import { imported, results } from '../bulk/bulk.ts';
import type { Deals } from '../data/deals.ts';
import { digest, post, refused, sha256, startFiles, store, to } from './world.ts';

const all = { create: true, read: true, update: true, delete: true };
const editable = { read: true, edit: true };

const action = (apiName: string, effect: object): Record<string, string> => ({
  [`objects/Deal__c/actions/${apiName}.yaml`]: JSON.stringify({
    type: 'CustomAction',
    apiName,
    object: 'Deal__c',
    label: apiName,
    permission: `Deal__c.${apiName}`,
    input: { type: 'object', properties: { file: { type: 'string' } } },
    effects: [effect],
  }),
});

const FILES = {
  ...fieldFile('Deal__c', 'Code__c', 'fieldType: text\nlength: 40\nunique: true\nexternalId: true'),
  ...fieldFile('DealLine__c', 'Proof__c', 'fieldType: file'),
  ...action('takeFile', { verb: 'updateFields', fields: { Scan__c: 'input.file' } }),
  ...action('showHidden', { verb: 'updateFields', fields: { Scan__c: 'record.Hidden__c' } }),
  ...action('addLine', {
    verb: 'createRecord',
    object: 'DealLine__c',
    fields: { name: "'Line'", Deal__c: 'record.id', Proof__c: 'input.file' },
  }),
  'permissionSets/Deals.yaml': JSON.stringify({
    type: 'PermissionSet',
    apiName: 'Deals',
    label: 'Deals',
    objects: { Deal__c: all, DealLine__c: all },
    fields: Object.fromEntries(
      ['Deal__c.Stage__c', 'Deal__c.Scan__c', 'Deal__c.Code__c', 'DealLine__c.Deal__c', 'DealLine__c.Proof__c'].map(
        (field) => [field, editable],
      ),
    ),
    actions: ['Deal__c.takeFile', 'Deal__c.showHidden', 'Deal__c.addLine'],
  }),
};

describe('attacks on files', function () {
  this.timeout(180_000);
  let deals: Deals;
  let sam: Api;
  let sue: Api;
  let eve: Api;
  let ofSue: string;
  let ofEve: string;
  before(async () => {
    deals = await startFiles();
    await deals.deploy(FILES);
    ({ sam, sue, eve } = deals.as);
    [ofSue, ofEve] = [(await store(sue, 'Of Sue')).fileId, (await store(eve, 'Of Eve')).fileId];
  });
  after(() => deals?.platform.stop());

  const at = (id: string): string => `/data/Deal__c/${id}`;
  const etagOf = async (path: string, who = sam): Promise<string> => (await who.get(path)).headers.get('etag')!;
  const newDeal = async (who = sam): Promise<string> => (await deals.deal(who)).body.id;
  /** What is said of a file, without its id. */
  const said = ({ status, text }: Answer, fileId: string): string => `${status} ${text.replaceAll(fileId, 'ID')}`;
  const withoutRequest = (text: string): string =>
    text.replaceAll(/"(requestId|traceId|timestamp|jobId|startedAt|finishedAt)":"[^"]*"/g, '');

  describe('by a field that names it', () => {
    /** Ways to write a field; each answers why it was not written. */
    const ways: Record<string, (fileId: string) => Promise<Answer['body']>> = {
      create: async (Scan__c) => (await sam.post('/data/Deal__c', { name: 'Deal', Scan__c })).body.errors[0],
      update: async (Scan__c) => {
        const path = at(await newDeal());
        return (await sam.patch(path, { Scan__c }, { etag: await etagOf(path) })).body.errors[0];
      },
      'upsert that creates': async (Scan__c) =>
        (await sam.put(`/data/Deal__c/by/Code__c/${randomUUID()}`, { name: 'Deal', Scan__c })).body.errors[0],
      'upsert that updates': async (Scan__c) => {
        const Code__c = randomUUID();
        const { id } = (await deals.deal(sam, { Code__c })).body;
        const options = { etag: await etagOf(at(id)) };
        return (await sam.put(`/data/Deal__c/by/Code__c/${Code__c}`, { Scan__c }, options)).body.errors[0];
      },
      'create without a commit': async (Scan__c) =>
        (await sam.post('/data/Deal__c/check', { operation: 'create', fields: { name: 'Deal', Scan__c } })).body
          .errors[0],
      composite: async (Scan__c) => {
        const requests = [
          { referenceId: 'a', method: 'POST', path: '/data/Deal__c', body: { name: 'Deal', Code__c: Scan__c } },
          { referenceId: 'b', method: 'POST', path: '/data/Deal__c', body: { name: 'Deal', Scan__c: '@{a.Code__c}' } },
        ];
        const reply = await sam.post('/composite', { requests });
        refused(reply, 422, 'COMPOSITE_FAILED');
        return reply.body.details.results[1].body.errors[0];
      },
      'composite records': async (Scan__c) => {
        const records = [{ fields: { name: 'Good' } }, { fields: { name: 'Deal', Scan__c } }];
        const body = { objectApiName: 'Deal__c', operation: 'create', records };
        const reply = await sam.post('/composite/records', body);
        refused(reply, 422, 'COMPOSITE_FAILED');
        return reply.body.details.results[1].errors[0];
      },
      'bulk rows': async (Scan__c) => {
        const rows = [{ name: 'Good' }, { name: 'Deal', Scan__c }].map((row) => `${JSON.stringify(row)}\n`).join('');
        const job = await imported(sam, { operation: 'create', objectApiName: 'Deal__c', format: 'ndjson' }, rows);
        return (await results(sam, job.jobId, '?outcome=failed'))[0].errors[0];
      },
    };
    for (const [name, write] of Object.entries(ways))
      it(name, async () => {
        for (const fileId of [ofSue, ofEve, randomUUID()]) {
          const { code, message } = await write(fileId);
          assert.deepEqual([code, message], ['REFERENCE_NOT_FOUND', 'Scan__c names no file you can read.']);
        }
      });

    for (const key of ['takeFile', 'addLine'])
      it(`effects of ${key}`, async () => {
        const path = at(await newDeal());
        for (const file of [ofSue, ofEve, randomUUID()]) {
          const input = { input: { file } };
          const reply = await sam.post(`${path}/transitions/${key}`, input, { etag: await etagOf(path) });
          refused(reply, 422, 'VALIDATION_FAILED');
          assert.equal(reply.body.errors[0].code, 'REFERENCE_NOT_FOUND');
        }
        const own = (await store(sam, 'Of Sam')).fileId;
        const body = { input: { file: own } };
        const taken = await sam.post(`${path}/transitions/${key}`, body, { etag: await etagOf(path) });
        assert.equal(taken.status, 201, taken.text);
      });

    it('an effect that copies it from a field that the caller does not see', async () => {
      const { ada } = deals.as;
      const path = at(await newDeal());
      const Hidden__c = (await store(ada, 'hidden')).fileId;
      const options = { etag: await etagOf(path, ada) };
      assert.equal((await ada.patch(path, { Hidden__c }, options)).status, 200);
      const reply = await sam.post(`${path}/transitions/showHidden`, {}, { etag: await etagOf(path) });
      refused(reply, 422, 'VALIDATION_FAILED');
      refused(await sam.get(`/files/${Hidden__c}/content`), 404, 'FILE_NOT_FOUND');
    });

    it('a configured default: fields of files have none', async () => {
      const files = fieldFile('Deal__c', 'Default__c', `fieldType: file\ndefaultValue: ${ofSue}`);
      const reply = await deals.as.ada.post('/metadata/deploy', { files, package: wholePackage(files) });
      const ended = reply.status === 202 ? await deploymentEnded(deals.as.ada, reply) : { status: 'FAILED' };
      assert.equal(ended.status, 'FAILED');
    });
  });

  it('by attaching, changing or deleting it', async () => {
    const record = { objectApiName: 'Deal__c', recordId: await newDeal() };
    const unknown = randomUUID();
    for (const change of [{ attachTo: record }, { detachFrom: record }, { name: 'x' }])
      for (const fileId of [ofSue, ofEve]) {
        const [one, other] = await Promise.all(
          [fileId, unknown].map(async (id) => said(await sam.patch(`/files/${id}`, change, { etag: '"1"' }), id)),
        );
        assert.equal(withoutRequest(one!), withoutRequest(other!));
        refused(await sam.delete(`/files/${fileId}`, { etag: '"1"' }), 404, 'FILE_NOT_FOUND');
      }
    // To a record of somebody else, where its readers would find it.
    const own = await store(sam, 'Of Sam');
    const theirs = { attachTo: { objectApiName: 'Deal__c', recordId: await newDeal(sue) } };
    const options = { etag: await etagOf(`/files/${own.fileId}`) };
    refused(await sam.patch(`/files/${own.fileId}`, theirs, options), 404, 'RECORD_NOT_FOUND');
  });

  it('by an upload of somebody else', async () => {
    const start = { name: 'a', contentType: 'a/b', size: 1 };
    const { uploadId } = (await sue.post('/files/uploads', start)).body;
    const path = `/files/uploads/${uploadId}`;
    const chunk = { headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' } };
    for (const who of [sam, eve]) {
      refused(await who.get(path), 404, 'UPLOAD_NOT_FOUND');
      refused(await who.send('PATCH', path, 'x', { idempotencyKey: null, ...chunk }), 404, 'UPLOAD_NOT_FOUND');
      refused(await who.post(`${path}/complete`, { sha256: sha256(Buffer.from('x')) }), 404, 'UPLOAD_NOT_FOUND');
      refused(await who.delete(path), 404, 'UPLOAD_NOT_FOUND');
    }
    assert.equal((await sue.get(path)).body.offset, 0);
    const record = { objectApiName: 'Deal__c', recordId: await newDeal(sue) };
    refused(await sam.post('/files/uploads', { ...start, attachTo: record }), 404, 'RECORD_NOT_FOUND');
  });

  it('by its content: nothing says that another user or tenant has it', async () => {
    const usedBy = async (who: Api): Promise<number> => (await who.get('/me/limits')).body.storage.files.usedBytes;
    const known = randomBytes(10_000);
    await Promise.all([store(sue, known), store(eve, known)]);
    const shown = async (bytes: Buffer): Promise<string> => {
      const before = await usedBy(sam);
      const { fileId, sha256: hash, createdAt, updatedAt, ...rest } = await store(sam, bytes);
      assert.equal(hash, sha256(bytes));
      assert.equal(createdAt, updatedAt);
      refused(await sue.get(`/files/${fileId}`), 404, 'FILE_NOT_FOUND');
      return JSON.stringify([rest, (await usedBy(sam)) - before]);
    };
    assert.equal(await shown(known), await shown(randomBytes(10_000)));
    // A digest alone gives nobody a content that the tenant has.
    const begun = await sam.post('/files/uploads', {
      name: 'a',
      contentType: 'a/b',
      size: known.length,
      sha256: sha256(known),
    });
    const complete = await sam.post(`/files/uploads/${begun.body.uploadId}/complete`, { sha256: sha256(known) });
    refused(complete, 409, 'UPLOAD_OFFSET_CONFLICT');
    const { fileId } = await store(sue, known);
    refused(
      await sam.get(`/files/${fileId}/content`, { headers: { 'if-none-match': `"${sha256(known)}"` } }),
      404,
      'FILE_NOT_FOUND',
    );
    refused(await sam.get(`/files/${fileId}/content`, { headers: { 'if-match': '"x"' } }), 404, 'FILE_NOT_FOUND');
  });

  it('by names that are paths, break lines or read backwards', async () => {
    const BAD = [
      ...[
        '..',
        '.',
        '../a',
        'a/b',
        '/etc/passwd',
        'C:\\a',
        '\\\\host\\share',
        'a\0.txt',
        'a\r\nSet-Cookie: x=1',
        'a\nb',
      ],
      ...['a\u007f', 'a\u0085b', 'a\u2028b', 'a\u2029b', 'invoice\u202efdp.exe', 'a\u2066b', '', 'x'.repeat(256)],
    ];
    const { fileId } = await store(sam, 'named');
    const etag = await etagOf(`/files/${fileId}`);
    for (const name of BAD) {
      const start = { name, contentType: 'a/b', size: 1 };
      for (const reply of [
        await sam.post('/files/uploads', start),
        await sam.patch(`/files/${fileId}`, { name }, { etag }),
        await post(sam, Buffer.from('x'), { name }),
      ]) {
        assert.equal(reply.status, 400, JSON.stringify([name, reply.text]));
        assert.match(reply.body.code, /^(PARAMETER_(INVALID|REQUIRED)|REQUEST_MALFORMED)$/);
      }
    }
    // In a header that is ASCII, whatever the name is.
    const name = `"a"; filename=b.html; %0d%0aé (1)'*.txt`;
    const named = await store(sam, 'quoted', { name });
    const header = (await sam.get(`/files/${named.fileId}/content`)).headers.get('content-disposition')!;
    const [, plain, whole] = /^attachment; filename="([^"\\%]*)"; filename\*=UTF-8''([\w!#$&+.^`|~%-]+)$/.exec(header)!;
    assert.equal(plain, "_a_; filename=b.html; _0d_0a_ (1)'*.txt");
    assert.equal(decodeURIComponent(whole!), name);
  });

  it('by contents that a browser could run in the origin of the API', async () => {
    const script = '<script>fetch("/api/v1/identity")</script>';
    for (const [bytes, type] of [
      [`<!doctype html>${script}`, 'text/html'],
      [script, 'text/plain'],
      [`<svg xmlns="http://www.w3.org/2000/svg">${script}</svg>`, 'image/svg+xml'],
      [`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg">${script}</svg>`, 'image/png'],
      [`<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">${script}</html>`, 'application/xhtml+xml'],
      ['%PDF-1.7\n/OpenAction', 'text/html'],
      [`GIF89a/*${script}*/=1`, 'text/javascript'],
      ['alert(1)', 'application/javascript; charset=utf-7'],
    ] as const) {
      const { fileId } = await store(sam, bytes, { type, name: 'a.html' });
      for (const headers of [{}, { range: 'bytes=0-3' }] as Record<string, string>[]) {
        const content = await sam.get(`/files/${fileId}/content`, { headers });
        const header = (name: string): string => content.headers.get(name) ?? '';
        assert.match(header('content-type'), /^(?:application\/(?:octet-stream|pdf)|text\/plain|image\/gif)$/);
        assert.match(header('content-disposition'), /^attachment;/);
        assert.equal(header('x-content-type-options'), 'nosniff');
        assert.equal(header('content-security-policy'), "sandbox; default-src 'none'");
      }
    }
  });

  it('by ranges that make no sense', async () => {
    const { fileId } = await store(sam, '0123456789');
    const read = (range: string): Promise<Answer> => sam.get(`/files/${fileId}/content`, { headers: { range } });
    for (const range of [
      'bytes=5-2',
      'bytes=',
      'bytes=-',
      'bytes=a-b',
      'lines=1-2',
      'bytes=0-1,3-4',
      'bytes=1--2',
      'bytes=-1-2',
    ])
      assert.deepEqual([(await read(range)).status, (await read(range)).text], [200, '0123456789'], range);
    for (const range of ['bytes=10-', 'bytes=999999999999999-', 'bytes=-0'])
      refused(await read(range), 416, 'RANGE_NOT_SATISFIABLE');
    for (const [range, text] of [
      ['bytes=9-999999999999999', '9'],
      ['bytes=-999999999999999', '0123456789'],
      ['bytes=0-0', '0'],
    ] as const)
      assert.deepEqual([(await read(range)).status, (await read(range)).text], [206, text], range);
    const empty = (await store(sam, '')).fileId;
    refused(await sam.get(`/files/${empty}/content`, { headers: { range: 'bytes=0-' } }), 416, 'RANGE_NOT_SATISFIABLE');
  });

  it('by bytes that are not those that were declared', async () => {
    const bytes = Buffer.from('declared');
    const token = await tokenFor(deals.platform.baseUrl, 'sam');
    /** The answer to a request that says how long it is, and is not; null: the connection was closed. */
    const claim = (length: number): Promise<number | null> =>
      new Promise((resolve) => {
        const sent = request(`${deals.platform.baseUrl}/api/v1/files`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${token}`,
            'idempotency-key': randomUUID(),
            'x-file-name': 'a.txt',
            'content-type': 'text/plain',
            'content-digest': digest(bytes),
            'content-length': length,
          },
        });
        sent.on('response', ({ statusCode = 0 }) => resolve(statusCode));
        sent.on('error', () => resolve(null));
        sent.write(bytes, () => sent.destroy());
      });
    const count = async (): Promise<number> => (await sam.get('/files?take=200')).body.records.length;
    const before = await count();
    assert.ok([null, 400].includes(await claim(bytes.length + 1)), 'shorter than declared');
    refused(
      await post(sam, bytes, { headers: { 'content-digest': digest(Buffer.from('other')) } }),
      409,
      'UPLOAD_CHECKSUM_MISMATCH',
    );
    assert.equal(await count(), before);
    // Chunks twice, out of their order, missing and too many.
    const MIB = 1024 * 1024;
    const whole = randomBytes(2 * MIB + 1);
    const { uploadId } = (await sam.post('/files/uploads', { name: 'a', contentType: 'a/b', size: whole.length })).body;
    const path = `/files/uploads/${uploadId}`;
    const append = (offset: number, from: number, end: number, headers = {}): Promise<Answer> =>
      sam.send('PATCH', path, whole.subarray(from, end), {
        idempotencyKey: null,
        headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset), ...headers },
      });
    refused(await append(MIB, MIB, 2 * MIB), 409, 'UPLOAD_OFFSET_CONFLICT');
    assert.equal((await append(0, 0, MIB)).status, 204);
    const twice = await append(0, 0, MIB);
    refused(twice, 409, 'UPLOAD_OFFSET_CONFLICT');
    assert.equal(twice.body.details.offset, MIB);
    refused(await sam.post(`${path}/complete`, { sha256: sha256(whole) }), 409, 'UPLOAD_OFFSET_CONFLICT');
    refused(await append(MIB, 0, MIB + 2), 413, 'REQUEST_TOO_LARGE');
    refused(await append(MIB, MIB, whole.length, { 'content-digest': digest(whole) }), 409, 'UPLOAD_CHECKSUM_MISMATCH');
    assert.equal((await append(MIB, MIB, whole.length)).status, 204);
    refused(await sam.post(`${path}/complete`, { sha256: sha256(bytes) }), 409, 'UPLOAD_CHECKSUM_MISMATCH');
    await until(async () => (await sam.post(`${path}/complete`, { sha256: sha256(whole) })).status === 201);
    refused(await sam.get(`/files${to(randomUUID())}`), 404, 'RECORD_NOT_FOUND');
  });
});

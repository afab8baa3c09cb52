/** Uploads in chunks over HTTP. Source: docs/reference/files.md#uploads. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { LIMITS } from '../../../lib/limits.ts';
import { Database } from '../../../mixins/database/database.ts';
import type { Answer, Api } from '../../support/client.ts';
import { api, tokenFor } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import type { Deals } from '../data/deals.ts';
import { digest, refused, sha256, startFiles, to } from './world.ts';

const MIB = 1024 * 1024;

describe('uploads in chunks', () => {
  let deals: Deals;
  let sam: Api;
  let sue: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startFiles();
    ({ sam, sue } = deals.as);
  });
  after(() => deals?.platform.stop());

  const begin = async (size: number, more: object = {}): Promise<string> => {
    const reply = await sam.post('/files/uploads', { name: 'film.bin', contentType: 'video/mp4', size, ...more });
    assert.equal(reply.status, 201, reply.text);
    assert.equal(reply.headers.get('location'), `/api/v1/files/uploads/${reply.body.uploadId}`);
    return reply.body.uploadId;
  };
  const append = (
    id: string,
    offset: number,
    bytes: Uint8Array,
    headers: Record<string, string> = {},
    who = sam,
  ): Promise<Answer> =>
    who.send('PATCH', `/files/uploads/${id}`, bytes, {
      idempotencyKey: null,
      headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset), ...headers },
    });
  const complete = (id: string, hash: string, options = {}): Promise<Answer> =>
    sam.post(`/files/uploads/${id}/complete`, { sha256: hash }, options);
  const offsetOf = async (id: string): Promise<string | null> =>
    (await sam.send('HEAD', `/files/uploads/${id}`)).headers.get('upload-offset');

  it('become a file when every chunk is there', async () => {
    const bytes = randomBytes(2 * MIB + 5);
    const id = await begin(bytes.length);
    const first = await append(id, 0, bytes.subarray(0, MIB));
    assert.deepEqual(
      [first.status, first.headers.get('upload-offset'), first.headers.get('upload-length')],
      [204, String(MIB), String(bytes.length)],
    );
    refused(await complete(id, sha256(bytes)), 409, 'UPLOAD_OFFSET_CONFLICT');
    assert.equal(
      (await append(id, MIB, bytes.subarray(MIB), { 'content-digest': digest(bytes.subarray(MIB)) })).status,
      204,
    );
    assert.equal(await offsetOf(id), String(bytes.length));
    const options = { idempotencyKey: randomUUID() };
    const made = await complete(id, sha256(bytes), options);
    assert.deepEqual(
      [made.status, made.body.size, made.body.sha256, made.body.name],
      [201, bytes.length, sha256(bytes), 'film.bin'],
    );
    const again = await complete(id, sha256(bytes), options);
    assert.deepEqual(again.body, made.body);
    refused(await sam.get(`/files/uploads/${id}`), 404, 'UPLOAD_NOT_FOUND');
    const at = `${deals.platform.baseUrl}/api/v1/files/${made.body.fileId}/content`;
    const headers = { authorization: `Bearer ${await tokenFor(deals.platform.baseUrl, 'sam')}` };
    const whole = await fetch(at, { headers });
    assert.ok(Buffer.from(await whole.arrayBuffer()).equals(bytes));
    const across = await fetch(at, { headers: { ...headers, range: `bytes=${MIB - 2}-${MIB + 1}` } });
    assert.ok(Buffer.from(await across.arrayBuffer()).equals(bytes.subarray(MIB - 2, MIB + 2)));
  });

  it('are hashed as they come, and read again only where that was not possible', async () => {
    const database = new Database(deals.platform.database.url, { size: 1, applicationName: 'test' });
    const known = async (id: string): Promise<string | null> =>
      (
        await database.query<{ known: string | null }>(
          'SELECT received_sha256 AS known FROM files.uploads WHERE upload_id = $1',
          [id],
        )
      ).rows[0]!.known;
    const bytes = randomBytes(2 * MIB + 1);
    const uploaded = async (): Promise<string> => {
      const id = await begin(bytes.length);
      for (const [from, to] of [
        [0, MIB],
        [MIB, bytes.length],
      ] as const) {
        // A chunk that is refused leaves the hash as it was.
        refused(
          await append(id, from, bytes.subarray(from, to), { 'content-digest': digest(bytes) }),
          409,
          'UPLOAD_CHECKSUM_MISMATCH',
        );
        assert.equal((await append(id, from, bytes.subarray(from, to))).status, 204);
        assert.equal(await known(id), sha256(bytes.subarray(0, to)));
      }
      return id;
    };
    try {
      assert.equal((await complete(await uploaded(), sha256(bytes))).status, 201);
      const id = await uploaded();
      // As if a chunk had come by another gateway.
      await database.query('UPDATE files.uploads SET received_sha256 = NULL WHERE upload_id = $1', [id]);
      refused(await complete(id, sha256(randomBytes(3))), 409, 'UPLOAD_CHECKSUM_MISMATCH');
      assert.equal(await known(id), sha256(bytes));
      assert.equal((await complete(id, sha256(bytes))).status, 201);
    } finally {
      await database.close();
    }
  });

  it('go on from the offset that they have, and from no other', async () => {
    const bytes = randomBytes(MIB + 1);
    const id = await begin(bytes.length);
    const wrong = await append(id, 5, bytes);
    refused(wrong, 409, 'UPLOAD_OFFSET_CONFLICT');
    assert.equal(wrong.body.details.offset, 0);
    // Of two at the same offset one is taken.
    const both = await Promise.all([append(id, 0, bytes.subarray(0, MIB)), append(id, 0, bytes.subarray(0, MIB))]);
    assert.deepEqual(both.map(({ status }) => status).sort(), [204, 409]);
    assert.equal(await offsetOf(id), String(MIB));
    refused(await append(id, MIB, bytes.subarray(0, 2)), 413, 'REQUEST_TOO_LARGE');
    refused(
      await append(id, MIB, bytes.subarray(MIB), { 'content-digest': digest(bytes) }),
      409,
      'UPLOAD_CHECKSUM_MISMATCH',
    );
    assert.equal((await append(id, MIB, bytes.subarray(MIB))).status, 204);
    refused(await complete(id, sha256(randomBytes(3))), 409, 'UPLOAD_CHECKSUM_MISMATCH');
    assert.equal((await complete(id, sha256(bytes))).status, 201);
  });

  it('keep nothing of a chunk whose client has gone, and go on', async () => {
    const bytes = randomBytes(2 * MIB);
    const id = await begin(bytes.length);
    const folder = await sam.send('HEAD', `/files/uploads/${id}`);
    assert.equal(folder.status, 200);
    const url = new URL(`${deals.platform.baseUrl}/api/v1/files/uploads/${id}`);
    const gone = request(url, {
      method: 'PATCH',
      headers: {
        authorization: `Bearer ${await tokenFor(deals.platform.baseUrl, 'sam')}`,
        'content-type': 'application/offset+octet-stream',
        'upload-offset': '0',
        'content-length': String(bytes.length),
      },
    });
    gone.on('error', () => {});
    await new Promise<void>((resolve) => gone.write(bytes.subarray(0, MIB), () => resolve()));
    gone.destroy();
    assert.equal(await offsetOf(id), '0');
    await until(async () => (await append(id, 0, bytes)).status === 204);
    assert.equal((await complete(id, sha256(bytes))).status, 201);
  });

  it('of nothing are complete at once', async () => {
    const id = await begin(0);
    const made = await complete(id, sha256(Buffer.of()));
    assert.deepEqual([made.status, made.body.size], [201, 0]);
    assert.equal((await sam.get(`/files/${made.body.fileId}/content`)).text, '');
  });

  it('are refused when they are not in order', async () => {
    const start = (body: object) => sam.post('/files/uploads', { name: 'a', contentType: 'a/b', size: 1, ...body });
    refused(await start({ size: 5 * 1024 * MIB + 1 }), 400, 'PARAMETER_INVALID');
    refused(await start({ size: -1 }), 400, 'PARAMETER_INVALID');
    refused(await start({ name: 'a/b' }), 400, 'PARAMETER_INVALID');
    refused(await start({ sha256: 'x' }), 400, 'PARAMETER_INVALID');
    refused(await start({ path: 'x' }), 400, 'BODY_PROPERTY_UNKNOWN');
    const id = await begin(3 * MIB);
    refused(await append(id, 0, Buffer.of(1)), 400, 'PARAMETER_INVALID');
    refused(await append(id, 0, Buffer.alloc(MIB), { 'content-type': 'text/plain' }), 415, 'MEDIA_TYPE_UNSUPPORTED');
    refused(await append(id, 0, Buffer.alloc(MIB), { 'upload-offset': 'x' }), 400, 'PARAMETER_INVALID');
  });

  it('are their creator’s alone, and can be given up', async () => {
    const id = await begin(1);
    for (const who of [sue, deals.as.eve, deals.as.ada]) {
      refused(await who.get(`/files/uploads/${id}`), 404, 'UPLOAD_NOT_FOUND');
      refused(await append(id, 0, Buffer.of(1), {}, who), 404, 'UPLOAD_NOT_FOUND');
      refused(
        await who.post(`/files/uploads/${id}/complete`, { sha256: sha256(Buffer.of(1)) }),
        404,
        'UPLOAD_NOT_FOUND',
      );
      refused(await who.delete(`/files/uploads/${id}`), 404, 'UPLOAD_NOT_FOUND');
    }
    assert.equal((await sam.delete(`/files/uploads/${id}`)).status, 204);
    refused(await sam.delete(`/files/uploads/${id}`), 404, 'UPLOAD_NOT_FOUND');
  });

  it('attach the file to a record, whose right is asked for again at the end', async () => {
    const deal = (await deals.deal()).body.id;
    const record = { objectApiName: 'Deal__c', recordId: deal };
    const id = await begin(1, { attachTo: record });
    await append(id, 0, Buffer.of(1));
    const made = await complete(id, sha256(Buffer.of(1)));
    assert.deepEqual(made.body.attachedTo, [{ ...record, field: null }]);
    const late = await begin(1, { attachTo: record });
    await append(late, 0, Buffer.of(1));
    const etag = (await sam.get(`/data/Deal__c/${deal}`)).headers.get('etag')!;
    assert.equal((await sam.delete(`/data/Deal__c/${deal}`, { etag })).status, 200);
    refused(await complete(late, sha256(Buffer.of(1))), 404, 'RECORD_NOT_FOUND');
    refused(await sam.get(`/files${to(deal)}`), 404, 'RECORD_NOT_FOUND');
    refused(
      await sam.post('/files/uploads', { name: 'a', contentType: 'a/b', size: 1, attachTo: record }),
      404,
      'RECORD_NOT_FOUND',
    );
  });

  describe('for a field of a record', () => {
    const bytes = Buffer.from('signed');
    let deal: string;
    beforeEach(async () => {
      deal = (await deals.deal()).body.id;
    });
    const start = (field: string, who: Api = sam): Promise<Answer> =>
      who.post('/files/uploads', {
        name: 'contract.txt',
        contentType: 'text/plain',
        size: bytes.length,
        attachTo: { objectApiName: 'Deal__c', recordId: deal, field },
      });
    const fill = async (): Promise<string> => {
      const { uploadId } = (await start('Scan__c')).body;
      assert.equal((await append(uploadId, 0, bytes)).status, 204);
      return uploadId;
    };
    const scan = async (): Promise<string | null> => (await sam.get(`/data/Deal__c/${deal}`)).body.Scan__c;
    const filesOfSam = async (): Promise<number> => (await sam.get('/files?take=200')).body.records.length;

    it('write it when they are completed, once', async () => {
      const id = await fill();
      const before = (await sam.get(`/data/Deal__c/${deal}`)).headers.get('etag');
      const idempotencyKey = randomUUID();
      const made = await complete(id, sha256(bytes), { idempotencyKey });
      assert.equal(made.status, 201, made.text);
      assert.deepEqual(made.body.attachedTo, [{ objectApiName: 'Deal__c', recordId: deal, field: 'Scan__c' }]);
      assert.equal(await scan(), made.body.fileId);
      assert.notEqual((await sam.get(`/data/Deal__c/${deal}`)).headers.get('etag'), before);
      assert.deepEqual((await complete(id, sha256(bytes), { idempotencyKey })).body, made.body);
      const { records } = (await sam.get(`/data/Deal__c/${deal}/history`)).body;
      assert.equal(
        records.filter((one: { changes: { field: string }[] }) => one.changes.some(({ field }) => field === 'Scan__c'))
          .length,
        1,
      );
    });

    it('make one file when the record refuses it, and go on when it takes it', async () => {
      const id = await fill();
      const files = await filesOfSam();
      const rule = (active: boolean) => ({
        'objects/Deal__c/validationRules/NoScan.yaml': [
          'type: ValidationRule',
          'apiName: NoScan',
          'object: Deal__c',
          `active: ${active}`,
          'condition: record.Scan__c != null',
          'message: No scans today.',
          '',
        ].join('\n'),
      });
      await deals.deploy(rule(true));
      const late = await complete(id, sha256(bytes));
      refused(late, 422, 'VALIDATION_FAILED');
      assert.deepEqual(
        late.body.errors.map((one: { code: string; message: string }) => [one.code, one.message]),
        [['VALIDATION_RULE', 'No scans today.']],
      );
      assert.equal(await scan(), null);
      const idempotencyKey = randomUUID();
      refused(await complete(id, sha256(bytes), { idempotencyKey }), 422, 'VALIDATION_FAILED');
      await deals.deploy(rule(false));
      const made = await complete(id, sha256(bytes), { idempotencyKey });
      assert.equal(made.status, 201, made.text);
      assert.equal(await scan(), made.body.fileId);
      assert.equal(await filesOfSam(), files + 1);
    });

    it('are refused for a field that takes no file, or not from the caller', async () => {
      const codes = async (reply: Promise<Answer>) =>
        (await reply).body.errors.map((one: { pointer: string; code: string }) => [one.pointer, one.code]);
      assert.deepEqual(await codes(start('Hidden__c')), [['/attachTo/field', 'FIELD_UNKNOWN']]);
      assert.deepEqual(await codes(start('Nothing__c')), [['/attachTo/field', 'FIELD_UNKNOWN']]);
      assert.deepEqual(await codes(start('Stage__c')), [['/attachTo/field', 'FIELD_TYPE_INVALID']]);
      const { baseUrl } = deals.platform;
      const token = await tokenFor(baseUrl, 'sam', 'files:write data:read');
      refused(await start('Scan__c', api(baseUrl, token)), 403, 'SCOPE_INSUFFICIENT');
    });
  });

  it('are so many for each user', async () => {
    const open = await Promise.all(
      Array.from({ length: LIMITS.file_uploads_of_user_max + 1 }, () =>
        sue.post('/files/uploads', { name: 'a', contentType: 'a/b', size: 1 }),
      ),
    );
    const refusals = open.filter(({ status }) => status !== 201);
    assert.equal(refusals.length, 1);
    refused(refusals[0]!, 413, 'TOO_MANY_ITEMS');
  });
});

/** What nothing needs any more is removed, and nothing else. Source: docs/reference/files.md#what-is-kept. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { call } from '../../../contracts/call.ts';
import { FolderBlobs } from '../../../mixins/blobs/folder.ts';
import { Database } from '../../../mixins/database/database.ts';
import { sweepTenant } from '../../../services/files/sweep.ts';
import type { Api } from '../../support/client.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import type { Deals } from '../data/deals.ts';
import { startFiles, store, to } from './world.ts';

describe('files that nothing needs', () => {
  const folder = temporaryFolder('files-sweep');
  let deals: Deals;
  let database: Database;
  let sam: Api;
  let tenantId: string;
  before(async function () {
    this.timeout(120_000);
    deals = await startFiles({ env: { DATA_DIR: folder } });
    sam = deals.as.sam;
    tenantId = (await sam.get('/identity')).body.tenant.id;
    database = new Database(deals.platform.database.url, { size: 2, applicationName: 'sweep test' });
  });
  after(async () => {
    await database?.close();
    await deals?.platform.stop();
  });

  const sweep = (): Promise<void> =>
    sweepTenant(
      {
        database,
        blobs: new FolderBlobs(join(folder, 'files')),
        jobs: { enqueue: () => assert.fail('no content waits for a check') } as never,
        referenced: (question) => call(deals.platform.broker, 'data.files.referenced', question),
      },
      tenantId,
      new AbortController().signal,
    );
  const sql = (text: string) => database.query(text.replaceAll('$tenant', `'${tenantId}'`));
  const bytesLater = (days: number) =>
    sql(`UPDATE files.blobs SET noted_at = noted_at - interval '${days} days' WHERE tenant_id = $tenant`);
  /** So much later, as far as files is concerned. */
  const later = async (days: number): Promise<void> => {
    await sql(`UPDATE files.files SET check_at = check_at - interval '${days} days' WHERE tenant_id = $tenant`);
    await bytesLater(days);
    await sql(`UPDATE files.uploads SET expires_at = expires_at - interval '${days} days' WHERE tenant_id = $tenant`);
  };
  const blobs = async (): Promise<number> => (await readdir(join(folder, 'files', tenantId)).catch(() => [])).length;
  const isThere = async (id: string): Promise<boolean> => (await sam.get(`/files/${id}/content`)).status === 200;

  it('are removed a month after no record has them, with their bytes', async () => {
    const deal = (await deals.deal()).body.id;
    const loose = await store(sam, 'loose');
    const attached = await store(sam, 'attached', { query: to(deal) });
    const field = await store(sam, 'in a field');
    const other = (await deals.deal(sam, { Scan__c: field.fileId })).body.id;
    const twin = await store(sam, 'attached');
    const upload = await sam.post('/files/uploads', { name: 'a', contentType: 'a/b', size: 5 });
    await sam.send('PATCH', `/files/uploads/${upload.body.uploadId}`, 'bytes', {
      idempotencyKey: null,
      headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' },
    });
    await sweep();
    assert.deepEqual(await Promise.all([loose, attached, field, twin].map(({ fileId }) => isThere(fileId))), [
      true,
      true,
      true,
      true,
    ]);
    assert.equal((await sam.get(`/files/uploads/${upload.body.uploadId}`)).status, 200);
    // One of the contents was sent twice.
    assert.equal(await blobs(), 5);

    await later(31);
    await sweep();
    assert.deepEqual(await Promise.all([loose, attached, field, twin].map(({ fileId }) => isThere(fileId))), [
      false,
      true,
      true,
      false,
    ]);
    assert.equal(await blobs(), 4, 'a download or a backup may have begun a moment ago');
    await bytesLater(1);
    await sweep();
    assert.equal(await blobs(), 2, 'the bytes of attached files');
    assert.equal((await sam.get('/me/limits')).body.storage.files.usedBytes, 'attached'.length + 'in a field'.length);

    // Records in the recycle bin keep their files; detached ones have a month.
    for (const id of [deal, other]) {
      const etag = (await sam.get(`/data/Deal__c/${id}`)).headers.get('etag')!;
      assert.equal((await sam.delete(`/data/Deal__c/${id}`, { etag })).status, 200);
    }
    await later(31);
    await sweep();
    assert.deepEqual([await isThere(attached.fileId), await isThere(field.fileId)], [true, true]);
    await sql(`DELETE FROM "t_${tenantId.replaceAll('-', '')}"._recycle_bin WHERE object = 'Deal__c'`);
    await later(31);
    await sweep();
    assert.deepEqual([await isThere(attached.fileId), await isThere(field.fileId)], [true, true], 'seen to be loose');
    // Given to a record again, it stays.
    const again = await deals.deal(sam, { Scan__c: field.fileId });
    assert.equal(again.status, 201);
    await later(31);
    await sweep();
    assert.deepEqual([await isThere(attached.fileId), await isThere(field.fileId)], [false, true]);
    await bytesLater(1);
    await sweep();
    assert.equal(await blobs(), 1);
  });
});

/** What has expired is removed with its bytes, and what is at work is not. Source: docs/reference/bulk.md#limits. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { FolderBlobs } from '../../../mixins/blobs/folder.ts';
import { Database } from '../../../mixins/database/database.ts';
import { sweepTenant } from '../../../services/bulk/sweep.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { createJob, ended, imported, refused, results, upload } from './bulk.ts';

describe('bulk jobs that have expired', function () {
  this.timeout(180_000);
  const folder = temporaryFolder('bulk-sweep');
  let platform: TestPlatform;
  let database: Database;
  let ada: Api;
  let tenantId: string;
  before(async () => {
    platform = await startPlatform({ env: { DATA_DIR: folder } });
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    tenantId = (await ada.get('/identity')).body.tenant.id;
    database = new Database(platform.database.url, { size: 2, applicationName: 'sweep test' });
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const enqueued: string[] = [];
  const sweep = (): Promise<void> =>
    sweepTenant(
      {
        database,
        blobs: new FolderBlobs(join(folder, 'files')),
        enqueue: async (_tx, { jobId }) => void enqueued.push(jobId),
      },
      tenantId,
      new AbortController().signal,
    );
  const expire = (jobId: string) =>
    database.query("UPDATE bulk.jobs SET expires_at = now() - interval '1 minute' WHERE job_id = $1", [jobId]);
  const blobs = async (): Promise<number> =>
    (await readdir(join(folder, 'files', 'bulk', tenantId)).catch(() => [])).length;

  it('are removed with their parts, files and results, and leave the records', async () => {
    const accounts = { operation: 'create', objectApiName: 'Account' };
    const done = await imported(ada, accounts, 'name\nSwept One\n', 'name\nSwept Two\n');
    const exported = await createJob(ada, { operation: 'export', objectApiName: 'Product' });
    assert.equal((await ended(ada, exported)).state, 'COMPLETED');
    const open = await createJob(ada, accounts);
    assert.equal((await upload(ada, open, 1, 'name\nSwept Three\n')).status, 201);
    const kept = await imported(ada, accounts, 'name\nSwept Four\n');
    await sweep();
    assert.equal(await blobs(), 5);

    for (const jobId of [done.jobId, exported, open]) await expire(jobId);
    await sweep();
    assert.equal(await blobs(), 1, 'the part of the job that is kept');
    for (const jobId of [done.jobId, exported, open])
      refused(await ada.get(`/bulk/jobs/${jobId}`), 404, 'JOB_NOT_FOUND');
    assert.equal((await results(ada, kept.jobId)).length, 1);
    const { rows } = await database.query('SELECT DISTINCT job_id FROM bulk.results');
    assert.deepEqual(rows, [{ job_id: kept.jobId }]);
    const found = await ada.post('/data/Account/query', { where: { name: 'Swept One' } }, { idempotencyKey: null });
    assert.equal(found.body.records.length, 1);
    assert.deepEqual(enqueued, []);
  });

  it('are kept while they are at work, and queued again', async () => {
    const jobId = await createJob(ada, { operation: 'create', objectApiName: 'Account' });
    await upload(ada, jobId, 1, 'name\nSwept never\n');
    const set = (state: string) => database.query('UPDATE bulk.jobs SET state = $1 WHERE job_id = $2', [state, jobId]);
    await set('CANCELING');
    await expire(jobId);
    await sweep();
    assert.deepEqual(enqueued, [jobId]);
    await set('CANCELED');
    await sweep();
    refused(await ada.get(`/bulk/jobs/${jobId}`), 404, 'JOB_NOT_FOUND');
    assert.equal(await blobs(), 1);
  });
});

/** States of jobs, their parts, and who may do what with them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { call } from '../../../contracts/call.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { until } from '../../support/until.ts';
import { createJob, ended, NDJSON, refused, results, upload, whileJobsWait } from './bulk.ts';

describe('bulk jobs', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  const as = async (user: string, scope?: string): Promise<Api> =>
    api(platform.baseUrl, await tokenFor(platform.baseUrl, user, scope));
  before(async () => {
    platform = await startPlatform();
    [ada, sam] = await Promise.all([as('ada'), as('sam')]);
  });
  after(() => platform?.stop());

  const accounts = { operation: 'create', objectApiName: 'Account' };
  const state = async (jobId: string): Promise<string> => (await ada.get(`/bulk/jobs/${jobId}`)).body.state;

  it('take what belongs to their operation, and say everything that does not', async () => {
    const reply = await ada.post('/bulk/jobs', {
      operation: 'export',
      objectApiName: 'Account',
      format: 'ndjson',
      externalIdField: 'accountNumber',
      allOrNone: true,
      csv: { locale: 'no locale' },
    });
    refused(reply, 400, 'PARAMETER_CONFLICT');
    assert.deepEqual(
      reply.body.errors.map(({ pointer }: { pointer: string }) => pointer),
      ['/externalIdField', '/allOrNone', '/csv', '/csv/locale'],
    );
    refused(
      await ada.post('/bulk/jobs', { ...accounts, operation: 'upsert', format: 'csv' }),
      400,
      'PARAMETER_REQUIRED',
    );
    refused(
      await ada.post('/bulk/jobs', { ...accounts, objectApiName: 'User', format: 'csv' }),
      400,
      'PARAMETER_INVALID',
    );
    refused(
      await ada.post('/bulk/jobs', { ...accounts, objectApiName: 'Nowhere', format: 'csv' }),
      404,
      'OBJECT_NOT_FOUND',
    );
    refused(await ada.post('/bulk/jobs', { ...accounts, format: 'csv', notifies: true }), 400, 'BODY_PROPERTY_UNKNOWN');
    const exports = { operation: 'export', objectApiName: 'Account', format: 'csv' };
    const unknown = await ada.post('/bulk/jobs', { ...exports, query: { where: { nope: 1 } } });
    refused(unknown, 400, 'FILTER_FIELD_UNKNOWN');
    assert.match(unknown.body.errors[0].pointer, /^\/query\/where/);
    const pointers = async (body: object): Promise<string[]> => {
      const reply = await ada.post('/bulk/jobs', { objectApiName: 'Account', format: 'csv', ...body });
      refused(reply, 400, reply.body.errors[0].code);
      return reply.body.errors.map(({ pointer }: { pointer: string }) => pointer);
    };
    const columns = { 'a/b': 'nope', name: 'name', left: null, at: 'createdAt', owner: 'ownerId.nope' };
    assert.deepEqual(await pointers({ operation: 'upsert', externalIdField: 'name', columns }), [
      '/externalIdField',
      '/columns/a~1b',
      '/columns/at',
      '/columns/owner',
    ]);
    const query = { take: 1, 'a/b': 1, fields: 'name,nope', where: { no: 1 } };
    const [take, odd, fields, where] = await pointers({ operation: 'export', query });
    assert.deepEqual([take, odd, fields], ['/query/take', '/query/a~1b', '/query/fields']);
    assert.match(String(where), /^\/query\/where/);
  });

  it('need the scope of what they do to records, each time', async () => {
    const bulkOnly = await as('ada', 'bulk:run');
    refused(await bulkOnly.post('/bulk/jobs', { ...accounts, format: 'csv' }), 403, 'SCOPE_INSUFFICIENT');
    const jobId = await createJob(ada, accounts);
    refused(await upload(bulkOnly, jobId, 1, 'name\nx\n'), 403, 'SCOPE_INSUFFICIENT');
    refused(await bulkOnly.get(`/bulk/jobs/${jobId}/results`), 403, 'SCOPE_INSUFFICIENT');
    assert.equal((await upload(ada, jobId, 1, 'name\nx\n')).status, 201);
    refused(await bulkOnly.post(`/bulk/jobs/${jobId}/start`), 403, 'SCOPE_INSUFFICIENT');
  });

  it('are those of their user', async () => {
    await createJob(ada, accounts);
    const jobId = await createJob(ada, accounts);
    for (const reply of [
      await sam.get(`/bulk/jobs/${jobId}`),
      await upload(sam, jobId, 1, 'name\nx\n'),
      await sam.post(`/bulk/jobs/${jobId}/start`),
      await sam.post(`/bulk/jobs/${jobId}/cancel`),
      await sam.get(`/bulk/jobs/${jobId}/results`),
      await sam.delete(`/bulk/jobs/${jobId}`),
    ])
      refused(reply, 404, 'JOB_NOT_FOUND');
    assert.deepEqual((await sam.get('/bulk/jobs')).body.records, []);
    const page = await ada.get('/bulk/jobs?take=1&state=OPEN');
    assert.equal(page.body.records[0].jobId, jobId);
    assert.notEqual(page.body.nextCursor, null);
  });

  it('take parts in any order until they start, and start without a gap', async () => {
    const jobId = await createJob(ada, accounts);
    const at = `/bulk/jobs/${jobId}`;
    refused(await ada.post(`${at}/start`), 409, 'JOB_STATE_CONFLICT');
    const key = randomUUID();
    const third = await upload(ada, jobId, 3, 'name\nBulk 3\n', { idempotencyKey: key });
    assert.deepEqual([third.status, third.body.partNumber, third.body.rows], [201, 3, 1], third.text);
    const again = await upload(ada, jobId, 3, 'name\nBulk 3\n', { idempotencyKey: key });
    assert.deepEqual([again.text, again.headers.get('idempotency-replayed')], [third.text, 'true']);
    assert.equal(await state(jobId), 'UPLOADED');
    assert.equal((await upload(ada, jobId, 1, 'name\nBulk wrong\nBulk wrong\n')).body.rows, 2);
    assert.equal((await upload(ada, jobId, 1, 'name\nBulk 1\n')).body.rows, 1);
    const gap = await ada.post(`${at}/start`);
    refused(gap, 409, 'JOB_STATE_CONFLICT');
    assert.deepEqual(gap.body.details.missingParts, [2]);
    assert.equal((await upload(ada, jobId, 2, 'name\nBulk 2\n')).status, 201);
    const startKey = { idempotencyKey: randomUUID() };
    const start = await ada.post(`${at}/start`, undefined, startKey);
    assert.equal(start.body.counts.total, 3);
    refused(await upload(ada, jobId, 4, 'name\nBulk 4\n'), 409, 'JOB_STATE_CONFLICT');
    const job = await ended(ada, jobId);
    assert.deepEqual([job.state, job.counts.succeeded], ['COMPLETED', 3]);
    refused(await ada.post(`${at}/cancel`), 409, 'JOB_STATE_CONFLICT');
    refused(await ada.post(`${at}/start`), 409, 'JOB_STATE_CONFLICT');
    assert.equal((await ada.delete(at)).status, 204);
    refused(await ada.get(at), 404, 'JOB_NOT_FOUND');
    // What was carried out has its outcome, also when the job is gone.
    assert.equal((await ada.post(`${at}/start`, undefined, startKey)).text, start.text);
    assert.equal((await upload(ada, jobId, 3, 'name\nBulk 3\n', { idempotencyKey: key })).text, third.text);
  });

  it('refuse files that cannot be rows of theirs', async () => {
    const jobId = await createJob(ada, accounts);
    const cases: [string | Uint8Array, RegExp][] = [
      ['', /no rows/],
      ['\n\r\n\n', /no rows/],
      ['name\n"open', /within quotes/],
      ['name,nope,createdAt\nx,y,z\n', /"nope", "createdAt"/],
      ['name,name\nx,y\n', /another column: "name"/],
      ['name,id\nx,y\n', /"id"/],
      ['name,nope,name\nx,y,z\n', /do not exist.*"nope"\. Columns stand.*"name"/],
      ['name;city\nx;y\n', /"name;city"\. If ";" is the delimiter/],
      [Buffer.from([0x6e, 0xff, 0x0a]), /UTF-8/],
      [`name\n${'x'.repeat(1024 * 1024 + 1)}\n`, /longer than/],
      [Array.from({ length: 501 }, (_, i) => `c${i}`).join(), /at most 500/],
    ];
    for (const [content, message] of cases) {
      const reply = await upload(ada, jobId, 1, content);
      refused(reply, 422, 'BULK_DATA_INVALID');
      assert.match(reply.body.message, message);
    }
    refused(await upload(ada, jobId, 1, '{}', { headers: { 'content-type': NDJSON } }), 415, 'MEDIA_TYPE_UNSUPPORTED');
    const beyond = await upload(ada, jobId, 1_001, 'name\nx\n');
    refused(beyond, 400, 'PARAMETER_INVALID');
    assert.equal(beyond.body.errors[0].pointer, 'path:partNumber');
    assert.equal(await state(jobId), 'OPEN');
  });

  it('are canceled before they begin, and name what was not processed', async () => {
    const jobId = await createJob(ada, accounts);
    await upload(ada, jobId, 1, 'name\nBulk never\n');
    const canceled = await ada.post(`/bulk/jobs/${jobId}/cancel`);
    assert.deepEqual([canceled.status, canceled.body.state], [202, 'CANCELED'], canceled.text);
    refused(await upload(ada, jobId, 1, 'name\nx\n'), 409, 'JOB_STATE_CONFLICT');
    assert.deepEqual(await results(ada, jobId), []);
  });

  it('wait for others of their tenant, and end unprocessed when their connection has', async () => {
    const sue = await as('sue');
    const other = await as('sue', 'bulk:run data:read data:write');
    const jobId = await createJob(sue, accounts);
    assert.equal((await upload(sue, jobId, 1, 'name\nBulk late\n')).status, 201);
    await whileJobsWait(platform.database.url, async () => {
      assert.equal((await sue.post(`/bulk/jobs/${jobId}/start`)).status, 202);
      const { connection } = (await sue.get('/identity')).body;
      assert.equal((await sue.delete(`/me/connections/${connection.grantId}`)).status, 204);
      assert.equal((await other.get(`/bulk/jobs/${jobId}`)).body.state, 'QUEUED');
    });
    const job = await ended(other, jobId);
    assert.deepEqual([job.state, job.error.code, job.counts.unprocessed], ['FAILED', 'TOKEN_REVOKED', 1]);
    const rest = await results(other, jobId, '?outcome=unprocessed');
    assert.deepEqual(
      rest.map(({ rowNumber, outcome }) => [rowNumber, outcome]),
      [[1, 'unprocessed']],
    );
  });

  it('end unprocessed when their tenant is suspended, or they are canceled while they wait', async () => {
    const [suspended, canceled] = await Promise.all([createJob(ada, accounts), createJob(ada, accounts)]);
    const operator = platform.broker;
    await whileJobsWait(platform.database.url, async () => {
      for (const jobId of [suspended, canceled]) {
        assert.equal((await upload(ada, jobId, 1, 'name\nBulk late\n')).status, 201);
        assert.equal((await ada.post(`/bulk/jobs/${jobId}/start`)).status, 202);
      }
      assert.equal((await ada.post(`/bulk/jobs/${canceled}/cancel`)).body.state, 'CANCELED');
      await call(operator, 'metadata.tenants.suspend', { key: 'demo', reason: 'A test.' });
    });
    const client = new pg.Client({ connectionString: platform.database.url });
    await client.connect();
    await until(async () => {
      const { rows } = await client.query('SELECT FROM bulk.jobs WHERE job_id = $1 AND finished_at IS NOT NULL', [
        suspended,
      ]);
      return rows.length > 0;
    });
    await client.end();
    await call(operator, 'metadata.tenants.resume', { key: 'demo' });
    await until(async () => (await ada.get('/bulk/jobs')).status === 200);
    const job = (await ada.get(`/bulk/jobs/${suspended}`)).body;
    assert.deepEqual([job.state, job.error.code, job.counts.unprocessed], ['FAILED', 'TENANT_SUSPENDED', 1]);
    assert.equal((await results(ada, canceled, '?outcome=unprocessed')).length, 1);
  });
});

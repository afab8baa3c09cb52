/** Exports over HTTP: files of what the user can see, that come back as they were, and that no spreadsheet computes. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { createJob, ended, imported, refused, results } from './bulk.ts';

describe('exports', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  let baseUrl = '';
  before(async () => {
    platform = await startPlatform();
    ({ baseUrl } = platform);
    [ada, sam] = (await Promise.all(
      ['ada', 'sam'].map(async (user) => api(baseUrl, await tokenFor(baseUrl, user))),
    )) as [Api, Api];
  });
  after(() => platform?.stop());

  const exported = async (who: Api, body: object): Promise<string> => {
    const jobId = await createJob(who, { operation: 'export', ...body });
    const job = await ended(who, jobId);
    assert.equal(job.state, 'COMPLETED', JSON.stringify(job));
    return jobId;
  };
  const fileOf = async (who: Api, jobId: string) => who.get(`/bulk/jobs/${jobId}/results`);

  it('have the records and fields that the user can see, and no others', async () => {
    const total = async (who: Api): Promise<number> =>
      (await who.get('/data/Account?take=1&includeTotal=true')).body.total;
    const jobId = await exported(sam, { objectApiName: 'Account', format: 'ndjson' });
    const file = await fileOf(sam, jobId);
    assert.match(file.headers.get('content-disposition') ?? '', /^attachment; filename="Account-.+\.ndjson"$/);
    const rows = file.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(rows.length, await total(sam));
    const [record] = (await sam.get('/data/Account?take=1')).body.records;
    assert.deepEqual(Object.keys(rows[0]).sort(), [...Object.keys(record), '_etag'].sort());
    const digest = createHash('sha256').update(file.text).digest('base64');
    assert.equal(file.headers.get('repr-digest'), `sha-256=:${digest}:`);
    const part = await sam.get(`/bulk/jobs/${jobId}/results`, { headers: { range: 'bytes=0-9' } });
    assert.deepEqual([part.status, part.text], [206, file.text.slice(0, 10)]);
    refused(await fileOf(ada, jobId), 404, 'JOB_NOT_FOUND');
  });

  it('are imported again as they were, and armed for no spreadsheet', async () => {
    const texts = ['=HYPERLINK("http://x")', "'@quoted", '-1', '"a";\nb', '[x]'];
    const made = await imported(
      ada,
      { operation: 'create', objectApiName: 'Account', format: 'ndjson' },
      texts.map((description, i) => JSON.stringify({ name: `Armed ${i}`, description, employees: 5 })).join('\n'),
    );
    assert.equal(made.counts.succeeded, texts.length, JSON.stringify(await results(ada, made.jobId)));
    const query = {
      fields: ['description', 'employees'],
      filters: { logic: 'and', conditions: [{ id: 'c1', field: 'name', operator: 'starts_with', value: 'Armed' }] },
    };
    const jobId = await exported(ada, { objectApiName: 'Account', query, csv: { lineEnding: 'CRLF' } });
    const { text } = await fileOf(ada, jobId);
    assert.match(text, /^id,employees,description,_etag\r\n|^id,description,employees,_etag\r\n/);
    assert.ok(!/(^|,|")[=@]/m.test(text.replaceAll('""', '')), text);
    const again = await imported(
      ada,
      { operation: 'update', objectApiName: 'Account' },
      text.replaceAll(/\b5\b(?=,|\r)/g, '7'),
    );
    assert.equal(again.counts.succeeded, texts.length, JSON.stringify(await results(ada, again.jobId)));
    const { records } = (await ada.post('/data/Account/query', { ...query, take: 50 }, { idempotencyKey: null })).body;
    assert.deepEqual(records.map(({ description }: { description: string }) => description).sort(), [...texts].sort());
    assert.ok(records.every(({ employees }: { employees: number }) => employees === 7));
  });

  it('can be compressed', async () => {
    const jobId = await exported(ada, { objectApiName: 'Product', query: { fields: 'name' }, compression: 'gzip' });
    const response = await fetch(`${baseUrl}/api/v1/bulk/jobs/${jobId}/results`, {
      headers: { authorization: `Bearer ${await tokenFor(baseUrl, 'ada')}` },
    });
    assert.equal(response.headers.get('content-type'), 'application/gzip');
    assert.match(gunzipSync(Buffer.from(await response.arrayBuffer())).toString(), /^id,name,_etag\n/);
  });
});

/** Imports over HTTP: files become records, by the rules of single ones, and every row has its outcome. */
import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { imported, refused, results } from './bulk.ts';

describe('imports', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  before(async () => {
    platform = await startPlatform();
    [ada, sam] = (await Promise.all(
      ['ada', 'sam'].map(async (user) => api(platform.baseUrl, await tokenFor(platform.baseUrl, user))),
    )) as [Api, Api];
  });
  after(() => platform?.stop());

  const named = async (name: string, who = ada) => {
    const reply = await who.post(
      '/data/Account/query',
      { where: { name }, includeEtag: true },
      { idempotencyKey: null },
    );
    assert.equal(reply.status, 200, reply.text);
    return reply.body.records;
  };
  const counts = (job: { counts: object; state: string }) => ({ state: job.state, ...job.counts });

  it('create records of several parts, in the order of the rows', async () => {
    const job = await imported(
      sam,
      { operation: 'create', objectApiName: 'Account' },
      '\ufeffname,city,employees\r\n"Bulk ""One"", Ltd",Berlin,1000\r\n\r\nBulk Two,,\r\n',
      'city,name\nHamburg,Bulk Three',
    );
    assert.deepEqual(counts(job), {
      state: 'COMPLETED',
      total: 3,
      processed: 3,
      succeeded: 3,
      failed: 0,
      unprocessed: 0,
    });
    const rows = await results(sam, job.jobId);
    assert.deepEqual(
      rows.map(({ rowNumber, outcome, created }) => [rowNumber, outcome, created]),
      [1, 2, 3].map((rowNumber) => [rowNumber, 'succeeded', true]),
    );
    const [one] = await named('Bulk "One", Ltd');
    assert.deepEqual([one.id, one.city, one.employees, one._etag], [rows[0].id, 'Berlin', 1000, rows[0].etag]);
  });

  it('fail row by row, and say at which column', async () => {
    const job = await imported(
      ada,
      { operation: 'create', objectApiName: 'Account', columns: { Firma: 'name', Limit: 'creditLimit', Notiz: null } },
      'Firma,Limit,Notiz\nBulk Good,10,x\n,20,x\nBulk Bad,many,x\nBulk Short,1\n',
    );
    assert.deepEqual(counts(job), {
      state: 'COMPLETED',
      total: 4,
      processed: 4,
      succeeded: 1,
      failed: 3,
      unprocessed: 0,
    });
    const failed = await results(ada, job.jobId, '?outcome=failed');
    assert.deepEqual(
      failed.map(({ rowNumber, errors }) => [rowNumber, errors[0].code, errors[0].column]),
      [
        [2, 'FIELD_REQUIRED', 'Firma'],
        [3, 'FIELD_TYPE_INVALID', 'Limit'],
        [4, 'BULK_DATA_INVALID', undefined],
      ],
    );
    const csv = await ada.get(`/bulk/jobs/${job.jobId}/results?outcome=failed&take=1`, {
      headers: { accept: 'text/csv' },
    });
    assert.match(csv.headers.get('content-type') ?? '', /^text\/csv/);
    assert.match(
      csv.text,
      /^rowNumber,outcome,id,etag,created,code,column,message\n2,failed,,,false,FIELD_REQUIRED,Firma,/,
    );
    const next = /^<\/api\/v1(.+)>; rel="next"$/.exec(csv.headers.get('link') ?? '')?.[1];
    const lines = await ada.get(next ?? '', { headers: { accept: 'application/x-ndjson' } });
    assert.equal(JSON.parse(lines.text).rowNumber, 3);
  });

  it('find references by an external id, and read numbers and days by the locale', async () => {
    const [account] = (await ada.get(`/data/Account?take=1&where=${encodeURIComponent('{"type":"customer"}')}`)).body
      .records;
    const job = await imported(
      ada,
      { operation: 'create', objectApiName: 'Invoice__c', csv: { delimiter: ';', locale: 'de-DE' } },
      `AccountId__c.accountNumber;Amount__c;DueDate__c;Notes__c\n${account.accountNumber};1.234,50;31.12.2026;'=1+1\nNO-SUCH;1;1.1.2027;\n${account.accountNumber};viel;31.12.2026;\n`,
    );
    const [row, lost, much] = await results(ada, job.jobId);
    assert.equal(row.outcome, 'succeeded', JSON.stringify(row));
    const { body } = await ada.get(`/data/Invoice__c/${row.id}`);
    assert.deepEqual(
      [body.AccountId__c, body.Amount__c, body.DueDate__c, body.Notes__c],
      [account.id, 1234.5, '2026-12-31', '=1+1'],
    );
    assert.deepEqual(
      [lost.errors[0].code, lost.errors[0].column],
      ['REFERENCE_NOT_FOUND', 'AccountId__c.accountNumber'],
    );
    assert.equal(much.errors[0].message, 'Amount__c must be a number as written in de-DE, such as 1.234,5.');
  });

  it('update and delete the versions that the rows name, and no others', async () => {
    const made = await imported(ada, { operation: 'create', objectApiName: 'Account' }, 'name\nBulk A\nBulk B\n');
    const [a, b] = await results(ada, made.jobId);
    const cell = (etag: string): string => etag.replaceAll('"', '');
    const changed = await imported(
      ada,
      { operation: 'update', objectApiName: 'Account' },
      `id,_etag,city\n${a.id},${cell(a.etag)},Kiel\n${b.id},zz,Kiel\n,,Kiel\n`,
    );
    const [one, other, empty] = await results(ada, changed.jobId);
    assert.deepEqual([one.outcome, other.outcome, other.errors[0].code], ['succeeded', 'failed', 'ETAG_MISMATCH']);
    assert.deepEqual(
      empty.errors.map(({ column }: { column: string }) => column),
      ['id', '_etag'],
    );
    assert.deepEqual([(await named('Bulk A'))[0].city, (await named('Bulk B'))[0].city], ['Kiel', null]);
    const gone = await imported(
      ada,
      { operation: 'delete', objectApiName: 'Account', conflictPolicy: 'lastWriteWins', format: 'ndjson' },
      `{"id":"${a.id}"}\n\n{"id":"${b.id}"}\n{"id":7}\n[]\n`,
    );
    assert.deepEqual(counts(gone), {
      state: 'COMPLETED',
      total: 4,
      processed: 4,
      succeeded: 2,
      failed: 2,
      unprocessed: 0,
    });
    assert.deepEqual([...(await named('Bulk A')), ...(await named('Bulk B'))], []);
  });

  it('upsert by an external id, also twice', async () => {
    const body = {
      operation: 'upsert',
      objectApiName: 'Account',
      externalIdField: 'accountNumber',
      conflictPolicy: 'lastWriteWins',
    };
    const file = 'accountNumber,name\nACC-9901,Bulk Upserted\n';
    const [first] = await results(ada, (await imported(ada, body, file)).jobId);
    const [second] = await results(ada, (await imported(ada, body, file.replace('Upserted', 'Upserted again'))).jobId);
    assert.deepEqual(
      [first.created, second.created, second.id],
      [true, false, first.id],
      JSON.stringify([first, second]),
    );
    assert.equal((await named('Bulk Upserted again')).length, 1);
  });

  it('try every row out without changing anything', async () => {
    const job = await imported(
      ada,
      { operation: 'create', objectApiName: 'Account', checkOnly: true },
      'name\nBulk Tried\n""\n',
    );
    assert.deepEqual(
      (await results(ada, job.jobId)).map(({ outcome }) => outcome),
      ['succeeded', 'failed'],
    );
    assert.deepEqual(await named('Bulk Tried'), []);
  });

  it('end with the first row that fails when they are all or none', async () => {
    const body = { operation: 'create', objectApiName: 'Account', allOrNone: true };
    const job = await imported(ada, body, 'name\nBulk All\n""\n');
    assert.deepEqual([job.state, job.error.code, job.counts.failed], ['FAILED', 'COMPOSITE_FAILED', 2]);
    assert.deepEqual(await named('Bulk All'), []);
  });

  it('take lastWriteWins from those alone who may modify all records', async () => {
    const reply = await sam.post('/bulk/jobs', {
      operation: 'update',
      objectApiName: 'Account',
      format: 'csv',
      conflictPolicy: 'lastWriteWins',
    });
    refused(reply, 403, 'OBJECT_PERMISSION_DENIED');
  });
});

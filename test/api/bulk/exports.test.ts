/** Exports over HTTP: files of what the user can see, that come back as they were, and that no spreadsheet computes. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { type CellForm, cellOf, csvLine } from '../../../lib/cells/cells.ts';
import { ExactNumber } from '../../../lib/json/exact-number.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, objectFiles } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { createJob, ended, imported, refused, results } from './bulk.ts';

const FIELDS: Record<string, string> = {
  Text__c: 'fieldType: text\nlength: 80',
  LongText__c: 'fieldType: longText',
  Email__c: 'fieldType: email',
  Phone__c: 'fieldType: phone',
  Url__c: 'fieldType: url',
  Integer__c: 'fieldType: integer',
  Decimal__c: 'fieldType: decimal\nprecision: 30\nscale: 10',
  Currency__c: 'fieldType: currency',
  Percent__c: 'fieldType: percent',
  Boolean__c: 'fieldType: boolean',
  Date__c: 'fieldType: date',
  DateTime__c: 'fieldType: dateTime',
  Time__c: 'fieldType: time',
  Duration__c: 'fieldType: duration',
  Picklist__c: 'fieldType: picklist\npicklist: {values: [{value: a}]}',
  Many__c: 'fieldType: multiPicklist\npicklist: {values: [{value: x}, {value: "y;z"}]}',
  Place__c: 'fieldType: geolocation',
  Address__c: 'fieldType: address',
  Json__c: 'fieldType: json',
  Number__c: 'fieldType: autoNumber\nformat: "T-{0000}"',
  Double__c:
    'fieldType: formula\nformula: {expression: "record.Decimal__c * 2", resultType: decimal}\nprecision: 30\nscale: 10',
};
/** Of those whose cells are no texts. */
const FORMS: Record<string, CellForm> = {
  ...{ Integer__c: 'number', Decimal__c: 'number', Currency__c: 'number', Percent__c: 'number', Double__c: 'number' },
  ...{
    Boolean__c: 'boolean',
    Date__c: 'date',
    Many__c: 'list',
    segments: 'list',
    Place__c: 'json',
    Address__c: 'json',
    Json__c: 'json',
  },
};
/** Members of records: JSON texts, because some numbers exceed those of JavaScript. */
const RECORDS = [
  '"name":"all","Text__c":"=1+1","LongText__c":"a\\r\\n\\"b\\";c, d\\u0007\\t","Email__c":"a@b.example","Phone__c":"+49 30 123"',
  '"name":"numbers","Integer__c":-9007199254740991,"Decimal__c":"-12345678901234567890.0123456789","Currency__c":"-0.5"',
  '"name":"moments","Date__c":"2026-01-02","DateTime__c":"2026-01-02T03:04:05.678+02:00","Time__c":"09:30:00","Duration__c":"PT1H30M"',
  '"name":"lists","Many__c":["x"],"Boolean__c":true,"Percent__c":1.50,"Picklist__c":"a","Url__c":"https://b.example/?a=1,2"',
  '"name":"quoted list","Many__c":["y;z","x"],"Boolean__c":false,"Place__c":{"latitude":-0.25,"longitude":179.99}',
  '"name":"documents","Address__c":{"street":"Weg 1\\n2","city":"Ω"},"Json__c":{"10":1,"2":[0.10000000000000000000000000000000001,null],"a b":"@"}',
  '"name":"\u00a0é 😀\u2028","Text__c":"\'=x","Json__c":"-text"',
  '"name":"nothing"',
];

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

  /** The lines of all records, made of the values in pages. */
  const linesOf = async (
    who: Api,
    objectApiName: string,
    form: 'ndjson' | { delimiter: string },
  ): Promise<string[]> => {
    const exact = { idempotencyKey: null, headers: { accept: 'application/json;IEEE754Compatible=true' } };
    const keepDigits = (_name: string, value: unknown, { source }: { source?: string } = {}): unknown =>
      typeof value === 'number' && source !== undefined && String(value) !== source ? new ExactNumber(source) : value;
    const records: Record<string, unknown>[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const query = { take: 200, includeEtag: true, ...(cursor ? { cursor } : {}) };
      const page = JSON.parse((await who.post(`/data/${objectApiName}/query`, query, exact)).text, keepDigits);
      records.push(...page.records);
      cursor = page.nextCursor;
    }
    if (form === 'ndjson') return records.map((record) => JSON.stringify(record));
    const columns = Object.keys(records[0] ?? {});
    const cells = records.map((record) => columns.map((name) => cellOf(record[name], FORMS[name] ?? 'text')));
    return [columns, ...cells].map((line) => csvLine(line, form.delimiter));
  };

  it('write each type of field like its value in a page, and no field that is hidden', async () => {
    await deployOverHttp(ada, objectFiles('Every__c', FIELDS));
    for (const members of RECORDS) {
      const made = await ada.post('/data/Every__c', `{${members}}`);
      assert.equal(made.status, 201, made.text);
    }
    for (const [who, objectApiName] of [
      [ada, 'Every__c'],
      [sam, 'Account'],
    ] as const) {
      const ndjson = await fileOf(who, await exported(who, { objectApiName, format: 'ndjson' }));
      assert.equal(ndjson.text, `${(await linesOf(who, objectApiName, 'ndjson')).join('\n')}\n`);
      for (const [delimiter, lineEnding, end] of [
        [',', 'LF', '\n'],
        [';', 'CRLF', '\r\n'],
      ]) {
        const csv = { delimiter: String(delimiter), lineEnding };
        const { text } = await fileOf(who, await exported(who, { objectApiName, csv }));
        assert.equal(text, (await linesOf(who, objectApiName, csv)).join(end) + end);
      }
    }
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

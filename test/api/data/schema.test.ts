/** GET /objects, describe and schema.json as a client sees them. */
import assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('discovering objects', () => {
  let platform: TestPlatform;
  let sam: Api;

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
  });
  after(() => platform?.stop());

  it('lists objects with the capabilities of the connection', async () => {
    const { status, body, headers } = await sam.get('/objects');
    assert.equal(status, 200);
    assert.match(headers.get('x-request-id')!, /^req_/);
    assert.ok(Number.isInteger(Number(headers.get('x-ratelimit-remaining'))));
    const account = body.records.find((record: { apiName: string }) => record.apiName === 'Account');
    assert.deepEqual(account, {
      apiName: 'Account',
      label: 'Account',
      labelPlural: 'Accounts',
      searchable: true,
      capabilities: { creatable: true, updateable: true, deletable: false, editable: true },
    });
  });

  it('describes the type of the values of formulas and rollups, and the picklist values of record types', async () => {
    const { fields, recordTypes } = (await sam.get('/objects/Invoice__c/describe')).body;
    const typesOf = (name: string): string[] => {
      const { fieldType, valueType } = fields.find(({ apiName }: { apiName: string }) => apiName === name);
      return [fieldType, valueType];
    };
    assert.deepEqual(typesOf('DaysOverdue__c'), ['formula', 'integer']);
    assert.deepEqual(typesOf('Status__c'), ['picklist', 'picklist']);
    const exported = recordTypes.find(({ apiName }: { apiName: string }) => apiName === 'Export');
    assert.deepEqual(exported.picklistValues, { PaymentTerms__c: ['immediate', 'net14', 'prepaid'] });
  });

  it('shows every capability as false with data:read alone', async () => {
    const reader = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', 'data:read'));
    const { body } = await reader.get('/objects');
    assert.ok(body.records.length > 0);
    for (const { capabilities } of body.records)
      assert.deepEqual(capabilities, { creatable: false, updateable: false, deletable: false, editable: false });
    const described = (await reader.get('/objects/Account/describe')).body;
    assert.ok(described.fields.every((field: { editable: boolean }) => !field.editable));
  });

  it('describes an object, and answers 304 while nothing changed', async () => {
    const first = await sam.get('/objects/Account/describe');
    assert.equal(first.status, 200);
    assert.equal(first.headers.get('etag'), `"${first.body.schemaVersion}"`);
    const name = first.body.fields.find((field: { apiName: string }) => field.apiName === 'name');
    assert.equal(name.readable, true);
    const again = await sam.get('/objects/Account/describe', {
      headers: { 'if-none-match': first.headers.get('etag')! },
    });
    assert.equal(again.status, 304);
    assert.equal(again.text, '');
  });

  it('returns a JSON Schema that actual records satisfy', async () => {
    for (const object of ['Account', 'SalesOrder__c', 'Product', 'User']) {
      const { status, body: schema } = await sam.get(`/objects/${object}/schema.json`);
      assert.equal(status, 200);
      const ajv = new Ajv2020({ strict: false, allErrors: true });
      (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
      const validate = ajv.compile({ ...schema, $id: undefined });
      const { body } = await sam.get(`/data/${object}?take=20`);
      for (const record of body.records) assert.ok(validate(record), JSON.stringify(validate.errors));
    }
  });

  it('marks in the schema the fields that a write can empty', async () => {
    const account = (await sam.post('/data/Account', { name: 'To be emptied', ownerId: null })).body;
    assert.deepEqual([account.code, account.errors[0].pointer], ['VALIDATION_FAILED', '/ownerId']);
    const { id } = (await sam.post('/data/Account', { name: 'To be emptied' })).body;
    const { body: described } = await sam.get('/objects/Account/describe');
    const { body: schema } = await sam.get('/objects/Account/schema.json');
    const ajv = new Ajv2020({ strict: false });
    (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
    const validate = ajv.compile({ ...schema, $id: undefined, $ref: '#/$defs/update' });
    const emptied: Record<string, boolean> = {};
    for (const field of Object.keys(schema.$defs.update.properties)) {
      const check = { operation: 'update', id, ifMatch: '"1"', fields: { [field]: null } };
      const { body } = await sam.post('/data/Account/check', check);
      const codes = body.errors.map((error: { code: string }) => error.code);
      emptied[field] = !codes.includes('FIELD_REQUIRED') && !codes.includes('FIELD_READ_ONLY');
      assert.equal(validate({ [field]: null }), emptied[field], `${field} ${JSON.stringify(body.errors)}`);
      const { nillable } = described.fields.find(({ apiName }: { apiName: string }) => apiName === field);
      assert.equal(nillable, emptied[field], field);
    }
    assert.equal(emptied['ownerId'], false);
    assert.equal(emptied['name'], false);
    assert.equal(emptied['city'], true);
  });

  it('answers 404 identically for missing and hidden objects', async () => {
    const bodies = new Set<string>();
    for (const object of ['Nope', 'account', 'constructor', '%22Account%22', "Account'--", '_state', 'pg_class']) {
      for (const path of [`/objects/${object}/describe`, `/objects/${object}/schema.json`, `/data/${object}`]) {
        const { status, body } = await sam.get(path);
        assert.equal(status, 404, path);
        assert.equal(body.code, 'OBJECT_NOT_FOUND');
        bodies.add(body.message);
      }
    }
    assert.equal(bodies.size, 1);
  });

  it('requires a token and the scope', async () => {
    assert.equal((await api(platform.baseUrl).get('/objects')).status, 401);
    const other = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', 'me:read'));
    for (const path of ['/objects', '/objects/Account/describe', '/objects/Account/schema.json', '/data/Account']) {
      const { status, body } = await other.get(path);
      assert.equal(status, 403, path);
      assert.equal(body.code, 'SCOPE_INSUFFICIENT');
    }
    const pat = await tokenFor(platform.baseUrl, 'pat').catch(() => null);
    if (pat !== null) assert.equal((await api(platform.baseUrl, pat).get('/objects')).body.code, 'API_ACCESS_DISABLED');
  });
});

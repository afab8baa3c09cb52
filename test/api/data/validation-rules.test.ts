/** Validation rules over HTTP, on the demo tenant, and from a deployment to the next write. */
import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const ruleFile = (condition: string) => ({
  'objects/Invoice__c/validationRules/Reasonable.yaml': [
    'type: ValidationRule',
    'apiName: Reasonable',
    'object: Invoice__c',
    'active: true',
    `condition: ${condition}`,
    'errorField: Amount__c',
    'message: Nobody pays that much.',
    '',
  ].join('\n'),
});

describe('validation rules over HTTP', () => {
  let platform: TestPlatform;
  let sam: Api;
  let ada: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(() => platform?.stop());

  it('answer 422 with the rule, its field and its message, together with violations of fields', async () => {
    const reply = await sam.post('/data/Invoice__c', { Amount__c: '0.00', DueDate__c: 'soon' });
    assert.equal(reply.status, 422, reply.text);
    assert.equal(reply.body.code, 'VALIDATION_FAILED');
    assert.equal(reply.body.message, 'The record was not saved: 3 problems.');
    assert.deepEqual(
      reply.body.errors.find((error: { code: string }) => error.code === 'VALIDATION_RULE'),
      {
        pointer: '/Amount__c',
        field: 'Amount__c',
        code: 'VALIDATION_RULE',
        message: 'Amount must be positive.',
        ruleApiName: 'Invoice__c.AmountPositive',
        params: {},
      },
    );
    const codes = reply.body.errors.map((error: { pointer: string; code: string }) => `${error.pointer} ${error.code}`);
    assert.deepEqual(codes.sort(), [
      '/AccountId__c FIELD_REQUIRED',
      '/Amount__c VALIDATION_RULE',
      '/DueDate__c FIELD_FORMAT_INVALID',
    ]);
  });

  it('are listed as a type, validated with a position, deployed, retrieved unchanged and applied at once', async () => {
    const types = await ada.get('/metadata/types');
    const type = types.body.records.find((item: { type: string }) => item.type === 'ValidationRule');
    assert.equal(type.pathPattern, 'objects/{object}/validationRules/{apiName}.yaml');
    assert.deepEqual(Object.keys(type.schema.properties), [
      'type',
      'apiName',
      'object',
      'active',
      'condition',
      'errorField',
      'message',
    ]);

    const project = (files: Record<string, string>) => ({ files, package: wholePackage(files) });
    const bad = await ada.post('/metadata/validate', project(ruleFile('record.Amount__c > "a lot"')));
    assert.equal(bad.body.valid, false);
    const { code, line, column, remedy } = bad.body.blocked[0];
    assert.deepEqual([code, line, column, remedy], ['EXPRESSION_INVALID', 5, 12, null]);

    const files = ruleFile('record.Amount__c > 999999999.99');
    await deployOverHttp(ada, files);
    const again = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'ValidationRule', members: ['Invoice__c.Reasonable'] }] },
    });
    const path = Object.keys(files)[0]!;
    assert.equal(again.body.files[path], files[path as keyof typeof files]);

    const account = await sam.post('/data/Account', { name: 'Test GmbH' });
    const invoice = { AccountId__c: account.body.id, Amount__c: '999999999.99' };
    assert.equal((await sam.post('/data/Invoice__c', invoice)).status, 201);
    const refused = await sam.post('/data/Invoice__c', { ...invoice, Amount__c: '1000000000.00' });
    assert.deepEqual(
      refused.body.errors.map((error: { ruleApiName: string }) => error.ruleApiName),
      ['Invoice__c.Reasonable'],
    );
  });
});

/** Configuration that is heavy by intent: what one request may make of it is bounded, and the refusal says by what. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertRefused } from './support.ts';

const FIELDS = 480;
const TEXT = 'a'.repeat(800);

describe('bad input: work', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(() => platform?.stop());

  it('patterns of all fields of a record share their steps, and the refusal names those that got none', async () => {
    const yaml = (i: number): string => `fieldType: text\nlength: 800\npattern: "(?:a?){600}[a${i}]*"`;
    const names = Array.from({ length: FIELDS }, (_, i) => `P${i}__c`);
    await deployOverHttp(ada, objectFiles('Heavy__c', Object.fromEntries(names.map((name, i) => [name, yaml(i)]))));
    const values = (count: number): object => Object.fromEntries(names.slice(0, count).map((name) => [name, TEXT]));
    const few = await ada.post('/data/Heavy__c', { name: 'few', ...values(2) });
    assert.equal(few.status, 201, few.text);

    const start = performance.now();
    const many = await ada.post('/data/Heavy__c', { name: 'many', ...values(FIELDS) });
    assert.ok(performance.now() - start < 2_000, 'it took too long');
    assertRefused(many, 'many', 'VALIDATION_FAILED');
    const [first] = many.body.errors;
    assert.equal(first.code, 'FIELD_FORMAT_INVALID');
    assert.match(first.message, /^P\d__c cannot be compared with its pattern: .* more than 2000000 steps/);

    const changed = await ada.patch(`/data/Heavy__c/${few.body.id}`, values(FIELDS), {
      etag: few.headers.get('etag')!,
    });
    assertRefused(changed, 'an update', 'VALIDATION_FAILED');
  });

  it('default values count with them when they are read, and when they are deployed', async () => {
    const files = (count: number): Record<string, string> =>
      Object.assign(
        {},
        objectFiles('Defaults__c'),
        ...Array.from({ length: count }, (_, i) =>
          fieldFile(
            'Defaults__c',
            `D${i}__c`,
            `fieldType: text\nlength: 800\npattern: "(?:a?){600}[a${i}]*"\ndefaultValue: ${TEXT}`,
          ),
        ),
      );
    await deployOverHttp(ada, files(10));
    const created = await ada.post('/data/Defaults__c', { name: 'x' });
    assertRefused(created, 'a create', 'VALIDATION_FAILED');
    assert.match(created.body.errors[0].message, /cannot be compared with its pattern/);
  });
});

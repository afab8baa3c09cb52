/** Intentionally expensive configuration: the work of one request is bounded, and the refusal names the limit. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
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

  it('the patterns of a record share their steps, and the refusal names the fields that got none', async () => {
    const yaml = (i: number): string => `fieldType: text\nlength: 800\npattern: "(?:a?){600}[a${i}]*"`;
    const names = Array.from({ length: FIELDS }, (_, i) => `P${i}__c`);
    await deployOverHttp(ada, objectFiles('Heavy__c', Object.fromEntries(names.map((name, i) => [name, yaml(i)]))));
    const values = (count: number): object => Object.fromEntries(names.slice(0, count).map((name) => [name, TEXT]));
    const few = await ada.post('/data/Heavy__c', { name: 'few', ...values(2) });
    assert.equal(few.status, 201, few.text);

    const start = process.cpuUsage();
    const many = await ada.post('/data/Heavy__c', { name: 'many', ...values(FIELDS) });
    assert.ok(process.cpuUsage(start).user < 2_000_000, 'it took too long');
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

  const formula = (name: string, expression: string, more = 'resultType: text'): Record<string, string> =>
    fieldFile(
      'Priced__c',
      name,
      `fieldType: formula\nformula:\n  ${more}\n  expression: ${JSON.stringify(expression)}`,
    );
  const priced = objectFiles('Priced__c', {
    Short__c: 'fieldType: text\nlength: 40',
    Text__c: 'fieldType: text\nlength: 4000',
    Long__c: 'fieldType: longText',
  });
  /** Problems of a deployment; a validation and a deployment find the same. */
  async function problemsOf(files: Record<string, string>): Promise<string[]> {
    const body = { files, package: wholePackage(files) };
    const validated = await ada.post('/metadata/validate', body);
    assert.equal(validated.status, 200, validated.text);
    const accepted = await ada.post('/metadata/deploy', body);
    assert.equal(accepted.status, 202, accepted.text);
    let deployed = accepted.body;
    while (!['SUCCEEDED', 'FAILED'].includes(deployed.status))
      deployed = (await ada.get(`/metadata/deployments/${accepted.body.deploymentId}`)).body;
    const messages = ({ blocked = [] }: { blocked?: { message: string }[] }): string[] =>
      blocked.map(({ message }) => message);
    assert.equal(
      deployed.status,
      validated.body.blocked.length === 0 ? 'SUCCEEDED' : 'FAILED',
      JSON.stringify(deployed),
    );
    assert.deepEqual(messages(deployed), messages(validated.body));
    return messages(validated.body);
  }

  it('the cost of an expression follows the length of its fields, in a validation and in a deployment', async () => {
    await deployOverHttp(ada, priced);
    const changes = (field: string, times: number): string => `record.${field}${'.upper().lower()'.repeat(times)}`;
    assert.deepEqual(await problemsOf(formula('Cheap__c', changes('Short__c', 10))), []);
    assert.deepEqual(await problemsOf(formula('Once__c', 'record.Text__c.upper()')), []);
    for (const expression of [
      changes('Text__c', 1),
      changes('Long__c', 1),
      'record.Long__c.replace(record.Text__c, "")',
    ])
      assert.match(
        (await problemsOf(formula('Dear__c', expression))).join(),
        /can cost \d+ units for one record, and 5000/,
      );
    const rule = (criteria: string): Record<string, string> => ({
      'objects/Priced__c/sharingRules/Dear.yaml': `type: SharingRule\napiName: Dear\nobject: Priced__c\nkind: criteria\ncriteria: ${JSON.stringify(criteria)}\nto:\n  role: Ceo\naccess: read\n`,
    });
    // The criteria contain the formula in place of its name.
    assert.match(
      (await problemsOf(rule('record.Once__c == "a" || record.Once__c == "b"'))).join(),
      /can cost \d+ units for one record, and 5000/,
    );
  });

  it('the formulas of an object share a cost limit', async () => {
    const files = Object.assign({}, ...[1, 2, 3].map((i) => formula(`Each${i}__c`, 'record.Text__c.lower()')));
    assert.match(
      (await problemsOf(files)).join(),
      /The formulas of an object may cost at most 10000 units together for one record/,
    );
  });
});

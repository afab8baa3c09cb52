import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, fieldFile, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

/** Sam configures and sees his own opportunities; Ada sees all records. */
describe('API: record counts in plans', () => {
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    await deployOverHttp(ada, {
      'permissionSets/Builder.yaml':
        'type: PermissionSet\napiName: Builder\nlabel: Builder\nsystem: [metadataManage, metadataRead]\nfields:\n  Opportunity__c.Code__c: {read: true}\n',
      ...fieldFile('Opportunity__c', 'Code__c', 'fieldType: text'),
    });
    const path = `/data/User/${(await sam.get('/identity')).body.user.id}`;
    const etag = (await ada.get(path)).headers.get('etag')!;
    assert.equal((await ada.patch(path, { permissionSetApiNames: ['Builder'] }, { etag })).status, 200);
  });
  after(() => platform?.stop());

  /** Too few digits for the amounts, and a field without a value in any record. */
  const files = {
    ...fieldFile(
      'Opportunity__c',
      'Amount__c',
      'fieldType: currency\nprecision: 3\nscale: 2\ncurrencyField: CurrencyIsoCode__c',
    ),
    ...fieldFile('Opportunity__c', 'Code__c', 'fieldType: text\nrequired: true'),
  };
  const project = { files, package: wholePackage(files) };
  interface Told {
    blocked: { message: string; details?: { records: number } }[];
    updates: { impact: { records: number | null } }[];
  }
  const told = ({ blocked, updates }: Told) => ({
    messages: blocked.map(({ message }) => / \(([^)]*)\)$/.exec(message)?.[1]),
    details: blocked.map(({ details }) => typeof details?.records),
    impact: updates.map(({ impact }) => typeof impact.records),
  });
  const COUNTED = {
    messages: ['300 records', '300 records'],
    details: ['number', 'number'],
    impact: ['number', 'number'],
  };
  const UNCOUNTED = {
    messages: ['some records', 'some records'],
    details: ['undefined', 'undefined'],
    impact: ['object', 'object'],
  };

  it('validate counts for users who see all records, and says "some records" to others', async () => {
    const [all, some] = [await ada.post('/metadata/validate', project), await sam.post('/metadata/validate', project)];
    assert.deepEqual(told(all.body), COUNTED);
    assert.deepEqual(told(some.body), UNCOUNTED);
    assert.doesNotMatch(some.text, /\b300\b/);
  });

  it('a deployment does the same, whichever user requested it', async () => {
    const { body } = await ada.post('/metadata/deploy', { ...project, checkOnly: true });
    const path = `/metadata/deployments/${body.deploymentId}`;
    for (let i = 0; i < 200 && (await ada.get(path)).body.status !== 'FAILED'; i++)
      await new Promise((resolve) => setTimeout(resolve, 50));
    const seen = async (by: Api) => {
      const { body: found, text } = await by.get(path);
      return { ...told({ ...found, updates: found.changes.updates }), counted: /\b300\b/.test(text) };
    };
    assert.deepEqual(await seen(ada), { ...COUNTED, counted: true });
    assert.deepEqual(await seen(sam), { ...UNCOUNTED, counted: false });
  });
});

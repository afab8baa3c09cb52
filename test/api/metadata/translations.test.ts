import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const VALUES = 'picklist:\n  values:\n    - value: open\n      label: Open\n    - value: done\n      label: Done';
const CLAIM: Record<string, string> = {
  ...objectFiles('Claim__c', {
    Amount__c: 'fieldType: currency',
    Status__c: `fieldType: picklist\n${VALUES}`,
    Kind__c: 'fieldType: picklist\npicklist:\n  valueSet: ClaimKind',
    Hidden__c: 'fieldType: text',
  }),
  ...objectFiles('ClaimNote__c', { ClaimId__c: 'fieldType: reference\nreferenceTo: [Claim__c]' }),
  'valueSets/ClaimKind.yaml':
    'type: ValueSet\napiName: ClaimKind\nvalues:\n  - value: fire\n    label: Fire\n  - value: water\n    label: Water\n',
  'objects/Claim__c/recordTypes/Large.yaml':
    'type: RecordType\napiName: Large\nobject: Claim__c\nlabel: Large claim\nactive: true\n',
  'objects/Claim__c/listViews/Large.yaml':
    'type: ListView\napiName: Large\nobject: Claim__c\nlabel: Large claims\ncolumns: [name]\n',
  'objects/Claim__c/layouts/Default.yaml':
    'type: Layout\napiName: Default\nobject: Claim__c\nlabel: Claim\nsections:\n  - label: Facts\n    columns:\n      - [Status__c]\nrelatedLists:\n  - relationshipName: ClaimNotes__r\n    columns: [name]\n',
  'objects/Claim__c/stateModels/Life.yaml':
    'type: StateModel\napiName: Life\nobject: Claim__c\nfield: Status__c\ninitial: open\nallowDirectEdit: false\ntransitions:\n  - key: finish\n    label: Finish\n    from: [open]\n    to: done\n    risk: low\n    requiresComment: false\n',
  'objects/Claim__c/actions/Remind.yaml':
    'type: CustomAction\napiName: Remind\nobject: Claim__c\nlabel: Remind\nrisk: low\nrequiresComment: false\n',
};

const translation = (language: string, labels: Record<string, string>): Record<string, string> => ({
  [`translations/${language}.yaml`]: `type: Translation\napiName: ${language}\nlabels:\n${Object.entries(labels)
    .map(([key, label]) => `  ${JSON.stringify(key)}: ${label}\n`)
    .join('')}`,
});

const GERMAN = translation('de', {
  Claim__c: 'Schaden',
  'Claim__c#labelPlural': 'Schäden',
  'Claim__c.name': 'Bezeichnung',
  'Claim__c.Amount__c': 'Betrag',
  'Claim__c.Hidden__c': 'Geheimnis',
  'Claim__c.Status__c#open': 'Offen',
  'ClaimKind#fire': 'Feuer',
  'Claim__c.Kind__c#water': 'Wasser',
  createdAt: 'Angelegt am',
  'Claim__c.updatedAt': 'Zuletzt bearbeitet',
  'Claim__c.Large': 'Großschaden',
  'ListView:Claim__c.Large': 'Große Schäden',
  'Claim__c.Default': 'Schadensblatt',
  'Claim__c.Default#Facts': 'Tatsachen',
  'ClaimNote__c#labelPlural': 'Notizen',
  'Claim__c.Life#finish': 'Abschließen',
  'Claim__c.Remind': 'Erinnern',
});
const BRAZILIAN = translation('pt-BR', { Claim__c: 'Sinistro' });

interface Labelled {
  apiName: string;
  label: string;
}

describe('API: translations', () => {
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    const { body } = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'Profile', members: ['Administrator', 'SalesRep'] }] },
    });
    const fields = ['Claim__c.Amount__c', 'Claim__c.Status__c', 'Claim__c.Kind__c', 'ClaimNote__c.ClaimId__c'];
    const profiles = ['Administrator', 'SalesRep'].map((name) => {
      const path = `profiles/${name}.yaml`;
      const seen = name === 'SalesRep' ? fields : [...fields, 'Claim__c.Hidden__c'];
      const objects = ['Claim__c', 'ClaimNote__c'].map(
        (object) => `  ${object}:\n    create: true\n    read: true\n    update: true\n`,
      );
      return [
        path,
        body.files[path]
          .replace(/^objects:\n/m, `objects:\n${objects.join('')}`)
          .replace(/^fields:\n/m, `fields:\n${seen.map((field) => `  ${field}:\n    read: true\n`).join('')}`),
      ];
    });
    await deployOverHttp(ada, { ...CLAIM, ...Object.fromEntries(profiles), ...GERMAN, ...BRAZILIAN });
  });
  after(() => platform?.stop());

  const get = (path: string, language: string, headers: Record<string, string> = {}) =>
    sam.get(path, { headers: { 'Accept-Language': language, ...headers } });
  const labelOf = (list: readonly Labelled[], name: string): string | undefined =>
    list.find(({ apiName }) => apiName === name)?.label;
  const blocked = async (files: Record<string, string>): Promise<string[]> => {
    const answer = await ada.post('/metadata/validate', { files, package: wholePackage(files) });
    assert.equal(answer.status, 200, answer.text);
    return answer.body.blocked.map(
      ({ code, fullName, line, column }: { code: string; fullName: string; line: number; column: number }) =>
        `${code} ${fullName} ${line}:${column}`,
    );
  };

  it('GET describe with Accept-Language answers the labels of this language, and nothing else differs', async () => {
    const [german, own] = [await get('/objects/Claim__c/describe', 'de'), await sam.get('/objects/Claim__c/describe')];
    const { body } = german;
    assert.deepEqual([body.label, body.labelPlural], ['Schaden', 'Schäden']);
    assert.deepEqual(
      ['name', 'Amount__c', 'createdAt', 'updatedAt', 'ownerId'].map((name) => labelOf(body.fields, name)),
      ['Bezeichnung', 'Betrag', 'Angelegt am', 'Zuletzt bearbeitet', 'Owner'],
    );
    const valuesOf = (name: string) =>
      body.fields
        .find((field: Labelled) => field.apiName === name)
        .picklistValues.map(({ value, label }: { value: string; label: string }) => `${value} ${label}`);
    assert.deepEqual(valuesOf('Status__c'), ['open Offen', 'done Done']);
    assert.deepEqual(valuesOf('Kind__c'), ['fire Feuer', 'water Wasser']);
    assert.equal(labelOf(body.recordTypes, 'Large'), 'Großschaden');
    assert.equal(labelOf(body.listViews, 'Large'), 'Große Schäden');
    const [layout] = body.layouts;
    assert.deepEqual(
      [layout.label, layout.sections[0].label, layout.relatedLists[0].label],
      ['Schadensblatt', 'Tatsachen', 'Notizen'],
    );
    assert.equal(german.text.includes('Geheimnis'), false, 'the label of a hidden field');
    const bare = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value, (key, item) => (/^label|^schemaVersion$/.test(key) ? undefined : item)));
    assert.deepEqual(bare(body), bare(own.body));
  });

  it('the best requested language is found by shortening the tags, else labels are the original ones', async () => {
    const languages: [string, string, string][] = [
      ['de-AT', 'de', 'Schaden'],
      ['de-Latn-DE-1996, en;q=0.5', 'de', 'Schaden'],
      ['fr, PT-br;q=0.9, de;q=0.8', 'pt-BR', 'Sinistro'],
      ['pt-BR-x-lisbon', 'pt-BR', 'Sinistro'],
      ['pt', 'en', 'Claim__c'],
      ['en-GB, de;q=0.5', 'en', 'Claim__c'],
      ['en;q=0.4, de', 'de', 'Schaden'],
      ['de;q=0, fr', 'en', 'Claim__c'],
      ['*', 'en', 'Claim__c'],
      ['constructor', 'en', 'Claim__c'],
      [`${'x-'.repeat(600)}, de`, 'en', 'Claim__c'],
    ];
    for (const [asked, language, label] of languages) {
      const answer = await get('/objects/Claim__c/describe', asked);
      assert.deepEqual([answer.headers.get('content-language'), answer.body.label], [language, label], asked);
      assert.ok(answer.headers.get('vary')?.includes('Accept-Language'));
    }
  });

  it('GET describe and schema.json: an ETag identifies one language', async () => {
    for (const path of ['/objects/Claim__c/describe', '/objects/Claim__c/schema.json']) {
      const [german, own] = [await get(path, 'de'), await get(path, 'en')];
      const etag = german.headers.get('etag')!;
      assert.notEqual(etag, own.headers.get('etag'));
      const known = await get(path, 'de-AT', { 'If-None-Match': etag });
      assert.deepEqual([known.status, known.headers.get('content-language')], [304, 'de']);
      assert.ok(known.headers.get('vary')?.includes('Accept-Language'));
      assert.equal((await get(path, 'en', { 'If-None-Match': etag })).status, 200);
    }
    const schema = await get('/objects/Claim__c/schema.json', 'de');
    assert.ok(schema.text.includes('"title":"Betrag"'));
  });

  it('GET /objects, the catalog and transitions follow; messages do not', async () => {
    const objects = await get('/objects', 'de');
    assert.equal(labelOf(objects.body.records, 'Claim__c'), 'Schaden');
    const claim = objects.body.records.find(({ apiName }: { apiName: string }) => apiName === 'Claim__c');
    assert.equal(claim.labelPlural, 'Schäden');
    assert.equal(objects.headers.get('content-language'), 'de');
    const catalog = await get('/analytics/catalog/Claim__c', 'de');
    assert.deepEqual(
      [catalog.status, catalog.body.label, catalog.headers.get('content-language')],
      [200, 'Schaden', 'de'],
    );
    assert.equal('language' in catalog.body, false);
    const made = await sam.post('/data/Claim__c', { name: 'One' });
    assert.equal(made.status, 201, made.text);
    const { body } = await get(`/data/Claim__c/${made.body.id}/transitions`, 'de');
    assert.deepEqual(
      body.records.map(({ transitionKey, label }: { transitionKey: string; label: string }) => [transitionKey, label]),
      [
        ['finish', 'Abschließen'],
        ['Remind', 'Erinnern'],
      ],
    );
    const unknown = await get('/objects/Nothing__c/describe', 'de');
    assert.deepEqual(
      [unknown.status, unknown.body.message],
      [404, (await sam.get('/objects/Nothing__c/describe')).body.message],
    );
  });

  it('POST /metadata/validate: keys that name nothing with a label are refused at their location', async () => {
    const keys = {
      Claim__c: 'Sinistre',
      Nothing__c: 'x',
      'Claim__c.Nothing__c': 'x',
      'Claim__c.Status__c#gone': 'x',
      'Claim__c.Amount__c#one': 'x',
      ClaimKind: 'x',
      'ClaimKind#gone': 'x',
      'Claim__c.Life': 'x',
      'RecordType:Claim__c.Default': 'x',
      'Profile:Standard': 'x',
      name: 'x',
      constructor: 'x',
      'Claim__c.Default#Other': 'x',
      'CustomField:Claim__c.createdAt': 'Créé',
    };
    const lines = Object.values(keys).flatMap((label, i) => (label === 'x' ? [`REFERENCE_INVALID fr ${i + 4}:3`] : []));
    assert.deepEqual(new Set(await blocked(translation('fr', keys))), new Set(lines));
    assert.deepEqual(await blocked(translation('EN-us', { Claim__c: 'Claim' })), ['NAME_INVALID EN-us 2:1']);
    assert.deepEqual(await blocked(translation('fr', { 'Claim__c.a.b': 'x' })), ['YAML_SCHEMA_INVALID fr 4:3']);
  });

  it('POST /metadata/validate: a change that removes a translated name is refused', async () => {
    const path = 'objects/Claim__c/fields/Status__c.yaml';
    const text = CLAIM[path]!.replace('    - value: open\n      label: Open\n', '');
    const found = await blocked({ [path]: text });
    assert.ok(found.includes('REFERENCE_INVALID de null:null'), found.join('\n'));
  });

  it('POST /metadata/retrieve → deploy gives the same bytes and no changes', async () => {
    const { body } = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'Translation', members: ['*'] }] },
    });
    assert.ok(body.files['translations/pt-BR.yaml'], JSON.stringify(body));
    const checked = await ada.post('/metadata/validate', { files: body.files, package: body.package });
    assert.deepEqual([checked.body.valid, checked.body.creates, checked.body.updates], [true, [], []]);
  });
});

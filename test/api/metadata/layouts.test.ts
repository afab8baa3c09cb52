import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const CLAIM = {
  ...objectFiles('Claim__c', {
    Title__c: 'fieldType: text',
    Amount__c: 'fieldType: currency',
    Secret__c: 'fieldType: decimal',
    Due__c: 'fieldType: date',
    Status__c: 'fieldType: picklist\npicklist:\n  values:\n    - value: open\n    - value: closed',
  }),
  ...objectFiles('ClaimNote__c', {
    ClaimId__c: 'fieldType: reference\nreferenceTo: [Claim__c]',
    Text__c: 'fieldType: text',
    Secret__c: 'fieldType: text',
  }),
  'objects/Claim__c/recordTypes/Damage.yaml':
    'type: RecordType\napiName: Damage\nobject: Claim__c\nlabel: Damage\nactive: true\n',
};

const layout = (apiName: string, rest: string): Record<string, string> => ({
  [`objects/Claim__c/layouts/${apiName}.yaml`]: `type: Layout\napiName: ${apiName}\nobject: Claim__c\n${rest}`,
});
const listView = (apiName: string, rest: string): Record<string, string> => ({
  [`objects/Claim__c/listViews/${apiName}.yaml`]: `type: ListView\napiName: ${apiName}\nobject: Claim__c\nlabel: ${apiName} claims\n${rest}`,
});
const section = (...fields: string[]): string =>
  `sections:\n  - label: Facts\n    columns:\n      - [${fields.join(', ')}]\n`;

const LAYOUTS = {
  ...layout(
    'Default',
    `label: Claim
sections:
  - label: Facts
    columns:
      - - name
        - Title__c
        - Secret__c
      - - Status__c
  - label: System
    columns:
      - - recordVersion
relatedLists:
  - relationshipName: ClaimNotes__r
    columns:
      - name
      - Secret__c
      - Text__c
`,
  ),
  ...layout('Confidential', `${section('Secret__c')}assignments:\n  - profile: SalesManager\n`),
  ...layout('Damages', `${section('Title__c', 'Due__c')}assignments:\n  - recordType: Damage\n`),
  ...layout(
    'Books',
    `${section('Amount__c', 'Secret__c')}assignments:\n  - profile: Accountant\n  - profile: Administrator\n    recordType: Damage\n`,
  ),
};

const LIST_VIEWS = {
  ...listView(
    'Open',
    `columns:
  - Title__c
  - Secret__c
  - Amount__c
filters:
  logic: and
  conditions:
    - id: open
      field: Status__c
      operator: in
      value:
        - open
    - id: due
      field: Due__c
      operator: lte
      value: TODAY
sort:
  - id: Secret__c
    desc: true
  - id: Amount__c
`,
  ),
  ...listView(
    'Large',
    'columns: [Title__c]\nfilters:\n  logic: or\n  conditions:\n    - {id: large, field: Secret__c, operator: gt, value: 1000}\n',
  ),
  ...listView(
    'Noted',
    'columns: [name]\nfilters:\n  logic: and\n  conditions:\n    - {id: noted, field: id, operator: in_related, value: {objectApiName: ClaimNote__c, field: ClaimId__c, conditions: [{id: text, field: Secret__c, operator: eq, value: x}]}}\n',
  ),
  ...listView('OfFinance', 'columns: [name]\nsharedWith:\n  groups: [Receivables]\n  roles: [SalesManager]\n'),
};

interface Described {
  layouts: { apiName: string; default: boolean; recordTypes: string[]; sections: object[]; relatedLists: object[] }[];
  listViews: { apiName: string; columns: string[]; filters: object | null; sort: object[] }[];
}

describe('API: layouts and list views', () => {
  let platform: TestPlatform;
  const people: Record<string, Api> = {};
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    for (const name of ['ada', 'sam', 'mia', 'fay'])
      people[name] = api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
    const fields = Object.keys(CLAIM).flatMap(
      (path) => /objects\/(\w+)\/fields\/(\w+)\.yaml/.exec(path)?.slice(1, 3).join('.') ?? [],
    );
    const all = await retrieve({ Profile: ['Administrator', 'SalesRep', 'SalesManager', 'Accountant'] });
    const profiles = Object.entries(all).filter(([path]) => path.startsWith('profiles/'));
    const given = profiles.map(([path, text]) => {
      const seen = fields.filter((name) => !path.includes('SalesRep') || !name.endsWith('.Secret__c'));
      const objects = ['Claim__c', 'ClaimNote__c'].map(
        (name) => `  ${name}:\n    create: true\n    read: true\n    viewAll: true\n`,
      );
      return [
        path,
        text
          .replace(/^objects:\n/m, `objects:\n${objects.join('')}`)
          .replace(
            /^fields:\n/m,
            `fields:\n${seen.map((name) => `  ${name}:\n    read: true\n    edit: true\n`).join('')}`,
          ),
      ];
    });
    await deployOverHttp(people['ada']!, { ...CLAIM, ...Object.fromEntries(given), ...LAYOUTS, ...LIST_VIEWS });
  });
  after(() => platform?.stop());

  const retrieve = async (types: Record<string, string[]>): Promise<Record<string, string>> => {
    const answer = await people['ada']!.post('/metadata/retrieve', {
      package: { version: 1, types: Object.entries(types).map(([name, members]) => ({ name, members })) },
    });
    assert.equal(answer.status, 200, answer.text);
    return answer.body.files;
  };
  const described = async (name: string): Promise<Described> => {
    const answer = await people[name]!.get<Described>('/objects/Claim__c/describe');
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const shown = async (name: string): Promise<unknown[]> =>
    (await described(name)).layouts.map((one) => [one.apiName, one.default, one.recordTypes]);
  const problems = async (files: Record<string, string>): Promise<string[]> => {
    const answer = await people['ada']!.post('/metadata/validate', { files, package: wholePackage(files) });
    assert.equal(answer.status, 200, answer.text);
    return answer.body.blocked.map(
      ({ code, line, column }: { code: string; line: number; column: number }) => `${code} ${line}:${column}`,
    );
  };

  it('GET describe: a profile gets the layout that names it, before one for a record type, before the general one', async () => {
    assert.deepEqual(await shown('sam'), [
      ['Default', true, []],
      ['Damages', false, ['Damage']],
    ]);
    assert.deepEqual(await shown('mia'), [['Confidential', true, ['Damage']]]);
    assert.deepEqual(await shown('fay'), [['Books', true, ['Damage']]]);
    assert.deepEqual(await shown('ada'), [
      ['Default', true, []],
      ['Books', false, ['Damage']],
    ]);
  });

  it('GET describe: layouts contain the fields that the caller can read; empty parts are omitted', async () => {
    const [sams, adas] = [await described('sam'), await described('ada')];
    assert.deepEqual(sams.layouts[0]!.sections, [
      { label: 'Facts', columns: [['name', 'Title__c'], ['Status__c']] },
      { label: 'System', columns: [['recordVersion']] },
    ]);
    assert.deepEqual(adas.layouts[0]!.sections[0], {
      label: 'Facts',
      columns: [['name', 'Title__c', 'Secret__c'], ['Status__c']],
    });
    assert.deepEqual(sams.layouts[0]!.relatedLists, [
      {
        relationshipName: 'ClaimNotes__r',
        label: 'ClaimNote__cs',
        objectApiName: 'ClaimNote__c',
        field: 'ClaimId__c',
        columns: ['name', 'Text__c'],
      },
    ]);
    assert.equal(JSON.stringify(sams).includes('Secret__c'), false);
    await deployOverHttp(
      people['ada']!,
      layout('Damages', `${section('Secret__c')}assignments:\n  - recordType: Damage\n`),
    );
    assert.deepEqual((await described('sam')).layouts[1]!.sections, []);
  });

  it('GET describe: list views are those that are shared with the caller and filter by no hidden field', async () => {
    const names = async (name: string): Promise<string[]> =>
      (await described(name)).listViews.map(({ apiName }) => apiName);
    assert.deepEqual(await names('sam'), ['Open']);
    assert.deepEqual(await names('fay'), ['Large', 'Noted', 'OfFinance', 'Open']);
    assert.deepEqual(await names('mia'), ['Large', 'Noted', 'OfFinance', 'Open']);
    assert.deepEqual(await names('ada'), ['Large', 'Noted', 'OfFinance', 'Open']);
    const [open] = (await described('sam')).listViews;
    assert.deepEqual(open!.columns, ['Title__c', 'Amount__c']);
    assert.deepEqual(open!.sort, [{ id: 'Amount__c', desc: false }]);
  });

  it('GET /data and POST query accept filters and sort of a list view unchanged', async () => {
    for (const [title, status, due] of [
      ['late', 'open', '2020-01-01'],
      ['done', 'closed', '2020-01-01'],
      ['early', 'open', '2999-01-01'],
    ]) {
      const made = await people['ada']!.post('/data/Claim__c', {
        name: title,
        Title__c: title,
        Status__c: status,
        Due__c: due,
        Secret__c: 5_000,
      });
      assert.equal(made.status, 201, made.text);
    }
    for (const name of ['sam', 'ada'])
      for (const { apiName, columns, filters, sort } of (await described(name)).listViews) {
        const expected = { Open: ['late'], Large: ['late', 'done', 'early'], Noted: [] }[apiName];
        const query = new URLSearchParams({ fields: ['name', ...columns].join(','), sort: JSON.stringify(sort) });
        if (filters) query.set('filters', JSON.stringify(filters));
        const listed = await people[name]!.get(`/data/Claim__c?${query}`);
        const queried = await people[name]!.post('/data/Claim__c/query', { fields: columns, filters, sort });
        assert.deepEqual([listed.status, queried.status], [200, 200], `${apiName} ${listed.text} ${queried.text}`);
        assert.equal(listed.body.records.length, queried.body.records.length);
        if (expected)
          assert.deepEqual(
            new Set(listed.body.records.map((record: { name: string }) => record.name)),
            new Set(expected),
          );
      }
  });

  it('POST /metadata/validate: every fault is reported at its location, all at once', async () => {
    assert.deepEqual(
      await problems({
        ...layout(
          'Wrong',
          `sections:
  - label: Facts
    columns:
      - - Title__c
        - Nothing__c
      - - Title__c
relatedLists:
  - relationshipName: Nothings__r
    columns: [name]
  - relationshipName: ClaimNotes__r
    columns: [Nothing__c]
assignments:
  - profile: SalesManager
  - profile: Nobody
  - recordType: Nothing
`,
        ),
        ...layout('Second', section('name')),
      }),
      [
        'NAME_CONFLICT 1:1',
        'DEPENDENCY_MISSING 8:11',
        'DEPENDENCY_MISSING 17:5',
        'DEPENDENCY_MISSING 18:5',
        'REFERENCE_INVALID 9:11',
        'REFERENCE_INVALID 11:5',
        'REFERENCE_INVALID 14:15',
        'NAME_CONFLICT 16:5',
      ],
    );
    assert.deepEqual(
      await problems(
        listView(
          'Wrong',
          `columns: [Nothing__c]
filters:
  logic: and
  conditions:
    - {id: a, field: Amount__c, operator: contains, value: x}
    - {id: b, field: Due__c, operator: eq, value: SOMEDAY}
    - {id: c, field: Nothing__c, operator: eq, value: 1}
    - {id: d, field: id, operator: in_related, value: {objectApiName: Nothing__c, field: x}}
sort:
  - id: Amount__c
  - id: Amount__c
sharedWith:
  roles: [Nobody]
`,
        ),
      ),
      [
        'DEPENDENCY_MISSING 5:11',
        'DEPENDENCY_MISSING 11:15',
        'DEPENDENCY_MISSING 12:56',
        'DEPENDENCY_MISSING 12:83',
        'DEPENDENCY_MISSING 17:11',
        'REFERENCE_INVALID 9:33',
        'REFERENCE_INVALID 10:44',
        'REFERENCE_INVALID 15:5',
      ],
    );
    assert.deepEqual(
      await problems(
        listView(
          'Wrong',
          'columns: [name]\nfilters:\n  logic: and\n  conditions:\n    - {id: a, field: name, operator: eq}\n    - {id: a, field: name, operator: is_blank, value: 1}\nsort: [{id: name}, {id: id}, {id: ownerId}]\n',
        ),
      ),
      ['YAML_SCHEMA_INVALID 11:1'],
    );
  });

  it('POST /metadata/validate: a field that no longer fits a list view or a related list is refused', async () => {
    const blocked = await problems(
      Object.fromEntries(
        Object.entries(CLAIM)
          .filter(([path]) => path.endsWith('ClaimId__c.yaml'))
          .map(([path, text]) => [path, `${text}relationshipName: Remarks__r\n`]),
      ),
    );
    assert.deepEqual(blocked, ['REFERENCE_INVALID null:null']);
  });

  it('POST /metadata/retrieve → deploy gives the same bytes and no changes', async () => {
    const types = { Layout: ['Claim__c.*'], ListView: ['*'] };
    const files = await retrieve(types);
    assert.ok(files['objects/Claim__c/layouts/Default.yaml']);
    const checked = await people['ada']!.post('/metadata/validate', { files, package: wholePackage(files) });
    assert.deepEqual([checked.body.valid, checked.body.creates, checked.body.updates], [true, [], []]);
  });
});

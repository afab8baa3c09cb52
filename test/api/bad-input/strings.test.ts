/** SQL, quotes and prototype names in every string that a caller controls: refused as names, stored verbatim as data. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertRefused, assertSound, encoded, PROTOTYPE_NAMES, picture, SQL } from './support.ts';

const STRINGS = [...SQL, ...PROTOTYPE_NAMES.slice(1), '{{', '%s', '\u{1f600}', '</script>', '\t\r\n', 'a\u2028b'];
/** The part of a number format before its digits: no braces, 30 characters at most. */
const prefix = (text: string): string => text.replaceAll(/[{}]/g, '').slice(0, 30);
const OPERATORS = [
  'eq',
  'neq',
  'contains',
  'not_contains',
  'starts_with',
  'gt',
  'gte',
  'lt',
  'lte',
  'between',
  'in',
  'not_in',
];

describe('bad input: strings', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(() => platform?.stop());

  const condition = (field: string, operator: string, value: unknown): unknown => ({
    id: 'c',
    field,
    operator,
    ...(operator === 'is_blank' ? {} : { value: operator.endsWith('in') ? [value] : value }),
    ...(operator === 'between' ? { valueTo: value } : {}),
  });
  const list = (parameter: string, value: unknown): Promise<Answer> =>
    ada.get(`/data/Account?take=1&${parameter}=${encoded(value)}`);
  const filter = (...conditions: unknown[]): Promise<Answer> => list('filters', { logic: 'and', conditions });
  const related = (objectApiName: string, field: string, conditions: unknown[] = []): unknown =>
    condition('id', 'in_related', { objectApiName, field, conditions });

  it('as names of fields, objects, operators and directions they are refused', async () => {
    const stored = await picture(platform);
    for (const name of [...STRINGS, '__proto__']) {
      const named = (value: unknown): string => `{${JSON.stringify(name)}:${JSON.stringify(value)}}`;
      const refusals: [string, Promise<Answer>][] = [
        ['fields', list('fields', `id,${name}`)],
        ['orderBy', list('orderBy', name)],
        ['orderDirection', list('orderBy=name&orderDirection', name)],
        ['sort', list('sort', [{ id: name, desc: true }])],
        ['searchFields', list('search=abc&searchFields', name)],
        ['where', list('where', named('x'))],
        ['whereIn', list('whereIn', named(['x']))],
        ['logic', list('filters', { logic: name, conditions: [condition('name', 'eq', 'x')] })],
        ['operator', filter(condition('name', name, 'x'))],
        ['object of in_related', filter(related(name, 'accountId'))],
        ['field of in_related', filter(related('Contact', name))],
        ['condition in in_related', filter(related('Contact', 'accountId', [condition(name, 'eq', 'x')]))],
        ['field of a record', ada.post('/data/Account', `{"name":"x",${named(1).slice(1)}`)],
        ['external id', ada.post('/data/Contact', `{"lastName":"x","accountId":${named('x')}}`)],
        ['reference', ada.post('/data/Contact', { lastName: 'x', accountId: name })],
        ['record type', ada.post('/data/Account', { name: 'x', recordTypeApiName: name })],
        ['picklist', ada.post('/data/Account', { name: 'x', type: name })],
        ['type', ada.post('/metadata/retrieve', { package: { version: 1, types: [{ name, members: ['*'] }] } })],
      ];
      for (const operator of [...OPERATORS, 'is_blank'])
        refusals.push([operator, filter(condition(name, operator, 'x'))]);
      for (const [where, answer] of refusals) assertRefused(await answer, `${where}: ${name}`);
    }
    assert.deepEqual(await picture(platform), stored);
  });

  it('as values they are stored, found and sorted unchanged', async () => {
    const ids = new Map<string, string>();
    for (const text of STRINGS) {
      const created = await ada.post('/data/Account', { name: `x${text}x`, description: text, city: text });
      assert.equal(created.status, 201, `${text}: ${created.text}`);
      assert.equal(created.body.description, text);
      assert.equal(created.body.name, `x${text}x`);
      ids.set(text, created.body.id);
    }
    for (const [text, id] of ids) {
      const read = await ada.get(`/data/Account/${id}`);
      assert.equal(read.body.city, text);
      const exact = await list('where', { name: `x${text}x` });
      assert.deepEqual(
        exact.body.records?.map((one: { id: string }) => one.id),
        [id],
        `${text}: ${exact.text}`,
      );
      for (const operator of ['contains', 'starts_with']) {
        const found = await ada.post('/data/Account/query', {
          filters: { logic: 'and', conditions: [condition('name', operator, `x${text}x`)] },
        });
        assert.ok(
          found.body.records?.some((one: { id: string }) => one.id === id),
          `${operator} ${text}: ${found.text.slice(0, 200)}`,
        );
        assert.ok(found.body.records.length < 4, `${operator} ${text} found ${found.body.records.length}`);
      }
      for (const operator of OPERATORS)
        assertSound(await filter(condition('name', operator, text)), `${operator} ${text}`);
      assertSound(await list('search', text), `search ${text}`);
      const changed = await ada.patch(
        `/data/Account/${id}`,
        { description: `z${text}` },
        { etag: read.headers.get('etag')! },
      );
      assert.equal(changed.body.description, `z${text}`, changed.text);
    }
  });

  it('with more combining marks in a row than any script has they are refused in every text', async () => {
    const marks = `a${'\u0301\u0323'.repeat(100_000)}`;
    const few = `a${'\u0301\u0323'.repeat(20)}`;
    const stored = await picture(platform);
    const account = (await ada.get('/data/Account?take=1')).body.records[0];
    const refusals: [string, Promise<Answer>][] = [
      ['create', ada.post('/data/Account', { name: marks })],
      ['update', ada.patch(`/data/Account/${account.id}`, { description: marks }, { etag: '"1"' })],
      [
        'external id',
        ada.put(`/data/Account/by/accountNumber/${encoded(few)}`, { name: 'x' }, { headers: { 'if-none-match': '*' } }),
      ],
      ['reference', ada.post('/data/Contact', { lastName: 'x', accountId: { accountNumber: marks } })],
      [
        'share',
        ada.post(`/data/Account/${account.id}/shares`, {
          principalType: 'group',
          principalId: 'Finance',
          access: 'read',
          reason: few,
        }),
      ],
      ['where', ada.post('/data/Account/query', { where: { name: marks } })],
      ['whereIn', list('whereIn', { name: [few] })],
      ['filter', filter(condition('name', 'contains', few))],
      ['related', filter(related('Contact', 'accountId', [condition('lastName', 'eq', few)]))],
      ['search', ada.post('/data/Account/query', { search: marks })],
      ['search of few words', list('search', few)],
    ];
    for (const [where, answer] of refusals) {
      const { text, ...rest } = await answer;
      assertRefused({ text, ...rest }, where);
      assert.ok(text.length < 5_000, `${where}: ${text.length} bytes of answer`);
    }
    assert.deepEqual(await picture(platform), stored);
  });

  it('a LIKE pattern has no special meaning', async () => {
    const one = await ada.post('/data/Account', { name: 'like 100% sure_thing\\' });
    for (const [value, expected] of [
      ['100%', 1],
      ['100_', 0],
      ['l%e', 0],
      ['sure_', 1],
      ['sure\\', 0],
      ['thing\\', 1],
      ['%', 1],
    ] as const) {
      const found = await ada.post('/data/Account/query', {
        where: { id: one.body.id },
        filters: { logic: 'and', conditions: [condition('name', 'contains', value)] },
      });
      assert.equal(found.body.records?.length, expected, `${value}: ${found.text.slice(0, 200)}`);
    }
  });

  it('as keys, ETags and other headers they are refused or ignored', async () => {
    const { body } = await ada.get('/data/Account?take=1');
    const path = `/data/Account/${body.records[0].id}`;
    const stored = await picture(platform);
    for (const text of SQL.filter((one) => /^[\x20-\x7e]*$/.test(one))) {
      assertRefused(await ada.post('/data/Account', {}, { idempotencyKey: `key-${text}` }), text);
      assertRefused(await ada.patch(path, { city: 'x' }, { etag: `"${text}"` }), text);
      for (const header of [
        'x-agent-run-id',
        'x-duplicate-confirmation',
        'traceparent',
        'x-request-id',
        'accept-language',
        'if-none-match',
      ])
        assertSound(await ada.get('/data/Account?take=1', { headers: { [header]: text } }), `${header}: ${text}`);
      for (const header of ['x-agent-run-id', 'x-duplicate-confirmation'])
        assertSound(await ada.post('/data/Account', {}, { headers: { [header]: text } }), `${header}: ${text}`);
    }
    assert.deepEqual(await picture(platform), stored);
  });

  describe('in metadata', () => {
    const deploy = async (files: Record<string, string>, about: string): Promise<unknown> => {
      const body = { files, package: wholePackage(files) };
      const accepted = await ada.post('/metadata/deploy', body);
      assertSound(accepted, about);
      assert.equal(accepted.status, 202, accepted.text);
      for (;;) {
        const { body: deployment } = await ada.get(`/metadata/deployments/${accepted.body.deploymentId}`);
        if (deployment.status === 'FAILED' || deployment.status === 'SUCCEEDED')
          return deployment.error ? deployment : { status: deployment.status };
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };

    it('labels, defaults, help, values of picklists and number formats keep them verbatim', async () => {
      const texts = STRINGS.filter((text) => /^\S(?:.*\S)?$/.test(text));
      const fields: Record<string, string> = {};
      const record: Record<string, unknown> = { name: 'x' };
      for (const [i, text] of texts.entries()) {
        const q = JSON.stringify(text);
        const values = `picklist: {values: [{value: ${q}, label: ${q}}]}`;
        fields[`Text${i}__c`] = `fieldType: text\ndefaultValue: ${q}\nhelpText: ${q}\nsemantics: ${q}\nexample: ${q}`;
        fields[`One${i}__c`] = `fieldType: picklist\n${values}`;
        fields[`Many${i}__c`] = `fieldType: multiPicklist\n${values}`;
        fields[`Number${i}__c`] = `fieldType: autoNumber\nformat: ${JSON.stringify(`${prefix(text)}{000}`)}`;
        record[`One${i}__c`] = text;
        record[`Many${i}__c`] = [text];
      }
      assert.deepEqual(await deploy(objectFiles('Texts__c', fields), 'all'), { status: 'SUCCEEDED' });
      const created = await ada.post('/data/Texts__c', record);
      assert.equal(created.status, 201, created.text);
      const described = await ada.get('/objects/Texts__c/describe');
      for (const [i, text] of texts.entries()) {
        assert.equal(created.body[`Text${i}__c`], text);
        assert.equal(created.body[`Number${i}__c`], `${prefix(text)}001`);
        const field = described.body.fields.find((one: { apiName: string }) => one.apiName === `One${i}__c`);
        assert.equal(field.picklistValues[0].label, text);
        const where = { [`One${i}__c`]: text, [`Many${i}__c`]: [text], [`Text${i}__c`]: text };
        const found = await ada.get(`/data/Texts__c?where=${encoded(where)}`);
        assert.equal(found.body.records?.length, 1, `${text}: ${found.text.slice(0, 300)}`);
      }
    });

    it('names, types, references, patterns and formulas of them are refused, and nothing is applied', async () => {
      const stored = await picture(platform);
      const strings = [...SQL, '__proto__', 'constructor', '\u0000', '\ud800', 'x'.repeat(41), '1x', 'x y', 'x__C'];
      for (const text of strings) {
        const q = JSON.stringify(text);
        const object = (lines: string): string =>
          `type: CustomObject\n${lines}label: x\nlabelPlural: x\nnameField:\n  label: x\n  fieldType: text\n`;
        const projects: Record<string, Record<string, string>> = {
          apiName: { 'objects/Bad__c/object.yaml': object(`apiName: ${q}\n`) },
          key: { 'objects/Bad__c/object.yaml': object(`apiName: Bad__c\n${q}: 1\n`) },
          type: { 'objects/Bad__c/object.yaml': `type: ${q}\napiName: Bad__c\n` },
          fieldType: fieldFile('Account', 'Bad__c', `fieldType: ${q}`),
          referenceTo: fieldFile('Account', 'Bad__c', `fieldType: reference\nreferenceTo: [${q}]`),
          onDelete: fieldFile('Account', 'Bad__c', `fieldType: reference\nreferenceTo: [Account]\nonDelete: ${q}`),
          default: fieldFile('Account', 'Bad__c', `fieldType: decimal\ndefaultValue: ${q}`),
          length: fieldFile('Account', 'Bad__c', `fieldType: text\nlength: ${q}`),
          permission: { 'profiles/Bad.yaml': `type: Profile\napiName: Bad\nlabel: x\nsystem:\n  - ${q}\n` },
          'field of a profile': {
            'profiles/Bad.yaml': `type: Profile\napiName: Bad\nlabel: x\nfields:\n  ${q}:\n    read: true\n    edit: true\n`,
          },
          timezone: { 'settings/General.yaml': `type: TenantSettings\napiName: General\ntimezone: ${q}\n` },
          path: { [`objects/${text}/object.yaml`]: object('apiName: Bad__c\n') },
        };
        for (const [where, files] of Object.entries(projects)) {
          const answer = await ada.post('/metadata/validate', { files, package: wholePackage(files) });
          assertSound(answer, `${where}: ${q}`);
          assert.ok(
            answer.status !== 200 || answer.body.valid === false,
            `${where}: ${q} is valid: ${answer.text.slice(0, 300)}`,
          );
        }
      }
      assert.deepEqual(await picture(platform), stored);
    });
  });
});

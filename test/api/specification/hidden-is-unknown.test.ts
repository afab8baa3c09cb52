/**
 * A field or object that a user may not see answers byte for byte like one that never existed: errors reveal nothing
 * hidden. Sam sells: costs, margins and credit limits are hidden from him, and so are two objects here.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const OPERATORS = [
  ...['eq', 'neq', 'contains', 'not_contains', 'starts_with', 'is_blank', 'is_not_blank', 'gt', 'gte', 'lt', 'lte'],
  ...['between', 'in', 'not_in', 'in_related'],
];
const VALUES = [1, '1', 'x', null, true, [1], ['x'], {}, { objectApiName: 'Account', field: 'id' }];

const HIDDEN_FIELDS = [
  ['Account', 'creditLimit'],
  ['Product', 'standardCost'],
  ['Product', 'targetMargin'],
  ['SalesOrder__c', 'MarginPercent__c'],
  ['SalesOrderLine__c', 'UnitCost__c'],
] as const;

/** References to the objects with hidden fields. */
const REFERENCES = {
  Account: ['Contact', 'accountId'],
  Product: ['SalesOrderLine__c', 'ProductId__c'],
  SalesOrder__c: ['SalesOrderLine__c', 'SalesOrderId__c'],
  SalesOrderLine__c: ['Open__c', 'Line__c'],
} as const;

describe('specification: hidden is unknown', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  /** Real ids in the objects that Sam cannot see. */
  const hiddenIds: Record<string, string> = {};

  const deploy = (files: Record<string, string>): Promise<void> => deployOverHttp(ada, files);

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    const references = (relationship: string): Record<string, string> => ({
      Text__c: 'fieldType: text',
      Code__c: 'fieldType: text\nexternalId: true\nunique: true',
      Account__c: `fieldType: reference\nreferenceTo: [Account]\nrelationshipName: ${relationship}A__r`,
      Keeps__c: `fieldType: reference\nreferenceTo: [Contact]\nonDelete: restrict\nrelationshipName: ${relationship}K__r`,
      Follows__c: `fieldType: reference\nreferenceTo: [Contact]\nonDelete: cascade\nrelationshipName: ${relationship}F__r`,
    });
    const files = {
      ...objectFiles('Payroll__c', references('Pay')),
      ...objectFiles('Draft__c', references('Dra')),
      ...objectFiles('Open__c', {
        Salary__c: 'fieldType: reference\nreferenceTo: [Payroll__c]',
        Plan__c: 'fieldType: reference\nreferenceTo: [Draft__c]',
        Line__c: 'fieldType: reference\nreferenceTo: [SalesOrderLine__c]',
      }),
      ...fieldFile('Contact', 'Grade__c', 'fieldType: text\nunique: true'),
    };
    const draft = 'objects/Draft__c/object.yaml';
    files[draft] = files[draft]!.replace('published: true', 'published: false');
    // Sam has all rights on the draft, which is not published, and none on the payroll, which is.
    const profile = 'profiles/SalesRep.yaml';
    const retrieved = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'Profile', members: ['SalesRep'] }] },
    });
    const rights = ['create', 'read', 'update', 'delete'].map((right) => `    ${right}: true\n`).join('');
    const object = (name: string): string => `  ${name}:\n${rights}    viewAll: false\n    modifyAll: false\n`;
    const field = (name: string): string => `  ${name}:\n    read: true\n    edit: true\n`;
    files[profile] = retrieved.body.files[profile]
      .replace(/^objects:\n/m, `objects:\n${object('Draft__c')}${object('Open__c')}`)
      .replace(
        /^fields:\n/m,
        `fields:\n${['Draft__c.Text__c', 'Draft__c.Account__c', 'Open__c.Salary__c', 'Open__c.Plan__c', 'Open__c.Line__c'].map(field).join('')}`,
      );
    await deploy({ ...files, [draft]: files[draft]!.replace('published: false', 'published: true') });
    for (const name of ['Payroll__c', 'Draft__c']) {
      const created = await ada.post(`/data/${name}`, { name: 'x', Text__c: 'x', Code__c: 'C-1' });
      assert.equal(created.status, 201, created.text);
      hiddenIds[name] = created.body.id;
    }
    assert.equal((await sam.get('/data/Draft__c')).status, 200, 'published for now');
    await deploy({ [draft]: files[draft]! });
  });
  after(() => platform?.stop());

  /** The answer without the parts that differ between any two requests, and without the requested name. */
  const bytes = ({ status, headers, text }: Answer, name: string): string => {
    const kept = [...headers].filter(
      ([key]) => !/^(x-request-id|x-ratelimit-remaining|ratelimit|date|content-length)$/.test(key),
    );
    const body = text.replaceAll(name, '<name>').replace(/"requestId":"req_[0-9A-Z]{26}"/, '');
    return `${status} ${JSON.stringify(kept)} ${body}`;
  };
  /** Sends the request with the hidden name and with an unused one of the same length. */
  const alike = async (hidden: string, ask: (name: string) => Promise<Answer>, about = ''): Promise<void> => {
    const invented = `Zq${hidden.slice(2)}`;
    const answers = await Promise.all([ask(hidden), ask(invented)]);
    assert.ok(answers[0].status >= 400, `${hidden} ${about}: ${answers[0].text.slice(0, 300)}`);
    assert.equal(bytes(answers[0], hidden), bytes(answers[1], invented), about);
  };

  const query = (object: string, body: unknown): Promise<Answer> => sam.post(`/data/${object}/query`, body);
  const where = (...conditions: unknown[]): unknown => ({ filters: { logic: 'or', conditions } });
  const condition = (field: string, operator: string, value: unknown): unknown => ({
    id: 'c',
    field,
    operator,
    ...(operator.startsWith('is_') ? {} : { value }),
    ...(operator === 'between' ? { valueTo: value } : {}),
  });
  const related = (objectApiName: string, field: string, ...conditions: unknown[]): unknown => ({
    id: 'r',
    field: 'id',
    operator: 'in_related',
    value: { objectApiName, field, conditions },
  });

  for (const [object, field] of HIDDEN_FIELDS)
    describe(`the field ${object}.${field}`, () => {
      it('in select, sort and search', async () => {
        const { id } = (await sam.get(`/data/${object}?take=1`)).body.records[0];
        await alike(field, (name) => sam.get(`/data/${object}?fields=id,${name}`));
        await alike(field, (name) => sam.get(`/data/${object}/${id}?fields=${name}`));
        await alike(field, (name) => sam.get(`/data/${object}?expand=${name}(id)`));
        await alike(field, (name) => sam.get(`/data/${object}/${id}?expand=ownerId(id),${name}(id)`));
        const [from, reference] = REFERENCES[object];
        await alike(field, (name) => query(from, { expand: { [reference]: ['id', name] } }));
        for (const asked of [
          (name: string) => ({ where: { [`${reference}.${name}`]: null } }),
          (name: string) => ({ orderBy: `${reference}.${name}` }),
        ])
          await alike(field, (name) => query(from, asked(name)));
        await alike(field, (name) => sam.get(`/data/${object}?orderBy=${name}&orderDirection=desc`));
        await alike(field, (name) => query(object, { sort: [{ id: 'id' }, { id: name, desc: true }] }));
        await alike(field, (name) => sam.get(`/data/${object}?search=abc&searchFields=name,${name}`));
        await alike(field, (name) =>
          query(object, { fields: [name], orderBy: name, where: { [name]: 1 }, search: 'ab', searchFields: [name] }),
        );
      });

      it('in filters, with every operator and kind of value', async () => {
        for (const value of VALUES) {
          await alike(field, (name) => query(object, { where: { [name]: value } }));
          await alike(field, (name) => query(object, { whereIn: { [name]: [value] } }));
          for (const operator of OPERATORS) {
            await alike(field, (name) => query(object, where(condition(name, operator, value))), operator);
            await alike(
              field,
              (name) => query(object, where(related(object, 'id', condition(name, operator, value)))),
              operator,
            );
          }
        }
        await alike(field, (name) => query(object, where(related(object, name))));
      });

      it('in writes', async () => {
        const { id, _etag } = (await sam.get(`/data/${object}?take=1&includeEtag=true`)).body.records[0];
        for (const value of VALUES) {
          await alike(field, (name) => sam.post(`/data/${object}`, { name: 'x', [name]: value }));
          for (const etag of [_etag, '"never"'])
            await alike(field, (name) => sam.patch(`/data/${object}/${id}`, { [name]: value }, { etag }));
          await alike(field, (name) =>
            sam.patch(`/data/${object}/${id}`, { createdAt: 1, [name]: value, name: 5 }, { etag: _etag }),
          );
          await alike(field, (name) => sam.post('/data/Contact', { name: 'x', accountId: { [name]: value } }));
        }
      });

      it('is absent from descriptions, lists and records', async () => {
        const { id } = (await sam.get(`/data/${object}?take=1`)).body.records[0];
        for (const path of [
          '/objects',
          `/objects/${object}/describe`,
          `/objects/${object}/schema.json`,
          `/data/${object}?take=50`,
          `/data/${object}/${id}`,
        ]) {
          const { status, text } = await sam.get(path);
          assert.equal(status, 200, text);
          assert.equal(text.includes(field), false, path);
        }
        const forAda = await ada.get(`/objects/${object}/describe`);
        assert.ok(forAda.text.includes(`"${field}"`), 'it exists, for those who may see it');
      });
    });

  it('a conflict does not reveal the values of a hidden unique field', async () => {
    const taken = await ada.post('/data/Contact', { name: 'x', lastName: 'x', Grade__c: 'A' });
    assert.equal(taken.status, 201, taken.text);
    for (const value of ['A', 'B'])
      await alike('Grade__c', (name) => sam.post('/data/Contact', { name: 'x', lastName: 'x', [name]: value }));
  });

  for (const [object, why] of [
    ['Payroll__c', 'may not be read'],
    ['Draft__c', 'is not published'],
  ] as const)
    describe(`the object ${object}, which ${why}`, () => {
      it('in every operation', async () => {
        const ids = [hiddenIds[object]!, uuidv7(), 'x'];
        await alike(object, (name) => sam.get(`/objects/${name}/describe`));
        await alike(object, (name) => sam.get(`/objects/${name}/schema.json`));
        for (const parameters of [
          '',
          'take=0',
          'orderBy=Text__c',
          'cursor=x',
          'where={"Text__c":1}',
          'fields=Nothing__c',
        ])
          await alike(object, (name) => sam.get(`/data/${name}?${parameters}`), parameters);
        for (const body of [{}, { where: { Text__c: 'x' } }, { where: { Nothing__c: 1 } }, { take: 'x' }])
          await alike(object, (name) => query(name, body));
        for (const body of [{}, { name: 'x' }, { Code__c: 'C-1' }, { Nothing__c: 1 }])
          await alike(object, (name) => sam.post(`/data/${name}`, body));
        for (const id of ids) {
          await alike(object, (name) => sam.get(`/data/${name}/${id}`));
          await alike(object, (name) => sam.get(`/data/${name}/${id}/transitions`));
          await alike(object, (name) => sam.patch(`/data/${name}/${id}`, { name: 'y' }, { etag: '"1"' }));
          await alike(object, (name) => sam.delete(`/data/${name}/${id}`, { etag: '"1"' }));
        }
      });

      it('in in_related', async () => {
        for (const field of ['id', 'Account__c', 'Text__c', 'Nothing__c'])
          await alike(object, (name) => query('Account', where(related(name, field))), field);
        for (const field of ['Text__c', 'Nothing__c'])
          await alike(
            object,
            (name) => query('Account', where(related(name, 'Account__c', condition(field, 'eq', 'x')))),
            field,
          );
      });

      it('as target of a reference', async () => {
        const field = object === 'Payroll__c' ? 'Salary__c' : 'Plan__c';
        const refer = (value: unknown): Promise<Answer> => sam.post('/data/Open__c', { name: 'x', [field]: value });
        const there = await refer(hiddenIds[object]);
        const nowhere = await refer(uuidv7());
        assert.equal(there.status, 422);
        assert.equal(bytes(there, field), bytes(nowhere, field));
        for (const asked of ['id', 'Text__c'])
          await alike(asked, (name) => sam.get(`/data/Open__c?expand=${field}(${name})`));
        const answers = await Promise.all([
          refer({ Code__c: 'C-1' }),
          refer({ Code__c: 'C-2' }),
          refer({ Cole__c: 'C-1' }),
        ]);
        for (const answer of answers) {
          assert.equal(bytes(answer, field), bytes(answers[0]!, field));
          assert.equal(answer.text.includes(object), false, answer.text);
        }
      });

      it('is absent from descriptions', async () => {
        for (const path of [
          '/objects',
          '/objects/Open__c/describe',
          '/objects/Open__c/schema.json',
          '/objects/Account/describe',
          '/objects/Contact/describe',
          '/objects/Contact/schema.json',
        ]) {
          const { status, text } = await sam.get(path);
          assert.equal(status, 200, text);
          assert.equal(text.includes(object), false, path);
        }
      });

      it('is not named by a deletion that meets its records', async () => {
        for (const [field, status] of [
          ['Keeps__c', 409],
          ['Follows__c', 200],
        ] as const) {
          const contact = await sam.post('/data/Contact', { name: 'x', lastName: 'x' });
          assert.equal(contact.status, 201, contact.text);
          // Published or not, the rows are there: those of the draft were written before it was withdrawn.
          if (object === 'Payroll__c') {
            const dependent = await ada.post(`/data/${object}`, { name: 'x', [field]: contact.body.id });
            assert.equal(dependent.status, 201, dependent.text);
          }
          const deleted = await sam.delete(`/data/Contact/${contact.body.id}`, { etag: contact.headers.get('etag')! });
          assert.equal(deleted.status, object === 'Payroll__c' ? status : 200, deleted.text);
          assert.equal(deleted.text.includes(object), false, deleted.text);
        }
      });
    });
});

/** Many records of one object in one request. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { LIMITS } from '../../../lib/limits.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { watchStatements } from '../../support/statements.ts';
import { type Deals, startDeals } from './deals.ts';

describe('writing many records', () => {
  let deals: Deals;
  let ada: Api;
  let sam: Api;
  let sue: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ ada, sam, sue } = deals.as);
    const fields = [
      'Deal__c.Stage__c',
      'Deal__c.Code__c',
      'Deal__c.Amount__c',
      'Deal__c.Lines__c',
      'DealLine__c.Deal__c',
    ];
    const rights = '    create: true\n    read: true\n    update: true\n    delete: true\n';
    await deals.deploy({
      ...fieldFile('Deal__c', 'Code__c', 'fieldType: text\nunique: true\nexternalId: true\nlength: 40'),
      ...fieldFile('Deal__c', 'Hidden__c', 'fieldType: text\nunique: true\nexternalId: true\nlength: 40'),
      ...fieldFile('Deal__c', 'Amount__c', 'fieldType: decimal\nprecision: 6\nscale: 2'),
      ...fieldFile(
        'Deal__c',
        'Lines__c',
        'fieldType: rollup\nrollup:\n  childObject: DealLine__c\n  referenceField: Deal__c\n  function: count',
      ),
      'objects/Deal__c/validationRules/NoBadStage.yaml':
        'type: ValidationRule\napiName: NoBadStage\nobject: Deal__c\nactive: true\ncondition: record.Stage__c == "bad"\nerrorField: Stage__c\nmessage: No bad stage.\n',
      'permissionSets/Deals.yaml': `type: PermissionSet\napiName: Deals\nlabel: Deals\nobjects:\n${['Deal__c', 'DealLine__c'].map((name) => `  ${name}:\n${rights}`).join('')}fields:\n${fields.map((name) => `  ${name}:\n    read: true\n    edit: ${name !== 'Deal__c.Lines__c'}\n`).join('')}`,
    });
  });
  after(() => deals?.platform.stop());

  const write = (
    who: Api,
    operation: string,
    records: readonly object[],
    more: object = {},
    idempotencyKey?: string,
  ): Promise<Answer> =>
    who.post(
      '/composite/records',
      { objectApiName: 'Deal__c', operation, records, ...more },
      idempotencyKey === undefined ? {} : { idempotencyKey },
    );
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text);
  const results = ({ body }: Answer): Answer['body'][] => body.results ?? body.details.results;
  const codes = (reply: Answer): (string | null)[] => results(reply).map((one) => one.errors[0]?.code ?? null);
  const some = (count: number, fields: (index: number) => object = () => ({})): { fields: object }[] =>
    Array.from({ length: count }, (_, index) => ({ fields: { name: `Row ${index}`, ...fields(index) } }));

  it('creates, changes and deletes them, with history and events as of single writes', async () => {
    const made = await write(
      sam,
      'create',
      some(30, (index) => (index % 3 === 0 ? { Amount__c: index } : { Stage__c: `s${index}` })),
    );
    assert.equal(made.status, 200, made.text);
    assert.equal(made.body.committed, true);
    assert.ok(
      results(made).every(
        (one, index) => one.index === index && one.status === 201 && one.created && one.etag === '"1"',
      ),
    );
    const [first, second] = results(made);
    const read = await sam.get(`/data/Deal__c/${first.id}`);
    assert.deepEqual([read.body.name, read.body.Amount__c, read.body.ownerId], ['Row 0', 0, deals.ids.sam]);
    const changed = await write(sam, 'update', [
      { id: second.id, ifMatch: second.etag, fields: { Stage__c: 'won' } },
      { id: first.id, ifMatch: first.etag, fields: { name: 'Row 0' } },
      { id: results(made)[2].id, ifMatch: '"1"', fields: { Amount__c: '12.50' } },
    ]);
    assert.deepEqual(
      results(changed).map((one) => [one.status, one.etag]),
      [
        [200, '"2"'],
        [200, '"1"'],
        [200, '"2"'],
      ],
      changed.text,
    );
    const history = await ada.get(`/data/Deal__c/${second.id}/history`);
    assert.deepEqual(
      history.body.records.map((one: { operation: string }) => one.operation).sort(),
      ['create', 'update'],
      history.text,
    );
    const gone = await write(sam, 'delete', [{ id: second.id, ifMatch: '"2"' }]);
    assert.deepEqual(
      results(gone).map((one) => [one.status, one.etag]),
      [[200, null]],
      gone.text,
    );
    assert.equal((await sam.get(`/data/Deal__c/${second.id}`)).status, 404);
  });

  it('finds records by an external id', async () => {
    const rows = some(4, (index) => ({ Code__c: `U${index}` }));
    const made = await write(sam, 'upsert', rows, { externalIdField: 'Code__c' });
    assert.deepEqual(
      results(made).map((one) => one.status),
      [201, 201, 201, 201],
      made.text,
    );
    const again = await write(
      sam,
      'upsert',
      some(5, (index) => ({ Code__c: `U${index}`, Stage__c: 'again' })),
      { externalIdField: 'Code__c' },
    );
    assert.deepEqual(
      results(again).map((one) => one.status),
      [200, 200, 200, 200, 201],
      again.text,
    );
    assert.deepEqual(
      results(again)
        .slice(0, 4)
        .map((one) => one.id),
      results(made).map((one) => one.id),
    );
  });

  it('answers an external id that is hidden like one that does not exist, also a bulk job', async () => {
    const job = { operation: 'upsert', objectApiName: 'Deal__c', format: 'csv', columns: { a: 'name' } };
    const fields = { operation: 'export', objectApiName: 'Deal__c', format: 'csv' };
    const requests: readonly ((name: string) => Promise<Answer>)[] = [
      (name) => write(sam, 'upsert', [{ fields: { name: 'x', [name]: '1' } }], { externalIdField: name }),
      (name) =>
        write(sam, 'upsert', [{ fields: { name: 'x', Code__c: '1', [name]: '1' } }], { externalIdField: 'Code__c' }),
      (name) => sam.post('/bulk/jobs', { ...job, externalIdField: name }),
      (name) => sam.post('/bulk/jobs', { ...job, externalIdField: 'Code__c', columns: { [name]: name, b: name } }),
      (name) => sam.post('/bulk/jobs', { ...fields, query: { fields: ['name', name] } }),
    ];
    for (const request of requests) {
      const [hidden, unknown] = await Promise.all(['Hidden__c', 'Absent__c'].map(request));
      assert.ok(hidden && unknown && hidden.status >= 400, hidden?.text);
      const shown = ({ status, body: { requestId: _, ...body } }: Answer): string =>
        `${status} ${JSON.stringify(body).replaceAll(/Hidden__c|Absent__c/g, 'Field__c')}`;
      assert.equal(shown(hidden), shown(unknown));
    }
  });

  it('stores nothing when one is refused, and says what is wrong with each', async () => {
    const code = randomUUID().slice(0, 8);
    const reply = await write(sam, 'create', [
      ...some(3, () => ({ Stage__c: code })),
      { fields: { name: 'x', Stage__c: 'bad' } },
      { fields: { name: 'x', Nope__c: 1, Amount__c: 'much' } },
    ]);
    refused(reply, 422, 'COMPOSITE_FAILED');
    assert.deepEqual(codes(reply), ['ROLLED_BACK', 'ROLLED_BACK', 'ROLLED_BACK', 'VALIDATION_RULE', 'FIELD_UNKNOWN']);
    const single = await sam.post('/data/Deal__c', { name: 'x', Nope__c: 1, Amount__c: 'much' });
    assert.deepEqual(
      results(reply)[4].errors,
      single.body.errors.map((one: { pointer: string }) => ({ ...one, pointer: `/fields${one.pointer}` })),
    );
    assert.equal((await sam.post('/data/Deal__c/query', { where: { Stage__c: code } })).body.records.length, 0);
  });

  it('stores the good ones without allOrNone, and refuses those alone that the database refuses', async () => {
    const code = randomUUID().slice(0, 8);
    const rows = some(50, (index) => ({ Code__c: `${code}-${index % 45}`, Stage__c: code }));
    rows[7] = { fields: { name: 'Too much', Amount__c: 123456.78, Stage__c: code } };
    const reply = await write(sam, 'create', rows, { allOrNone: false });
    assert.equal(reply.status, 200, reply.text);
    const failed = results(reply).filter((one) => one.status >= 400);
    assert.deepEqual(
      failed.map((one) => [one.index, one.errors[0].code]),
      [
        [7, 'FIELD_OUT_OF_RANGE'],
        [45, 'UNIQUE_VALUE_CONFLICT'],
        [46, 'UNIQUE_VALUE_CONFLICT'],
        [47, 'UNIQUE_VALUE_CONFLICT'],
        [48, 'UNIQUE_VALUE_CONFLICT'],
        [49, 'UNIQUE_VALUE_CONFLICT'],
      ],
      reply.text,
    );
    const stored = await sam.post('/data/Deal__c/query', { where: { Stage__c: code }, take: 200 });
    assert.equal(stored.body.records.length, 44);
  });

  it('follows references and rollups of the rows, and what the user may reach', async () => {
    const deal = (await deals.deal(sam)).body.id;
    const other = (await deals.deal(sue)).body.id;
    const lines = [deal, other, deal, randomUUID(), deal].map((id) => ({ fields: { name: 'Line', Deal__c: id } }));
    const reply = await write(sam, 'create', lines, { objectApiName: 'DealLine__c', allOrNone: false });
    assert.deepEqual(codes(reply), [null, 'REFERENCE_NOT_FOUND', null, 'REFERENCE_NOT_FOUND', null], reply.text);
    assert.equal((await sam.get(`/data/Deal__c/${deal}`)).body.Lines__c, 3);
    const change = await write(
      sam,
      'update',
      [
        { id: other, ifMatch: '"1"', fields: { name: 'Mine' } },
        { id: deal, ifMatch: '"99"', fields: { name: 'x' } },
      ],
      { allOrNone: false },
    );
    assert.deepEqual(codes(change), ['RECORD_NOT_FOUND', 'ETAG_MISMATCH'], change.text);
  });

  it('stores a confirmed duplicate once', async () => {
    const name = `Twin ${randomUUID()} Limited`;
    const fields = { name, city: 'Bremen' };
    const send = (duplicateConfirmation?: string): Promise<Answer> =>
      write(ada, 'create', [duplicateConfirmation === undefined ? { fields } : { fields, duplicateConfirmation }], {
        objectApiName: 'Account',
      });
    assert.equal((await send()).status, 200);
    const stopped = await send();
    assert.deepEqual(codes(stopped), ['DUPLICATE_RULE'], stopped.text);
    const { confirmationToken } = results(stopped)[0].errors[0].detail;
    assert.equal((await send(confirmationToken)).status, 200);
    assert.deepEqual(codes(await send(confirmationToken)), ['CONFIRMATION_TOKEN_INVALID']);
  });

  it('takes a handful of statements, and not one for each', async () => {
    const most: number[] = [];
    // A write wakes the relay of events, whose statements may be among them: more attempts meet a moment without.
    for (let attempts = 5; attempts > 0 && !(Math.min(...most) <= 15); attempts--) {
      const statements = watchStatements();
      /** Those of one write end with its transaction. */
      const untilCommit = (from: number): number =>
        statements
          .all()
          .slice(from)
          .findIndex(({ text }) => text === 'COMMIT') + 1;
      const key = randomUUID().slice(0, 8);
      const made = await write(
        sam,
        'create',
        some(LIMITS.composite_records_max, (index) => ({ Code__c: `${key}-${index}`, Stage__c: `s${index}` })),
      );
      assert.equal(made.status, 200, made.text);
      const created = untilCommit(0);
      const others = statements.all().length;
      const changed = await write(
        sam,
        'update',
        results(made).map(({ id, etag }, index) => ({ id, ifMatch: etag, fields: { Stage__c: `t${index}` } })),
      );
      assert.equal(changed.status, 200, changed.text);
      const updated = untilCommit(others);
      statements.end();
      assert.ok(results(changed).every(({ etag }) => etag === '"2"'));
      assert.ok(created > 0 && updated > 0);
      most.push(Math.max(created, updated));
    }
    assert.ok(Math.min(...most) <= 15, `${most} statements`);
  });

  it('answers the same key with the same outcome', async () => {
    const key = randomUUID();
    const code = `K${key.slice(0, 8)}`;
    const first = await write(
      sam,
      'create',
      some(3, () => ({ Stage__c: code })),
      {},
      key,
    );
    const second = await write(
      sam,
      'create',
      some(3, () => ({ Stage__c: code })),
      {},
      key,
    );
    assert.equal(second.text, first.text);
    refused(await write(sam, 'create', some(2), {}, key), 409, 'IDEMPOTENCY_KEY_REUSED');
    assert.equal((await sam.post('/data/Deal__c/query', { where: { Stage__c: code } })).body.records.length, 3);
  });

  it('names what is wrong with the form of the rows at once', async () => {
    const reply = await write(sam, 'update', [
      { fields: {} },
      { id: 'x', ifMatch: 'y', fields: {} },
      { id: randomUUID(), ifMatch: '"1"' },
    ]);
    assert.equal(reply.status, 400, reply.text);
    assert.deepEqual(
      reply.body.errors.map(({ pointer, code }: { pointer: string; code: string }) => `${pointer} ${code}`),
      [
        '/records/0/id PARAMETER_REQUIRED',
        '/records/0/ifMatch IF_MATCH_REQUIRED',
        '/records/1/id PARAMETER_INVALID',
        '/records/1/ifMatch IF_MATCH_INVALID',
        '/records/2/fields BODY_REQUIRED',
      ],
    );
    refused(await write(sam, 'create', some(LIMITS.composite_records_max + 1)), 400, 'PARAMETER_INVALID');
    refused(await write(sam, 'upsert', some(1)), 400, 'PARAMETER_REQUIRED');
  });

  it('needs the scope and permission of its operation', async () => {
    const as = async (scope: string): Promise<Api> =>
      api(deals.platform.baseUrl, await tokenFor(deals.platform.baseUrl, 'sam', scope));
    refused(
      await write(await as('data:write'), 'delete', [{ id: randomUUID(), ifMatch: '"1"' }]),
      403,
      'SCOPE_INSUFFICIENT',
    );
    refused(await write(await as('data:delete'), 'create', some(1)), 403, 'SCOPE_INSUFFICIENT');
    refused(await write(sam, 'create', some(1), { objectApiName: 'Nothing__c' }), 404, 'OBJECT_NOT_FOUND');
    refused(
      await write(await as('data:write'), 'create', some(1), { objectApiName: 'User' }),
      403,
      'SCOPE_INSUFFICIENT',
    );
  });
});

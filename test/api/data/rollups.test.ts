/** Rollup fields: kept correct by the database through all changes of the children, and reported like other changes. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fieldFile, objectFiles, type StartedTenant, startMetadataTenant } from '../../support/metadata-tenant.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

const rollup = (child: string, field: string, fn: string, of = '', more = ''): string =>
  `fieldType: rollup\n${more}rollup:\n  childObject: ${child}\n  referenceField: ${field}\n  function: ${fn}\n${of ? `  field: ${of}\n` : ''}`;

const BASE = {
  ...objectFiles('Firm__c'),
  ...objectFiles('Deal__c', {
    Firm__c: 'fieldType: reference\nreferenceTo:\n  - Firm__c\nonDelete: cascade\nrelationshipName: Deals__r',
    Note__c: 'fieldType: text',
  }),
  ...objectFiles('Line__c', {
    Deal__c: 'fieldType: masterDetail\nreferenceTo:\n  - Deal__c\nrelationshipName: Lines__r',
    Amount__c: 'fieldType: currency\nprecision: 10\nscale: 2',
    Pieces__c: 'fieldType: integer',
    Day__c: 'fieldType: date',
    Text__c: 'fieldType: text',
  }),
};

const ROLLUPS = {
  ...fieldFile('Deal__c', 'Total__c', rollup('Line__c', 'Deal__c', 'sum', 'Amount__c')),
  ...fieldFile('Deal__c', 'Lines__c', rollup('Line__c', 'Deal__c', 'count')),
  ...fieldFile('Deal__c', 'Smallest__c', rollup('Line__c', 'Deal__c', 'min', 'Pieces__c')),
  ...fieldFile('Deal__c', 'Average__c', rollup('Line__c', 'Deal__c', 'avg', 'Pieces__c')),
  ...fieldFile('Deal__c', 'LastDay__c', rollup('Line__c', 'Deal__c', 'max', 'Day__c')),
  ...fieldFile('Firm__c', 'Total__c', rollup('Deal__c', 'Firm__c', 'sum', 'Total__c')),
  ...fieldFile('Firm__c', 'Deals__c', rollup('Deal__c', 'Firm__c', 'count')),
};

describe('rollup fields', () => {
  let tenant: StartedTenant;

  const create = async (object: string, body: object): Promise<Anything> =>
    (
      await tenant.call('data.records.create', {
        path: { objectApiName: object },
        body: { name: 'x', ...body },
        headers: { idempotencyKey: randomUUID() },
      })
    ).json;
  const get = async (object: string, id: string): Promise<Anything> =>
    (await tenant.call('data.records.get', { path: { objectApiName: object, id } })).json;
  const etag = (version: number): string => `"${version.toString(36)}"`;
  const change = async (
    operation: 'update' | 'delete',
    object: string,
    id: string,
    body?: object,
    ifMatch?: string,
  ): Promise<Anything> =>
    (
      await tenant.call(`data.records.${operation}`, {
        path: { objectApiName: object, id },
        ...(body ? { body } : {}),
        headers: { idempotencyKey: randomUUID(), ifMatch: ifMatch ?? etag((await get(object, id)).recordVersion) },
      })
    ).json;
  const sums = ({ Total__c, Lines__c, Smallest__c, Average__c, LastDay__c }: Anything): Anything => [
    Total__c,
    Lines__c,
    Smallest__c,
    Average__c,
    LastDay__c,
  ];

  before(async function () {
    this.timeout(120_000);
    tenant = await startMetadataTenant();
    await tenant.deployed(BASE);
  });
  after(() => tenant?.stop());

  it('are computed for the records that exist when they are deployed', async () => {
    const firm = await create('Firm__c', {});
    const deal = await create('Deal__c', { Firm__c: firm.id });
    const empty = await create('Deal__c', {});
    await create('Line__c', { Deal__c: deal.id, Amount__c: '10.10', Pieces__c: 3, Day__c: '2026-01-31' });
    await create('Line__c', { Deal__c: deal.id, Amount__c: '0.05', Pieces__c: 4, Day__c: '2026-02-01' });
    await tenant.deployed(ROLLUPS);
    const after = await get('Deal__c', deal.id);
    assert.deepEqual(sums(after), [10.15, 2, 3, 3.5, '2026-02-01']);
    assert.equal(after.recordVersion, 2, 'what a reader has seen is not what is there now');
    assert.deepEqual(sums(await get('Deal__c', empty.id)), [0, 0, null, null, null]);
    assert.deepEqual([(await get('Firm__c', firm.id)).Total__c, (await get('Firm__c', firm.id)).Deals__c], [10.15, 1]);
  });

  it('follow created, changed, moved and deleted children, on every level', async () => {
    const [one, two] = [await create('Firm__c', {}), await create('Firm__c', {})];
    const [a, b] = [await create('Deal__c', { Firm__c: one.id }), await create('Deal__c', { Firm__c: two.id })];
    assert.deepEqual(sums(a), [0, 0, null, null, null], 'a new record says what its rollups are over nothing');
    const line = await create('Line__c', { Deal__c: a.id, Amount__c: 5, Pieces__c: 2, Day__c: '2026-03-01' });
    assert.deepEqual(sums(await get('Deal__c', a.id)), [5, 1, 2, 2, '2026-03-01']);
    assert.equal((await get('Firm__c', one.id)).Total__c, 5);
    await change('update', 'Line__c', line.id, { Amount__c: '7.25' });
    assert.equal((await get('Firm__c', one.id)).Total__c, 7.25);
    await change('update', 'Line__c', line.id, { Deal__c: b.id });
    assert.deepEqual(sums(await get('Deal__c', a.id)), [0, 0, null, null, null]);
    assert.deepEqual(sums(await get('Deal__c', b.id)), [7.25, 1, 2, 2, '2026-03-01']);
    assert.deepEqual([(await get('Firm__c', one.id)).Total__c, (await get('Firm__c', two.id)).Total__c], [0, 7.25]);
    await change('update', 'Deal__c', b.id, { Firm__c: one.id });
    assert.deepEqual([(await get('Firm__c', one.id)).Total__c, (await get('Firm__c', two.id)).Total__c], [7.25, 0]);
    assert.deepEqual([(await get('Firm__c', one.id)).Deals__c, (await get('Firm__c', two.id)).Deals__c], [2, 0]);
    await change('delete', 'Line__c', line.id);
    assert.deepEqual(sums(await get('Deal__c', b.id)), [0, 0, null, null, null]);
    assert.equal((await get('Firm__c', one.id)).Total__c, 0);
    await create('Line__c', { Deal__c: b.id, Amount__c: 1 });
    await change('delete', 'Deal__c', b.id);
    assert.deepEqual([(await get('Firm__c', one.id)).Total__c, (await get('Firm__c', one.id)).Deals__c], [0, 1]);
    await change('delete', 'Firm__c', one.id);
  });

  it('are listed by a dry run with the records that they would change, without changing any', async () => {
    const [one, two] = [await create('Firm__c', {}), await create('Firm__c', {})];
    const [a, b] = [await create('Deal__c', { Firm__c: one.id }), await create('Deal__c', { Firm__c: two.id })];
    const line = await create('Line__c', { Deal__c: a.id, Amount__c: 5, Pieces__c: 2 });
    const records = [a, b].map(({ id }) => get('Deal__c', id)).concat([one, two].map(({ id }) => get('Firm__c', id)));
    const before = await Promise.all(records);
    const tried = async (operation: 'create' | 'update' | 'delete', body?: object): Promise<Anything[]> => {
      const { json } = await tenant.call('data.records.check', {
        path: { objectApiName: 'Line__c' },
        body: {
          operation,
          ...(operation === 'create' ? {} : { id: line.id, ifMatch: etag(1) }),
          ...(body ? { fields: body } : {}),
        },
      });
      assert.equal((json as Anything).valid, true, JSON.stringify(json));
      return (json as Anything).effects
        .filter(({ kind, objectApiName }: Anything) => kind === 'update' && objectApiName !== 'Line__c')
        .sort((x: Anything, y: Anything) => (x.objectApiName < y.objectApiName ? -1 : 1));
    };
    const effect = (objectApiName: string, id: string, fields: string[]) => ({
      kind: 'update',
      objectApiName,
      id,
      fields,
    });
    assert.deepEqual(await tried('create', { name: 'x', Deal__c: a.id, Amount__c: 1 }), [
      effect('Deal__c', a.id, ['Lines__c', 'Total__c']),
      effect('Firm__c', one.id, ['Total__c']),
    ]);
    assert.deepEqual(await tried('update', { name: 'y' }), [], 'nothing is summed up over names');
    assert.deepEqual(await tried('update', { Pieces__c: 3 }), [effect('Deal__c', a.id, ['Average__c', 'Smallest__c'])]);
    assert.deepEqual(
      (await tried('update', { Deal__c: b.id })).map(({ objectApiName, id, count }) => [objectApiName, id, count]),
      [
        ['Deal__c', null, 2],
        ['Firm__c', null, 2],
      ],
    );
    assert.deepEqual(
      (await tried('delete')).map(({ objectApiName, id }) => [objectApiName, id]),
      [
        ['Deal__c', a.id],
        ['Firm__c', one.id],
      ],
    );
    const after = [a, b].map(({ id }) => get('Deal__c', id)).concat([one, two].map(({ id }) => get('Firm__c', id)));
    assert.deepEqual(await Promise.all(after), before);
  });

  it('return with the records that a restore returns, whose ETag is that of the restored record', async () => {
    const firm = await create('Firm__c', {});
    const deal = await create('Deal__c', { Firm__c: firm.id });
    const line = await create('Line__c', { Deal__c: deal.id, Amount__c: 4, Pieces__c: 1 });
    await create('Line__c', { Deal__c: deal.id, Amount__c: 6, Pieces__c: 2 });
    const restore = async (object: string, id: string) =>
      tenant.call('data.records.restore', {
        path: { objectApiName: object, id },
        headers: { idempotencyKey: randomUUID() },
      });
    await change('delete', 'Line__c', line.id);
    await change('delete', 'Deal__c', deal.id);
    assert.equal((await get('Firm__c', firm.id)).Total__c, 0);
    const { headers } = await restore('Deal__c', deal.id);
    const back = await get('Deal__c', deal.id);
    assert.deepEqual(sums(back), [6, 1, 2, 2, null], 'the line that was deleted before stays deleted');
    assert.equal(headers?.['ETag'], etag(back.recordVersion));
    assert.equal((await get('Firm__c', firm.id)).Total__c, 6);
    await restore('Line__c', line.id);
    assert.deepEqual(sums(await get('Deal__c', deal.id)), [10, 2, 1, 1.5, null]);
    assert.equal((await get('Firm__c', firm.id)).Total__c, 10);
  });

  it("are returned as stored by a write to a record that is its own parent, or its parent's parent", async () => {
    await tenant.deployed({
      ...objectFiles('Node__c', {
        Above__c: 'fieldType: reference\nreferenceTo:\n  - Node__c\nrelationshipName: Below__r',
        Code__c: 'fieldType: text\nunique: true',
        Own__c: 'fieldType: integer',
        Below__c: rollup('Node__c', 'Above__c', 'sum', 'Own__c'),
      }),
    });
    const node = await create('Node__c', { Own__c: 2, Code__c: 'a' });
    await create('Node__c', { Code__c: 'b' });
    const update = async (body: object, ifMatch: string, key = randomUUID()): Promise<Anything> =>
      tenant.call('data.records.update', {
        path: { objectApiName: 'Node__c', id: node.id },
        body,
        headers: { idempotencyKey: key, ifMatch },
      });
    const key = randomUUID();
    const first = await update({ Above__c: node.id }, etag(1), key);
    assert.deepEqual([first.json, first.json.Below__c], [await get('Node__c', node.id), 2]);
    assert.equal(first.headers['ETag'], etag(first.json.recordVersion));
    assert.deepEqual((await update({ Above__c: node.id }, etag(1), key)).json, first.json);
    const second = await update({ Own__c: 5 }, first.headers['ETag']);
    assert.deepEqual([second.json, second.json.Below__c], [await get('Node__c', node.id), 5]);
    await assert.rejects(update({ Own__c: 6, Code__c: 'b' }, second.headers['ETag']), {
      code: 'UNIQUE_VALUE_CONFLICT',
    });
    assert.deepEqual(await get('Node__c', node.id), second.json);
    assert.equal((await update({ Above__c: null }, second.headers['ETag'])).json.Below__c, 0);
  });

  it('are read by validation rules of the parent when the parent is written', async () => {
    await tenant.deployed({
      'objects/Deal__c/validationRules/NoteForLarge.yaml':
        'type: ValidationRule\napiName: NoteForLarge\nobject: Deal__c\ncondition: record.Total__c > 1000 && isBlank(record.Note__c)\nmessage: Say why.\n',
    });
    const deal = await create('Deal__c', {});
    await create('Line__c', { Deal__c: deal.id, Amount__c: 1001 });
    await assert.rejects(change('update', 'Deal__c', deal.id, { name: 'other' }), { code: 'VALIDATION_FAILED' });
    await change('update', 'Deal__c', deal.id, { name: 'other', Note__c: 'large' });
  });

  it('leave the parent unchanged when its value stays the same', async () => {
    const deal = await create('Deal__c', {});
    const line = await create('Line__c', { Deal__c: deal.id, Amount__c: 5, Pieces__c: 2 });
    const before = await get('Deal__c', deal.id);
    assert.equal(before.recordVersion, 2);
    await change('update', 'Line__c', line.id, { Text__c: 'something else' });
    assert.deepEqual(await get('Deal__c', deal.id), before);
  });

  it("record the parent's new version, history, audit and event under the user who wrote the child", async () => {
    const deal = await create('Deal__c', {});
    const { schema, database } = tenant;
    await tenant.call(
      'data.records.create',
      {
        path: { objectApiName: 'Line__c' },
        body: { name: 'l', Deal__c: deal.id, Amount__c: 4 },
        headers: { idempotencyKey: 'the-key-of-the-line' },
      },
      'admin',
    );
    const stored = await get('Deal__c', deal.id);
    assert.equal(stored.updatedById, tenant.users['admin']);
    assert.ok(stored.updatedAt > deal.updatedAt);
    const changes = { Lines__c: { from: 0, to: 1 }, Total__c: { from: 0, to: 4 } };
    const one = async (sql: string): Promise<Anything> => (await database.query(sql, [deal.id])).rows.at(-1);
    const history = await one(`SELECT * FROM ${schema}._history WHERE record_id = $1 ORDER BY change_id`);
    assert.deepEqual(
      [history.operation, history.record_version, history.user_id, history.changes],
      ['update', 2, tenant.users['admin'], changes],
    );
    const audit = await one(`SELECT * FROM ${schema}._audit WHERE record_id = $1 ORDER BY at`);
    assert.deepEqual(
      [audit.operation_id, audit.object, audit.idempotency_key, audit.channel, audit.request_id, audit.changes],
      ['data.records.create', 'Deal__c', 'the-key-of-the-line', 'api', history.request_id, changes],
    );
    const event = await one(`SELECT * FROM ${schema}._outbox WHERE record_id = $1 ORDER BY outbox_id`);
    assert.deepEqual([event.type, event.record_version, event.data.transactionIndex], ['data.record.updated', 2, 1]);
  });

  it('cover the children that meet the criteria, and are recomputed when these change', async () => {
    const over = (criteria: string) =>
      fieldFile(
        'Deal__c',
        'Large__c',
        `${rollup('Line__c', 'Deal__c', 'sum', 'Amount__c')}  criteria: ${JSON.stringify(criteria)}\n`,
      );
    await tenant.deployed(over('record.Pieces__c >= 10 && record.Text__c != "gift"'));
    const deal = await create('Deal__c', {});
    const line = await create('Line__c', { Deal__c: deal.id, Amount__c: 5, Pieces__c: 10 });
    await create('Line__c', { Deal__c: deal.id, Amount__c: 3, Pieces__c: 1 });
    await create('Line__c', { Deal__c: deal.id, Amount__c: 2 });
    const large = async () => (await get('Deal__c', deal.id)).Large__c;
    assert.equal(await large(), 5);
    await change('update', 'Line__c', line.id, { Text__c: 'gift' });
    assert.equal(await large(), 0, 'a field of the criteria alone has changed');
    const { recordVersion } = await get('Deal__c', deal.id);
    await tenant.deployed(over('record.Pieces__c < 10'));
    assert.equal(await large(), 3);
    assert.equal((await get('Deal__c', deal.id)).recordVersion, recordVersion + 1);
    await change('update', 'Line__c', line.id, { Pieces__c: 9 });
    assert.equal(await large(), 8);
    const day = 'date(record.createdAt) >= date("2020-01-01")';
    await tenant.deployed(over(day));
    assert.equal(await large(), 10);
    const settings = (timezone: string) => ({
      'settings/General.yaml': `type: TenantSettings\napiName: General\nlocale: en-US\ntimezone: ${timezone}\ncurrency: EUR\n`,
    });
    await tenant.deployed(settings('Asia/Tokyo'));
    const { rows } = await tenant.database.query<{ source: string }>(
      `SELECT prosrc AS source FROM pg_proc WHERE proname LIKE '\\_rollup\\_%\\_Deal\\_\\_c' AND pronamespace = $1::regnamespace`,
      [tenant.schema],
    );
    assert.match(rows.map(({ source }) => source).join(), /Asia\/Tokyo/, 'a day begins where the tenant is');
  });

  const formula = (name: string, expression: string, more = 'resultType: currency', digits = '') =>
    fieldFile(
      'Line__c',
      name,
      `fieldType: formula\n${digits}formula:\n  expression: ${JSON.stringify(expression)}\n  ${more}`,
    );

  it('aggregate formulas in values and criteria, and are recomputed when these change', async () => {
    await tenant.deployed({
      ...fieldFile('Line__c', 'Price__c', 'fieldType: currency'),
      ...fieldFile('Line__c', 'Off__c', 'fieldType: percent'),
      ...formula('Gross__c', 'record.Pieces__c * record.Price__c'),
      ...formula('Net__c', 'record.Gross__c * (100 - coalesce(record.Off__c, 0)) / 100'),
      ...formula('Cheap__c', 'record.Net__c < 10', 'resultType: boolean'),
      ...fieldFile('Deal__c', 'Net__c', rollup('Line__c', 'Deal__c', 'sum', 'Net__c')),
      ...fieldFile('Deal__c', 'Best__c', rollup('Line__c', 'Deal__c', 'max', 'Net__c')),
      ...fieldFile('Deal__c', 'Cheap__c', `${rollup('Line__c', 'Deal__c', 'count')}  criteria: record.Cheap__c\n`),
      ...fieldFile('Firm__c', 'Net__c', rollup('Deal__c', 'Firm__c', 'sum', 'Net__c')),
    });
    const firm = await create('Firm__c', {});
    const deal = await create('Deal__c', { Firm__c: firm.id });
    const nets = async (): Promise<Anything[]> => {
      const { Net__c, Best__c, Cheap__c } = await get('Deal__c', deal.id);
      return [Net__c, Best__c, Cheap__c, (await get('Firm__c', firm.id)).Net__c];
    };
    const line = await create('Line__c', { Deal__c: deal.id, Pieces__c: 3, Price__c: '3.35', Off__c: 10 });
    assert.deepEqual(await nets(), [9.05, 9.05, 1, 9.05], '9.045, rounded as the formula shows it');
    await create('Line__c', { Deal__c: deal.id, Pieces__c: 2, Price__c: 10 });
    await create('Line__c', { Deal__c: deal.id, Pieces__c: 2 });
    assert.deepEqual(await nets(), [29.05, 20, 1, 29.05], 'a line whose formula is blank adds nothing');
    const { recordVersion } = await get('Deal__c', deal.id);
    await change('update', 'Line__c', line.id, { Off__c: null });
    assert.deepEqual(await nets(), [30.05, 20, 0, 30.05], 'what a formula over a formula reads has changed');
    await change('update', 'Line__c', line.id, { Text__c: 'nothing to a figure', Amount__c: null });
    assert.equal((await get('Deal__c', deal.id)).recordVersion, recordVersion + 1);
    const tried = await tenant.call('data.records.check', {
      path: { objectApiName: 'Line__c' },
      body: { operation: 'update', id: line.id, ifMatch: etag(3), fields: { Pieces__c: 4 } },
    });
    assert.deepEqual(tried.json.effects.find(({ objectApiName }: Anything) => objectApiName === 'Deal__c').fields, [
      'Average__c',
      'Net__c',
    ]);
    await tenant.deployed(formula('Gross__c', 'record.Pieces__c * record.Price__c + 1'));
    assert.deepEqual(
      await nets(),
      [32.05, 21, 0, 32.05],
      'neither the rollup nor the formula that it names was deployed',
    );
    assert.equal((await get('Deal__c', deal.id)).recordVersion, recordVersion + 2);
    await tenant.deployed(formula('Net__c', 'record.Gross__c / 8', 'resultType: currency', 'scale: 4\n'));
    assert.deepEqual(await nets(), [4.0063, 2.625, 2, 4.0063], '11.05 / 8 and 21 / 8, with the digits of the formula');
    await change('update', 'Line__c', line.id, { Price__c: null });
    assert.deepEqual(await nets(), [2.625, 2.625, 1, 2.625]);
    await change('delete', 'Line__c', line.id);
    await tenant.call('data.records.restore', {
      path: { objectApiName: 'Line__c', id: line.id },
      headers: { idempotencyKey: randomUUID() },
    });
    assert.deepEqual(await nets(), [2.625, 2.625, 1, 2.625]);
  });

  it('aggregate no formula whose value changes by itself', async () => {
    const refused = async (files: Record<string, string>, ...expected: RegExp[]): Promise<void> => {
      const found = await problems(files);
      assert.equal(found.length, expected.length, found.join('\n'));
      for (const [i, pattern] of expected.entries()) assert.match(found[i]!, pattern);
    };
    const over = (field: string, fn = 'sum') => fieldFile('Deal__c', 'New__c', rollup('Line__c', 'Deal__c', fn, field));
    const asking = (criteria: string) =>
      fieldFile('Deal__c', 'New__c', `${rollup('Line__c', 'Deal__c', 'count')}  criteria: ${criteria}\n`);
    const age = formula('Age__c', 'daysBetween(record.Day__c, today)', 'resultType: integer');
    const older = formula('Older__c', 'record.Age__c + 1', 'resultType: integer');
    await refused({ ...age, ...over('Age__c') }, /^REFERENCE_INVALID 10 Age__c depends on the time/);
    await refused({ ...age, ...older, ...over('Older__c') }, /^REFERENCE_INVALID 10 Older__c depends on the time/);
    await refused({ ...age, ...older, ...asking('record.Older__c > 3') }, /^EXPRESSION_INVALID 10 Older__c depends/);
    await refused(
      { ...formula('Word__c', '"a"', 'resultType: text'), ...over('Word__c') },
      /^REFERENCE_INVALID 10 sum/,
    );
    await refused(
      { ...formula('Word__c', '"a"', 'resultType: text'), ...over('Word__c', 'max') },
      /^REFERENCE_INVALID 10 max/,
    );
    await refused(
      { ...formula('When__c', 'record.Day__c', 'resultType: date'), ...over('When__c') },
      /sum is not possible/,
    );
    await refused(
      { ...formula('Bad__c', 'record.None__c', 'resultType: integer'), ...over('Bad__c') },
      /^EXPRESSION_INVALID \d+ .*no field None__c/,
    );
    const below = fieldFile('Line__c', 'Below__c', rollup('Part__c', 'Line__c', 'sum', 'Price__c'));
    const parts = objectFiles('Part__c', {
      Line__c: 'fieldType: masterDetail\nreferenceTo:\n  - Line__c',
      Price__c: 'fieldType: currency',
    });
    const twice = formula('Twice__c', '2 * record.Below__c');
    await refused(
      { ...parts, ...below, ...twice, ...over('Twice__c') },
      /^REFERENCE_INVALID 10 Twice__c is a formula over Below__c, which is a rollup/,
    );
    const slow = formula('Slow__c', 'record.Text__c.matches("x{150}")', 'resultType: boolean');
    await refused(
      { ...slow, ...asking('record.Slow__c || record.name == "x" && record.Slow__c') },
      /^EXPRESSION_INVALID 10 It can cost \d+ units for one record, and 5000 are the most/,
    );
    assert.deepEqual(await problems({ ...slow, ...asking('record.Slow__c') }), []);
    const ring = objectFiles('Ring__c', {
      Above__c: 'fieldType: reference\nreferenceTo:\n  - Ring__c',
      Twice__c: 'fieldType: formula\nformula:\n  expression: 2 * record.Sum__c\n  resultType: decimal',
      Sum__c: rollup('Ring__c', 'Above__c', 'sum', 'Twice__c'),
    });
    await refused(ring, /Twice__c is a formula over Sum__c, which is a rollup/, /Rollups over rollups form a cycle/);
    // A formula that a rollup reads cannot become one that the rollup cannot follow.
    await refused(
      formula('Gross__c', 'record.Pieces__c * year(today)'),
      ...['Best', 'Cheap', 'Net'].map(() => /depends on the time/),
    );
  });

  it('are not deployed when current formula values exceed their range, and refuse lines that do', async () => {
    await tenant.deployed({
      ...formula('Size__c', 'record.Price__c', 'resultType: integer'),
      ...fieldFile('Deal__c', 'Sizes__c', rollup('Line__c', 'Deal__c', 'sum', 'Size__c', 'precision: 4\nscale: 0\n')),
    });
    const deal = await create('Deal__c', {});
    await create('Line__c', { Deal__c: deal.id, Price__c: 900 });
    const tenfold = formula('Size__c', 'record.Price__c * 10 + 1000', 'resultType: integer');
    const { status, blocked } = await tenant.deploy(tenfold);
    assert.deepEqual(
      [status, blocked.map(({ code, fullName }: Anything) => [code, fullName])],
      ['FAILED', [['DATA_INCOMPATIBLE', 'Deal__c.Sizes__c']]],
    );
    await assert.rejects(create('Line__c', { Deal__c: deal.id, Price__c: 9_100 }), (error: Anything) => {
      assert.deepEqual([error.code, error.errors[0].code], ['VALIDATION_FAILED', 'FIELD_OUT_OF_RANGE']);
      return true;
    });
    // Exceeds an integer: the formula is null, and null adds nothing.
    await create('Line__c', { Deal__c: deal.id, Price__c: 99 });
    await tenant.deployed(
      formula('Size__c', 'record.Price__c * (record.Price__c > 100 ? 1 : 10000000000000000)', 'resultType: integer'),
    );
    assert.equal((await get('Deal__c', deal.id)).Sizes__c, 900);
  });

  const problems = async (files: Record<string, string>): Promise<string[]> =>
    (await tenant.validate(files)).blocked.map(({ code, line, message }: Anything) => `${code} ${line} ${message}`);

  it('are refused at deployment when they could not be kept correct', async () => {
    const field = (yaml: string, object = 'Deal__c', name = 'New__c') => fieldFile(object, name, yaml);
    const refused = async (yaml: string, expected: RegExp, object?: string): Promise<void> => {
      const found = await problems(field(yaml, object));
      assert.equal(found.length, 1, found.join('\n'));
      assert.match(found[0]!, expected);
    };
    await refused(rollup('None__c', 'Deal__c', 'count').replace('Deal__c', 'name'), /^DEPENDENCY_MISSING 7 /);
    await refused(rollup('Line__c', 'None__c', 'count'), /^DEPENDENCY_MISSING 8 .*Line__c.None__c/);
    await refused(rollup('Line__c', 'Text__c', 'count'), /^REFERENCE_INVALID 8 .*no reference/);
    await refused(rollup('Deal__c', 'ownerId', 'count'), /^REFERENCE_INVALID 8 /);
    await refused(rollup('Line__c', 'Deal__c', 'sum'), /^YAML_SCHEMA_INVALID 6 .*needs a field/);
    await refused(rollup('Line__c', 'Deal__c', 'count', 'Amount__c'), /^YAML_SCHEMA_INVALID 10 .*takes no field/);
    await refused(rollup('Line__c', 'Deal__c', 'sum', 'Day__c'), /^REFERENCE_INVALID 10 .*not possible over/);
    await refused(rollup('Line__c', 'Deal__c', 'max', 'Text__c'), /^REFERENCE_INVALID 10 /);
    await refused(rollup('Line__c', 'Deal__c', 'max', 'Day__c', 'scale: 1\n'), /^YAML_SCHEMA_INVALID 6 /);
    await refused(
      rollup('Line__c', 'Deal__c', 'sum', 'Amount__c', 'scale: 1\n'),
      /^YAML_SCHEMA_INVALID 6 .*all decimals/,
    );
    const criteria = (text: string) => `${rollup('Line__c', 'Deal__c', 'count')}  criteria: ${JSON.stringify(text)}\n`;
    await refused(criteria('record.Amount__c'), /^EXPRESSION_INVALID 10 .*boolean/);
    await refused(criteria('record.None__c > 1'), /^EXPRESSION_INVALID 10 .*no field None__c/);
    await refused(criteria('record.Day__c < today'), /^EXPRESSION_INVALID 10 .*today/);
    await refused(criteria('user.id == record.ownerId'), /^EXPRESSION_INVALID 10 .*user/);
    const cycle = {
      ...fieldFile('Line__c', 'Twin__c', 'fieldType: reference\nreferenceTo:\n  - Deal__c\nrelationshipName: Twins__r'),
      ...field('fieldType: reference\nreferenceTo:\n  - Line__c\nrelationshipName: Deals__r', 'Deal__c', 'Up__c'),
      ...field(rollup('Deal__c', 'Up__c', 'sum', 'Total__c'), 'Line__c', 'Below__c'),
      ...field(rollup('Line__c', 'Deal__c', 'max', 'Below__c'), 'Deal__c', 'Back__c'),
    };
    assert.match((await problems(cycle)).join('\n'), /REFERENCE_INVALID \d+ Rollups over rollups form a cycle/);
    await refused('fieldType: rollup', /^YAML_SCHEMA_INVALID .* needs rollup/);
    /** Layers of objects, each of which rolls up all layers below. */
    const woven = (width: number, layers: number): Record<string, string> => {
      const name = (layer: number, n: number): string => `W${layer}x${n}__c`;
      const each = <T>(make: (n: number) => T): T[] => Array.from({ length: width }, (_, n) => make(n));
      const files = Array.from({ length: layers }, (_, layer) =>
        each((n) =>
          objectFiles(
            name(layer, n),
            Object.fromEntries([
              ...each((up) => [
                `To${up}__c`,
                `fieldType: reference\nreferenceTo:\n  - ${name(layer + 1, up)}\nrelationshipName: From${n}__r`,
              ]),
              ...(layer === 0
                ? []
                : each((below) => [
                    `R${below}__c`,
                    `${rollup(name(layer - 1, below), `To${n}__c`, 'count')}  criteria: ${layer === 1 ? 'record.name != null' : each((m) => `record.R${m}__c > 0`).join(' || ')}\n`,
                  ])),
            ]),
          ),
        ),
      );
      return Object.assign({}, ...files.flat(), ...each((n) => objectFiles(name(layers, n))));
    };
    assert.deepEqual(await problems(woven(3, 4)), []);
    const tangled = await problems(woven(4, 4));
    assert.ok(
      tangled.length > 0 && tangled.every((text) => /^LIMIT_EXCEEDED \d+ .* 84 ways/.test(text)),
      tangled.join('\n'),
    );
    assert.match((await problems(woven(3, 8))).join('\n'), /LIMIT_EXCEEDED \d+ .* 5 levels/);
    const several = Object.assign(
      {},
      ...Array.from({ length: 26 }, (_, n) => fieldFile('Item__c', `R${n}__c`, rollup('Item__c', 'Up__c', 'count'))),
      objectFiles('Item__c', { Up__c: 'fieldType: reference\nreferenceTo:\n  - Item__c' }),
    );
    assert.match((await problems(several)).join(), /LIMIT_EXCEEDED \d+ An object may have at most 25 rollups/);
  });

  it('refuse a child that makes them exceed their range', async () => {
    await tenant.deployed(
      fieldFile('Deal__c', 'Narrow__c', rollup('Line__c', 'Deal__c', 'sum', 'Pieces__c', 'precision: 3\nscale: 0\n')),
    );
    const deal = await create('Deal__c', {});
    await create('Line__c', { Deal__c: deal.id, Pieces__c: 999 });
    await assert.rejects(create('Line__c', { Deal__c: deal.id, Pieces__c: 1 }), (error: Anything) => {
      assert.deepEqual([error.code, error.errors[0].code], ['VALIDATION_FAILED', 'FIELD_OUT_OF_RANGE']);
      return true;
    });
    assert.equal((await get('Deal__c', deal.id)).Narrow__c, 999);
  });

  it("are refused at deployment when the records' total exceeds their range", async () => {
    const narrow = (precision: number) =>
      fieldFile(
        'Deal__c',
        'Tight__c',
        rollup('Line__c', 'Deal__c', 'avg', 'Pieces__c', `precision: ${precision}\nscale: 2\n`),
      );
    const deal = await create('Deal__c', {});
    for (const pieces of [900, 50]) await create('Line__c', { Deal__c: deal.id, Pieces__c: pieces });
    assert.match(
      (await problems(narrow(4))).join(),
      /DATA_INCOMPATIBLE .*precision 4 and scale 2 leave\. \(2 records\)/,
    );
    await tenant.deployed(narrow(5));
    assert.equal((await get('Deal__c', deal.id)).Tight__c, 475);
  });

  it('cannot be written, and can be filtered and sorted by', async () => {
    const [small, big] = [await create('Deal__c', { Note__c: 'sort' }), await create('Deal__c', { Note__c: 'sort' })];
    await create('Line__c', { Deal__c: small.id, Amount__c: 1, Day__c: '2026-05-01' });
    await create('Line__c', { Deal__c: big.id, Amount__c: 9, Day__c: '2026-06-01' });
    await assert.rejects(create('Deal__c', { Total__c: 1 }), (error: Anything) => {
      assert.equal(error.code, 'VALIDATION_FAILED');
      assert.deepEqual([error.errors[0].code, error.errors[0].pointer], ['FIELD_READ_ONLY', '/Total__c']);
      return true;
    });
    const list = async (query: Record<string, unknown>): Promise<string[]> =>
      (
        await tenant.call('data.records.list', { path: { objectApiName: 'Deal__c' }, query: query as never })
      ).json.records.map((record: Anything) => record.id);
    const where = (field: string, operator: string, value: unknown) => ({
      filters: {
        logic: 'and',
        conditions: [
          { id: '1', field, operator, value },
          { id: '2', field: 'Note__c', operator: 'eq', value: 'sort' },
        ],
      },
    });
    assert.deepEqual(await list(where('Total__c', 'gt', 5)), [big.id]);
    assert.deepEqual(await list(where('LastDay__c', 'lt', '2026-05-15')), [small.id]);
    assert.deepEqual(await list({ ...where('Lines__c', 'eq', 1), sort: [{ id: 'LastDay__c', desc: true }] }), [
      big.id,
      small.id,
    ]);
    const { json } = await tenant.call('data.objects.describe', { path: { objectApiName: 'Deal__c' } });
    const described = Object.fromEntries(json.fields.map((field: Anything) => [field.apiName, field]));
    const { fieldType, calculated, editable, precision, scale } = described.Total__c;
    assert.deepEqual([fieldType, calculated, editable, precision, scale], ['rollup', true, false, 16, 2]);
    assert.equal(described.LastDay__c.sortable, true);
  });
});

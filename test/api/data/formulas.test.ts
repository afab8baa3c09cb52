/** Formula fields: computed whenever they are read, and queried like any other field. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { RequestContext } from '../../../lib/context.ts';
import type { OperationCall } from '../../../lib/operation.ts';
import { fieldFile, objectFiles, type StartedTenant, startMetadataTenant } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from './deals.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

const formula = (expression: string, resultType: string, more = ''): string =>
  `fieldType: formula\n${more}formula:\n  expression: ${JSON.stringify(expression)}\n  resultType: ${resultType}`;

const FILES = {
  ...objectFiles('Order__c', {
    Net__c: 'fieldType: currency\nprecision: 12\nscale: 2',
    Rate__c: 'fieldType: percent',
    Parts__c: 'fieldType: integer',
    Due__c: 'fieldType: date',
    Sent__c: 'fieldType: dateTime',
    City__c: 'fieldType: text\nlength: 50',
    Rush__c: 'fieldType: boolean',
    Parent__c: 'fieldType: reference\nreferenceTo:\n  - Order__c',
    Gross__c: formula('record.Net__c * (1 + coalesce(record.Rate__c, 0) / 100)', 'currency'),
    Each__c: formula('record.Gross__c / record.Parts__c', 'decimal', 'precision: 10\nscale: 3\n'),
    Boxes__c: formula('ceil(record.Parts__c / 12)', 'integer'),
    Label__c: formula('record.name.upper() + " / " + coalesce(record.City__c, "?")', 'text'),
    Late__c: formula('record.Due__c < today', 'boolean'),
    Reminder__c: formula('addDays(record.Due__c, 10)', 'date'),
    Seen__c: formula('coalesce(record.Sent__c, dateTime("2026-01-01T00:00:00Z"))', 'dateTime'),
    Now__c: formula('today', 'date'),
  }),
};

describe('formula fields', () => {
  let tenant: StartedTenant;
  const ids: Record<string, string> = {};

  const mutate = (operationId: string, call: Partial<OperationCall>): Promise<Anything> =>
    tenant.call(operationId, { ...call, headers: { idempotencyKey: randomUUID(), ...call.headers } });
  const create = async (body: object): Promise<Anything> =>
    (await mutate('data.records.create', { path: { objectApiName: 'Order__c' }, body })).json;
  const get = async (id: string): Promise<Anything> =>
    (await tenant.call('data.records.get', { path: { objectApiName: 'Order__c', id } })).json;
  const query = async (body: object, objectApiName = 'Order__c'): Promise<Anything> =>
    (await tenant.call('data.records.query', { path: { objectApiName }, body })).json;
  const names = async (body: object): Promise<string> =>
    (await query(body)).records.map((record: Anything) => record.name).join();
  const where = (field: string, operator: string, value?: unknown, valueTo?: unknown): object => ({
    filters: { logic: 'and', conditions: [{ id: 'c', field, operator, value, valueTo }] },
    sort: [{ id: 'name', desc: false }],
    fields: ['name'],
  });
  const blocked = async (files: Record<string, string>): Promise<Anything> => (await tenant.validate(files)).blocked;

  before(async function () {
    this.timeout(120_000);
    tenant = await startMetadataTenant();
    await tenant.deployed(FILES);
    const rows: Anything[] = [
      { name: 'a', Net__c: 100, Rate__c: 19, Parts__c: 3, Due__c: '2001-01-31', City__c: 'Köln', Rush__c: true },
      { name: 'b', Net__c: '0.05', Rate__c: 10, Parts__c: 0, Due__c: '2999-01-01', City__c: null },
      { name: 'c', Net__c: -100, Parts__c: 13, Sent__c: '2026-05-05T05:05:05.555Z', City__c: 'Aachen' },
      { name: 'd', Rate__c: 19, Parts__c: -12, Due__c: '2001-01-31' },
      { name: 'e', Net__c: 100, Rate__c: 19, Parts__c: 3 },
    ];
    for (const row of rows) ids[row.name] = (await create(row)).id;
  });
  after(() => tenant?.stop());

  it('are returned by create, get, list and update in the form of their result', async () => {
    const created = await create({ name: 'new', Net__c: 10, Parts__c: 4, Due__c: '2026-02-28' });
    assert.deepEqual(
      [created.Gross__c, created.Each__c, created.Boxes__c, created.Label__c, created.Late__c, created.Reminder__c],
      [10, 2.5, 1, 'NEW / ?', true, '2026-03-10'],
    );
    const read = await get(ids['a']!);
    assert.deepEqual([read.Gross__c, read.Each__c, read.Boxes__c, read.Label__c], [119, 39.667, 1, 'A / Köln']);
    assert.deepEqual([read.Late__c, read.Reminder__c], [true, '2001-02-10']);
    const c = await get(ids['c']!);
    assert.deepEqual([c.Late__c, c.Reminder__c, c.Gross__c, c.Boxes__c], [false, null, -100, 2]);
    assert.equal(Date.parse(c.Seen__c), Date.parse('2026-05-05T05:05:05.555Z'));
    const listed = (await query({ where: { id: ids['a'] } })).records[0];
    assert.deepEqual(listed, read);
    const updated = (
      await mutate('data.records.update', {
        path: { objectApiName: 'Order__c', id: created.id },
        body: { Net__c: 20 },
        headers: { ifMatch: '"1"' },
      })
    ).json;
    assert.deepEqual([updated.Gross__c, updated.Each__c], [20, 5]);
    assert.deepEqual(updated, await get(created.id));
    const text = (
      await tenant.call('data.records.get', {
        path: { objectApiName: 'Order__c', id: ids['a']! },
        ieee754Compatible: true,
      })
    ).body;
    assert.match(String(text), /"Gross__c":"119.00".*|"Each__c":"39.667"/);
    await mutate('data.records.delete', {
      path: { objectApiName: 'Order__c', id: created.id },
      headers: { ifMatch: '"2"' },
    });
  });

  it('are null when they divide by zero, exceed their range or lack a value', async () => {
    const b = await get(ids['b']!);
    assert.equal(b.Each__c, null);
    assert.equal(b.Gross__c, 0.06);
    assert.equal((await get(ids['d']!)).Gross__c, null);
    const large = await create({ name: 'large', Net__c: 9_999_999_999, Parts__c: 1 });
    assert.deepEqual([large.Gross__c, large.Each__c], [9_999_999_999, null], 'more than seven digits before the point');
    await mutate('data.records.delete', {
      path: { objectApiName: 'Order__c', id: large.id },
      headers: { ifMatch: '"1"' },
    });
  });

  it('are filtered by the operators of their result, and counted', async () => {
    assert.equal(await names(where('Gross__c', 'eq', 119)), 'a,e');
    assert.equal(await names(where('Gross__c', 'neq', '119.00')), 'b,c,d');
    assert.equal(await names(where('Gross__c', 'between', 0, 119)), 'a,b,e');
    assert.equal(await names(where('Gross__c', 'in', [119, 0.06])), 'a,b,e');
    assert.equal(await names(where('Gross__c', 'not_in', [119])), 'b,c,d');
    assert.equal(await names(where('Each__c', 'is_blank')), 'b,d');
    assert.equal(await names(where('Each__c', 'is_not_blank')), 'a,c,e');
    assert.equal(await names(where('Boxes__c', 'lt', 1)), 'b,d');
    assert.equal(await names(where('Label__c', 'contains', 'koln')), 'a');
    assert.equal(await names(where('Label__c', 'starts_with', 'b /')), 'b');
    assert.equal(await names(where('Label__c', 'gt', 'C')), 'c,d,e');
    assert.equal(await names(where('Late__c', 'eq', true)), 'a,d');
    assert.equal(await names(where('Late__c', 'eq', false)), 'b,c,e');
    assert.equal(await names(where('Reminder__c', 'lte', 'TODAY')), 'a,d');
    assert.equal(await names(where('Now__c', 'eq', 'TODAY')), 'a,b,c,d,e');
    assert.equal(await names(where('Seen__c', 'gt', '2026-02-02T00:00:00Z')), 'c');
    const counted = await query({
      where: { Late__c: true },
      whereIn: { Boxes__c: [1, -1] },
      includeTotal: true,
      take: 1,
    });
    assert.equal(counted.total, 2);
    await assert.rejects(query(where('Late__c', 'gt', true)), { code: 'FILTER_OPERATOR_UNSUPPORTED' });
    await assert.rejects(query({ search: 'koln', searchFields: ['Label__c'] }), { code: 'SEARCH_FIELD_INVALID' });
  });

  it('work in conditions on related records', async () => {
    const child = await create({ name: 'child', Parent__c: ids['a'] });
    const related = {
      objectApiName: 'Order__c',
      field: 'id',
      conditions: [{ id: 'r', field: 'Gross__c', operator: 'gt', value: 100 }],
    };
    assert.equal(await names(where('Parent__c', 'in_related', related)), 'child');
    await mutate('data.records.delete', {
      path: { objectApiName: 'Order__c', id: child.id },
      headers: { ifMatch: '"1"' },
    });
  });

  it('sort, with cursors over ties and nulls, whether they are selected or not', async () => {
    for (const [field, desc, expected] of [
      ['Gross__c', false, 'c,b,a,e,d'],
      ['Gross__c', true, 'd,e,a,b,c'],
      ['Boxes__c', false, 'd,b,a,e,c'],
      ['Reminder__c', true, 'e,c,b,d,a'],
      ['Label__c', true, 'e,d,c,b,a'],
    ] as const)
      for (const fields of [['name'], ['name', field]])
        for (const take of [1, 2, 3]) {
          const found: string[] = [];
          let cursor: string | null = null;
          do {
            const page: Anything = await query({
              sort: [{ id: field, desc }],
              take,
              fields,
              includeTotal: true,
              ...(cursor ? { cursor } : {}),
            });
            assert.equal(page.total, 5);
            assert.ok(
              page.records.every((record: Anything) => Object.keys(record).length === new Set(['id', ...fields]).size),
            );
            found.push(...page.records.map((record: Anything) => record.name));
            cursor = page.nextCursor;
          } while (cursor);
          // Equal values are ordered by id, and so by creation.
          assert.equal(found.join(), expected, `${field} ${desc} by ${take}`);
        }
    assert.equal(
      await names({
        sort: [
          { id: 'Late__c', desc: true },
          { id: 'Gross__c', desc: false },
        ],
        fields: ['name'],
      }),
      'a,d,c,b,e',
    );
  });

  it('do not sort by the current time, which advances between pages', async () => {
    await tenant.deployed(
      objectFiles('Clock__c', {
        Sent__c: 'fieldType: dateTime',
        Soon__c: formula('addDays(now, 1)', 'dateTime'),
        Later__c: formula('coalesce(record.Sent__c, record.Soon__c)', 'dateTime'),
        Running__c: formula('record.Soon__c > now', 'boolean'),
        Seen__c: formula('addDays(record.Sent__c, 1)', 'dateTime'),
      }),
    );
    const path = { objectApiName: 'Clock__c' };
    await mutate('data.records.create', { path, body: { name: 'clock' } });
    const { json } = await tenant.call('data.objects.describe', { path });
    const sortable = Object.fromEntries(json.fields.map((field: Anything) => [field.apiName, field.sortable]));
    for (const [name, expected] of Object.entries({
      Soon__c: false,
      Later__c: false,
      Running__c: true,
      Seen__c: true,
    })) {
      assert.equal(sortable[name], expected, name);
      const listed = query({ sort: [{ id: name, desc: false }], fields: ['name'] }, 'Clock__c');
      if (expected) assert.equal((await listed).records.length, 1);
      else await assert.rejects(listed, { code: 'SORT_INVALID' });
    }
    assert.equal((await query(where('Soon__c', 'gt', 'TODAY'), 'Clock__c')).records.length, 1);
  });

  it('cannot be written and leave no trace in history', async () => {
    for (const body of [{ Gross__c: 5 }, { Net__c: 5, Label__c: null }])
      await assert.rejects(
        mutate('data.records.update', {
          path: { objectApiName: 'Order__c', id: ids['a']! },
          body,
          headers: { ifMatch: '"1"' },
        }),
        (error: Anything) => error.code === 'VALIDATION_FAILED' && error.errors[0].code === 'FIELD_READ_ONLY',
      );
    await assert.rejects(create({ name: 'x', Boxes__c: 1 }), { code: 'VALIDATION_FAILED' });
    await mutate('data.records.update', {
      path: { objectApiName: 'Order__c', id: ids['e']! },
      body: { Net__c: 101 },
      headers: { ifMatch: '"1"' },
    });
    const { rows } = await tenant.database.query<{ changes: object }>(
      `SELECT changes FROM ${tenant.schema}._history WHERE record_id = '${ids['e']}' ORDER BY change_id`,
    );
    assert.deepEqual(
      rows.map(({ changes }) => Object.keys(changes).sort().join()),
      ['Net__c,Parts__c,Rate__c,name', 'Net__c'],
    );
    await mutate('data.records.update', {
      path: { objectApiName: 'Order__c', id: ids['e']! },
      body: { Net__c: 100 },
      headers: { ifMatch: '"2"' },
    });
  });

  it('are described by their result, with the expression for users who configure', async () => {
    const describe = async (scopes: RequestContext['scopes']): Promise<Anything> => {
      const { fields } = (
        await tenant.call('data.objects.describe', { path: { objectApiName: 'Order__c' } }, 'admin', scopes)
      ).json;
      return Object.fromEntries(fields.map((field: Anything) => [field.apiName, field]));
    };
    const fields = await describe(['setup:read']);
    const { Gross__c, Label__c, Late__c } = fields;
    assert.equal(Gross__c.fieldType, 'formula');
    assert.deepEqual(
      [
        Gross__c.calculated,
        Gross__c.editable,
        Gross__c.precision,
        Gross__c.scale,
        Gross__c.filterable,
        Gross__c.sortable,
      ],
      [true, false, 18, 2, true, true],
    );
    assert.deepEqual(Gross__c.filterOperators, fields.Net__c.filterOperators);
    assert.match(Gross__c.formula, /^record\.Net__c/);
    assert.deepEqual([Label__c.length, Label__c.searchable, Late__c.groupable], [3 * 255 + 3 + 50, false, true]);
    assert.equal((await describe([])).Gross__c.formula, null);
  });

  it('take part in validation rules, with their new and their old values', async () => {
    await tenant.deployed({
      'objects/Order__c/validationRules/Cap.yaml':
        'type: ValidationRule\napiName: Cap\nobject: Order__c\ncondition: record.Each__c > 1000 || old != null && isChanged(record.Boxes__c) && record.Boxes__c < old.Boxes__c\nmessage: Too much for each.\n',
    });
    await assert.rejects(
      create({ name: 'x', Net__c: 5000, Parts__c: 2 }),
      (error: Anything) => error.errors[0].ruleApiName === 'Order__c.Cap',
    );
    const made = await create({ name: 'x', Net__c: 5000, Parts__c: 20 });
    const change = (body: object): Promise<Anything> =>
      mutate('data.records.update', {
        path: { objectApiName: 'Order__c', id: made.id },
        body,
        headers: { ifMatch: '"1"' },
      });
    await assert.rejects(change({ Net__c: 50_000 }), { code: 'VALIDATION_FAILED' });
    await assert.rejects(change({ Parts__c: 12 }), { code: 'VALIDATION_FAILED' });
    assert.equal((await change({ Parts__c: 19 })).json.Boxes__c, 2);
    await mutate('data.records.delete', {
      path: { objectApiName: 'Order__c', id: made.id },
      headers: { ifMatch: '"2"' },
    });
  });

  it('apply the expression of the last deployment at once', async () => {
    assert.equal((await get(ids['a']!)).Boxes__c, 1);
    const before = (await get(ids['a']!)).recordVersion;
    await tenant.deployed(fieldFile('Order__c', 'Boxes__c', formula('record.Parts__c * 100', 'integer')));
    const after = await get(ids['a']!);
    assert.deepEqual([after.Boxes__c, after.recordVersion], [300, before]);
    assert.equal(await names(where('Boxes__c', 'eq', 1300)), 'c');
    await tenant.deployed(fieldFile('Order__c', 'Boxes__c', formula('"box " + record.name', 'text')));
    assert.equal((await get(ids['a']!)).Boxes__c, 'box a');
    await tenant.deployed(fieldFile('Order__c', 'Boxes__c', formula('ceil(record.Parts__c / 12)', 'integer')));
  });

  it("use the days of the tenant's time zone for every caller", async () => {
    const settings = (timezone: string): Record<string, string> => ({
      'settings/General.yaml': `type: TenantSettings\napiName: General\nlocale: en\ntimezone: ${timezone}\ncurrency: EUR\n`,
    });
    const days: string[] = [];
    for (const timezone of ['Pacific/Kiritimati', 'Pacific/Niue']) {
      await tenant.deployed(settings(timezone));
      days.push((await get(ids['a']!)).Now__c);
      assert.equal(await names(where('Now__c', 'eq', days.at(-1))), 'a,b,c,d,e');
    }
    assert.notEqual(days[0], days[1]);
    await tenant.deployed(settings('UTC'));
  });

  it('are refused when deployed, with the location, when they are inconsistent', async () => {
    const field = (name: string, expression: string, resultType = 'decimal', more = ''): Record<string, string> =>
      fieldFile('Order__c', name, formula(expression, resultType, more));
    const table: [Record<string, string>, string, RegExp][] = [
      [field('X__c', 'record.Nothing__c + 1'), 'EXPRESSION_INVALID', /no field Nothing__c/],
      [field('X__c', 'record.name'), 'EXPRESSION_INVALID', /gives text where number/],
      [field('X__c', 'old.Net__c'), 'EXPRESSION_INVALID', /old/],
      [field('X__c', 'user.id', 'text'), 'EXPRESSION_INVALID', /user/],
      [field('X__c', 'isChanged(record.name)', 'boolean'), 'EXPRESSION_INVALID', /isChanged/],
      [field('X__c', 'hasPermission("viewAudit")', 'boolean'), 'EXPRESSION_INVALID', /hasPermission/],
      [field('X__c', 'record.X__c + 1'), 'EXPRESSION_INVALID', /its own field/],
      [
        { ...field('X__c', 'record.Y__c + 1'), ...field('Y__c', 'record.Z__c'), ...field('Z__c', '2 * record.X__c') },
        'EXPRESSION_INVALID',
        /cycle: X__c, Y__c, Z__c, X__c/,
      ],
      [field('Parts__c', '1'), 'FIELD_TYPE_CHANGE_UNSUPPORTED', /is integer and cannot become formula/],
      [
        fieldFile('Order__c', 'Boxes__c', 'fieldType: integer'),
        'FIELD_TYPE_CHANGE_UNSUPPORTED',
        /cannot become integer/,
      ],
      [field('X__c', 'record.Net__c', 'integer', 'scale: 2\n'), 'YAML_SCHEMA_INVALID', /no scale/],
      [field('X__c', 'record.Net__c', 'decimal', 'required: true\n'), 'YAML_SCHEMA_INVALID', /no required/],
      [
        field(
          'X__c',
          `["${Array(150).fill('a').join('","')}"].all(a, ["${Array(150).fill('b').join('","')}"].all(b, a < b))`,
          'boolean',
        ),
        'EXPRESSION_INVALID',
        /can cost \d+ units/,
      ],
      [field('X__c', `${'('.repeat(300)}1${')'.repeat(300)}`), 'EXPRESSION_INVALID', /nests deeper/],
      [field('X__c', `1${' + 1'.repeat(900)}`), 'EXPRESSION_INVALID', /nests deeper|parts/],
      [field('X__c', '"a".matches("(((a{500}){500}){500})")', 'boolean'), 'EXPRESSION_INVALID', /too complex/],
    ];
    for (const [files, code, message] of table) {
      const problems = await blocked(files);
      const found = problems.find((problem: Anything) => problem.code === code && message.test(problem.message));
      assert.ok(found, `${Object.values(files)[0]!.slice(0, 200)}\n${JSON.stringify(problems)}`);
      assert.ok(found.line > 0 && found.column > 0, JSON.stringify(found));
    }
    const [place] = await blocked(field('X__c', '1 + record.Nothing__c'));
    const lines = Object.values(field('X__c', '1 + record.Nothing__c'))[0]!.split('\n');
    assert.equal(lines[place.line - 1]!.slice(place.column - 1).startsWith('Nothing__c'), true, JSON.stringify(place));
  });

  it('limit the total cost of nested formulas', async () => {
    const chain = (levels: number, times: number): Record<string, string> => {
      const files: Record<string, string> = {};
      for (let level = 1; level <= levels; level++) {
        const inner = level === 1 ? 'record.Net__c' : `record.L${level - 1}__c`;
        const sum = Array.from({ length: times }, () => inner).join(' + ');
        Object.assign(
          files,
          fieldFile('Order__c', `L${level}__c`, formula(sum, 'decimal', 'precision: 30\nscale: 2\n')),
        );
      }
      return files;
    };
    const codes = async (files: Record<string, string>): Promise<string[]> =>
      (await blocked(files)).map((problem: Anything) => problem.code);
    assert.deepEqual(await codes(chain(6, 1)), ['LIMIT_EXCEEDED']);
    assert.deepEqual(await codes(chain(4, 10)), ['LIMIT_EXCEEDED']);
    const many = (count: number): Record<string, string> =>
      Object.assign(
        objectFiles('Long__c', { Net__c: 'fieldType: integer' }),
        ...Array.from({ length: count }, (_, n) =>
          fieldFile('Long__c', `F${n}__c`, formula(`${n}${' + record.Net__c'.repeat(90)}`, 'decimal')),
        ),
      );
    assert.deepEqual(await codes(many(27)), []);
    assert.deepEqual(await codes(many(40)), ['LIMIT_EXCEEDED']);
    await tenant.deployed(chain(5, 3));
    assert.equal((await get(ids['a']!)).L5__c, 100 * 3 ** 5);
    assert.equal(await names({ ...where('L5__c', 'gt', 0), sort: [{ id: 'L5__c', desc: true }] }), 'e,a,b');
  });

  it('follow the fields that they read', async () => {
    const label = async (): Promise<Anything> =>
      (await tenant.call('data.objects.describe', { path: { objectApiName: 'Order__c' } })).json.fields.find(
        (field: Anything) => field.apiName === 'Label__c',
      );
    assert.equal((await label()).sortable, true);
    await tenant.deployed(fieldFile('Order__c', 'City__c', 'fieldType: longText'));
    assert.deepEqual([(await label()).length, (await label()).sortable], [4_000, false]);
    await assert.rejects(query({ sort: [{ id: 'Label__c', desc: false }] }), { code: 'SORT_INVALID' });
    const long = await create({ name: 'long', City__c: 'x'.repeat(4_000) });
    assert.equal(long.Label__c, null);
    const [problem] = await blocked(fieldFile('Order__c', 'Parts__c', 'fieldType: text'));
    assert.ok(problem, 'a formula calculates with it');
  });

  describe('on private records', () => {
    const SECRET = 'Secret__c';
    const path = `objects/${SECRET}/object.yaml`;
    const files = objectFiles(SECRET, {
      Net__c: 'fieldType: currency',
      Status__c: 'fieldType: picklist\npicklist:\n  values:\n    - value: open\n    - value: closed',
      Gross__c: formula('record.Net__c * 2', 'currency'),
      Hidden__c: formula('record.Net__c * 3', 'currency'),
      Today__c: formula('daysBetween(today, date("2026-01-01"))', 'integer'),
    });
    const rule = (criteria: string): Record<string, string> => ({
      [`objects/${SECRET}/sharingRules/Big.yaml`]: `type: SharingRule\napiName: Big\nobject: ${SECRET}\nkind: criteria\ncriteria: ${criteria}\nto:\n  group: Readers\naccess: read\n`,
    });
    const life = [
      'type: StateModel',
      'apiName: Life',
      `object: ${SECRET}`,
      'field: Status__c',
      'initial: open',
      'transitions:',
      '  - key: close',
      '    label: Close',
      '    from:',
      '      - open',
      '    to: closed',
      '    guard: record.Gross__c > 100',
      '',
    ].join('\n');
    let big: Anything;
    let small: Anything;
    const asReader = (operationId: string, call: Partial<OperationCall>): Promise<Anything> =>
      tenant.call(operationId, call, 'reader', ['data:read']);

    before(async function () {
      this.timeout(60_000);
      const reader = (
        await tenant.call('data.records.get', { path: { objectApiName: 'User', id: tenant.users['reader']! } })
      ).json;
      await tenant.deployed({
        ...files,
        [path]: files[path]!.replace('api:', 'sharingDefault: private\napi:'),
        'groups/Readers.yaml': `type: Group\napiName: Readers\nlabel: Readers\nmembers:\n  users:\n    - ${reader.username}\n`,
        'profiles/Reader.yaml': [
          'type: Profile\napiName: Reader\nlabel: Reader\nsystem:\n  - apiEnabled\n  - metadataRead',
          `objects:\n  ${SECRET}:\n    read: true`,
          `fields:\n  ${SECRET}.Gross__c:\n    read: true\n`,
        ].join('\n'),
        ...rule('record.Gross__c > 100'),
        [`objects/${SECRET}/stateModels/Life.yaml`]: life,
      });
      const make = async (body: object): Promise<Anything> =>
        (await mutate('data.records.create', { path: { objectApiName: SECRET }, body })).json;
      big = await make({ name: 'big', Net__c: 51 });
      small = await make({ name: 'small', Net__c: 50 });
    });

    it('work in sharing criteria, consistently in lists, gets and explanations', async () => {
      const { records, total } = (
        await asReader('data.records.query', { path: { objectApiName: SECRET }, body: { includeTotal: true } })
      ).json;
      assert.deepEqual([records.map((record: Anything) => record.name), total], [['big'], 1]);
      await assert.rejects(asReader('data.records.get', { path: { objectApiName: SECRET, id: small.id } }), {
        code: 'RECORD_NOT_FOUND',
      });
      const { allowed } = (
        await asReader('data.access.explain', {
          path: { objectApiName: SECRET, id: big.id },
          body: { operation: 'read' },
        })
      ).json;
      assert.equal(allowed, true);
      const problems = await blocked(rule('record.Today__c > 1'));
      assert.equal(problems[0].code, 'EXPRESSION_INVALID');
      assert.match(problems[0].message, /Today__c depends on the time/);
      assert.ok(problems[0].line > 0 && problems[0].column > 0);
    });

    it('show a value to every user who may read the formula, whatever it reads, and to no others', async () => {
      const { json } = await asReader('data.records.get', { path: { objectApiName: SECRET, id: big.id } });
      assert.deepEqual([json.Gross__c, 'Net__c' in json, 'Hidden__c' in json], [102, false, false]);
      const ask = (body: object): Promise<Anything> =>
        asReader('data.records.query', { path: { objectApiName: SECRET }, body });
      assert.equal((await ask({ where: { Gross__c: 102 } })).json.records.length, 1);
      for (const field of ['Hidden__c', 'Net__c', 'Nothing__c']) {
        await assert.rejects(ask({ where: { [field]: 1 } }), { code: 'FILTER_FIELD_UNKNOWN' });
        await assert.rejects(ask({ sort: [{ id: field, desc: false }] }), { code: 'SORT_INVALID' });
      }
    });

    it('are evaluated by the guards of transitions', async () => {
      const available = async (id: string): Promise<unknown> =>
        (
          await tenant.call('data.transitions.list', { path: { objectApiName: SECRET, id } }, 'admin', [
            'actions:read',
            'actions:execute',
          ])
        ).json.records.map((record: Anything) => [record.transitionKey, record.available]);
      assert.deepEqual(await available(big.id), [['close', true]]);
      assert.deepEqual(await available(small.id), [['close', false]]);
    });
  });
});

describe('formula fields over HTTP', () => {
  let deals: Deals;
  let mine: { path: string; etag: string };

  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    const permission = (name: string): string => `  Deal__c.${name}:\n    read: true\n    edit: true\n`;
    await deals.deploy({
      ...fieldFile('Deal__c', 'Pieces__c', 'fieldType: integer'),
      ...fieldFile('Deal__c', 'Each__c', formula('1000 / record.Pieces__c', 'decimal', 'scale: 4\n')),
      ...fieldFile('Deal__c', 'Inner__c', formula('record.Pieces__c + 1', 'integer')),
      ...fieldFile('Deal__c', 'Outer__c', formula('record.Pieces__c + record.Inner__c', 'integer')),
      'permissionSets/Pieces.yaml': `type: PermissionSet\napiName: Pieces\nlabel: Pieces\nfields:\n${permission('Each__c')}${permission('Outer__c')}${permission('Pieces__c')}`,
      'permissionSets/Setup.yaml': 'type: PermissionSet\napiName: Setup\nlabel: Setup\nsystem:\n  - metadataRead\n',
    });
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'Pieces'] });
    const { body, headers } = await deals.deal(deals.as.sam, { Pieces__c: 3 });
    assert.equal(body.Each__c, 333.3333);
    mine = { path: `/data/Deal__c/${body.id}`, etag: headers.get('etag')! };
  });
  after(() => deals?.platform.stop());

  it("hide a field's name from users who cannot read it", async () => {
    const expressions = async (user: 'sam' | 'ada', scope: string): Promise<unknown[]> => {
      const { body } = await (await deals.sign(user, scope)).get('/objects/Deal__c/describe');
      return ['Each__c', 'Outer__c'].map(
        (name) => body.fields.find((field: Anything) => field.apiName === name)?.formula,
      );
    };
    assert.deepEqual(await expressions('sam', 'data:read setup:read'), ['1000 / record.Pieces__c', null]);
    assert.deepEqual(await expressions('sam', 'data:read'), [null, null]);
    const all = ['1000 / record.Pieces__c', 'record.Pieces__c + record.Inner__c'];
    assert.deepEqual(await expressions('ada', 'data:read setup:read'), all);
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'Pieces', 'Setup'] });
    assert.deepEqual(await expressions('sam', 'data:read setup:read'), all, 'the configuration is open to them');
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'Pieces'] });
  });

  it('change with their record, whose ETag reflects it', async () => {
    const { sam } = deals.as;
    const read = await sam.get(mine.path);
    assert.deepEqual([read.body.Each__c, 'Inner__c' in read.body], [333.3333, false]);
    const changed = await sam.patch(mine.path, { Pieces__c: 0 }, { etag: mine.etag });
    assert.deepEqual([changed.status, changed.body.Each__c], [200, null], changed.text);
    assert.notEqual(changed.headers.get('etag'), mine.etag);
    assert.match(
      (await sam.get(mine.path, { headers: { Accept: 'application/json;IEEE754Compatible=true' } })).text,
      /"Each__c":null/,
    );
    const back = await sam.patch(mine.path, { Pieces__c: 8 }, { etag: changed.headers.get('etag')! });
    assert.equal(back.body.Each__c, 125);
    const strings = await sam.get(mine.path, { headers: { Accept: 'application/json;IEEE754Compatible=true' } });
    assert.equal(strings.body.Each__c, '125.0000');
  });

  it('refuse writes, and are unknown to users who may not read them', async () => {
    const { sam, sue } = deals.as;
    const { headers } = await sam.get(mine.path);
    const written = await sam.patch(mine.path, { Each__c: 1 }, { etag: headers.get('etag')! });
    assert.deepEqual(
      [written.status, written.body.errors[0].code, written.body.errors[0].pointer],
      [422, 'FIELD_READ_ONLY', '/Each__c'],
    );
    const filters = encodeURIComponent(
      JSON.stringify({ logic: 'and', conditions: [{ id: 'a', field: 'Each__c', operator: 'gte', value: 100 }] }),
    );
    const found = await sam.get(`/data/Deal__c?filters=${filters}&orderBy=Each__c&fields=Each__c&includeTotal=true`);
    const [{ id }] = found.body.records;
    assert.deepEqual(found.body, { records: [{ id, Each__c: 125 }], total: 1, nextCursor: null });
    const unknown = encodeURIComponent(JSON.stringify({ Inner__c: 1 }));
    for (const who of [sam, sue]) {
      const refused = await who.get(`/data/Deal__c?where=${unknown}`);
      assert.deepEqual([refused.status, refused.body.code], [400, 'FILTER_FIELD_UNKNOWN']);
    }
    const described = (await sam.get('/objects/Deal__c/describe')).body.fields;
    const each = described.find((field: Anything) => field.apiName === 'Each__c');
    assert.deepEqual([each.calculated, each.editable, each.scale], [true, false, 4]);
    assert.equal(
      described.some((field: Anything) => field.apiName === 'Inner__c'),
      false,
    );
  });
});

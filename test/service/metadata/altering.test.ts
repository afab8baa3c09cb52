import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta, FieldTypeName } from '../../../lib/schema/snapshot.ts';
import { fieldMeta } from '../../../services/metadata/kinds/field-meta.ts';
import { columnType } from '../../../services/metadata/physical/column-type.ts';
import { convertedSql } from '../../../services/metadata/physical/conversions.ts';
import {
  destructiveManifest,
  fieldFile,
  objectFiles,
  type StartedTenant,
  startMetadataTenant,
} from '../../support/metadata-tenant.ts';

type Files = Record<string, string>;

describe('metadata: altering fields', () => {
  let t: StartedTenant;
  before(async function () {
    this.timeout(60_000);
    t = await startMetadataTenant();
  });
  after(() => t?.stop());

  const insert = async (table: string, values: Record<string, unknown>): Promise<string> => {
    const id = randomUUID();
    const given = { id, ownerId: id, createdById: id, updatedById: id, name: 'n', ...values };
    const names = Object.keys(given).map((name) => `"${name}"`);
    await t.database.query(
      `INSERT INTO ${t.schema}."${table}" (${names.join(', ')}, "createdAt", "updatedAt")
        VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')}, now(), now())`,
      Object.values(given),
    );
    return id;
  };
  const values = async (table: string, column: string): Promise<unknown[]> => {
    const { rows } = await t.database.query<{ value: unknown }>(
      `SELECT "${column}" AS value FROM ${t.schema}."${table}" ORDER BY name`,
    );
    return rows.map(({ value }) => value);
  };
  const all = { allowDestructiveChanges: true };
  const alter = (files: Files, ...members: string[]) =>
    t.deploy({ ...files, ...destructiveManifest({}, { CustomField: members }) }, all);
  const codes = ({ blocked }: { blocked: { code: string; details?: object }[] }): unknown[] =>
    blocked.map((problem) => [problem.code, problem.details]);

  it('truncates listed texts only', async () => {
    await t.deployed(objectFiles('Cut__c', { Text__c: 'fieldType: text\nlength: 10', Free__c: 'fieldType: text' }));
    const long = await insert('Cut__c', { name: '1', Text__c: 'abcdef', Free__c: 'abcdef' });
    await insert('Cut__c', { name: '2', Text__c: 'ab' });
    const files = fieldFile('Cut__c', 'Text__c', 'fieldType: text\nlength: 3');
    assert.deepEqual(codes(await t.validate(files)), [['DESTRUCTIVE_MANIFEST_REQUIRED', { records: 1 }]]);
    assert.deepEqual(
      codes(await t.validate({ ...files, ...destructiveManifest({}, { CustomField: ['Cut__c.Text__c'] }) })),
      [
        ['DESTRUCTIVE_CHANGES_NOT_ALLOWED', undefined],
        ['DESTRUCTIVE_MANIFEST_REQUIRED', { records: 1 }],
      ],
    );
    const done = await alter(files, 'Cut__c.Text__c');
    assert.equal(done.status, 'SUCCEEDED', JSON.stringify(done.blocked));
    const [change] = done.changes.updates;
    assert.deepEqual([change.destructive, change.reversible], [true, false]);
    assert.deepEqual(await values('Cut__c', 'Text__c'), ['abc', 'ab']);
    const { rows } = await t.database.query(
      `SELECT id = $1 AS long, "recordVersion" AS version FROM ${t.schema}."Cut__c" ORDER BY name`,
      [long],
    );
    assert.deepEqual(
      rows,
      [
        { long: true, version: 2 },
        { long: false, version: 1 },
      ],
      'what changed has another ETag',
    );
    const again = await t.deploy(fieldFile('Cut__c', 'Free__c', 'fieldType: text\nlength: 6'));
    assert.deepEqual(
      [again.status, again.changes.updates[0].destructive, again.changes.updates[0].reversible],
      ['SUCCEEDED', false, true],
      'nothing is lost where every value fits',
    );
  });

  it('rounds numbers, and clears those that do not fit', async () => {
    const field = 'fieldType: decimal\nprecision: 8\nscale: 3';
    const sum =
      'fieldType: rollup\nrollup: {childObject: Fee__c, referenceField: Bill__c, function: sum, field: Sum__c}';
    await t.deployed({
      ...objectFiles('Bill__c', { Total__c: sum }),
      ...objectFiles('Fee__c', {
        Sum__c: field,
        Bill__c: 'fieldType: reference\nreferenceTo: [Bill__c]',
      }),
    });
    const bill = await insert('Bill__c', { name: 'b' });
    for (const [name, Sum__c] of Object.entries({ a: '1.256', b: '12345', c: null }))
      await insert('Fee__c', { name, Sum__c, Bill__c: bill });
    const narrow = fieldFile('Fee__c', 'Sum__c', 'fieldType: decimal\nprecision: 5\nscale: 2');
    const done = await alter(narrow, 'Fee__c.Sum__c');
    assert.equal(done.status, 'SUCCEEDED', JSON.stringify([done.error, done.blocked]));
    assert.deepEqual(await values('Fee__c', 'Sum__c'), ['1.26', null, null]);
    assert.deepEqual(await values('Bill__c', 'Total__c'), ['1.26'], 'what is computed over them follows');
  });

  it('keeps required fields filled and unique values distinct', async () => {
    const unique = 'fieldType: text\nunique: true\nrequired: true\nlength: 9';
    await t.deployed(objectFiles('Held__c', { Text__c: unique }));
    for (const Text__c of ['abc1', 'abc2', '12']) await insert('Held__c', { name: Text__c, Text__c });
    const three = fieldFile('Held__c', 'Text__c', unique.replace('9', '3'));
    assert.deepEqual(codes(await alter(three, 'Held__c.Text__c')), [['DATA_INCOMPATIBLE', { records: 2 }]]);
    const integer = fieldFile('Held__c', 'Text__c', 'fieldType: integer\nrequired: true');
    assert.deepEqual(codes(await alter(integer, 'Held__c.Text__c')), [['DATA_INCOMPATIBLE', { records: 2 }]]);
    const optional = await alter(fieldFile('Held__c', 'Text__c', 'fieldType: integer'), 'Held__c.Text__c');
    assert.equal(optional.status, 'SUCCEEDED', JSON.stringify([optional.error, optional.blocked]));
    assert.deepEqual(await values('Held__c', 'Text__c'), [12, null, null]);
  });

  it('removes values from picklists, and of a value set from all its users', async () => {
    const choices = (kind: string, ...of: string[]): string =>
      `fieldType: ${kind}\npicklist: {values: [${of.map((value) => `{value: ${value}}`).join(', ')}]}`;
    const sizes = (...of: string[]): Files => ({
      'valueSets/Sizes.yaml': `type: ValueSet\napiName: Sizes\nvalues: [${of.map((value) => `{value: ${value}}`).join(', ')}]\n`,
    });
    await t.deployed({
      ...sizes('s', 'l'),
      ...objectFiles('Pick__c', {
        One__c: choices('picklist', 'a', 'b'),
        Many__c: choices('multiPicklist', 'a', 'b', 'c'),
        Size__c: 'fieldType: picklist\npicklist: {valueSet: Sizes}',
      }),
    });
    await insert('Pick__c', { name: '1', One__c: 'a', Many__c: ['c', 'b', 'a'], Size__c: 'l' });
    await insert('Pick__c', { name: '2', One__c: 'b', Many__c: ['b'], Size__c: 's' });
    const fewer = {
      ...fieldFile('Pick__c', 'One__c', choices('picklist', 'a')),
      ...fieldFile('Pick__c', 'Many__c', choices('multiPicklist', 'a', 'c')),
    };
    const done = await t.deploy(
      {
        ...fewer,
        ...sizes('s'),
        ...destructiveManifest({}, { CustomField: ['Pick__c.One__c', 'Pick__c.Many__c'], ValueSet: ['Sizes'] }),
      },
      all,
    );
    assert.equal(done.status, 'SUCCEEDED', JSON.stringify([done.error, done.blocked]));
    assert.ok(done.changes.updates.every((change: { destructive: boolean }) => change.destructive));
    assert.deepEqual(await values('Pick__c', 'One__c'), ['a', null]);
    assert.deepEqual(await values('Pick__c', 'Many__c'), [['c', 'a'], null]);
    assert.deepEqual(await values('Pick__c', 'Size__c'), [null, 's']);
  });

  it('changes the type of an indexed field, of an empty one without confirmation', async () => {
    await t.deployed(
      objectFiles(
        'Typed__c',
        { Text__c: 'fieldType: text\nexternalId: true', Empty__c: 'fieldType: text' },
        'features: {search: true, duplicates: true}\ndefaultSearchFields: [name, Text__c]\n',
      ),
    );
    await insert('Typed__c', { name: '1', Text__c: ' 7 ' });
    const search = { ...objectFiles('Typed__c', {}, 'features: {search: true, duplicates: true}\n') };
    const done = await alter(
      {
        ...search,
        ...fieldFile('Typed__c', 'Text__c', 'fieldType: integer\nexternalId: true'),
        ...fieldFile('Typed__c', 'Empty__c', 'fieldType: date'),
      },
      'Typed__c.Text__c',
    );
    assert.equal(done.status, 'SUCCEEDED', JSON.stringify([done.error, done.blocked]));
    assert.deepEqual(await values('Typed__c', 'Text__c'), [7]);
    const { rows } = await t.database.query<{ indexdef: string }>(
      `SELECT indexdef FROM pg_indexes WHERE tablename = 'Typed__c' AND indexdef LIKE '%Text\\_\\_c%'`,
    );
    assert.equal(rows.length, 1);
  });

  it('lets records deleted before be restored, without values that no longer convert', async () => {
    const picklist = 'fieldType: picklist\npicklist: {values: [{value: a}]}';
    await t.deployed(objectFiles('Back__c', { One__c: picklist, Text__c: 'fieldType: text' }));
    const { rows } = await t.database.query(
      `INSERT INTO ${t.schema}._recycle_bin (object, record_id, root_id, record, record_version, deleted_by_id)
        SELECT 'Back__c', id, id, jsonb_build_object('id', id, 'name', 'n', 'One__c', 'a', 'Text__c', 'x', 'ownerId', $1::uuid,
          'createdAt', now(), 'createdById', $1::uuid), 1, $1::uuid FROM (SELECT gen_random_uuid() AS id) r
        RETURNING record_id AS id`,
      [t.users['admin']],
    );
    await t.deployed({
      ...fieldFile('Back__c', 'One__c', picklist.replace('fieldType: picklist', 'fieldType: multiPicklist')),
      ...fieldFile('Back__c', 'Text__c', 'fieldType: integer'),
      'permissionSets/Backs.yaml':
        'type: PermissionSet\napiName: Backs\nlabel: Backs\nobjects:\n  Back__c: {read: true, delete: true, modifyAll: true}\n',
    });
    await t.database.query(`UPDATE ${t.schema}."User" SET "permissionSetApiNames" = '{Backs}' WHERE id = $1`, [
      t.users['admin'],
    ]);
    await t.database.query(`UPDATE ${t.schema}._state SET access_version = access_version + 1`);
    const { status } = await t.call(
      'data.records.restore',
      {
        path: { objectApiName: 'Back__c', id: (rows[0] as { id: string }).id },
        headers: { idempotencyKey: randomUUID() },
      },
      'admin',
      ['data:write'],
    );
    assert.equal(status, 201);
    assert.deepEqual(await values('Back__c', 'One__c'), [null]);
  });

  it('converts no value to one that its field refuses', async () => {
    const types: FieldTypeName[] = ['text', 'longText', 'integer', 'decimal', 'currency', 'percent', 'boolean', 'date'];
    types.push('dateTime', 'picklist', 'multiPicklist', 'email', 'richText');
    const texts = fc.oneof(
      fc.string({ unit: 'grapheme-ascii', maxLength: 20 }),
      fc.constantFrom('true', ' FALSE ', '1e5', '-12.345', '99999999999999999999', 'NaN', 'Infinity', '2024-02-30'),
      fc.constantFrom('2024-02-29', '0000-01-01', 'a', 'b', '', ' ', `${'9'.repeat(70)}`, '+1.50', '١٢'),
    );
    const numbers = fc.oneof(
      fc.integer().map(String),
      fc.constantFrom('9007199254740991', '-0.005', '123456.789', '0'),
    );
    const stored: Partial<Record<FieldTypeName, fc.Arbitrary<unknown>>> = {
      integer: fc.oneof(fc.integer(), fc.constantFrom(9007199254740991, -9007199254740991)).map(String),
      decimal: numbers,
      currency: numbers,
      percent: numbers.map((text) => text.slice(0, 5)),
      boolean: fc.boolean(),
      date: fc.constantFrom('0001-01-01', '2024-02-29', '9999-12-31'),
      dateTime: fc.constantFrom('0001-01-02T00:00:00Z', '2024-03-31T01:30:00Z', '9999-12-30T23:00:00Z'),
      email: fc.constantFrom('a@b.example', 'somebody@somewhere.example'),
      richText: fc.constantFrom('<p>Hello</p>', '<b>x</b>'),
      multiPicklist: fc.uniqueArray(fc.constantFrom('a', 'b', 'gone'), { maxLength: 3 }),
    };
    const picklistValues = ['a', 'b'].map((value) => ({
      value,
      label: value,
      active: true,
      default: false,
      validFor: null,
    }));
    const meta = (type: FieldTypeName, more: Partial<FieldMeta> = {}): FieldMeta => {
      const { chars, digits } = fieldType(type);
      return fieldMeta({
        apiName: 'F__c',
        fieldType: type,
        label: 'F',
        length: chars?.default ?? null,
        precision: digits?.precision ?? null,
        scale: digits?.scale ?? null,
        ...(type.endsWith('icklist') ? { picklistValues, restrictedPicklist: true } : {}),
        ...more,
      });
    };
    const narrow = (type: FieldTypeName): FieldMeta =>
      meta(type, fieldType(type).digits ? { precision: 5, scale: 1 } : fieldType(type).chars ? { length: 4 } : {});
    const pairs = types.flatMap((from) =>
      types.flatMap((to) =>
        convertedSql('"x"', meta(from), narrow(to), 'Europe/Berlin') ? [[from, to] as const] : [],
      ),
    );
    assert.ok(pairs.length > 40, String(pairs.length));
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...pairs).chain(([from, to]) =>
          fc.record({
            from: fc.constant(from),
            to: fc.constant(to),
            given: fc.array(stored[from] ?? texts, { minLength: 1, maxLength: 10 }),
          }),
        ),
        async ({ from, to, given }) => {
          const [old, field] = [meta(from), narrow(to)];
          const sql = convertedSql('"x"', old, field, 'Europe/Berlin');
          const type = columnType(old)?.replace(/ COLLATE .*/, '');
          const list = given.map((_, i) => `($${i + 1}::${type})`).join(', ');
          const { rows } = await t.database.query<{ x: unknown; shown: unknown }>(
            `SELECT x, to_json(${fieldType(to).outputSql('y', field, false)}) AS shown
              FROM (SELECT x, (${sql})::${columnType(field)} AS y FROM (VALUES ${list}) AS v (x)) z`,
            given,
          );
          for (const { x, shown } of rows) {
            if (shown === null) continue;
            const read = fieldType(to).parseInput(shown, field, '');
            assert.ok(read.ok || String(shown) === '', `${from} ${String(x)} → ${to} ${String(shown)}`);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

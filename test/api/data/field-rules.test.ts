/** A tenant's rules for fields: record types, running numbers, defaults, required, unique, dependent values. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fieldFile, objectFiles, type StartedTenant, startMetadataTenant } from '../../support/metadata-tenant.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

const picklist = (values: string[], more = ''): string =>
  `picklist:\n${more}  values:\n${values.map((value) => `    - value: ${value.replace('*', '')}\n${value.endsWith('*') ? '      default: true\n' : ''}`).join('')}`;

const recordType = (name: string, yaml = '', object = 'Case__c'): Record<string, string> => ({
  [`objects/${object}/recordTypes/${name}.yaml`]: `type: RecordType\napiName: ${name}\nobject: ${object}\nlabel: ${name}\n${yaml}`,
});

const FILES = {
  ...objectFiles('Case__c', {
    Kind__c: `fieldType: picklist\n${picklist(['bug*', 'wish', 'question'])}`,
    Area__c: `fieldType: picklist\n${picklist(['web', 'app', 'paper'])}`,
    Tags__c: `fieldType: multiPicklist\n${picklist(['red*', 'green*', 'blue'])}`,
    Plain__c: 'fieldType: text',
  }),
  ...recordType(
    'Support',
    'default: true\npicklistValues:\n  Kind__c:\n    - bug\n    - question\n  Tags__c:\n    - red\n',
  ),
  ...recordType('Idea', 'picklistValues:\n  Kind__c:\n    - wish\n  Area__c:\n    - web\n    - app\n'),
  ...recordType('Old', 'active: false\n'),
  ...objectFiles('Bill__c', { Amount__c: 'fieldType: decimal\nminimum: 0', Code__c: 'fieldType: text\nunique: true' }),
  ...objectFiles('Thing__c', {
    Needed__c: 'fieldType: text\nrequired: true',
    Given__c: 'fieldType: text\nrequired: true\ndefaultValue: standard',
    Key__c: 'fieldType: text\nunique: true',
    Exact__c: 'fieldType: text\nunique: true\ncaseSensitive: true',
    Number__c: 'fieldType: integer\nunique: true',
    Long__c: 'fieldType: text\nlength: 4000\nunique: true\nexternalId: true',
    Outer__c: 'fieldType: text\nexternalId: true',
    Other__c: 'fieldType: reference\nreferenceTo: [Thing__c]',
    Land__c: `fieldType: picklist\n${picklist(['de', 'pt'])}`,
    City__c: `fieldType: picklist\npicklist:\n  controllingField: Land__c\n  values:\n    - value: Bonn\n      validFor:\n        - de\n    - value: Porto\n      validFor:\n        - pt\n    - value: Anywhere\n`,
  }),
};

describe('rules of fields', () => {
  let tenant: StartedTenant;

  const create = async (object: string, body: object, more: { key?: string; query?: object } = {}): Promise<Anything> =>
    (
      await tenant.call('data.records.create', {
        path: { objectApiName: object },
        query: (more.query ?? {}) as never,
        body: { name: 'x', ...body },
        headers: { idempotencyKey: more.key ?? randomUUID() },
      })
    ).json;
  const get = async (object: string, id: string): Promise<Anything> =>
    (await tenant.call('data.records.get', { path: { objectApiName: object, id } })).json;
  const update = async (object: string, id: string, body: object): Promise<Anything> =>
    (
      await tenant.call('data.records.update', {
        path: { objectApiName: object, id },
        body,
        headers: {
          idempotencyKey: randomUUID(),
          ifMatch: `"${(await get(object, id)).recordVersion.toString(36)}"`,
        },
      })
    ).json;
  const remove = async (object: string, id: string): Promise<unknown> =>
    tenant.call('data.records.delete', {
      path: { objectApiName: object, id },
      headers: { idempotencyKey: randomUUID(), ifMatch: `"${(await get(object, id)).recordVersion.toString(36)}"` },
    });
  /** `pointer code` of every violation. */
  const faults = async (promise: Promise<unknown>): Promise<string[]> => {
    try {
      await promise;
    } catch (error) {
      const { code, errors = [] } = error as Anything;
      return errors.length > 0 ? errors.map((item: Anything) => `${item.pointer} ${item.code}`).sort() : [code];
    }
    return [];
  };
  const describe_ = async (object: string): Promise<Anything> =>
    (await tenant.call('data.objects.describe', { path: { objectApiName: object } })).json;

  before(async function () {
    this.timeout(120_000);
    tenant = await startMetadataTenant();
    await tenant.deployed(FILES);
  });
  after(() => tenant?.stop());

  describe('record types', () => {
    it('set the type of new records, and the defaults of its values', async () => {
      const plain = await create('Case__c', {});
      assert.deepEqual([plain.recordTypeApiName, plain.Kind__c, plain.Tags__c], ['Support', 'bug', ['red']]);
      const idea = await create('Case__c', { recordTypeApiName: 'Idea' });
      assert.deepEqual([idea.Kind__c, idea.Tags__c], [null, ['red', 'green']], 'a default that the type has not');
      const none = await create('Case__c', { recordTypeApiName: null, Kind__c: 'wish', Area__c: 'paper' });
      assert.deepEqual([none.recordTypeApiName, none.Kind__c], [null, 'wish']);
    });

    it('limit picklists to the allowed values, on create and update', async () => {
      const wrong = { recordTypeApiName: 'Idea', Kind__c: 'bug', Area__c: 'paper' };
      assert.deepEqual(await faults(create('Case__c', wrong)), [
        '/Area__c PICKLIST_VALUE_INVALID',
        '/Kind__c PICKLIST_VALUE_INVALID',
      ]);
      await assert.rejects(create('Case__c', { Tags__c: ['red', 'blue'] }), (error: Anything) => {
        assert.deepEqual(error.errors[0].params, { allowed: ['red'], recordTypeApiName: 'Support' });
        return true;
      });
      const { id } = await create('Case__c', { Kind__c: 'question' });
      assert.deepEqual(await faults(update('Case__c', id, { Kind__c: 'wish' })), ['/Kind__c PICKLIST_VALUE_INVALID']);
      await update('Case__c', id, { Area__c: 'paper', Kind__c: 'bug', Plain__c: 'fine' });
      assert.deepEqual(await faults(update('Case__c', id, { recordTypeApiName: 'Idea' })), [
        '/Area__c PICKLIST_VALUE_INVALID',
        '/Kind__c PICKLIST_VALUE_INVALID',
      ]);
      const idea = await update('Case__c', id, { recordTypeApiName: 'Idea', Kind__c: 'wish', Area__c: null });
      assert.deepEqual([idea.recordTypeApiName, idea.Kind__c, idea.Area__c], ['Idea', 'wish', null]);
    });

    it('accept values in every Unicode form, independent of that in the configuration', async () => {
      const decomposed = 'Gru\u0308n';
      await tenant.deployed({
        ...objectFiles('Paint__c', {
          Color__c: `fieldType: picklist\n${picklist([`${decomposed}*`, 'Blau'])}`,
          Tone__c: `fieldType: picklist\npicklist:\n  controllingField: Color__c\n  values:\n    - value: hell\n      validFor:\n        - ${decomposed}\n`,
        }),
        ...recordType('Leaf', `default: true\npicklistValues:\n  Color__c:\n    - ${decomposed}\n`, 'Paint__c'),
      });
      assert.equal((await create('Paint__c', { Tone__c: 'hell' })).Color__c, 'Gr\u00fcn');
      for (const value of [decomposed, 'Gr\u00fcn'])
        assert.equal((await create('Paint__c', { Color__c: value, Tone__c: 'hell' })).Color__c, 'Gr\u00fcn');
    });

    it('must exist, be active, and belong to an object with record types', async () => {
      for (const name of ['Old', 'None', 'support'])
        assert.deepEqual(await faults(create('Case__c', { recordTypeApiName: name })), [
          '/recordTypeApiName PICKLIST_VALUE_INVALID',
        ]);
      assert.deepEqual(await faults(create('Case__c', { recordTypeApiName: 5 })), [
        '/recordTypeApiName FIELD_TYPE_INVALID',
      ]);
      assert.deepEqual(await faults(create('Bill__c', { recordTypeApiName: 'Support' })), [
        '/recordTypeApiName FIELD_READ_ONLY',
      ]);
      const { id } = await create('Case__c', { recordTypeApiName: 'Idea' });
      await tenant.deployed(recordType('Idea', 'active: false\npicklistValues:\n  Kind__c:\n    - wish\n'));
      await update('Case__c', id, { Plain__c: 'still there', recordTypeApiName: 'Idea' });
      assert.deepEqual(await faults(update('Case__c', id, { Kind__c: 'bug' })), ['/Kind__c PICKLIST_VALUE_INVALID']);
      assert.deepEqual(await faults(create('Case__c', { recordTypeApiName: 'Idea' })), [
        '/recordTypeApiName PICKLIST_VALUE_INVALID',
      ]);
    });

    it('are described, and can be filtered by', async () => {
      const { recordTypes, fields } = await describe_('Case__c');
      assert.deepEqual(recordTypes.slice(0, 2), [
        { apiName: 'Idea', label: 'Idea', default: false, active: false, picklistValues: { Kind__c: ['wish'] } },
        { apiName: 'Old', label: 'Old', default: false, active: false, picklistValues: {} },
      ]);
      const field = fields.find((item: Anything) => item.apiName === 'recordTypeApiName');
      assert.deepEqual([field.defaultValue, field.defaultedOnCreate], ['Support', true]);
      const other = (await describe_('Bill__c')).fields.find((item: Anything) => item.apiName === 'recordTypeApiName');
      assert.equal(other.defaultedOnCreate, false);
      const { json } = await tenant.call('data.records.list', {
        path: { objectApiName: 'Case__c' },
        query: { where: { recordTypeApiName: 'Idea' } } as never,
      });
      assert.ok(json.records.length > 0);
      assert.ok(json.records.every((record: Anything) => record.recordTypeApiName === 'Idea'));
    });

    it('are refused at deployment when they do not fit the object', async () => {
      const blocked = async (files: Record<string, string>): Promise<string[]> =>
        (await tenant.validate(files)).blocked.map(({ code, line }: Anything) => `${code} ${line}`);
      const values = (field: string, value: string) => `picklistValues:\n  ${field}:\n    - ${value}\n`;
      assert.deepEqual(await blocked(recordType('New', values('Kind__c', 'other'))), ['REFERENCE_INVALID 7']);
      assert.deepEqual(await blocked(recordType('New', values('Plain__c', 'x'))), ['REFERENCE_INVALID 6']);
      assert.deepEqual(await blocked(recordType('New', values('None__c', 'x'))), ['DEPENDENCY_MISSING 6']);
      assert.deepEqual(await blocked(recordType('New', 'default: true\n')), ['NAME_CONFLICT 5']);
      assert.deepEqual(await blocked(recordType('New', 'active: false\ndefault: true\n')), ['YAML_SCHEMA_INVALID 6']);
      assert.deepEqual(await blocked(recordType('SUPPORT')), ['NAME_CONFLICT 2']);
      const fewer = fieldFile('Case__c', 'Kind__c', `fieldType: picklist\n${picklist(['bug', 'wish'])}`);
      assert.ok(
        (await blocked(fewer)).some((code) => code.startsWith('REFERENCE_INVALID')),
        'a type names the value',
      );
    });
  });

  describe('running numbers', () => {
    const numbered = (format: string) => fieldFile('Bill__c', 'No__c', `fieldType: autoNumber\nformat: "${format}"`);

    it('are assigned to existing records in the order of their creation, and continue from there', async () => {
      const old: Anything[] = [];
      for (let i = 0; i < 3; i++) old.push(await create('Bill__c', {}));
      await tenant.deployed(numbered('B-{000}'));
      const found = await Promise.all(old.map(({ id }) => get('Bill__c', id)));
      assert.deepEqual(
        found.map(({ No__c, recordVersion }) => [No__c, recordVersion]),
        [
          ['B-001', 2],
          ['B-002', 2],
          ['B-003', 2],
        ],
      );
      assert.equal((await create('Bill__c', {})).No__c, 'B-004');
    });

    it('are not spent by writes that are refused, dry runs or repeated under their key', async () => {
      const last = Number((await create('Bill__c', { Code__c: 'one' })).No__c.slice(2));
      await faults(create('Bill__c', { Amount__c: -1 }));
      await faults(create('Bill__c', { No__c: 'B-900' }));
      await faults(create('Bill__c', { ownerId: randomUUID() }));
      await tenant.call('data.records.check', {
        path: { objectApiName: 'Bill__c' },
        body: { operation: 'create', fields: {} },
      });
      const key = randomUUID();
      const first = await create('Bill__c', {}, { key });
      assert.deepEqual(await create('Bill__c', {}, { key }), first);
      const next = await create('Bill__c', {});
      assert.deepEqual(
        [first.No__c, next.No__c],
        [`B-${String(last + 1).padStart(3, '0')}`, `B-${String(last + 2).padStart(3, '0')}`],
      );
    });

    it('are never assigned twice, neither those of deleted records nor by simultaneous requests', async () => {
      const one = await create('Bill__c', {});
      await remove('Bill__c', one.id);
      const many = await Promise.all(Array.from({ length: 20 }, () => create('Bill__c', {})));
      const numbers = many.map(({ No__c }) => No__c);
      assert.equal(new Set([one.No__c, ...numbers]).size, 21);
      assert.ok(numbers.every((number) => number > one.No__c));
    });

    it('keep their format when that of new records changes', async () => {
      const before = await create('Bill__c', {});
      await tenant.deployed(numbered('Bill {00000}/26'));
      assert.equal((await get('Bill__c', before.id)).No__c, before.No__c);
      const after = await create('Bill__c', {});
      assert.equal(after.No__c, `Bill ${String(Number(before.No__c.slice(2)) + 1).padStart(5, '0')}/26`);
    });
  });

  describe('required, unique, default and dependent values', () => {
    it('require a value that is not blank, whether the field is sent or not', async () => {
      assert.deepEqual(await faults(create('Thing__c', {})), ['/Needed__c FIELD_REQUIRED']);
      for (const blank of ['', '  \t\n', '\u00a0\u2003', null])
        assert.deepEqual(await faults(create('Thing__c', { Needed__c: blank })), ['/Needed__c FIELD_REQUIRED']);
      const { id } = await create('Thing__c', { Needed__c: 'x' });
      assert.deepEqual(await faults(update('Thing__c', id, { Needed__c: ' ' })), ['/Needed__c FIELD_REQUIRED']);
      await update('Thing__c', id, { name: 'a required field that is not mentioned stays' });
    });

    it('set defaults on create for omitted fields, and never on update', async () => {
      const left = await create('Thing__c', { Needed__c: 'x' });
      assert.equal(left.Given__c, 'standard');
      assert.deepEqual(await faults(create('Thing__c', { Needed__c: 'x', Given__c: null })), [
        '/Given__c FIELD_REQUIRED',
      ]);
      const kind = await create('Case__c', { Kind__c: null });
      assert.equal(kind.Kind__c, null, 'null is a value that was given');
      await update('Case__c', kind.id, { Plain__c: 'x' });
      assert.equal((await get('Case__c', kind.id)).Kind__c, null);
      const { fields } = await describe_('Thing__c');
      const given = fields.find((item: Anything) => item.apiName === 'Given__c');
      assert.deepEqual([given.defaultedOnCreate, given.defaultValue], [true, 'standard']);
    });

    it('are unique without regard to case unless configured otherwise, and any number may be empty', async () => {
      const needed = { Needed__c: 'x' };
      await create('Thing__c', { ...needed, Key__c: 'Straße', Exact__c: 'Abc', Number__c: 1 });
      for (const twin of [{ Key__c: 'STRAßE' }, { Exact__c: 'Abc' }, { Number__c: '1.0' }])
        assert.deepEqual(
          await faults(create('Thing__c', { ...needed, ...twin })),
          [`/${Object.keys(twin)[0]} UNIQUE_VALUE_CONFLICT`],
          JSON.stringify(twin),
        );
      const all = { Number__c: 1, Exact__c: 'Abc', Key__c: 'STRASSE' };
      assert.deepEqual(
        await faults(create('Thing__c', { ...all, ...needed, Key__c: 'STRAßE' })),
        ['/Exact__c', '/Key__c', '/Number__c'].map((pointer) => `${pointer} UNIQUE_VALUE_CONFLICT`),
      );
      const other = await create('Thing__c', { ...needed, Exact__c: 'ABC', Key__c: ' straße' });
      assert.deepEqual(await faults(update('Thing__c', other.id, { ...all, Key__c: ' straße' })), [
        '/Exact__c UNIQUE_VALUE_CONFLICT',
        '/Number__c UNIQUE_VALUE_CONFLICT',
      ]);
      assert.equal(other.Exact__c, 'ABC');
      assert.deepEqual(await faults(update('Thing__c', other.id, { Key__c: 'strasse' })), []);
      assert.deepEqual(await faults(update('Thing__c', other.id, { Exact__c: 'Abc' })), [
        '/Exact__c UNIQUE_VALUE_CONFLICT',
      ]);
      await create('Thing__c', { ...needed, Key__c: null });
      await create('Thing__c', { ...needed, Key__c: null });
    });

    it('are unique and found in every script and at every length', async () => {
      const long = Array.from({ length: 4_000 }, (_, i) => String.fromCodePoint(0x1f300 + ((i * 7919) % 500))).join('');
      const needed = { Needed__c: 'x' };
      const { id } = await create('Thing__c', { ...needed, Long__c: `${long.slice(2)}É`, Outer__c: 'Ärger ΑΣ' });
      for (const twin of [`${long.slice(2)}É`, `${long.slice(2)}é`])
        assert.deepEqual(await faults(create('Thing__c', { ...needed, Long__c: twin })), [
          '/Long__c UNIQUE_VALUE_CONFLICT',
        ]);
      await create('Thing__c', { ...needed, Long__c: `${long.slice(2)}E` });
      const keys = [
        ['Outer__c', 'Ärger ΑΣ'],
        ['Outer__c', 'ärger ΑΣ'],
        ['Outer__c', 'ÄRGER ας'],
        ['Long__c', `${long.slice(2)}É`],
        ['Long__c', `${long.slice(2)}é`],
      ] as const;
      for (const [field, value] of keys) {
        const put = async (body: object): Promise<Anything> =>
          (
            await tenant.call('data.records.upsert', {
              path: { objectApiName: 'Thing__c', externalIdField: field, value },
              body,
              headers: { idempotencyKey: randomUUID() },
            })
          ).json;
        assert.equal((await put({ Needed__c: field })).id, id, value);
        assert.equal((await put({ [field]: value })).id, id, value);
        const child = await create('Thing__c', { ...needed, Other__c: { [field]: value } });
        assert.equal(child.Other__c, id);
      }
      const found = await tenant.call('data.records.query', {
        path: { objectApiName: 'Thing__c' },
        body: { where: { Long__c: keys[4][1] }, whereIn: { Outer__c: [keys[2][1], 'x'] }, fields: ['id'] },
      });
      assert.deepEqual(found.json.records, [{ id }]);
    });

    it('match the controlling field after the write, whichever of the two is written', async () => {
      const thing = (body: object) => create('Thing__c', { Needed__c: 'x', ...body });
      const refused = ['/City__c DEPENDENT_PICKLIST_INVALID'];
      assert.deepEqual(await faults(thing({ Land__c: 'de', City__c: 'Porto' })), refused);
      assert.deepEqual(await faults(thing({ City__c: 'Porto' })), refused);
      const { id } = await thing({ Land__c: 'de', City__c: 'Bonn' });
      assert.deepEqual(await faults(update('Thing__c', id, { Land__c: 'pt' })), refused);
      assert.deepEqual(await faults(update('Thing__c', id, { Land__c: null })), refused);
      assert.deepEqual(await faults(update('Thing__c', id, { City__c: 'Porto' })), refused);
      await update('Thing__c', id, { Land__c: 'pt', City__c: 'Porto' });
      await update('Thing__c', id, { City__c: 'Anywhere' });
      await update('Thing__c', id, { Land__c: null });
    });

    it('are set by default only where the controlling field allows them, which applies to lists as well', async () => {
      const values = (list: string[]): string =>
        list
          .map((item) => {
            const [value, ...validFor] = item.replace('*', '').split(' ');
            const more = validFor.map((other) => `        - "${other}"\n`).join('');
            return `    - value: ${value}\n${item.endsWith('*') ? '      default: true\n' : ''}${more ? `      validFor:\n${more}` : ''}`;
          })
          .join('');
      const dependent = (controller: string, list: string[], type = 'picklist'): string =>
        `fieldType: ${type}\npicklist:\n  controllingField: ${controller}\n  values:\n${values(list)}`;
      await tenant.deployed(
        objectFiles('Trip__c', {
          // Named so that the field is read before its controlling field.
          Area__c: dependent('Town__c', ['Center Bonn*', 'River Porto']),
          Town__c: dependent('Way__c', ['Bonn rail*', 'Porto air']),
          Way__c: `fieldType: picklist\n${picklist(['rail*', 'air'])}`,
          Extras__c: dependent('Way__c', ['meal rail air*', 'seat rail*', 'bag air*'], 'multiPicklist'),
          Abroad__c: 'fieldType: boolean',
          Visa__c: dependent('Abroad__c', ['needed true*', 'none false']),
        }),
      );
      const given = ({ Way__c, Town__c, Area__c, Extras__c, Visa__c }: Anything): Anything => [
        Way__c,
        Town__c,
        Area__c,
        Extras__c,
        Visa__c,
      ];
      const trip = await create('Trip__c', {});
      assert.deepEqual(given(trip), ['rail', 'Bonn', 'Center', ['meal', 'seat'], null]);
      assert.deepEqual(given(await create('Trip__c', { Way__c: 'air', Abroad__c: true })), [
        'air',
        null,
        null,
        ['meal', 'bag'],
        'needed',
      ]);
      assert.deepEqual(given(await create('Trip__c', { Way__c: null })), [null, null, null, null, null]);
      assert.deepEqual(await faults(create('Trip__c', { Extras__c: ['meal', 'bag'] })), [
        '/Extras__c DEPENDENT_PICKLIST_INVALID',
      ]);
      assert.deepEqual(await faults(update('Trip__c', trip.id, { Way__c: 'air' })), [
        '/Extras__c DEPENDENT_PICKLIST_INVALID',
        '/Town__c DEPENDENT_PICKLIST_INVALID',
      ]);
      await update('Trip__c', trip.id, { Way__c: 'air', Town__c: null, Area__c: null, Extras__c: ['meal'] });
    });

    it('depend on no field that depends on them', async () => {
      const field = (name: string, controller: string) =>
        fieldFile('Thing__c', name, `fieldType: picklist\n${picklist(['a'], `  controllingField: ${controller}\n`)}`);
      const { blocked } = await tenant.validate({
        ...field('A__c', 'B__c'),
        ...field('B__c', 'C__c'),
        ...field('C__c', 'A__c'),
      });
      assert.deepEqual(blocked.map(({ code, message }: Anything) => [code, message])[0], [
        'REFERENCE_INVALID',
        'Picklists control each other in a cycle.',
      ]);
      const { blocked: values } = await tenant.validate(
        fieldFile(
          'Thing__c',
          'D__c',
          'fieldType: picklist\npicklist:\n  controllingField: Land__c\n  values:\n    - value: x\n      validFor:\n        - fr\n',
        ),
      );
      assert.deepEqual(
        values.map(({ code, line }: Anything) => [code, line]),
        [['REFERENCE_INVALID', 11]],
      );
    });
  });
});

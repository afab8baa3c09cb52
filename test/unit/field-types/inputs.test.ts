import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { ExactNumber } from '../../../lib/json/exact-number.ts';
import { TEXT_MAX_CHARS } from '../../../lib/schema/field-types/common.ts';
import { externalReference } from '../../../lib/schema/field-types/reference-family.ts';
import { FIELD_TYPE_NAMES, FIELD_TYPES, fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta, FieldTypeName } from '../../../lib/schema/snapshot.ts';
import { aField } from '../../support/snapshots.ts';

interface Cases {
  type: FieldTypeName;
  accepts?: { input: unknown; field?: Partial<FieldMeta>; stored?: unknown }[];
  refuses: { input: unknown; field?: Partial<FieldMeta>; refused: string }[];
}

const file = readFileSync(new URL('../../cases/field-types/inputs.yaml', import.meta.url), 'utf8');
const tables = parse(file) as Cases[];

const OPTIONS = [
  { value: 'draft', label: 'Draft', active: true, default: true, validFor: null },
  { value: 'sent', label: 'Sent', active: true, default: false, validFor: null },
  { value: 'old', label: 'Old', active: false, default: false, validFor: null },
];
const field = (type: FieldTypeName, more: Partial<FieldMeta> = {}): FieldMeta =>
  aField('Field__c', type, { picklistValues: OPTIONS, ...more });
const read = (type: FieldTypeName, input: unknown, more?: Partial<FieldMeta>) =>
  fieldType(type).parseInput(input, field(type, more), '/Field__c');

for (const { type, accepts = [], refuses } of tables)
  describe(`a ${type} field`, () => {
    for (const { input, field: more, stored } of accepts)
      it(`takes ${JSON.stringify(input)}`, () => {
        const expected = stored === undefined ? input : stored;
        assert.deepEqual(read(type, input, more), { ok: true, value: expected });
      });
    for (const { input, field: more, refused } of refuses)
      it(`refuses ${JSON.stringify(input)} with ${refused}`, () => {
        const result = read(type, input, more);
        assert.ok(!result.ok, 'It was accepted.');
        const [code, pointer = '/Field__c'] = refused.split(' ');
        assert.deepEqual([result.violation.code, result.violation.pointer], [code, pointer]);
        assert.equal(result.violation.field, 'Field__c');
      });
  });

describe('field types', () => {
  it('match the registry, each with cases', () => {
    assert.deepEqual(
      FIELD_TYPES.map((type) => type.name),
      FIELD_TYPE_NAMES,
    );
    assert.deepEqual(new Set(tables.map((table) => table.type)), new Set(FIELD_TYPE_NAMES));
  });

  it('give an example that they accept themselves', () => {
    for (const name of FIELD_TYPE_NAMES) {
      const type = fieldType(name);
      if (type.writable) assert.ok(type.parseInput(type.example(field(name)), field(name), '').ok, name);
    }
  });

  it('keep numbers that a double cannot hold', () => {
    const number = new ExactNumber('1234567890123456.78');
    assert.deepEqual(read('decimal', number, { precision: 18, scale: 2 }), { ok: true, value: number.text });
    assert.deepEqual(read('json', { n: number }), { ok: true, value: '{"n":1234567890123456.78}' });
  });

  it('refuse JSON that is nested deeper than 32 levels', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 32; i++) deep = [deep];
    assert.ok(read('json', deep).ok);
    assert.ok(!read('json', [deep]).ok);
  });

  it('limit texts to 131,072 characters', () => {
    assert.ok(read('longText', '😀'.repeat(TEXT_MAX_CHARS)).ok);
    assert.ok(!read('longText', 'x'.repeat(TEXT_MAX_CHARS + 1)).ok);
  });

  it('recognise a reference by external id', () => {
    assert.deepEqual(externalReference({ TaxId__c: 'DE1' }), { field: 'TaxId__c', value: 'DE1' });
    for (const other of ['x', null, [], {}, { a: 1, b: 2 }]) assert.equal(externalReference(other), null);
  });
});

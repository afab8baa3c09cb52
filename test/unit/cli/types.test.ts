/** The module that `erp types` writes, from schemas as the platform answers them and from hostile ones. */
import assert from 'node:assert/strict';
import { moduleOf, type ObjectSchemas } from '../../../cli/types/module.ts';
import { comment, type JsonSchema, typeOf } from '../../../cli/types/type-of.ts';

const read: JsonSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Name' },
    Stage__c: { anyOf: [{ type: 'string', enum: ['new', "won't"] }, { type: 'null' }] },
    Amount__c: { type: ['number', 'string'] },
  },
};
const account: ObjectSchemas = {
  apiName: 'Account',
  label: 'Customer',
  description: 'Who buys.',
  create: { ...read, required: ['name'] },
  update: read,
  read,
};

describe('types of objects', () => {
  it('has a record with all fields, a create with required ones, and an update with optional ones', () => {
    const text = moduleOf([account]);
    const part = (name: string): string => text.match(new RegExp(`export interface ${name} {\\n([^}]*)}`))?.[1] ?? '';
    const stage = "Stage__c: 'new' | 'won\\'t' | null;";
    assert.deepEqual(part('AccountRecord').trim().split(/\n */), [
      'Amount__c: number | string;',
      stage,
      '/** Name */',
      'name: string;',
    ]);
    assert.match(part('AccountCreate'), /Amount__c\?: .*\n {2}Stage__c\?: .*\n.*\n {2}name: string;/);
    assert.match(part('AccountUpdate'), /name\?: string;/);
    assert.match(text, /\/\*\* Account, Customer: Who buys\. \*\/\nexport interface AccountRecord /);
  });

  it('has no writable types where the connection may not write', () => {
    const text = moduleOf([{ ...account, create: false, update: false }]);
    assert.match(text, /export type AccountCreate = never;/);
    assert.match(text, /export type AccountUpdate = never;/);
  });

  it('does not depend on the order of objects and fields', () => {
    const other = { ...account, apiName: 'Invoice__c' };
    const turned = {
      ...account,
      read: { ...read, properties: Object.fromEntries(Object.entries(read.properties ?? {}).reverse()) },
    };
    assert.equal(moduleOf([account, other]), moduleOf([other, turned]));
  });

  it('gives objects unique names', () => {
    const names = ['Invoice', 'Invoice__c', 'InvoiceRecord', 'InvoiceCreate', 'InvoiceRecord__c', 'Objects__c'];
    const text = moduleOf(names.map((apiName) => ({ ...account, apiName })));
    const declared = [...text.matchAll(/^(?:export )?(?:interface|type) (\w+)/gm)].map(([, name]) => name);
    assert.equal(new Set(declared).size, declared.length);
  });

  it('keeps labels in their comments and values in their strings', async () => {
    const hostile = 'a */ export const x = 1; /* \u202e\u2028\u001b[2J\nsecond line\r\n\nthird';
    for (const line of comment({ title: hostile, description: hostile, deprecated: true }).slice(1, -1))
      assert.match(line, /^ \* (?:(?!\*\/)[\P{C}])+$/u);
    const values = ["'", '\\', '"', '\n', '\u2028', '$' + '{x}', '`', "\\'", '\u202e', "';process.exit();'"];
    const type = typeOf({ enum: values });
    assert.match(type, /^[\P{C}]+$/u);
    const strings = type.match(/'(?:\\.|[^'\\])*'/g) ?? [];
    assert.equal(strings.join(' | '), type);
    const source = `export default [${strings.join(', ')}]`;
    const { default: meant } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
    assert.deepEqual(meant, values);
  });

  it('supports every form of a field’s schema', () => {
    const forms: [JsonSchema, string][] = [
      [{}, 'unknown'],
      [{ type: 'integer' }, 'number'],
      [{ enum: [] }, 'never'],
      [{ type: 'array', items: { enum: ['a', 'b'] } }, "Array<'a' | 'b'>"],
      [{ type: 'object' }, 'Record<string, unknown>'],
      [{ anyOf: [{ anyOf: [{ type: 'string' }, { type: 'string' }] }, { type: 'null' }] }, 'string | null'],
      [{ type: 'object', properties: { 'a-b': { type: 'boolean' } }, required: ['a-b'] }, "{\n  'a-b': boolean;\n}"],
    ];
    for (const [schema, type] of forms) assert.equal(typeOf(schema), type);
  });
});

import assert from 'node:assert/strict';
import { parseYaml } from '../../../lib/yaml/parse.ts';
import { compileSnapshot } from '../../../services/metadata/compile.ts';
import { componentKey } from '../../../services/metadata/kinds/component.ts';
import type { Plan } from '../../../services/metadata/planner/plan.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { planOf } from '../../support/plans.ts';
import { aSnapshot } from '../../support/snapshots.ts';

type Files = Record<string, string>;

const PATH = 'objects/Bill__c/validationRules/Positive.yaml';
const BILL = objectFiles('Bill__c', { Amount__c: 'fieldType: currency', Due__c: 'fieldType: date' });

const rule = (condition: string, more = 'errorField: Amount__c\n', name = 'Positive'): Files => ({
  [PATH.replace('Positive', name)]:
    `type: ValidationRule\napiName: ${name}\nobject: Bill__c\nactive: true\ncondition: ${condition}\n${more}message: Wrong.\n`,
});

const places = (result: Plan) =>
  result.blocked.map(({ code, line, column, message }) => `${code} ${line}:${column} ${message}`);

describe('metadata: validation rules', () => {
  it('are in the snapshot of their object, inactive ones included', async () => {
    const files = { ...BILL, ...rule('record.Amount__c <= 0'), ...rule('record.Due__c < today', '', 'Late') };
    files[PATH.replace('Positive', 'Late')] = files[PATH.replace('Positive', 'Late')]!.replace(
      'active: true',
      'active: false',
    );
    const { blocked, after } = await planOf(new Map(), files);
    assert.deepEqual(blocked, []);
    assert.deepEqual(compileSnapshot(aSnapshot([]).tenant, 1, after).objects['Bill__c']!.validationRules, [
      { apiName: 'Late', active: false, condition: 'record.Due__c < today', errorField: null, message: 'Wrong.' },
      {
        apiName: 'Positive',
        active: true,
        condition: 'record.Amount__c <= 0',
        errorField: 'Amount__c',
        message: 'Wrong.',
      },
    ]);
    assert.equal(after.get(componentKey('ValidationRule', 'Bill__c.Positive'))!.yaml, files[PATH]);
  });

  it('with an error block the deployment and report the position in the file', async () => {
    const one = await planOf(new Map(), { ...BILL, ...rule('record.Amont__c <= 0') });
    assert.deepEqual(places(one), ['EXPRESSION_INVALID 5:19 There is no field Amont__c on Bill__c.']);
    const quoted = await planOf(new Map(), { ...BILL, ...rule("'record.Amount <= 0'") });
    assert.deepEqual(places(quoted), ['EXPRESSION_INVALID 5:20 There is no field Amount on Bill__c.']);
    assert.equal(quoted.blocked[0]!.remedy, 'Write Amount__c.');
    const lines = '|\n  record.Amount__c <= 0 ||\n    record.Due__c < "2026-01-01" ||\n\n  (record.name';
    const many = await planOf(new Map(), { ...BILL, ...rule(lines) });
    assert.match(places(many)[0]!, /^EXPRESSION_INVALID 9:15 It is not well-formed/);
    const two = await planOf(new Map(), { ...BILL, ...rule(lines.replace('(record.name', 'record.nome == ""')) });
    assert.deepEqual(
      places(two).map((place) => place.split(' ')[1]),
      ['7:5', '9:10'],
    );
    const folded = await planOf(new Map(), { ...BILL, ...rule('>\n  record.Amount__c\n  <= 0 && nothing') });
    assert.match(places(folded)[0]!, /^EXPRESSION_INVALID 5:12 There is no variable nothing/);
    const escaped = await planOf(new Map(), { ...BILL, ...rule('"record.name == \\"x\\" && nothing"') });
    assert.match(places(escaped)[0]!, /^EXPRESSION_INVALID 5:37 There is no variable nothing/);
  });

  it('must name an existing object and field', async () => {
    assert.deepEqual(
      (await planOf(new Map(), rule('record.Amount__c <= 0'))).blocked.map(({ code, line }) => [code, line]),
      [
        ['DEPENDENCY_MISSING', 3],
        ['DEPENDENCY_MISSING', 6],
      ],
    );
    const lost = await planOf(new Map(), { ...BILL, ...rule('1 < 2', 'errorField: Nothing__c\n') });
    assert.deepEqual(
      lost.blocked.map(({ code, line, details }) => ({ code, line, details })),
      [
        {
          code: 'DEPENDENCY_MISSING',
          line: 6,
          details: { members: [{ type: 'CustomField', fullName: 'Bill__c.Nothing__c' }] },
        },
      ],
    );
    assert.deepEqual((await planOf(new Map(), { ...BILL, ...rule('1 < 2', 'errorField: name\n') })).blocked, []);
  });

  it('block a change of a field that they read', async () => {
    const before = (
      await planOf(new Map(), {
        ...BILL,
        ...rule('record.Note__c.matches("[a-z]+")', ''),
        ...fieldFile('Bill__c', 'Note__c', 'fieldType: email'),
      })
    ).after;
    const same = await planOf(before, fieldFile('Bill__c', 'Note__c', 'fieldType: text\nlength: 100'));
    assert.deepEqual(same.blocked, []);
    assert.deepEqual(same.updates[0]!.impact.dependents, [{ type: 'ValidationRule', fullName: 'Bill__c.Positive' }]);
    const other = await planOf(before, fieldFile('Bill__c', 'Note__c', 'fieldType: boolean'));
    assert.ok(
      other.blocked.some(({ code, fullName }) => code === 'EXPRESSION_INVALID' && fullName === 'Bill__c.Positive'),
    );
  });

  it('have case-insensitively unique names, at most 100 per object', async () => {
    const twins = await planOf(new Map(), { ...BILL, ...rule('1 < 2', '', 'One'), ...rule('1 < 2', '', 'ONE') });
    assert.deepEqual(
      twins.blocked.map(({ code }) => code),
      ['NAME_CONFLICT'],
    );
    const many = Object.assign({}, ...Array.from({ length: 101 }, (_, i) => rule('1 < 2', '', `Rule${i}`)));
    const result = await planOf(new Map(), { ...BILL, ...many });
    assert.deepEqual(
      result.blocked.map(({ code, details }) => [code, details]),
      [['LIMIT_EXCEEDED', { max: 100 }]],
    );
  });

  it('require a condition and a message', async () => {
    for (const text of ['', '"  "']) {
      const { blocked } = await planOf(new Map(), { ...BILL, ...rule(text) });
      assert.deepEqual(
        blocked.map(({ code }) => code),
        ['YAML_SCHEMA_INVALID'],
        text,
      );
    }
  });
});

describe('metadata: positions in a text of a file', () => {
  it('are exact for plain scalars', () => {
    const at = (yaml: string, offset: number): string => {
      const { line, column } = parseYaml(yaml).position('/a', offset);
      return `${line}:${column}`;
    };
    assert.equal(at('a: xyz\n', 2), '1:6');
    assert.equal(at('b: 1\na: "xyz"\n', 2), '2:7');
    assert.equal(at("a: 'x''z'\n", 2), '1:8');
    assert.equal(at('a: "\\"\\u00e9z"\n', 2), '1:13');
    assert.equal(at('a: "x\n  y"\n', 2), '1:4', 'the beginning, for a text that goes on');
    assert.equal(at('a: |\n    x\n\n      yz\n', 7), '4:9');
    assert.equal(at('a: |-\n  xyz', 2), '2:5');
    assert.equal(at('a: |2-\n    x\n    yz', 7), '3:6', 'with leading spaces of its own');
    assert.equal(at('a: |\r\n  x\r\n  yz\r\n', 3), '3:4');
    assert.equal(at('a: 5\n', 2), '1:1', 'the key, for what is no text');
  });
});

import assert from 'node:assert/strict';
import { inputCheck, inputProblems } from '../../../lib/expression/transition-input.ts';

const codes = (found: readonly { pointer: string; code: string }[]): string[] =>
  found.map(({ pointer, code }) => `${pointer} ${code}`);
const zeros = (count: number): number[] => Array.from({ length: count }, () => 0);

describe('inputs of transitions', () => {
  it('are refused unread when checking every value against every keyword would take too long', function () {
    this.timeout(10_000);
    const choices = Array.from({ length: 1_000 }, (_, index) => ({ const: index + 1 }));
    const schema = { type: 'object', properties: { a: { type: 'array', items: { anyOf: choices } } } };
    assert.deepEqual(inputProblems(schema), []);
    const check = inputCheck(schema);
    assert.deepEqual(codes(check({ a: zeros(30_000) })), ['/input FIELD_TOO_LONG']);
    assert.deepEqual(codes(check({ a: [1, 1_000, 0] })).slice(0, 1), ['/input/a/2 PICKLIST_VALUE_INVALID']);
    assert.deepEqual(check({ a: [1, 1_000] }), []);
    const plain = inputCheck({ type: 'object', properties: { a: { type: 'array', items: { type: 'number' } } } });
    assert.deepEqual(plain({ a: zeros(20_000) }), [], 'a list for a short schema');
  });

  it('are refused unread when all patterns together would take too long', () => {
    const pattern = '^(?:[ab]*a[ab]{90})$';
    const patterns = Array.from({ length: 300 }, () => ({ pattern }));
    const schema = { type: 'object', properties: { a: { type: 'string', allOf: patterns } } };
    assert.deepEqual(inputProblems(schema), []);
    assert.deepEqual(codes(inputCheck(schema)({ a: 'ab'.repeat(30_000) })), ['/input FIELD_TOO_LONG']);
    const names = { type: 'object', patternProperties: { [pattern]: true } };
    assert.deepEqual(codes(inputCheck(names)({ ['ab'.repeat(30_000)]: 1 })), ['/input FIELD_TOO_LONG']);
    const one = inputCheck({ type: 'object', properties: { a: { type: 'string', pattern: '^[ab]+$' } } });
    assert.deepEqual(
      [one({ a: 'ab'.repeat(30_000) }), codes(one({ a: 'c' }))],
      [[], ['/input/a FIELD_FORMAT_INVALID']],
    );
  });

  it('support alternatives of a schema', () => {
    const schema = {
      type: 'object',
      properties: { a: true, b: true },
      oneOf: [{ required: ['a'] }, { required: ['b'] }],
    };
    assert.deepEqual(inputProblems(schema), []);
    const check = inputCheck(schema);
    assert.deepEqual([check({ a: 1 }), check({ b: 1 })], [[], []]);
    assert.deepEqual(codes(check({})), ['/input/a FIELD_REQUIRED', '/input/b FIELD_REQUIRED']);
    assert.deepEqual(codes(check({ a: 1, b: 1 })), ['/input FIELD_FORMAT_INVALID']);
  });

  it('are multiples as decimals, not as binary fractions', () => {
    const check = inputCheck({ type: 'object', properties: { a: { type: 'number', multipleOf: 0.01 } } });
    for (const a of [0, 0.07, -0.07, 1.1, 19.99, 123_456.78, 9_999_999_999.99, 1e21])
      assert.deepEqual(check({ a }), [], `${a}`);
    const [found] = check({ a: 0.075 });
    assert.deepEqual(
      [found!.pointer, found!.code, found!.message],
      ['/input/a', 'FIELD_OUT_OF_RANGE', 'The value must be a multiple of 0.01.'],
    );
    assert.deepEqual(codes(check({ a: 1e300 })), ['/input/a FIELD_OUT_OF_RANGE'], 'more digits than are kept');
    const whole = inputCheck({ type: 'object', properties: { a: { type: 'integer', multipleOf: 5 } } });
    assert.deepEqual([whole({ a: 15 }), codes(whole({ a: 16 }))], [[], ['/input/a FIELD_OUT_OF_RANGE']]);
  });
});

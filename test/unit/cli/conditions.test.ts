/** Conditions and assignments as people write them on the command line. */
import assert from 'node:assert/strict';
import { readBody } from '../../../cli/data/assignments.ts';
import { readConditions } from '../../../cli/data/conditions.ts';
import type { Field } from '../../../cli/data/objects.ts';
import { Failure } from '../../../cli/failure.ts';
import { assertPrompt } from '../../support/processor.ts';

const TYPES: Record<string, string> = { active: 'boolean', tags: 'multiPicklist', place: 'geolocation' };

/** Only the type of a field counts here. */
const fieldOf = (apiName: string): Field | undefined => {
  const fieldType = TYPES[apiName];
  return fieldType === undefined ? undefined : ({ apiName, fieldType } as unknown as Field);
};

const condition = (text: string) => {
  const [{ id: _, ...found } = { id: '' }] = readConditions([text], false, fieldOf).conditions;
  return found;
};

describe('a condition of the command line', () => {
  const cases: readonly [string, object][] = [
    ['city=Berlin', { field: 'city', operator: 'eq', value: 'Berlin' }],
    ['city = "New, York"', { field: 'city', operator: 'eq', value: 'New, York' }],
    ['city!=Berlin', { field: 'city', operator: 'neq', value: 'Berlin' }],
    ['a>=1', { field: 'a', operator: 'gte', value: '1' }],
    ['a > 1', { field: 'a', operator: 'gt', value: '1' }],
    ['a<=1', { field: 'a', operator: 'lte', value: '1' }],
    ['name~a=b', { field: 'name', operator: 'contains', value: 'a=b' }],
    ['name!~a', { field: 'name', operator: 'not_contains', value: 'a' }],
    ['name ^= A', { field: 'name', operator: 'starts_with', value: 'A' }],
    ['city=', { field: 'city', operator: 'is_blank' }],
    ['city!=', { field: 'city', operator: 'is_not_blank' }],
    ['city is blank', { field: 'city', operator: 'is_blank' }],
    ['city IS NOT BLANK', { field: 'city', operator: 'is_not_blank' }],
    ['city in a, "b,c"', { field: 'city', operator: 'in', value: ['a', 'b,c'] }],
    ['city not in a', { field: 'city', operator: 'not_in', value: ['a'] }],
    ['a between 1,2', { field: 'a', operator: 'between', value: '1', valueTo: '2' }],
    ['active=true', { field: 'active', operator: 'eq', value: true }],
    ['tags=a,b', { field: 'tags', operator: 'eq', value: ['a', 'b'] }],
    ['tags~a', { field: 'tags', operator: 'contains', value: 'a' }],
  ];
  for (const [text, expected] of cases)
    it(`can be ${text}`, () => {
      assert.deepEqual(condition(text), expected);
    });

  for (const text of ['', 'city', '=x', 'city like x', 'a between 1', 'a between 1,2,3'])
    it(`cannot be ${JSON.stringify(text)}`, () => {
      assert.throws(
        () => condition(text),
        (error: unknown) => error instanceof Failure && error.exitCode === 2,
      );
    });

  it('is parsed in linear time', () => {
    for (const text of [`a in ${'"\\'.repeat(20_000)}`, `a in ${','.repeat(20_000)}`, ' '.repeat(20_000)])
      assertPrompt(text.slice(0, 10), () => {
        try {
          condition(text);
        } catch (error) {
          assert.ok(error instanceof Failure);
        }
      });
  });
});

describe('a body of the command line', () => {
  const read = async (assignments: string[], data?: string): Promise<string> =>
    JSON.stringify(await readBody(assignments, data, fieldOf));

  it('has the types of its fields, and keeps all digits', async () => {
    assert.equal(
      await read(['name=a=b', 'active=true', 'tags=x, y', 'city=', 'n:=1.50', 'big:=12345678901234567890.10']),
      '{"name":"a=b","active":true,"tags":["x","y"],"city":null,"n":1.50,"big":12345678901234567890.10}',
    );
  });

  it('gives assignments precedence over --data, also for __proto__', async () => {
    assert.equal(await read(['a=2', '__proto__=x'], '{"a": "1", "b": 0.10}'), '{"a":"2","b":0.10,"__proto__":"x"}');
  });

  it('refuses arguments that are neither', async () => {
    for (const [assignments, data] of [
      [['nonsense'], undefined],
      [['a:={'], undefined],
      [['place=north'], undefined],
      [[], '[1]'],
      [[], '{'],
      [[], '@/nowhere/to/be/found.json'],
    ] as const)
      await assert.rejects(
        read([...assignments], data),
        (error: unknown) => error instanceof Failure && error.exitCode === 2,
      );
  });
});

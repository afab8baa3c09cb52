/** Patterns of schemas, as messages say them. */
import assert from 'node:assert/strict';
import { Type } from 'typebox';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { patternInWords } from '../../../lib/errors/pattern-words.ts';
import { valueProblem } from '../../../lib/validation.ts';
import { KINDS } from '../../../services/metadata/kinds/registry.ts';

function* patternsOf(schema: unknown): Generator<string> {
  if (typeof schema !== 'object' || schema === null) return;
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'pattern' && typeof value === 'string') yield value;
    else if (key === 'patternProperties') yield* Object.keys(value);
    if (key !== 'example') yield* patternsOf(value);
  }
}

describe('description of a pattern', () => {
  it('exists for every pattern of requests and files', () => {
    const requests = OPERATIONS.flatMap(({ pathParameters, queryParameters, headerParameters, requestBody }) => [
      ...patternsOf([pathParameters, queryParameters, headerParameters, requestBody]),
    ]);
    const files = KINDS.flatMap(({ schema }) => [...patternsOf(schema)]);
    const all = [...new Set([...requests, ...files])];
    assert.ok(all.length > 15);
    assert.deepEqual(
      all.filter((pattern) => patternInWords(pattern) === null),
      [],
    );
  });

  it('replaces the expression in messages', () => {
    const widgetKey = Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_-]{0,63}$' });
    assert.equal(
      valueProblem(widgetKey, '1 of 2'),
      'must be a letter, then letters, digits, - or _; 64 characters at most',
    );
    assert.match(valueProblem(Type.String({ pattern: '^x$' }), 'y') ?? '', /must match pattern/);
  });

  it('is combined with those of limits and formats', () => {
    assert.equal(valueProblem(Type.String({ minLength: 1 }), ''), 'must not be empty');
    assert.equal(valueProblem(Type.String({ minLength: 2 }), 'a'), 'must have at least 2 characters');
    assert.equal(valueProblem(Type.String({ maxLength: 1 }), 'ab'), 'must have at most 1 character');
    assert.equal(valueProblem(Type.Array(Type.String(), { minItems: 1 }), []), 'must not be empty');
    assert.equal(
      valueProblem(Type.Array(Type.String(), { maxItems: 2 }), ['a', 'b', 'c']),
      'must have at most 2 items',
    );
    assert.equal(
      valueProblem(Type.Array(Type.String(), { uniqueItems: true }), ['a', 'a']),
      'must not have the same item twice',
    );
    assert.equal(valueProblem(Type.Integer({ minimum: 1 }), 0), 'must be at least 1');
    assert.equal(valueProblem(Type.Integer({ maximum: 9 }), 10), 'must be at most 9');
    assert.equal(
      valueProblem(Type.String({ format: 'date' }), 'x'),
      'must be a day of the calendar such as 2026-11-21',
    );
  });
});

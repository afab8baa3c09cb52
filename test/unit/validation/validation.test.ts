import assert from 'node:assert/strict';
import { Type } from 'typebox';
import { bodyViolations } from '../../../lib/validation.ts';
import { assertPrompt } from '../../support/processor.ts';

const schema = Type.Object(
  { types: Type.Optional(Type.Array(Type.Object({ name: Type.String() }, { additionalProperties: false }))) },
  { additionalProperties: false },
);

const unknown = (count: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]));

describe('The violations of a body', () => {
  it('are one for a value that is none of an enumeration, or not the only one', () => {
    const preferences = Type.Object({
      digest: Type.Optional(Type.Union([Type.Enum(['off', 'daily']), Type.Null()])),
      push: Type.Optional(Type.Literal(false)),
    });
    const messages = (body: object): string[] => bodyViolations(preferences, body).map(({ message }) => message);
    assert.deepEqual(messages({ digest: 'monthly' }), ['/digest must be one of off, daily.']);
    assert.deepEqual(messages({ push: true }), ['/push must be false.']);
  });

  it('are all found, up to the limit of a response', () => {
    assert.equal(bodyViolations(schema, unknown(99)).length, 99);
    assert.equal(bodyViolations(schema, unknown(101)).length, 100);
  });

  it('are found in bounded time in a body with the maximum number', () => {
    const properties = unknown(60_000);
    assertPrompt('60,000 unknown properties', () => bodyViolations(schema, properties));
    const items = { types: Array.from({ length: 30_000 }, () => ({})) };
    assertPrompt('30,000 empty items', () => bodyViolations(schema, items));
  });
});

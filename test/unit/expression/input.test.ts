import assert from 'node:assert/strict';
import { checkExpression } from '../../../lib/expression/check.ts';
import { evaluate, type Facts } from '../../../lib/expression/evaluate.ts';
import { ExpressionError, type Type, type Value } from '../../../lib/expression/types.ts';

const schema = { object: 'Order__c', fieldType: () => undefined };
const INPUT: Record<string, Type> = { reason: 'text', day: 'date', urgent: 'boolean' };

const facts = (input?: Record<string, Value>): Facts => ({
  record: () => null,
  old: null,
  isChanged: () => false,
  user: {},
  hasPermission: () => false,
  inGroup: () => false,
  now: 0,
  timezone: 'UTC',
  ...(input ? { input: (name: string) => input[name] ?? null } : {}),
});

const problems = (source: string, input?: Record<string, Type>): string[] => {
  try {
    checkExpression(source, input ? { ...schema, input } : schema, ['boolean', 'text', 'date', 'null']);
    return [];
  } catch (error) {
    assert(error instanceof ExpressionError);
    return error.mistakes.map((mistake) => `${mistake.start} ${mistake.message} ${mistake.remedy ?? ''}`.trim());
  }
};

describe('expressions: input', () => {
  it('has the typed properties of its schema', () => {
    const { root, type, fields } = checkExpression(
      'input.day < today && input.reason != ""',
      { ...schema, input: INPUT },
      ['boolean'],
    );
    assert.deepEqual([type, fields], ['boolean', []]);
    assert.equal(root.op, 'and');
    const run = (source: string, input?: Record<string, Value>): Value =>
      evaluate(checkExpression(source, { ...schema, input: INPUT }, ['text', 'boolean', 'date']), facts(input));
    assert.equal(run('input.reason', { reason: 'late' }), 'late');
    assert.equal(run('input.reason', {}), null);
    assert.equal(run('input.reason'), null);
    assert.equal(run('input.day == date("2026-11-21")', { day: '2026-11-21' }), true);
    assert.equal(run('!input.urgent', {}), true);
  });

  it('is unknown when absent, and reports errors in its properties', () => {
    assert.match(problems('input.reason')[0]!, /There is no variable input; there are record, old, user/);
    assert.deepEqual(problems('input.cause', INPUT), [
      '6 input has no cause. Add cause to the properties of its schema.',
    ]);
    assert.deepEqual(problems('input', INPUT), ['0 input is not a value. Name a part of it: input.<name>.']);
    assert.deepEqual(problems('input.constructor', INPUT).length, 1);
    assert.match(problems('input.day == "2026-11-21"', INPUT)[0]!, /Turn the text into a value/);
    assert.match(problems('inputs', INPUT)[0]!, /there are input, record, old/);
  });
});

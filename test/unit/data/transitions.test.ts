import assert from 'node:assert/strict';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { checkExpression } from '../../../lib/expression/check.ts';
import type { Facts } from '../../../lib/expression/evaluate.ts';
import { EvaluationError, type FailureReason } from '../../../lib/expression/functions.ts';
import { valuesOf } from '../../../services/data/transitions/effects.ts';
import { guardHolds, type TransitionOrAction } from '../../../services/data/transitions/transitions-and-actions.ts';

const SCHEMA = { object: 'Task__c', fieldType: () => 'integer' as const };

/** Facts with which every expression over the record fails. */
const failing = (reason: FailureReason): Facts =>
  ({
    record: () => {
      throw new EvaluationError(reason, 'it fails');
    },
  }) as unknown as Facts;

describe('an expression that takes too long', () => {
  const guard = checkExpression('record.A__c > 0', SCHEMA, ['boolean']);
  const value = checkExpression('record.A__c', SCHEMA, ['number']);
  const inTime = (error: unknown): boolean => error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE';

  it('is reported as temporary, in guards and in effects', () => {
    assert.throws(() => guardHolds({ guard } as TransitionOrAction, failing('TIME_EXCEEDED')), inTime);
    assert.throws(() => valuesOf([['A__c', value]], failing('TIME_EXCEEDED'), []), inTime);
  });

  it('differs from one that fails by itself', () => {
    assert.equal(guardHolds({ guard } as TransitionOrAction, failing('COST_EXCEEDED')), false);
    for (const reason of ['DIVISION_BY_ZERO', 'COST_EXCEEDED', 'VALUE_OUT_OF_RANGE'] as const) {
      const invalid: Parameters<typeof valuesOf>[2] = [];
      assert.deepEqual(valuesOf([['A__c', value]], failing(reason), invalid), {});
      assert.deepEqual([invalid[0]!.code, invalid[0]!.params['reason']], ['FIELD_OUT_OF_RANGE', reason]);
    }
  });
});

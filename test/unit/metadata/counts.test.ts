import assert from 'node:assert/strict';
import { tellRecords, withoutCounts } from '../../../services/metadata/counts.ts';
import type { Problem } from '../../../services/metadata/kinds/kind.ts';

describe('metadata: numbers of records in a plan', () => {
  const WHERE = { type: 'CustomField', fullName: 'A__c.B__c', path: null, line: null, column: null, remedy: null };
  const shown = (told: Pick<Problem, 'message' | 'details'>): unknown =>
    withoutCounts({
      creates: [],
      updates: [],
      deletes: [],
      noops: [],
      blocked: [{ code: 'DATA_INCOMPATIBLE', ...WHERE, ...told }],
      warnings: [],
    }).blocked;

  it('are hidden in every message that contains them', () => {
    const told = tellRecords((records) => `Of them, ${records} stand in the way; ${records} must go first.`, 417);
    assert.match(told.message, /417 records stand .* 417 records must/);
    const message = 'Of them, some records stand in the way; some records must go first.';
    assert.deepEqual(shown(told), [{ code: 'DATA_INCOMPATIBLE', ...WHERE, message }]);
  });

  it('are hidden in plans stored earlier', () => {
    for (const stored of ['Records share a value. (300 records)', 'The object has 300 records; writes may wait.']) {
      const [problem] = shown(JSON.parse(JSON.stringify({ message: stored, details: { records: 300 } }))) as Problem[];
      assert.match(problem!.message, /some records/);
      assert.doesNotMatch(JSON.stringify(problem), /300/);
    }
  });

  it('are not revealed by a warning about large tables', () => {
    const warning = { ...WHERE, ...tellRecords((records) => `The object has ${records}.`, 100_000) };
    const { warnings } = withoutCounts({
      creates: [],
      updates: [],
      deletes: [],
      noops: [],
      blocked: [],
      warnings: (['LARGE_TABLE', 'STATE_MODEL_INVALID'] as const).map((code) => ({ code, ...warning })),
    });
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['STATE_MODEL_INVALID'],
    );
  });
});

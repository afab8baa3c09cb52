import assert from 'node:assert/strict';
import { BULK_STATES } from '../../../contracts/bulk.ts';
import { read } from '../../support/sources.ts';

describe('the states of bulk jobs', () => {
  it('are those that the database accepts', () => {
    const states = Object.values(BULK_STATES).flat();
    const list = states.map((state) => `'${state}'`).join(', ');
    assert.ok(read('services/bulk/migrations/0001-bulk.sql').includes(`(${list})`));
  });
});

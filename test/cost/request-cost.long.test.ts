/** The cost of a list, get, create and update of a record, beside recorded values. See bench/README.md. */
import assert from 'node:assert/strict';
import { advice, deviations, WORKLOADS } from '../../bench/costs.ts';
import { countWork } from '../../bench/work.ts';

describe('the cost of a request', () => {
  it('stays as recorded, in statements, function calls, promises and bytes', async () => {
    const counted = await countWork(WORKLOADS);
    const costs = Object.fromEntries(counted.entries().map(([workload, { work }]) => [workload, work]));
    const differing = deviations(costs);
    if (differing.length > 0) assert.fail(advice(differing));
  });
});

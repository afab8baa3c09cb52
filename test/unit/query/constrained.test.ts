import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileAggregate } from '../../../lib/query/aggregate-sql.ts';
import { compileList } from '../../../lib/query/sql.ts';
import type { AggregatePlan, Plan } from '../../../lib/query/types.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');

describe('a constrained plan', () => {
  it('is made in one place, lib/query/constrain.ts', () => {
    const makers = ['lib', 'services', 'mixins'].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => join(folder, file))
        .filter((file) =>
          /\bas\s+(unknown\s+as\s+)?Constrained(Plan\b|<)|as (any|never|unknown as)\b.*[cC]ompile(List|Get|Aggregate)/.test(
            readFileSync(join(ROOT, file), 'utf8'),
          ),
        ),
    );
    // @ts-expect-error a plan without record access does not compile
    assert.ok((plan: Plan) => compileList(plan, 't_x'));
    // @ts-expect-error nor does one of groups
    assert.ok((plan: AggregatePlan) => compileAggregate(plan, { schema: 't_x', maxBytes: 1, named: new Map() }));
    assert.deepEqual(makers, ['lib/query/constrain.ts']);
  });
});

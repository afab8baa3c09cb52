import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { operationsTable } from './operations-table.ts';

describe('docs/reference/operations.md', () => {
  it('lists exactly the operations', () => {
    const text = readFileSync(join(import.meta.dirname, '../../../docs/reference/operations.md'), 'utf8');
    const cells = (line: string): string => line.replaceAll(/\s+/g, ' ').trim();
    const table = text.split('\n').map(cells);
    assert.deepEqual(
      table.filter((line) => /^\| (GET|POST|PUT|PATCH|DELETE) /.test(line)),
      operationsTable(OPERATIONS).split('\n').slice(2).map(cells),
    );
  });
});

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { schemaFiles } from '../support/schema-dump.ts';

describe('database schema', () => {
  it('matches test/schema', async function () {
    this.timeout(60_000);
    const folder = join(import.meta.dirname, '..', 'schema');
    const written = Object.fromEntries(
      readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
    );
    assert.deepEqual(
      Object.fromEntries(await schemaFiles()),
      written,
      'run `npm run schema:dump` and review the change',
    );
  });
});

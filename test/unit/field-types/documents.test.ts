import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { FIELD_TYPES } from '../../../lib/schema/field-types/registry.ts';
import { OPERATORS } from '../../../lib/schema/field-types/types.ts';
import { RELATIVE_DATES } from '../../../lib/values/relative-dates.ts';

/** Columns of tables are padded; one space will do. */
const page = (name: string): string =>
  readFileSync(new URL(`../../../docs/reference/${name}.md`, import.meta.url), 'utf8').replace(/ +/g, ' ');

describe('the reference', () => {
  it('lists operators, sorting and search of every field type', () => {
    const text = page('field-types');
    for (const { name, operators, sortable, searchable } of FIELD_TYPES) {
      const list = operators.map((operator) => `\`${operator}\``).join(', ') || 'none';
      const line = `| \`${name}\` | ${list} | ${sortable ? 'yes' : 'no'} | ${searchable ? 'yes' : 'no'} |`;
      assert.ok(text.includes(line), `docs/reference/field-types.md misses: ${line}`);
    }
  });

  it('explains every operator and every relative date', () => {
    const text = page('querying');
    for (const word of [...OPERATORS, ...RELATIVE_DATES]) assert.ok(text.includes(`\`${word}\``), word);
  });
});

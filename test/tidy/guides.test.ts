/** Guides number their steps from 1 on, each number once. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const FENCED = /^(```+|~~~+)[\s\S]*?^\1/gm;

describe('guides', () => {
  for (const path of globSync('docs/guides/*.md', { cwd: ROOT }).sort())
    it(`${path}: numbers its steps in a row`, () => {
      const text = readFileSync(join(ROOT, path), 'utf8').replace(FENCED, '');
      const numbers = [...text.matchAll(/^## (\d+)\. /gm)].map(([, number]) => Number(number));
      assert.deepEqual(
        numbers,
        numbers.map((_, index) => index + 1),
      );
    });
});

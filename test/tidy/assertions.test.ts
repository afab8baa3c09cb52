/**
 * Assertions that the compiler cannot check, `value!` and `value as Type`, only become fewer. Types that carry the fact
 * take their place: tuples, guards, `required()`.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { repositoryFiles, root } from '../support/sources.ts';

const MOST = { nonNull: 55, casts: 100 };

/** Biome's rule on `!`, and a rule of ours on casts other than `as const`. */
function assertions(): typeof MOST {
  const sources = repositoryFiles().filter((path) => path.endsWith('.ts') && !path.startsWith('test/'));
  const { stdout } = spawnSync(
    'node_modules/.bin/biome',
    ['lint', '--config-path=test/tidy/assertions/lint.json', '--max-diagnostics=none', '--reporter=json', ...sources],
    { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  );
  const { diagnostics }: { diagnostics: { category: string }[] } = JSON.parse(stdout);
  const count = (category: string): number => diagnostics.filter((found) => found.category === category).length;
  return { nonNull: count('lint/style/noNonNullAssertion'), casts: count('plugin') };
}

describe('assertions about types', () => {
  it('do not become more', function () {
    this.timeout(30_000);
    const { nonNull, casts } = assertions();
    assert.ok(nonNull > 0 && casts > 0, 'the rules find nothing');
    assert.ok(nonNull <= MOST.nonNull, `${nonNull} non-null assertions, at most ${MOST.nonNull}: let a type say it`);
    assert.ok(casts <= MOST.casts, `${casts} casts, at most ${MOST.casts}: let a type say it`);
  });
});

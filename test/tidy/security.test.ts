/** The security reference names the test that holds each promise; a test that is gone holds nothing. */
import assert from 'node:assert/strict';
import { present, read } from '../support/sources.ts';

describe('the security reference', () => {
  const promises = read('docs/reference/security.md')
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\| (?:---|who|promise)/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter((cells) => cells.length === 4);

  it('names existing files for every promise', () => {
    assert.ok(promises.length > 10, `only ${promises.length} promises were found`);
    for (const [, promise, heldBy = ''] of promises) {
      const files = [...heldBy.matchAll(/`([^`]+)`/g)].map(([, file]) => file!);
      assert.ok(files.length > 0, `nothing holds: ${promise}`);
      for (const file of files) assert.ok(present(file), `${file} is gone, which holds: ${promise}`);
    }
  });
});

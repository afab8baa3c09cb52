/**
 * Limits the places that open connections to PostgreSQL. A client of `pg` without an error listener ends the process when its
 * connection breaks; PageClient has one from its creation on.
 */
import assert from 'node:assert/strict';
import { read, repositoryFiles } from '../support/sources.ts';

const SOURCES = /^(?:main\.ts$|(?:cli|config|contracts|lib|mixins|scripts|services|templates|web)\/.*\.ts$)/;

describe('connections to PostgreSQL', () => {
  it('are clients that survive the end of their connection', () => {
    const makers = repositoryFiles().filter((path) => {
      if (!SOURCES.test(path)) return false;
      const text = read(path);
      return /\bnew pg\.Client\(/.test(text) || (/from 'pg'/.test(text) && /\bnew Client\(/.test(text));
    });
    assert.deepEqual(makers, []);
  });
});

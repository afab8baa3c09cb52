/**
 * Test files run at the same time, each on a database of its own within one server. The server tells what happens in all
 * of them: a test that does not say whose activity it waits for takes that of another test for its own.
 */
import assert from 'node:assert/strict';
import { read, repositoryFiles } from '../support/sources.ts';

/** Those of the cluster and of storms have servers of their own, and so have those that start one. */
const TESTS = /^test\/(?:api|cli|isolation|service|browser)\/.*\.ts$/;
const hasOwnServer = (path: string): boolean => read(path).includes('startTestServer(');
/** The database, or a session of the test's own. */
const OWN = /current_database\(\)|pg_blocking_pids/;
const STATEMENT_MAX = 300;

describe('server activity that a test waits for', () => {
  it('is limited to its own database or server', () => {
    const asked = repositoryFiles()
      .filter((path) => TESTS.test(path) && !hasOwnServer(path))
      .flatMap((path) =>
        [...read(path).matchAll(/\bpg_stat_activity\b/g)].map(({ index }) => ({
          path,
          statement: read(path).slice(index - STATEMENT_MAX, index + STATEMENT_MAX),
        })),
      );
    assert.ok(asked.length > 5);
    assert.deepEqual(
      asked.filter(({ statement }) => !OWN.test(statement)),
      [],
    );
  });
});

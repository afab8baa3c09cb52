import assert from 'node:assert/strict';
import { judgeServer, NEWEST_POSTGRESQL, OLDEST_POSTGRESQL } from '../../../mixins/database/server-version.ts';

describe('the version of PostgreSQL', () => {
  it('is refused in one sentence when too old', () => {
    assert.deepEqual(judgeServer(140_022), {
      refusal: 'The database server is PostgreSQL 14: the platform needs 15 or later.',
    });
  });

  it('is accepted from the oldest to the newest tested', () => {
    for (let major = OLDEST_POSTGRESQL; major <= NEWEST_POSTGRESQL; major++)
      assert.deepEqual(judgeServer(major * 10_000 + 4), {});
  });

  it('is accepted with a warning when newer', () => {
    assert.match(judgeServer(190_001).warning ?? '', /PostgreSQL 19: .* was tested with 15 to 18\.$/);
  });
});

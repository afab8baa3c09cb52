/**
 * Limits the places that store or compare transaction ids. They are valid within one database only: in one that was restored,
 * recovered or failed over, the same numbers stand for others, and a position that is made of them has to belong to an
 * epoch (`mixins/epoch/epoch.ts`).
 */
import assert from 'node:assert/strict';
import { read, repositoryFiles } from '../support/sources.ts';

const SOURCES = /^(?:lib|mixins|scripts|services|web)\/.*\.(?:ts|sql)$/;
/** The trail, which reads and compares them by epochs, and the tables that it reads. */
const ALLOWED = /^(?:mixins\/epoch|services\/(?:data\/trail|metadata\/tenant-schema))\//;
const NUMBERS = /\b(?:pg_current_(?:xact_id|snapshot)\w*|pg_visible_in_snapshot|pg_snapshot|txid_\w+|xid8|pg_lsn)\b/;

describe('transaction ids', () => {
  const users = repositoryFiles().filter((path) => SOURCES.test(path) && NUMBERS.test(read(path)));

  it('are stored and compared only by the trail, within an epoch', () => {
    assert.deepEqual(
      users.filter((path) => !ALLOWED.test(path)),
      [],
    );
    assert.ok(users.some((path) => ALLOWED.test(path)));
  });
});

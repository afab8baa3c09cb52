/** Prepared statements come and go on a connection without disturbing the work that is going on. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { Database } from '../../../mixins/database/database.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

describe('prepared statements', () => {
  let database: TestDatabase;
  let pool: Database;

  before(async () => {
    database = await createDatabase();
    pool = new Database(database.url, { size: 1, applicationName: 'prepared' });
  });
  after(async () => {
    await pool?.close();
    await database?.drop();
  });

  it('are deallocated when there are many, without affecting the transaction', async () => {
    for (let round = 0; round < 3; round++)
      await pool.transaction(async (tx) => {
        for (let n = 0; n < 500; n++) {
          const row = await tx.one<{ n: number }>({ name: `of "tenant ${n}"`, text: `SELECT ${n} AS n` });
          assert.equal(row.n, n);
        }
      });
  });

  it('are prepared again when a column type changes, also of a whole-row reference', async () => {
    await pool.query('CREATE TABLE made (id integer, what date)');
    const statement = {
      name: 'row type',
      text: `SELECT r.id, r.what IS NULL AS empty FROM jsonb_populate_record(NULL::made, '{"id": 1}') r`,
    };
    const ask = () => pool.transaction((tx) => tx.all(statement));
    assert.deepEqual(await ask(), [{ id: 1, empty: true }]);
    const changes = [
      ['42804', 'ALTER COLUMN what TYPE numeric USING NULL'],
      ['42703', 'DROP COLUMN what, ADD COLUMN what text'],
    ] as const;
    for (const [code, change] of changes) {
      await pool.query(`ALTER TABLE made ${change}`);
      await assert.rejects(ask(), { code });
      assert.deepEqual(await ask(), [{ id: 1, empty: true }], 'whoever tries again gets an answer');
    }
  });

  it('use bounded memory of the database for any length', async () => {
    await pool.transaction(async (tx) => {
      const kept = async (): Promise<{ count: number; longest: number; chars: number }> =>
        (
          await tx.query<{ count: number; longest: number; chars: number }>(
            'SELECT count(*)::int, max(length(statement))::int AS longest, sum(length(statement))::int AS chars FROM pg_prepared_statements',
          )
        ).rows[0]!;
      const list = (n: number, items: number): string => `SELECT ${n} AS n${', 1234567'.repeat(items)}`;
      for (let n = 0; n < 60; n++) {
        const row = await tx.one<{ n: number }>({
          name: `long ${n}`,
          text: `${list(n, 1_000)} /* ${'x'.repeat(60_000)} */`,
        });
        assert.equal(row.n, n);
        if (n % 10 === 0) await tx.query({ name: `longer ${n}`, text: `${list(n, 1)} /* ${'x'.repeat(150_000)} */` });
      }
      const { count, longest, chars } = await kept();
      assert.ok(count > 5 && count < 60, `${count} statements`);
      assert.ok(longest < 128 * 1024 && chars <= 2 * 1024 * 1024, `${longest} and ${chars} characters`);
      const once = { name: 'short', text: 'SELECT 7 AS n' };
      for (let n = 0; n < 3; n++) assert.deepEqual(await tx.one(once), { n: 7 });
    });
  });
});

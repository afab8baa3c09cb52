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

  it('are given up when there are many, whatever their names, and the transaction goes on', async () => {
    for (let round = 0; round < 3; round++)
      await pool.transaction(async (tx) => {
        for (let n = 0; n < 500; n++) {
          const { rows } = await tx.arrays({ name: `of "tenant ${n}"`, text: `SELECT ${n}` });
          assert.equal(rows[0]![0], n);
        }
      });
  });
});

import assert from 'node:assert/strict';
import { migrateServices } from '../../../main.ts';
import { Database } from '../../../mixins/database/database.ts';
import { type DatabaseUse, measured } from '../../../mixins/database/use.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

describe('database: the time charged to a request', function () {
  this.timeout(30_000);
  let test: TestDatabase;
  let database: Database;
  before(async () => {
    test = await createDatabase();
    database = new Database(test.url, { size: 4, applicationName: 'waiting test' });
    await migrateServices(database, ['metadata']);
  });
  after(async () => {
    await database?.close();
    await test?.drop();
  });

  it('excludes a lock wait that times out', async () => {
    const use: DatabaseUse = { deadline: Date.now() + 20_000, statementTimeoutMs: 10_000, heldMs: 0, ended: false };
    const holder = await database.pool.connect();
    try {
      await holder.query('SELECT pg_advisory_lock(1)');
      const began = performance.now();
      const waiting = measured(
        use,
        () => database.shared('metadata', null, (tx) => tx.query('SELECT pg_advisory_xact_lock(1)')),
        () => {},
      );
      await assert.rejects(waiting, { code: '55P03' });
      const tookMs = performance.now() - began;
      assert.ok(tookMs > 1_900, `${tookMs}`);
      assert.ok(use.heldMs < tookMs - 1_900, `${use.heldMs} of ${tookMs}`);
    } finally {
      await holder.query('SELECT pg_advisory_unlock_all()');
      holder.release();
    }
  });
});

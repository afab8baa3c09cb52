/** Two installations on one server change what belongs to the whole server, each under a lock of its own database. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Database } from '../../../mixins/database/database.ts';
import { oneByOne } from '../../../mixins/database/migrate.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

describe('work serialized between processes', () => {
  const role = `one_by_one_${process.pid}`;
  const databases: TestDatabase[] = [];
  const pools: Database[] = [];
  before(async () => {
    for (let count = 0; count < 2; count++) {
      const database = await createDatabase();
      databases.push(database);
      pools.push(new Database(database.url, { size: 2, applicationName: `one by one ${count}` }));
    }
    await pools[0]!.query(`CREATE ROLE ${role}`);
  });
  after(async () => {
    await pools[0]?.query(`DROP ROLE IF EXISTS ${role}`);
    for (const pool of pools) await pool.close();
    for (const database of databases) await database.drop();
  });

  it('is retried when another installation changed the same role concurrently', async () => {
    const [first, second] = pools as [Database, Database];
    let attempts = 0;
    let late: Promise<void> | undefined;
    await first.transaction(async (tx) => {
      await tx.query(`ALTER ROLE ${role} CONNECTION LIMIT 1`);
      late = oneByOne(second, async (other) => {
        attempts++;
        await other.query(`ALTER ROLE ${role} CONNECTION LIMIT 2`);
      });
      const blocked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      while ((await second.query(blocked)).rowCount === 0) await pause(10);
    });
    await late;
    assert.equal(attempts, 2);
    const { rows } = await first.query('SELECT rolconnlimit AS most FROM pg_roles WHERE rolname = $1', [role]);
    assert.deepEqual(rows, [{ most: 2 }]);
  });

  it('is not retried for any other reason', async () => {
    let attempts = 0;
    const failing = oneByOne(pools[0]!, async (tx) => {
      attempts++;
      await tx.query('SELECT 1 / 0');
    });
    await assert.rejects(failing, /division by zero/);
    assert.equal(attempts, 1);
  });
});

import assert from 'node:assert/strict';
import pg from 'pg';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('the test harness', () => {
  let platform: TestPlatform;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
  });
  after(() => platform?.stop());

  it('runs the platform on a database of its own', async () => {
    const client = new pg.Client(platform.database.url);
    await client.connect();
    const { rows } = await client.query('SELECT current_database() AS name');
    await client.end();
    assert.equal(rows[0].name, platform.database.name);
  });
});

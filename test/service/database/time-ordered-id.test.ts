/** Ids that the database makes are in the order in which it makes them. */
import assert from 'node:assert/strict';
import { Database } from '../../../mixins/database/database.ts';
import { randomRest, timeOrderedIdSql } from '../../../mixins/database/time-ordered-id.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

describe('an id that the database makes', function () {
  this.timeout(60_000);
  let server: TestDatabase;
  let database: Database;
  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 2, applicationName: 'ids' });
  });
  after(async () => {
    await database?.close();
    await server?.drop();
  });

  const idsOf = async (text: string, values: unknown[] = []): Promise<string[]> =>
    (await database.query<{ id: string }>(text, values)).rows.map(({ id }) => id);
  const timeOf = (id: string): number => Number.parseInt(id.replace('-', '').slice(0, 12), 16);

  it('is a UUIDv7 with the time of the database', async () => {
    const [given] = await idsOf(`SELECT ${timeOrderedIdSql('$1::text')} AS id`, [randomRest()]);
    const [made] = await idsOf(`SELECT ${timeOrderedIdSql()} AS id`);
    for (const id of [given!, made!]) {
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      assert.ok(Math.abs(timeOf(id) - Date.now()) < 10_000, id);
    }
  });

  it('is greater than those before, in one statement and from one to the next', async () => {
    const many = await idsOf(`SELECT ${timeOrderedIdSql()} AS id FROM generate_series(1, 20000)`);
    assert.deepEqual(many, [...new Set(many)].sort());
    const rows: string[] = [];
    for (let i = 0; i < 200; i++)
      rows.push(...(await idsOf(`SELECT ${timeOrderedIdSql('$1::text')} AS id`, [randomRest()])));
    assert.deepEqual(rows, [...rows].sort());
  });
});

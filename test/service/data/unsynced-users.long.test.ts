/** A process that dies between the change of a user and the word to auth: the user is found and sent. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { createWorld, type World } from './world.ts';

describe('users that a lost process has not synced to auth', function () {
  this.timeout(90_000);
  let world: World;
  before(async () => {
    world = await createWorld();
  });
  after(() => world?.stop());

  it('are synced by the next round of periodic work', async () => {
    // State after a process that was killed right behind its commit.
    await world.rows(`UPDATE $schema."User" SET "active" = false WHERE "id" = $1`, [world.reader.userId]);
    await world.rows(
      `INSERT INTO $schema._outbox (type, object, record_id, data) VALUES ('auth.user.sync', 'User', $1, '{}')`,
      [world.reader.userId],
    );
    const round = "UPDATE pgboss.job SET start_after = now() WHERE name = 'data.sweep' AND state = 'created'";
    const unsent = () => world.rows("SELECT FROM $schema._outbox WHERE type = 'auth.user.sync'");
    while ((await unsent()).length > 0) {
      await world.database.query(round);
      await pause(200);
    }
    const { rows } = await world.database.query('SELECT active FROM auth.credentials WHERE user_id = $1', [
      world.reader.userId,
    ]);
    assert.deepEqual(rows, [{ active: false }]);
  });
});

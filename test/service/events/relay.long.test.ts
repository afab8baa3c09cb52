/** The numbers of events under writers that commit, abort and overtake each other, while relays meet and die. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { tenantSchema } from '../../../lib/context.ts';
import { Database } from '../../../mixins/database/database.ts';
import { relayTenant } from '../../../services/events/log/relay.ts';
import { randomNumbers } from '../../support/random.ts';
import { createWorld, type World } from '../data/world.ts';

const RUN_MS = 15_000;
const RECORDS = 20;
const WRITERS = 6;
const RELAY = 'relay of the test';

describe('the log of events', function () {
  this.timeout(120_000);
  let world: World;
  let schema: string;
  const seed = Number(process.env['EVENTS_SEED'] ?? Date.now() % 1_000_000);
  const below = randomNumbers(seed);
  const random = (): number => below(1_000_000) / 1_000_000;
  const clients: pg.Client[] = [];
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: world.platform.database.url });
    client.on('error', () => {});
    await client.connect();
    clients.push(client);
    return client;
  };
  before(async () => {
    world = await createWorld();
    schema = `"${tenantSchema(world.tenantId)}"`;
  });
  after(async () => {
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
    await world?.stop();
  });

  it('has each committed event once, without holes, in the order of versions', async () => {
    console.log(`EVENTS_SEED=${seed}`);
    const until = performance.now() + RUN_MS;
    const goesOn = (): boolean => performance.now() < until;
    const setup = await connect();
    await setup.query(`DELETE FROM ${schema}._outbox WHERE type <> 'auth.user.sync'`);
    await setup.query(`CREATE TABLE ${schema}."Locked" (id uuid PRIMARY KEY, version integer NOT NULL DEFAULT 0)`);
    const ids = Array.from({ length: RECORDS }, () => randomUUID());
    await setup.query(`INSERT INTO ${schema}."Locked" SELECT unnest($1::uuid[])`, [ids]);
    const [{ sequence: first }] = (await setup.query(`SELECT sequence::int FROM ${schema}._event_head`)).rows;

    const write = async (): Promise<void> => {
      const client = await connect();
      while (goesOn()) {
        await client.query('BEGIN');
        // Locks are taken in one order, as all writers do.
        const some = ids.filter(() => random() < 0.15).sort();
        for (const id of some) {
          const { rows } = await client.query(
            `UPDATE ${schema}."Locked" SET version = version + 1 WHERE id = $1 RETURNING version`,
            [id],
          );
          await client.query(
            `INSERT INTO ${schema}._outbox (type, object, record_id, record_version, data) VALUES ('data.record.updated', 'Locked', $1, $2, '{}')`,
            [id, rows[0].version],
          );
          if (random() < 0.2) await pause(random() * 20);
        }
        await client.query(random() < 0.25 ? 'ROLLBACK' : 'COMMIT');
      }
    };
    const relay = async (): Promise<void> => {
      while (goesOn()) {
        const database = new Database(world.platform.database.url, { size: 1, applicationName: RELAY });
        while (
          goesOn() &&
          (await relayTenant(database, world.tenantId).then(
            () => true,
            () => false,
          ))
        )
          await pause(random() * 10);
        await database.close().catch(() => {});
      }
    };
    let kills = 0;
    const kill = async (): Promise<void> => {
      while (goesOn()) {
        await pause(random() * 400);
        const { rowCount } = await setup.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE $1 AND pid <> pg_backend_pid() LIMIT 1`,
          [`${RELAY}%`],
        );
        kills += rowCount ?? 0;
      }
    };
    const seen: number[] = [];
    const read = async (): Promise<void> => {
      const client = await connect();
      const readOn = async (): Promise<void> => {
        const { rows } = await client.query(
          `SELECT sequence::int FROM ${schema}._outbox WHERE sequence > $1 ORDER BY sequence LIMIT 50`,
          [seen.at(-1) ?? first],
        );
        seen.push(...rows.map(({ sequence }) => sequence));
      };
      while (goesOn()) await readOn();
      await written;
      await relayTenant(world.database, world.tenantId);
      for (let before = -1; before !== seen.length; ) {
        before = seen.length;
        await readOn();
      }
    };
    const written = Promise.all([...Array.from({ length: WRITERS }, write), relay(), relay(), relay(), kill()]);
    await Promise.all([written, read()]);

    const { rows } = await setup.query(
      `SELECT sequence::int, record_id AS id, record_version AS version FROM ${schema}._outbox
        WHERE object = 'Locked' ORDER BY sequence`,
    );
    const versions = await setup.query(`SELECT id, version FROM ${schema}."Locked"`);
    assert.ok(rows.length > 100 && kills > 5, `${rows.length} events, ${kills} relays were killed`);
    assert.deepEqual(
      rows.map(({ sequence }) => sequence),
      rows.map((_, i) => first + 1 + i),
    );
    assert.deepEqual(
      seen,
      rows.map(({ sequence }) => sequence),
      'a follower has seen each once',
    );
    for (const { id, version } of versions.rows)
      assert.deepEqual(
        rows.filter((row) => row.id === id).map((row) => row.version),
        Array.from({ length: version }, (_, i) => i + 1),
      );
  });
});

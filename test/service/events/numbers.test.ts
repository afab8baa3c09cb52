/** What operators are told of events: how late they get their numbers, and which deliveries should have been sent. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { broadcast } from '../../../contracts/call.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { relayTenant } from '../../../services/events/log/relay.ts';
import { type DeliveryNumbers, deliveryNumbersStatement } from '../../../services/events/webhooks/delivery.sql.ts';
import { until } from '../../support/until.ts';
import { createWorld, type World } from '../data/world.ts';

describe('numbers about events', function () {
  this.timeout(120_000);
  let world: World;
  let schema: string;
  let sql: pg.Client;
  before(async () => {
    world = await createWorld();
    schema = `"${tenantSchema(world.tenantId)}"`;
    sql = new pg.Client({ connectionString: world.platform.database.url });
    await sql.connect();
  });
  after(async () => {
    await sql?.end();
    await world?.stop();
  });

  it('say how late the relay is, also when it cannot go on', async () => {
    const holder = new pg.Client({ connectionString: world.platform.database.url });
    await holder.connect();
    const late: number[] = [];
    try {
      await holder.query('BEGIN');
      await holder.query(`SELECT FROM ${schema}._event_head FOR UPDATE`);
      await sql.query(
        `INSERT INTO ${schema}._outbox (type, object, record_id, record_version, data, at)
          VALUES ('data.record.updated', 'Company__c', $1, 1, '{}', now() - interval '90 s')`,
        [randomUUID()],
      );
      await assert.rejects(relayTenant(world.database, world.tenantId, (seconds) => late.push(seconds)));
      assert.ok(late.length === 1 && late[0]! >= 90 && late[0]! < 120, String(late));
    } finally {
      await holder.end();
    }
    broadcast(world.platform.broker, 'events.log.written', { tenantIds: [world.tenantId] });
    const lag = async (): Promise<number> => {
      const text = await (await fetch(`${world.platform.baseUrl}/metrics`)).text();
      return Number(/^erp_events_relay_lag_seconds (\S+)$/m.exec(text)?.[1]);
    };
    await until(async () => (await lag()) >= 90);
    assert.equal((await relayTenant(world.database, world.tenantId, (seconds) => late.push(seconds))).count, 0);
    assert.equal(late.length, 1, 'nothing waits any more');
  });

  it('tell deliveries that are due from those that wait, by tenants together', async () => {
    const read = (): Promise<DeliveryNumbers> =>
      world.database.login((tx) => tx.one<DeliveryNumbers>(deliveryNumbersStatement()));
    const subscribe = async (
      tenantId: string,
      state: string,
    ): Promise<(status: string, due: string, subject: string) => Promise<void>> => {
      const id = randomUUID();
      await sql.query(
        `INSERT INTO events.subscriptions (tenant_id, subscription_id, user_id, client_id, grant_id, name, url, event_types, objects, payload,
           ordering, signing, state, secrets, position)
         VALUES ($1, $2, $2, 'c', 'g', 'n', 'https://x.example', '{}', '{}', 'thin', 'perRecord', 'hmac', $3, '[]', 9007199254740991)`,
        [tenantId, id, state],
      );
      let sequence = 0;
      return async (status, due, subject) => {
        await sql.query(
          `INSERT INTO events.deliveries (tenant_id, delivery_id, subscription_id, sequence, event_type, subject, status, next_at)
           VALUES ($1, $2, $3, $4, 'data.record.created', $5, $6, now() + $7::interval)`,
          [tenantId, randomUUID(), id, ++sequence, subject, status, due],
        );
      };
    };
    assert.deepEqual(await read(), { due: 0, waiting: 0, parked: 0, oldestSeconds: 0 });
    const paused = await subscribe(world.tenantId, 'paused');
    await paused('pending', '-1 hour', 'A');
    const active = await subscribe(world.tenantId, 'active');
    await active('pending', '1 hour', 'A');
    await active('pending', '-50 min', 'A');
    await active('parked', '-1 hour', 'B');
    await active('delivered', '-1 hour', 'B');
    const other = await subscribe(world.otherTenantId, 'active');
    await other('pending', '-10 min', 'A');
    const { oldestSeconds, ...counts } = await read();
    assert.deepEqual(counts, { due: 1, waiting: 2, parked: 1 });
    assert.ok(oldestSeconds >= 600 && oldestSeconds < 700, String(oldestSeconds));
  });
});

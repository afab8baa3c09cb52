import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Statement } from '../../../mixins/database/statement.ts';
import { Metrics } from '../../../mixins/metrics/metrics.ts';
import { RetentionNumbers } from '../../../services/data/maintenance/numbers.ts';
import {
  EXPIRING,
  removeEventsStatement,
  removeExpiredStatement,
} from '../../../services/data/maintenance/sweep.sql.ts';
import { sweepTenant } from '../../../services/data/maintenance/sweep.ts';
import { type SendUser, sendUnsentUsers } from '../../../services/data/users/sync.ts';
import { relayTenant } from '../../../services/events/log/relay.ts';
import { createWorld, type World } from './world.ts';

describe('background work on records', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());
  const sweep = (mayGoOn = () => true) => sweepTenant(world.database, world.tenantId, mayGoOn);
  const sendUsers = (send: SendUser) => sendUnsentUsers(world.database, world.tenantId, send);

  it('provisions users idempotently', async () => {
    const users = [
      { username: 'boss@one.example', email: 'boss@one.example', displayName: 'Boss', profileApiName: 'Administrator' },
      {
        username: 'aide@one.example',
        email: 'aide@one.example',
        displayName: 'Aide',
        profileApiName: 'Clerk',
        permissionSetApiNames: ['UserAdmin'],
        managerUsername: 'boss@one.example',
      },
    ];
    const provision = () =>
      world.platform.broker.call('data.users.provision', { tenantId: world.tenantId, users }) as Promise<{
        userIds: Record<string, string>;
        signInNames: Record<string, string>;
      }>;
    const first = await provision();
    assert.deepEqual(await provision(), first);
    assert.deepEqual(Object.keys(first.signInNames), Object.keys(first.userIds), 'what they type to sign in');
    const aide = (await world.admin.get('User', first.userIds['aide@one.example']!)).body;
    assert.equal(aide.managerId, first.userIds['boss@one.example']);
    assert.deepEqual(aide.permissionSetApiNames, ['UserAdmin']);
    assert.equal(aide.name, 'Aide');
  });

  it('loads sample records once and continues automatic numbers after them', async () => {
    const rows = Array.from({ length: 1_500 }, (_, n) => [
      randomUUID(),
      `TIC-${String(n + 1).padStart(5, '0')}`,
      world.clerk.userId,
      '2026-01-02T03:04:05Z',
    ]);
    const load = () =>
      world.platform.broker.call('data.samples.load', {
        tenantId: world.tenantId,
        objectApiName: 'Ticket__c',
        columns: ['id', 'name', 'ownerId', 'createdAt'],
        rows,
      });
    assert.deepEqual(await load(), { inserted: 1_500 });
    assert.deepEqual(await load(), { inserted: 0 });
    const { body } = await world.clerk.get('Ticket__c', rows[0]![0]!);
    assert.equal(body.createdAt, '2026-01-02T03:04:05+00:00');
    assert.equal(body.updatedAt, body.createdAt);
    assert.equal(body.createdById, world.clerk.userId);
    assert.equal((await world.clerk.create('Ticket__c', {})).body.name, 'TIC-01501');
  });

  it('removes keys after their retention and deleted records after 30 days, and nothing else', async () => {
    await world.clerk.create('Company__c', { name: 'a' }, { key: 'sweep-old-key' });
    await world.clerk.create('Company__c', { name: 'b' }, { key: 'sweep-new-key' });
    await world.rows(
      `UPDATE $schema._idempotency SET expires_at = now() - interval '1 hour' WHERE key = 'sweep-old-key'`,
    );
    const ids: string[] = [];
    for (const name of ['old', 'new']) {
      const { body } = await world.clerk.create('Company__c', { name });
      await world.clerk.delete('Company__c', body.id, { etag: '"1"' });
      ids.push(body.id);
    }
    await world.rows(
      `UPDATE $schema._recycle_bin SET restorable_until = now() - interval '1 hour' WHERE record_id = $1`,
      [ids[0]],
    );
    await world.rows(
      `INSERT INTO $schema._shares (share_id, object, record_id, principal_type, principal_id, access, created_by_id)
        SELECT gen_random_uuid(), 'Company__c', unnest($1::uuid[]), 'role', 'R', 'read', $2`,
      [ids, world.clerk.userId],
    );
    await world.rows(
      `INSERT INTO $schema._revoked_shares (share_id, object, record_id, principal_type, principal_id, access, created_at, created_by_id, revoked_by_id, granted_tx, kept_until)
        SELECT gen_random_uuid(), 'Company__c', $1, 'role', 'R', 'read', now(), $2, $2, '3'::xid8, now() + days * interval '1 day' FROM unnest(ARRAY[-1, 1]) days`,
      [ids[1], world.clerk.userId],
    );
    await world.rows(
      `INSERT INTO $schema._confirmations (confirmation_id, expires_at)
        SELECT gen_random_uuid(), now() + hours * interval '1 hour' FROM unnest(ARRAY[-1, 1]) hours`,
    );
    const swept = await sweep();
    assert.deepEqual(swept, {
      removed: { keys: 1, records: 1, shares: 1, confirmations: 1, events: 0, audit: 0 },
      unfinished: [],
    });
    const keys = await world.rows(`SELECT key FROM $schema._idempotency WHERE key LIKE 'sweep-%'`);
    assert.deepEqual(
      keys.map((row) => row['key']),
      ['sweep-new-key'],
    );
    const bin = await world.rows('SELECT record_id FROM $schema._recycle_bin');
    assert.deepEqual(
      bin.map((row) => row['record_id']),
      [ids[1]],
    );
    const shares = await world.rows('SELECT record_id FROM $schema._shares');
    assert.deepEqual(shares, [{ record_id: ids[1] }], 'a record takes its shares along when it goes for good');
    assert.equal((await world.rows('SELECT FROM $schema._revoked_shares')).length, 1);
  });

  it('removes events after seven days in any number, except users not yet synced to auth', async () => {
    // By age, oldest first, as they were written: two batches of old ones, between them one that is still to be sent.
    await world.rows('DELETE FROM $schema._outbox');
    const insert = (type: string, days: number, count: number) =>
      world.rows(
        `INSERT INTO $schema._outbox (at, type, record_id, data)
          SELECT now() - $2 * interval '1 day', $1, $4, '{}' FROM generate_series(1, $3)`,
        [type, days, count, world.clerk.userId],
      );
    await insert('data.record.updated', 9, 5_000);
    await insert('auth.user.sync', 30, 1);
    await insert('data.record.updated', 8, 12);
    await insert('data.record.updated', 6.9, 3);
    await relayTenant(world.database, world.tenantId);
    const left = async () =>
      (await world.rows('SELECT type, count(*)::int FROM $schema._outbox GROUP BY type ORDER BY type')).map((row) => [
        row['type'],
        row['count'],
      ]);
    const interrupted = await sweep(() => false);
    assert.deepEqual([interrupted.removed.events, interrupted.unfinished], [5_000, ['events']]);
    assert.equal((await sweep()).removed.events, 12);
    assert.deepEqual(await left(), [
      ['auth.user.sync', 1],
      ['data.record.updated', 3],
    ]);
    await assert.rejects(
      sendUsers(async () => {
        throw new Error('Auth is away.');
      }),
      /Auth is away/,
    );
    assert.equal((await left()).length, 2);
    const sent: string[] = [];
    await sendUsers(async (_, { userId }) => sent.push(userId));
    assert.deepEqual([sent, await left()], [[world.clerk.userId], [['data.record.updated', 3]]]);
  });

  it('reports stored, removed and remaining amounts', async () => {
    const metrics = new Metrics();
    const numbers = new RetentionNumbers();
    numbers.register(metrics, world.database);
    const metricOf = async (line: string): Promise<number> => {
      const text = await metrics.text();
      const found = text.split('\n').find((one) => one.startsWith(`${line} `));
      assert.ok(found, `${line} in ${text}`);
      return Number(found.slice(line.length));
    };
    await world.rows('ANALYZE $schema._audit');
    await metrics.text();
    const [audit] = await world.rows(
      `SELECT reltuples AS rows, pg_total_relation_size(oid)::float8 AS bytes FROM pg_class WHERE oid = '$schema._audit'::regclass`,
    );
    while (!(await metrics.text()).includes('erp_stored_rows{kind="audit"}')) await pause(10);
    assert.ok((await metricOf('erp_stored_rows{kind="audit"}')) >= audit!['rows']);
    assert.ok((await metricOf('erp_stored_bytes{kind="audit"}')) > audit!['bytes'] / 4, 'the table, at least');
    assert.ok((await metricOf('erp_stored_bytes{kind="records"}')) > 0);
    assert.doesNotMatch(await metrics.text(), /^erp_retention_last_swept_timestamp_seconds/m, 'none yet');
    await world.rows('DELETE FROM $schema._outbox');
    await world.rows(
      `INSERT INTO $schema._outbox (at, type, data) SELECT now() - interval '8 days', 'x', '{}' FROM generate_series(1, 5001)`,
    );
    await relayTenant(world.database, world.tenantId);
    numbers.note(world.tenantId, await sweep(() => false));
    assert.equal(await metricOf('erp_retention_removed_rows_total{kind="events"}'), 5_000);
    assert.equal(await metricOf('erp_retention_tenants_behind{kind="events"}'), 1);
    assert.equal(await metricOf('erp_retention_tenants_behind{kind="keys"}'), 0);
    numbers.note(world.tenantId, await sweep());
    assert.equal(await metricOf('erp_retention_removed_rows_total{kind="events"}'), 5_001);
    assert.equal(await metricOf('erp_retention_tenants_behind{kind="events"}'), 0);
    assert.ok((await metricOf('erp_retention_last_swept_timestamp_seconds')) > Date.now() / 1_000 - 60);
  });

  it('finds expired rows by an index, also in long-used tables', async () => {
    const schema = `"t_${world.tenantId.replaceAll('-', '')}"`;
    const scans = ({ text, values }: Statement): Promise<string> =>
      world.database.transaction(async (tx) => {
        // Tables of tests are small.
        await tx.query('SET LOCAL enable_seqscan = off');
        await tx.query('SET LOCAL enable_bitmapscan = off');
        const plan = await tx.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, values);
        return plan.rows.map((row) => row['QUERY PLAN']).join('\n');
      });
    for (const rows of Object.values(EXPIRING)) {
      const found = await scans(removeExpiredStatement(schema, rows));
      const name = /Index Scan using (\w+)/.exec(found)?.[1];
      const [index] = await world.rows(
        `SELECT indexdef FROM pg_indexes WHERE schemaname = '${schema.slice(1, -1)}' AND indexname = $1`,
        [name],
      );
      assert.match(
        index?.['indexdef'] ?? '',
        new RegExp(`ON \\S+\\.${rows.table} USING btree \\(${rows.column}\\)$`),
        found,
      );
    }
    const events = await scans(removeEventsStatement(schema, 0));
    assert.match(events, /Index Scan using _outbox_sequence on _outbox /);
    assert.doesNotMatch(events, /Seq Scan on _outbox /);
  });
});

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { codes, createWorld, type Person, refusal, type World } from './world.ts';

describe('records under faults and concurrency', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  const schema = () => `t_${world.tenantId.replaceAll('-', '')}`;

  /** Runs `work` while another session holds a lock, then ends the sessions of the platform that wait for it (or their statements). */
  async function whileBlocked(
    lock: string,
    work: () => Promise<unknown>,
    killed: () => Promise<void>,
    end: 'pg_terminate_backend' | 'pg_cancel_backend' = 'pg_terminate_backend',
  ): Promise<unknown> {
    const client = new pg.Client(world.platform.database.url);
    await client.connect();
    try {
      await client.query('BEGIN');
      await client.query(lock);
      const outcome = work();
      let ended = false;
      outcome
        .catch(() => {})
        .finally(() => {
          ended = true;
        });
      // However long it takes to come to the lock.
      while (!ended) {
        const { rows } = await client.query(
          `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        for (const { pid } of rows) await client.query(`SELECT ${end}($1)`, [pid]);
        if (rows.length) break;
        await pause(20);
      }
      await killed();
      await client.query('ROLLBACK');
      return await outcome;
    } finally {
      await client.end();
    }
  }

  it('creates one record although the connection dies in the middle', async () => {
    const make = () => world.clerk.create('Company__c', { name: 'Survivor' }, { key: 'survivor-key' });
    await whileBlocked(`LOCK TABLE ${schema()}."Company__c" IN EXCLUSIVE MODE`, make, async () => {});
    await make();
    const rows = await world.rows(`SELECT id FROM $schema."Company__c" WHERE name = 'Survivor'`);
    assert.equal(rows.length, 1);
    const events = await world.rows('SELECT FROM $schema._outbox WHERE record_id = $1', [rows[0]!['id']]);
    assert.equal(events.length, 1);
  });

  it('changes a record once although the connection dies inside the transaction', async () => {
    const { body } = await world.clerk.create('Company__c', { name: 'Locked' });
    const change = () => world.clerk.update('Company__c', body.id, { Count__c: 1 }, { etag: '"1"', key: 'locked-key' });
    await whileBlocked(
      `SELECT FROM ${schema()}."Company__c" WHERE id = '${body.id}' FOR UPDATE`,
      change,
      async () => {},
    );
    const again = await change();
    assert.equal(again.headers['ETag'], '"2"');
    const [history] = await world.rows('SELECT count(*)::int FROM $schema._history WHERE record_id = $1', [body.id]);
    assert.equal(history!['count'], 2);
  });

  it('answers 503 for a canceled statement, without a change', async () => {
    const lock = `LOCK TABLE ${schema()}."Company__c" IN ACCESS EXCLUSIVE MODE`;
    const { body } = await world.clerk.create('Company__c', { name: 'Slow' });
    const given = (work: () => Promise<unknown>) =>
      refusal(whileBlocked(lock, work, async () => {}, 'pg_cancel_backend'));
    const change = () => world.clerk.update('Company__c', body.id, { Count__c: 1 }, { etag: '"1"', key: 'slow-key' });
    for (const work of [
      () => world.clerk.list('Company__c', {}),
      () => world.clerk.get('Company__c', body.id),
      change,
    ]) {
      const { code, status, retryable } = (await given(work)) as unknown as Record<string, unknown>;
      assert.deepEqual([code, status, retryable], ['SERVICE_UNAVAILABLE', 503, true]);
    }
    assert.equal((await change()).headers['ETag'], '"2"', 'the same key may be sent again');
  });

  it('waits for a deployment that changes the table, beyond the limit for other writers', async () => {
    const { body } = await world.clerk.create('Company__c', { name: 'Waiting' });
    const client = new pg.Client(world.platform.database.url);
    await client.connect();
    await client.query('BEGIN');
    await client.query(`SELECT FROM ${schema()}._state FOR UPDATE`);
    await client.query(`LOCK TABLE ${schema()}."Company__c" IN ACCESS EXCLUSIVE MODE`);
    const writes = [
      world.clerk.create('Company__c', { name: 'Waiting, too' }),
      world.clerk.update('Company__c', body.id, { Count__c: 1 }, { etag: '"1"' }),
    ];
    await pause(2_600);
    await client.query('ROLLBACK');
    await client.end();
    assert.deepEqual(
      (await Promise.all(writes)).map(({ status }) => status),
      [201, 200],
    );
  });

  it('does not keep a transaction open when a step refuses', async () => {
    const { body } = await world.clerk.create('Company__c', { name: 'Idle' });
    for (let i = 0; i < 20; i++)
      await refusal(world.clerk.update('Company__c', body.id, { Count__c: 'x' }, { etag: '"1"' }));
    const rows = await world.rows(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
    );
    assert.equal(rows.length, 0);
    assert.equal((await world.clerk.update('Company__c', body.id, { Count__c: 1 }, { etag: '"1"' })).status, 200);
  });

  it('reports contention when a record stays locked', async function () {
    this.timeout(15_000);
    const { body } = await world.clerk.create('Company__c', { name: 'Held' });
    const client = new pg.Client(world.platform.database.url);
    await client.connect();
    try {
      await client.query('BEGIN');
      await client.query(`SELECT FROM ${schema()}."Company__c" WHERE id = $1 FOR UPDATE`, [body.id]);
      const error = await refusal(
        world.clerk.update('Company__c', body.id, { Count__c: 1 }, { etag: '"1"', key: 'held-key' }),
      );
      assert.equal(error.code, 'WRITE_CONTENTION');
      await client.query('ROLLBACK');
    } finally {
      await client.end();
    }
    assert.equal(
      (await world.clerk.update('Company__c', body.id, { Count__c: 1 }, { etag: '"1"', key: 'held-key' })).status,
      200,
    );
  });

  it('writes through a series of deployments without a wrong answer', async function () {
    this.timeout(30_000);
    // More than a request tries at one configuration: those behind it must not run out of attempts.
    const numbers = [0, 1, 2, 3, 4, 5, 6, 7];
    let deploying = true;
    const deployments = (async () => {
      for (const n of numbers)
        await world.deploy(world.tenantId, {
          [`objects/Company__c/fields/During${n}__c.yaml`]: `type: CustomField\napiName: During${n}__c\nobject: Company__c\nlabel: During ${n}\nfieldType: integer\ndefaultValue: ${n}\n`,
        });
      deploying = false;
    })();
    let written = 0;
    const writer = async (): Promise<void> => {
      while (deploying) {
        const reply = await world.admin.create('Company__c', { name: 'During' });
        assert.equal(reply.status, 201);
        // Each answer is of one version of the configuration: fields up to some number, each with its default.
        const present = numbers.filter((n) => `During${n}__c` in reply.body);
        assert.deepEqual(present, numbers.slice(0, present.length));
        for (const n of present) assert.equal(reply.body[`During${n}__c`], n);
        const read = await world.admin.get('Company__c', reply.body.id);
        assert.equal(read.status, 200);
        written++;
      }
    };
    await Promise.all([deployments, writer(), writer(), writer()]);
    assert.ok(written > 0);
    const { body } = await world.admin.create('Company__c', { name: 'After' });
    assert.deepEqual([body.During0__c, body.During3__c, body.During7__c], [0, 3, 7]);
  });

  it('waits for a deployment that holds the configuration and then the table', async function () {
    this.timeout(20_000);
    const { body } = await world.clerk.create('Company__c', { name: 'Waiting' });
    const client = new pg.Client(world.platform.database.url);
    await client.connect();
    try {
      await client.query('BEGIN');
      await client.query("SET LOCAL deadlock_timeout = '15s'");
      await client.query(`SELECT FROM ${schema()}._state FOR UPDATE`);
      const writes = Promise.all([
        world.clerk.create('Company__c', { name: 'Patient' }),
        world.clerk.update('Company__c', body.id, { Count__c: 1 }, { etag: '"1"' }),
      ]);
      await pause(300);
      await client.query(`LOCK TABLE ${schema()}."Company__c" IN ACCESS EXCLUSIVE MODE`);
      await pause(2_500);
      await client.query('COMMIT');
      assert.deepEqual(
        (await writes).map((reply) => reply.status),
        [201, 200],
      );
    } finally {
      await client.end();
    }
  });

  it('leaves no orphan when the parent is deleted concurrently', async () => {
    for (let round = 0; round < 5; round++) {
      const { body } = await world.clerk.create('Company__c', { name: 'Parent' });
      const results = await Promise.allSettled([
        world.clerk.delete('Company__c', body.id, { etag: '"1"' }),
        ...[1, 2, 3].map((n) => world.clerk.create('Item__c', { name: `Item ${n}`, CompanyId__c: body.id })),
      ]);
      for (const result of results)
        if (result.status === 'rejected')
          assert.ok(
            ['WRITE_CONTENTION', 'DELETE_RESTRICTED'].includes(result.reason.code) ||
              codes(result.reason).join() === '/CompanyId__c REFERENCE_NOT_FOUND',
            String(result.reason),
          );
      const orphans = await world.rows(
        'SELECT FROM $schema."Item__c" i WHERE NOT EXISTS (SELECT FROM $schema."Company__c" c WHERE c.id = i."CompanyId__c")',
      );
      assert.equal(orphans.length, 0);
    }
  });

  it('loses no update among twenty writers that retry on conflict', async function () {
    this.timeout(30_000);
    const { body } = await world.clerk.create('Company__c', { name: 'Counter', Count__c: 0 });
    const increment = async (person: Person): Promise<void> => {
      for (;;) {
        const { body: current, headers } = await person.get('Company__c', body.id);
        try {
          await person.update('Company__c', body.id, { Count__c: current.Count__c + 1 }, { etag: headers['ETag']! });
          return;
        } catch (error) {
          assert.match((error as { code: string }).code, /^(ETAG_MISMATCH|WRITE_CONTENTION)$/);
        }
      }
    };
    await Promise.all(Array.from({ length: 20 }, (_, n) => increment(n % 2 ? world.clerk : world.admin)));
    const { body: after } = await world.clerk.get('Company__c', body.id);
    assert.equal(after.Count__c, 20);
    assert.equal(after.recordVersion, 21);
  });
});

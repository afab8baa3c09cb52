/** Updates that one statement makes, and those that must find their way behind it. docs/reference/idempotency.md */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { createWorld, refusal, type World } from './world.ts';

describe('updates by a single statement', () => {
  let world: World;
  let schema: string;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    schema = `"t_${world.tenantId.replaceAll('-', '')}"`;
  });
  after(() => world?.stop());

  const company = async (body: Record<string, unknown> = {}): Promise<string> =>
    (await world.clerk.create('Company__c', { name: 'Acme', ...body })).body.id;

  /** First words of the statements about companies that are sent meanwhile. */
  async function sentDuring(work: () => Promise<unknown>): Promise<string[]> {
    const sent: string[] = [];
    const { query } = pg.Client.prototype as unknown as { query: (...given: unknown[]) => unknown };
    const listening = function (this: unknown, ...given: unknown[]): unknown {
      const [asked] = given as [string | { text: string }];
      const text = typeof asked === 'string' ? asked : asked.text;
      if (text.includes('"Company__c"')) sent.push(text.split(/\s/, 1)[0]!);
      return query.apply(this, given);
    };
    Object.assign(pg.Client.prototype, { query: listening });
    try {
      await work();
    } finally {
      Object.assign(pg.Client.prototype, { query });
    }
    return sent;
  }

  /** Does the work while another transaction holds the record, and lets go of it in the end. */
  async function whileHeld<T>(id: string, change: string, work: () => Promise<T>, first = ''): Promise<T> {
    const other = new pg.Client(world.platform.database.url);
    await other.connect();
    try {
      await other.query(`BEGIN; ${first}`);
      await other.query(`UPDATE ${schema}."Company__c" SET ${change} WHERE id = $1`, [id]);
      const done = work();
      done.catch(() => {});
      const { rows } = await other.query('SELECT pg_backend_pid() AS pid');
      const waiting = () =>
        world.rows('SELECT FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))', [rows[0].pid]);
      while ((await waiting()).length === 0) await pause(20);
      await other.query('COMMIT');
      return await done;
    } finally {
      await other.end();
    }
  }

  it('use one statement when nothing depends on stored values', async () => {
    const id = await company({ Amount__c: 5 });
    const change = (etag: string) => () =>
      world.clerk.update('Company__c', id, { Amount__c: 6, Count__c: 1 }, { etag });
    assert.deepEqual(await sentDuring(change('"1"')), ['WITH']);
    const equal = await sentDuring(change('"2"'));
    assert.deepEqual(equal, ['WITH', 'WITH', 'WITH'], 'nothing differs: the longer way keeps the key');
  });

  it('use one statement and a look-up when addressed by an external id', async () => {
    const id = await company({ Code__c: 'BY-CODE' });
    const upsert = (body: Record<string, unknown>, options = {}) =>
      world.clerk.send(
        'data.records.upsert',
        { objectApiName: 'Company__c', externalIdField: 'Code__c', value: 'BY-CODE' },
        {},
        body,
        options,
      );
    assert.deepEqual(await sentDuring(() => upsert({ Count__c: 1 })), ['SELECT', 'WITH']);
    const etag = '"2"';
    assert.equal((await upsert({ Count__c: 2 }, { etag })).headers['ETag'], '"3"');
    assert.equal((await refusal(upsert({ Count__c: 3 }, { etag }))).code, 'ETAG_MISMATCH');
    assert.equal((await upsert({})).headers['ETag'], '"3"', 'nothing to change');
    assert.equal((await world.clerk.get('Company__c', id)).body.Count__c, 2);
  });

  it('report only changed fields, and store the response', async () => {
    const id = await company({ Amount__c: 5, Note__c: 'keep', Tags__c: ['x'], Data__c: { a: 1 } });
    const reply = await world.clerk.update(
      'Company__c',
      id,
      { Amount__c: '5.00', Quantity__c: 1.2345e1, Tags__c: ['y'], Note__c: null, Data__c: { a: 1 } },
      { etag: '"1"', key: 'differing-fields' },
    );
    assert.equal(reply.headers['ETag'], '"2"');
    assert.equal((await world.clerk.get('Company__c', id)).text, reply.text);
    const expected = {
      Quantity__c: { from: null, to: 12.345 },
      Tags__c: { from: ['x'], to: ['y'] },
      Note__c: { from: 'keep', to: null },
    };
    const left = await world.rows(
      `SELECT h.changes, a.changes AS audited, o.record_version AS told, a.record_version, k.state, k.status, k.body, k.headers
       FROM $schema._audit a JOIN $schema._idempotency k ON k.key = a.idempotency_key
         JOIN $schema._history h ON h.record_id = a.record_id AND h.operation = 'update'
         JOIN $schema._outbox o ON o.record_id = a.record_id AND o.type = 'data.record.updated'
       WHERE a.idempotency_key = 'differing-fields'`,
    );
    assert.deepEqual(left, [
      {
        changes: expected,
        audited: expected,
        told: 2,
        record_version: 2,
        state: 'COMPLETED',
        status: 200,
        body: reply.text,
        headers: { ETag: '"2"' },
      },
    ]);
  });

  it('wait for a lock on the record, then check its version', async () => {
    const touched = await company();
    const reply = await whileHeld(touched, `"Note__c" = 'theirs'`, () =>
      world.clerk.update('Company__c', touched, { Count__c: 1 }, { etag: '"1"' }),
    );
    assert.equal(reply.headers['ETag'], '"2"');
    assert.equal(reply.body.Note__c, 'theirs');
    const changed = await company();
    const error = await whileHeld(changed, '"recordVersion" = 2', () =>
      refusal(world.clerk.update('Company__c', changed, { Count__c: 1 }, { etag: '"1"' })),
    );
    assert.equal(error.code, 'ETAG_MISMATCH');
  });

  it('change the current record after waiting for a deployment', async () => {
    const id = await company({ Amount__c: 5 });
    let reply: Awaited<ReturnType<typeof world.clerk.update>> | undefined;
    const sent = await sentDuring(async () => {
      const update = () => world.clerk.update('Company__c', id, { Amount__c: 6, Count__c: 1 }, { etag: '"1"' });
      reply = await whileHeld(
        id,
        `"Note__c" = 'theirs', "Amount__c" = 6`,
        update,
        `SELECT FROM ${schema}._state FOR UPDATE`,
      );
    });
    assert.deepEqual(sent, ['UPDATE', 'WITH'], 'theirs, then ours');
    assert.equal(reply!.body.Note__c, 'theirs');
    assert.equal((await world.clerk.get('Company__c', id)).text, reply!.text);
    const [history] = await world.rows(
      `SELECT changes FROM $schema._history WHERE record_id = $1 AND operation = 'update'`,
      [id],
    );
    assert.deepEqual(history!['changes'], { Count__c: { from: null, to: 1 } });
  });

  it('give duplicate requests that wait for the same record one outcome', async () => {
    const id = await company();
    const twin = () => world.clerk.update('Company__c', id, { Count__c: 1 }, { etag: '"1"', key: 'waiting-twins' });
    const replies = await whileHeld(id, `"Note__c" = 'held'`, () => Promise.all([twin(), twin(), twin()]));
    assert.equal(new Set(replies.map((reply) => reply.text)).size, 1);
    assert.equal(replies.filter((reply) => reply.headers['Idempotency-Replayed'] === 'true').length, 2);
    const rows = await world.rows('SELECT FROM $schema._history WHERE record_id = $1', [id]);
    assert.equal(rows.length, 2, 'the create and one update');
  });

  it('release the record while another request holds the key, which may wait for it', async () => {
    const id = await company();
    const other = new pg.Client(world.platform.database.url);
    await other.connect();
    try {
      await other.query(
        `BEGIN; INSERT INTO ${schema}._idempotency (client_id, user_id, key, fingerprint, state, request_id)
           VALUES ('test', '${world.clerk.userId}', 'held-by-another', 'of another', 'RESERVED', 'another')`,
      );
      let ended = false;
      const done = world.clerk
        .update('Company__c', id, { Count__c: 1 }, { etag: '"1"', key: 'held-by-another' })
        .finally(() => {
          ended = true;
        });
      done.catch(() => {});
      const { rows } = await other.query('SELECT pg_backend_pid() AS pid');
      const waiting = 'SELECT FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))';
      while ((await world.rows(waiting, [rows[0].pid])).length === 0) await pause(5);
      const free = `SELECT FROM $schema."Company__c" WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED`;
      while ((await world.rows(free, [id])).length === 0) await pause(5);
      assert.equal(ended, false, 'still waiting for the key');
      await other.query('ROLLBACK');
      assert.equal((await done).headers['ETag'], '"2"');
    } finally {
      await other.end();
    }
  });

  it('change nothing under the key of another request, with any version', async () => {
    const id = await company({ Count__c: 1 });
    const other = await company();
    await world.clerk.update('Company__c', other, { Count__c: 7 }, { etag: '"1"', key: 'key-of-another' });
    const change = world.clerk.update('Company__c', id, { Count__c: 2 }, { etag: '"1"', key: 'key-of-another' });
    assert.equal((await refusal(change)).code, 'IDEMPOTENCY_KEY_REUSED');
    const read = await world.clerk.get('Company__c', id);
    assert.equal(read.headers['ETag'], '"1"');
    assert.equal(read.body.Count__c, 1);
    // The stored outcome also where the record could be changed once more.
    const again = () =>
      world.clerk.update('Company__c', id, { Count__c: 3 }, { etag: '"1", "2", "3"', key: 'any-version-key' });
    const first = await again();
    await world.clerk.update('Company__c', id, { Count__c: 4 }, { etag: '"2"' });
    const second = await again();
    assert.equal(second.text, first.text);
    assert.equal((await world.clerk.get('Company__c', id)).body.Count__c, 4);
  });

  it('accept the key of a failed request again', async () => {
    const id = await company();
    const holder = await company({ Code__c: 'AT-ONCE' });
    const change = () =>
      world.clerk.update('Company__c', id, { Code__c: 'AT-ONCE' }, { etag: '"1"', key: 'failed-update' });
    assert.equal((await refusal(change())).code, 'UNIQUE_VALUE_CONFLICT');
    await world.clerk.delete('Company__c', holder, { etag: '"1"' });
    assert.equal((await change()).headers['ETag'], '"2"');
  });
});

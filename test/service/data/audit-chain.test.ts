/** The chain over the audit trail: it takes in every committed row once, and tells when anything was tampered with. */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { call } from '../../../contracts/call.ts';
import type { Verification, VerifyRequest } from '../../../contracts/data/trail.ts';
import { Database, type Tx } from '../../../mixins/database/database.ts';
import { removeExpired, sealTenant } from '../../../services/data/trail/chain.ts';
import { verifyTenant } from '../../../services/data/trail/verify.ts';
import { createWorld, type World } from './world.ts';

describe('the chain over the audit trail', () => {
  let world: World;
  let database: Database;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    database = new Database(world.platform.database.url, { size: 6, applicationName: 'chain test' });
    // The tests control sealing: no scheduled round runs.
    await database.query("UPDATE pgboss.job SET start_after = 'infinity' WHERE name = 'data.seal'");
    await database.query(
      `INSERT INTO pgboss.job (name, policy, start_after, keep_until)
        SELECT name, policy, 'infinity', 'infinity' FROM pgboss.queue WHERE name = 'data.seal' ON CONFLICT DO NOTHING`,
    );
  });
  after(async () => {
    await database?.close();
    await world?.stop();
  });

  const verify = async (more: Partial<VerifyRequest> = {}): Promise<Verification> => {
    let request: VerifyRequest = { tenantId: world.tenantId, ...more };
    for (;;) {
      const part = await verifyTenant(database, request);
      if (part.next === null) return part;
      request = { ...request, from: part.next };
    }
  };
  const seal = () => sealTenant(database, world.tenantId);
  const remove = () => removeExpired(database, world.tenantId);
  const write = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) await world.clerk.create('Company__c', { name: `Company ${n}` });
  };
  const schema = () => `"t_${world.tenantId.replaceAll('-', '')}"`;

  /** Does something to the trail that only the owner of the database could, and sees the check find it. */
  const tampered = async (statements: string[], problem: string, position: number | null): Promise<void> => {
    const trouble = new Error('undo');
    let found: Verification | undefined;
    await database
      .transaction(async (tx) => {
        for (const statement of statements) await tx.query(statement.replaceAll('$schema', schema()));
        // The same check on this connection, which alone sees the change.
        const inside = {
          tenant: (_: string, work: (inner: object) => unknown) =>
            work({ schema: schema(), all: tx.all.bind(tx), first: tx.first.bind(tx), one: tx.one.bind(tx) }),
        };
        let request: VerifyRequest = { tenantId: world.tenantId };
        do {
          found = await verifyTenant(inside as unknown as Database, request);
          if (found.next) request = { ...request, from: found.next };
        } while (found.next);
        throw trouble;
      })
      .catch((error) => {
        if (error !== trouble) throw error;
      });
    assert.deepEqual([found!.broken?.problem, found!.broken?.position], [problem, position], statements.join('; '));
  };
  const at = (position: number): string => `(SELECT audit_id FROM $schema._audit_chain WHERE position = ${position})`;

  it('seals every row once with concurrent sealers', async () => {
    await write(5);
    assert.ok((await verify()).unsealed >= 5);
    const sealed = await Promise.all([seal(), seal(), seal()]);
    assert.ok(sealed.reduce((sum, count) => sum + count, 0) >= 5);
    const [rows] = await world.rows(
      `SELECT (SELECT count(*)::int FROM $schema._audit) AS rows, (SELECT count(*)::int FROM $schema._audit_chain) AS links,
        (SELECT max(position)::int FROM $schema._audit_chain) AS last`,
    );
    assert.equal(rows!['rows'], rows!['links']);
    assert.equal(rows!['links'], rows!['last'], 'no position is left out');
    const checked = await verify();
    assert.deepEqual([checked.broken, checked.unsealed, checked.checked], [null, 0, rows!['links']]);
    assert.equal(await seal(), 0);
  });

  it('can be recomputed independently from docs/reference/audit.md#the-chain', async () => {
    await write(2);
    await seal();
    const rows = await world.rows(
      `SELECT link.hash, entry.at AS time, jsonb_build_array('audit-' || link.form, entry.audit_id, entry.at,
          entry.user_id, entry.client_id, entry.agent_run_id, channel, operation_id, outcome, code, entry.request_id,
          idempotency_key, entry.object, entry.record_id, kind, entry.record_version, entry.changes, ip) AS entry,
          (SELECT jsonb_agg(jsonb_build_array(change_id, h.at, object, operation, user_id, client_id, agent_run_id, changes)
            ORDER BY change_id) FROM $schema._history h WHERE h.record_id = entry.record_id
              AND h.record_version = entry.record_version AND h.request_id = entry.request_id) AS history
        FROM $schema._audit_chain link JOIN $schema._audit entry USING (audit_id) ORDER BY link.position`,
    );
    assert.ok(rows.some((row) => row['history'] !== null));
    const sha256 = (...parts: (string | Uint8Array)[]): Buffer =>
      createHash('sha256')
        .update(Buffer.concat(parts.map((part) => Buffer.from(part))))
        .digest();
    const time = (value: unknown): string => new Date(String(value)).toISOString();
    let hash: Buffer = Buffer.alloc(32);
    for (const [before, { entry, history, hash: stored }] of rows.entries()) {
      const place = Buffer.alloc(8);
      place.writeBigUInt64BE(BigInt(before + 1));
      const text: unknown[] = (entry as unknown[]).with(2, time((entry as unknown[])[2]));
      text.push(((history ?? []) as unknown[][]).map((row) => row.with(1, time(row[1]))));
      const [printed] = await world.rows('SELECT $1::jsonb::text AS text', [JSON.stringify(text)]);
      hash = sha256(hash, place, sha256(String(printed!['text'])));
      assert.deepEqual(stored, hash);
    }
    assert.equal((await verify()).broken, null);
  });

  it('never forks with concurrent writers and sealers, and includes late commits', async function () {
    this.timeout(30_000);
    const slow = new Database(world.platform.database.url, { size: 1, applicationName: 'slow writer' });
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let written: () => void = () => {};
    const inside = new Promise<void>((resolve) => {
      written = resolve;
    });
    const late = randomUUID();
    const writer = slow.tenantTransaction(world.tenantId, async (tx) => {
      await tx.query(
        `INSERT INTO ${tx.schema}._audit (audit_id, channel, operation_id, outcome, request_id) VALUES ($1, 'job', 'test.late', 'committed', 'req_late')`,
        [late],
      );
      written();
      await held;
    });
    await inside;
    let writing = true;
    const sealers = [1, 2].map(async () => {
      while (writing) await seal();
    });
    await Promise.all([write(25), write(25)]);
    await seal();
    const position = async (id: string): Promise<number | undefined> =>
      (await world.rows('SELECT position::int FROM $schema._audit_chain WHERE audit_id = $1', [id]))[0]?.['position'];
    assert.equal(await position(late), undefined, 'not committed, not sealed');
    assert.equal((await verify()).broken, null);
    release();
    await writer;
    await slow.close();
    writing = false;
    await Promise.all(sealers);
    await seal();
    assert.ok((await position(late))! > 0);
    const { broken, unsealed } = await verify();
    assert.deepEqual([broken, unsealed], [null, 0]);
  });

  it('detects a changed, removed, inserted or swapped row or link', async () => {
    await write(3);
    await seal();
    const { position: last } = await verify();
    const middle = last - 5;
    await tampered(
      [`UPDATE $schema._audit SET outcome = 'denied' WHERE audit_id = ${at(middle)}`],
      'rowAltered',
      middle,
    );
    await tampered(
      [
        `UPDATE $schema._audit SET changes = changes || '{"name":{"from":null,"to":"x"}}' WHERE audit_id = ${at(middle)}`,
      ],
      'rowAltered',
      middle,
    );
    await tampered([`UPDATE $schema._audit SET at = at - interval '1 ms' WHERE audit_id = ${at(2)}`], 'rowAltered', 2);
    await tampered([`DELETE FROM $schema._audit WHERE audit_id = ${at(middle)}`], 'rowMissing', middle);
    await tampered(
      [
        `DELETE FROM $schema._audit WHERE audit_id = ${at(middle)}`,
        `DELETE FROM $schema._audit_chain WHERE position = ${middle}`,
      ],
      'linkMissing',
      middle,
    );
    await tampered(
      [
        `DELETE FROM $schema._audit WHERE audit_id = ${at(last)}`,
        `DELETE FROM $schema._audit_chain WHERE position = ${last}`,
      ],
      'endMissing',
      last,
    );
    const forged = randomUUID();
    await tampered(
      [
        `INSERT INTO $schema._audit SELECT (jsonb_populate_record(a, jsonb_build_object('audit_id', '${forged}'))).* FROM $schema._audit a WHERE audit_id = ${at(middle)}`,
      ],
      'rowInserted',
      null,
    );
    const swap = (columns: string) => [
      `WITH x AS (SELECT * FROM $schema._audit WHERE audit_id = ${at(middle)}), y AS (SELECT * FROM $schema._audit WHERE audit_id = ${at(middle + 1)})
       UPDATE $schema._audit a SET (${columns}) = (SELECT ${columns} FROM (SELECT * FROM y WHERE a.audit_id = (SELECT audit_id FROM x) UNION ALL SELECT * FROM x WHERE a.audit_id = (SELECT audit_id FROM y)) o)
       WHERE a.audit_id IN (${at(middle)}, ${at(middle + 1)})`,
    ];
    await tampered(swap('at, record_id, changes, request_id, idempotency_key'), 'rowAltered', middle);
    await tampered(
      [
        `UPDATE $schema._audit_chain SET position = -1 WHERE position = ${middle}`,
        `UPDATE $schema._audit_chain SET position = ${middle} WHERE position = ${middle + 1}`,
        `UPDATE $schema._audit_chain SET position = ${middle + 1} WHERE position = -1`,
      ],
      'linkAltered',
      middle,
    );
    await tampered(
      [`UPDATE $schema._audit_chain SET hash = sha256(hash) WHERE position = ${middle}`],
      'rowAltered',
      middle,
    );
    // Entries inserted together with a link must not hide behind it.
    const withLink = (position: string) => [
      `INSERT INTO $schema._audit SELECT (jsonb_populate_record(a, jsonb_build_object('audit_id', '${forged}', 'tx', '3'))).* FROM $schema._audit a WHERE audit_id = ${at(middle)}`,
      `INSERT INTO $schema._audit_chain (position, audit_id, prev_hash, hash) VALUES (${position}, '${forged}', '', '')`,
    ];
    await tampered(withLink('0'), 'linkInserted', 0);
    await tampered(withLink('-7'), 'linkInserted', -7);
    await tampered(withLink(String(last + 1)), 'linkInserted', last + 1);
    await tampered(['DELETE FROM $schema._audit_head'], 'headMissing', null);
    assert.equal((await verify()).broken, null, 'all of it was undone');
  });

  it('reports a history row that was changed, removed, added or moved', async () => {
    await write(3);
    await seal();
    const { position: last } = await verify();
    const [entry] = await world.rows(
      `SELECT position::int, audit.record_id, audit.record_version FROM $schema._audit_chain link
        JOIN $schema._audit audit USING (audit_id) JOIN $schema._history USING (record_id, record_version)
        WHERE position < $1 ORDER BY position DESC LIMIT 1`,
      [last],
    );
    const { position, record_id: recordId } = entry as { position: number; record_id: string };
    const row = `record_id = '${recordId}' AND record_version = ${entry!['record_version']}`;
    for (const change of [
      `changes = changes || '{"name":{"from":null,"to":"x"}}'`,
      "at = at - interval '1 ms'",
      "object = 'Account'",
      "operation = 'update'",
      'user_id = gen_random_uuid()',
      "client_id = 'another'",
      'agent_run_id = gen_random_uuid()',
      'change_id = gen_random_uuid()',
      "request_id = 'req_other'",
      'record_version = record_version + 1',
      'record_id = gen_random_uuid()',
    ])
      await tampered([`UPDATE $schema._history SET ${change} WHERE ${row}`], 'rowAltered', position);
    await tampered([`DELETE FROM $schema._history WHERE ${row}`], 'rowAltered', position);
    const added = (changed: string): string[] => [
      `INSERT INTO $schema._history SELECT (jsonb_populate_record(h, jsonb_build_object('change_id', gen_random_uuid(), ${changed}))).*
        FROM $schema._history h WHERE ${row}`,
    ];
    await tampered(added(`'object', h.object`), 'rowAltered', position);
    for (const changed of [`'record_version', 77`, `'request_id', 'req_other'`, `'record_id', gen_random_uuid()`])
      await tampered(added(changed), 'historyInserted', null);
    // The form is part of the digest.
    await tampered([`UPDATE $schema._audit_chain SET form = 2 WHERE position = ${position}`], 'rowAltered', position);
    assert.equal((await verify()).broken, null, 'all of it was undone');
  });

  it('detects a backdated row', async () => {
    await world.rows(
      `INSERT INTO $schema._audit (audit_id, at, channel, operation_id, outcome, request_id)
        VALUES (gen_random_uuid(), now() - interval '2 days', 'job', 'test.backdated', 'committed', 'req_back')`,
    );
    await seal();
    const { broken, position } = await verify();
    assert.deepEqual([broken?.problem, broken?.position], ['rowBackdated', position + 1]);
    await world.rows(`DELETE FROM $schema._audit_chain WHERE position = $1`, [position + 1]);
    await world.rows(`DELETE FROM $schema._audit WHERE operation_id = 'test.backdated'`);
    await world.rows(
      `UPDATE $schema._audit_head SET position = c.position, hash = c.hash FROM $schema._audit_chain c WHERE c.position = $1`,
      [position],
    );
    assert.equal((await verify()).broken, null);
  });

  it('proves that it extends a recorded head', async () => {
    const { position, hash } = await verify();
    await write(2);
    await seal();
    assert.equal((await verify({ expect: { position, hash } })).broken, null);
    const other = await verify({ expect: { position, hash: '0'.repeat(64) } });
    assert.deepEqual([other.broken?.problem, other.broken?.position], ['otherChain', position]);
    assert.equal((await verify({ expect: { position: position + 1_000, hash } })).broken?.problem, 'endMissing');
  });

  it('starts over after a restore, when transaction ids change their meaning', async () => {
    await seal();
    await world.rows(`UPDATE $schema._audit_head SET snapshot = '9000000000000:9000000000000:'::pg_snapshot`);
    await write(3);
    assert.equal((await verify()).broken, null, 'what is not sealed yet is no forgery');
    assert.equal(await seal(), 3);
    const { broken, unsealed } = await verify();
    assert.deepEqual([broken, unsealed], [null, 0]);
  });

  it('stays intact when the oldest rows expire, and keeps tampered rows', async () => {
    // In one go: the chain that grew beside writers may hold its first rows in another order.
    await rechain();
    const before = await verify();
    const old = 20;
    // Rows that were sealed two years ago: aged together with their links.
    await world.rows(
      `UPDATE $schema._audit SET at = at - interval '800 days' WHERE audit_id IN (SELECT audit_id FROM $schema._audit_chain WHERE position <= ${old})`,
    );
    assert.deepEqual(await remove(), { count: 0, more: false }, 'altered rows stay');
    await rechain();
    assert.equal((await verify()).broken, null);
    const histories = () => world.rows('SELECT record_id, record_version FROM $schema._history ORDER BY 1, 2');
    const [known, gone] = [
      await histories(),
      await world.rows(
        `SELECT audit.record_id, audit.record_version FROM $schema._audit audit JOIN $schema._audit_chain USING (audit_id)
          WHERE position <= ${old}`,
      ),
    ];
    const keep = (days: string) =>
      world.deploy(world.tenantId, {
        'settings/General.yaml': `type: TenantSettings\napiName: General\nlocale: en-US\ntimezone: Europe/Berlin\ncurrency: EUR\n${days}`,
      });
    await keep('retention:\n  auditDays: 1000\n');
    assert.deepEqual(await remove(), { count: 0, more: false }, 'the tenant keeps them longer');
    await keep('');
    assert.deepEqual(await remove(), { count: old, more: false });
    const keyOf = ({ record_id, record_version }: Record<string, unknown>): string => `${record_id} ${record_version}`;
    const removed = new Set(gone.map(keyOf));
    assert.deepEqual(
      await histories(),
      known.filter((row) => !removed.has(keyOf(row))),
      'the history of a change goes with its entry',
    );
    assert.ok(known.some((row) => removed.has(keyOf(row))));
    const after = await verify();
    assert.deepEqual([after.broken, after.checked], [null, before.checked - old]);
    assert.deepEqual(await remove(), { count: 0, more: false });
    await seal();
    await write(1);
    assert.equal(await seal(), 1);
    assert.equal((await verify()).broken, null);
  });

  /** Makes the chain anew over the rows as they are, as it would have been made at the time. */
  async function rechain(): Promise<void> {
    await world.rows('DELETE FROM $schema._audit_chain');
    await world.rows('UPDATE $schema._audit_head SET position = 0, hash = anchor_hash, snapshot = NULL');
    await seal();
  }

  it('is append-only for the tenant', async () => {
    const refused = (text: string) =>
      assert.rejects(
        database.tenant(world.tenantId, (tx) => tx.query(text.replaceAll('$schema', tx.schema))),
        { code: '42501' },
        text,
      );
    for (const name of ['_audit', '_audit_chain']) {
      await refused(`DELETE FROM $schema.${name}`);
      await refused(`TRUNCATE $schema.${name}`);
      await refused(`UPDATE $schema.${name} SET audit_id = audit_id`);
    }
    await refused('DELETE FROM $schema._audit_head');
  });

  it('is checked and extended on the bus, too', async () => {
    await write(1);
    const { broker } = world.platform;
    assert.ok((await call(broker, 'data.audit.seal', { tenantId: world.tenantId })).sealed >= 1);
    const { broken, hash } = await call(broker, 'data.audit.verify', { tenantId: world.tenantId });
    assert.equal(broken, null);
    assert.match(hash, /^[0-9a-f]{64}$/);
  });

  it('stays intact when the connection is lost: nothing is sealed twice or omitted', async function () {
    this.timeout(60_000);
    await seal();
    const unsealed = async (): Promise<number> =>
      (
        await world.rows(
          'SELECT count(*)::int FROM $schema._audit a WHERE NOT EXISTS (SELECT FROM $schema._audit_chain c WHERE c.audit_id = a.audit_id)',
        )
      )[0]!['count'];
    let lost = 0;
    for (let moment = 0; ; moment++) {
      // More than one batch.
      await world.rows(
        `INSERT INTO $schema._audit (audit_id, channel, operation_id, outcome, request_id)
          SELECT gen_random_uuid(), 'job', 'test.many', 'committed', 'req_' || n FROM generate_series(1, 2100) n`,
      );
      const failing = new LosesConnection(world.platform.database.url, moment);
      const outcome = await sealTenant(failing, world.tenantId).catch((error: Error) => error);
      await failing.close();
      const left = await unsealed();
      assert.ok(
        [0, 100, 2_100].includes(left),
        `moment ${moment}: ${left} left, and a batch is sealed whole or not at all`,
      );
      assert.equal(await seal(), left);
      assert.equal(await unsealed(), 0);
      if (!(outcome instanceof Error)) break;
      assert.match(outcome.message, /terminat|lost/, outcome.stack);
      lost++;
    }
    assert.equal(lost, 11, 'the beginning of the run, and four statements and the commit of two batches');
    const { broken, checked, total, position } = await verify();
    const [counts] = await world.rows(
      `SELECT (SELECT count(*)::int FROM $schema._audit) AS rows, (SELECT count(DISTINCT audit_id)::int FROM $schema._audit_chain) AS links,
        (SELECT max(position)::int FROM $schema._audit_chain) AS last`,
    );
    assert.deepEqual([broken, counts], [null, { rows: checked, links: total, last: position }]);
  });
});

/** A connection of its own that ends at the nth moment: before a statement, or with the answer to a commit on its way. */
class LosesConnection extends Database {
  #moments: number;

  constructor(url: string, moments: number) {
    super(url, { size: 1, applicationName: 'lost connection', onError: () => {} });
    this.#moments = moments;
  }

  override tenant<T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    return super.tenant(tenantId, (tx) => work(this.#losing(tx)));
  }

  override async tenantTransaction<T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    const result = await super.tenantTransaction(tenantId, (tx) => work(this.#losing(tx)));
    if (this.#moments-- === 0) throw new Error('The answer to the commit was lost.');
    return result;
  }

  #losing(tx: Tx): Tx {
    const losing = async <T>(run: () => Promise<T>): Promise<T> => {
      if (this.#moments-- === 0) await tx.query('SELECT pg_terminate_backend(pg_backend_pid())');
      return run();
    };
    return {
      schema: tx.schema,
      all: (statement) => losing(() => tx.all(statement)),
      one: (statement) => losing(() => tx.one(statement)),
      query: (text, values) => losing(() => tx.query(text, values)),
    } as Tx;
  }
}

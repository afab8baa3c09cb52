/** Reverting an agent run: what comes back, what is left as it is and why, and what a repeated request does. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type CallOptions, createWorld, type Person, refusal, type World } from './world.ts';

const etag = (version: number): string => `"${version.toString(36)}"`;

describe('reverting an agent run', () => {
  let world: World;
  let clerk: Person;
  let admin: Person;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    ({ clerk, admin } = world);
  });
  after(() => world?.stop());

  const revert = async (agentRunId: string, person = admin, options: CallOptions = {}) => {
    await world.endRun(agentRunId);
    const reply = await person.send('agent.runs.revert', { runId: agentRunId }, {}, undefined, options);
    assert.equal(reply.status, 201, reply.text);
    return reply.body;
  };
  const company = async (body: object = {}, options: CallOptions = {}): Promise<string> =>
    (await clerk.create('Company__c', { name: 'Acme', ...body }, options)).body.id;
  const versionOf = async (id: string): Promise<number> => (await clerk.get('Company__c', id)).body.recordVersion;
  const named = (id: string, objectApiName = 'Company__c') => ({ objectApiName, id });
  const isGone = async (id: string, objectApiName = 'Company__c') =>
    (await refusal(admin.get(objectApiName, id))).code === 'RECORD_NOT_FOUND';

  it('restores fields of every type to their values before the run, over several changes', async () => {
    const agentRunId = randomUUID();
    const other = await company();
    const values = {
      name: 'Before',
      Code__c: `C-${randomUUID()}`,
      Amount__c: '9007199254740993.10',
      Quantity__c: '1234567.125',
      Count__c: 42,
      Active__c: false,
      Kind__c: 'b',
      Sub__c: 'b1',
      Tags__c: ['x', 'y'],
      Website__c: 'https://example.com/a',
      Email__c: 'a@example.com',
      Day__c: '2026-02-28',
      When__c: '2026-02-28T12:34:56.789Z',
      Note__c: 'one\ntwo',
      Data__c: { deep: [1, { x: null }, 0.1], '': 'empty' },
      Place__c: { latitude: 52.52, longitude: 13.405 },
      ParentId__c: other,
    };
    const id = await company(values);
    const before = (await clerk.get('Company__c', id)).text;
    await clerk.update(
      'Company__c',
      id,
      {
        ...Object.fromEntries(Object.keys(values).map((name) => [name, null])),
        name: 'After',
        Active__c: true,
        Kind__c: 'a',
        Sub__c: 'a1',
      },
      { etag: etag(1), agentRunId },
    );
    await clerk.update('Company__c', id, { name: 'Later', Amount__c: 1, Data__c: [] }, { etag: etag(2), agentRunId });
    assert.deepEqual(await revert(agentRunId), { reverted: [named(id)], skipped: [], remaining: 0 });
    const after = (await clerk.get('Company__c', id)).text;
    const content = (text: string) => text.replace(/"(recordVersion|updatedAt|updatedById)":("[^"]*"|\d+)/g, '');
    assert.equal(content(after), content(before));
    assert.equal(JSON.parse(after).recordVersion, 4);
    assert.equal(JSON.parse(after).updatedById, admin.userId);
  });

  it('deletes created records and restores deleted ones with their cascaded deletions', async () => {
    const agentRunId = randomUUID();
    const kept = await company();
    const { id: item } = (await clerk.create('Item__c', { name: 'One', CompanyId__c: kept })).body;
    const { id: part } = (await clerk.create('Part__c', { name: 'Bolt', ItemId__c: item })).body;
    // A company of which a ticket reminds, which forbids to delete it while the ticket is there.
    const created = await company({}, { agentRunId });
    const { id: ticket } = (await clerk.create('Ticket__c', { CompanyId__c: created }, { agentRunId })).body;
    await clerk.update('Company__c', created, { Amount__c: 1 }, { etag: etag(1), agentRunId });
    await clerk.update('Company__c', kept, { ParentId__c: created, Amount__c: 2 }, { etag: etag(1), agentRunId });
    await clerk.delete('Company__c', kept, { etag: etag(2), agentRunId });
    const { reverted, skipped, remaining } = await revert(agentRunId);
    assert.deepEqual([skipped, remaining], [[], 0]);
    assert.deepEqual(reverted.map(({ id }: { id: string }) => id).sort(), [kept, item, part, created, ticket].sort());
    assert.ok((await isGone(created)) && (await isGone(ticket, 'Ticket__c')));
    const { body } = await clerk.get('Company__c', kept);
    assert.deepEqual([body.ParentId__c, body.Amount__c], [null, null]);
    assert.equal((await clerk.get('Part__c', part)).status, 200);
  });

  it('deletes restored records again, and counts created and deleted records as reverted', async () => {
    const agentRunId = randomUUID();
    const [restored, passing] = [await company({ Amount__c: 1 }), await company({}, { agentRunId })];
    const { id: item } = (await clerk.create('Item__c', { name: 'One', CompanyId__c: restored })).body;
    await clerk.delete('Company__c', restored, { etag: etag(1) });
    await clerk.send('data.records.restore', { objectApiName: 'Company__c', id: restored }, {}, undefined, {
      agentRunId,
    });
    await clerk.update('Company__c', restored, { Amount__c: 2 }, { etag: etag(2), agentRunId });
    await clerk.delete('Company__c', passing, { etag: etag(1), agentRunId });
    const { reverted, skipped } = await revert(agentRunId);
    assert.deepEqual(skipped, []);
    assert.equal(reverted.length, 3);
    assert.ok((await isGone(restored)) && (await isGone(item, 'Item__c')) && (await isGone(passing)));
    const [bin] = await world.rows(
      `SELECT record ->> 'Amount__c' AS amount FROM $schema._recycle_bin WHERE record_id = $1`,
      [restored],
    );
    assert.equal(bin?.['amount'], '1.00');
  });

  it('moves records back that the run had moved below a record that stays deleted', async () => {
    const agentRunId = randomUUID();
    const kept = await company();
    const { id: item } = (await clerk.create('Item__c', { name: 'One', CompanyId__c: kept })).body;
    const { id: part } = (await clerk.create('Part__c', { name: 'Bolt', ItemId__c: item })).body;
    const made = await company({}, { agentRunId });
    await clerk.update('Item__c', item, { name: 'Two', CompanyId__c: made }, { etag: etag(1), agentRunId });
    await clerk.delete('Company__c', made, { etag: etag(1), agentRunId });
    assert.ok((await isGone(item, 'Item__c')) && (await isGone(part, 'Part__c')));

    const body = await revert(agentRunId);
    assert.deepEqual(body.skipped, []);
    const { body: after } = await clerk.get('Item__c', item);
    assert.deepEqual([after.name, after.CompanyId__c], ['One', kept]);
    assert.equal((await clerk.get('Part__c', part)).body.ItemId__c, item);
    assert.ok(await isGone(made));
    assert.deepEqual((await revert(agentRunId)).skipped, []);
  });

  it('restores deleted records that refer to each other, regardless of changed references', async () => {
    for (const cleared of [false, true]) {
      const agentRunId = randomUUID();
      const one = await company();
      const two = await company({ ParentId__c: one });
      await clerk.update('Company__c', one, { ParentId__c: two }, { etag: etag(1) });
      if (cleared) {
        await clerk.update('Company__c', one, { ParentId__c: null }, { etag: etag(2), agentRunId });
        await clerk.update('Company__c', two, { ParentId__c: null, Amount__c: 1 }, { etag: etag(1), agentRunId });
      }
      for (const id of [one, two]) {
        const { recordVersion } = (await clerk.get('Company__c', id)).body;
        await clerk.delete('Company__c', id, { etag: etag(recordVersion), agentRunId });
      }
      const { skipped } = await revert(agentRunId);
      assert.deepEqual(skipped, []);
      assert.equal((await clerk.get('Company__c', one)).body.ParentId__c, two);
      const after = (await clerk.get('Company__c', two)).body;
      assert.deepEqual([after.ParentId__c, after.Amount__c], [one, null]);
      await clerk.update('Company__c', one, { Amount__c: 2 }, { etag: etag(await versionOf(one)) });
      assert.deepEqual((await revert(agentRunId)).skipped, [], 'what is as before is not looked at again');
    }
  });

  it('reports a restored record that lost a reference to a deleted one', async () => {
    const agentRunId = randomUUID();
    const gone = await company();
    const id = await company({ ParentId__c: gone, Amount__c: 1 });
    await clerk.update('Company__c', id, { ParentId__c: null, Amount__c: 2 }, { etag: etag(1), agentRunId });
    await clerk.delete('Company__c', id, { etag: etag(2), agentRunId });
    await clerk.delete('Company__c', gone, { etag: etag(1) });
    for (const call of ['first', 'again']) {
      const { reverted, skipped } = await revert(agentRunId);
      assert.deepEqual([reverted, skipped], [[], [{ ...named(id), reason: 'VALIDATION_FAILED' }]], call);
      const { body } = await clerk.get('Company__c', id);
      assert.deepEqual([body.ParentId__c, body.Amount__c], [null, 1], call);
    }
    await clerk.send('data.records.restore', { objectApiName: 'Company__c', id: gone });
    assert.deepEqual((await revert(agentRunId)).skipped, []);
    assert.equal((await clerk.get('Company__c', id)).body.ParentId__c, gone);
  });

  it('moves restored records back to the recycle bin, also when their parent is deleted', async () => {
    const agentRunId = randomUUID();
    const [kept, former] = [await company(), await company()];
    const { id: item } = (await clerk.create('Item__c', { name: 'One', CompanyId__c: former })).body;
    await clerk.delete('Company__c', former, { etag: etag(1) });
    await clerk.send('data.records.restore', { objectApiName: 'Company__c', id: former }, {}, undefined, {
      agentRunId,
    });
    const version = etag((await clerk.get('Item__c', item)).body.recordVersion);
    await clerk.update('Item__c', item, { CompanyId__c: kept }, { etag: version, agentRunId });
    await clerk.delete('Company__c', former, { etag: etag(await versionOf(former)), agentRunId });
    assert.deepEqual((await revert(agentRunId)).skipped, []);
    assert.ok((await isGone(former)) && (await isGone(item, 'Item__c')));
  });

  it('skips records whose parent was deleted by another user', async () => {
    const agentRunId = randomUUID();
    const gone = await company();
    const { id: item } = (await clerk.create('Item__c', { name: 'One', CompanyId__c: gone })).body;
    const made = await company({}, { agentRunId });
    await clerk.update('Item__c', item, { CompanyId__c: made }, { etag: etag(1), agentRunId });
    await clerk.delete('Company__c', made, { etag: etag(1), agentRunId });
    await clerk.delete('Company__c', gone, { etag: etag(1) });
    const { skipped } = await revert(agentRunId);
    assert.deepEqual(skipped, [{ ...named(item, 'Item__c'), reason: 'VALIDATION_FAILED' }]);
    assert.ok(await isGone(item, 'Item__c'));
    await clerk.send('data.records.restore', { objectApiName: 'Company__c', id: gone });
    assert.deepEqual((await revert(agentRunId)).skipped, []);
    assert.equal((await clerk.get('Item__c', item)).body.CompanyId__c, gone);
  });

  it('skips records changed, deleted or referenced by others since', async () => {
    const agentRunId = randomUUID();
    const [changed, deleted, between, created, free] = [
      await company(),
      await company(),
      await company(),
      await company({}, { agentRunId }),
      await company(),
    ];
    const edit = (id: string, version: number, amount: number, run?: string) =>
      clerk.update(
        'Company__c',
        id,
        { Amount__c: amount },
        { etag: etag(version), ...(run ? { agentRunId: run } : {}) },
      );
    for (const id of [changed, deleted, between, free]) await edit(id, 1, 1, agentRunId);
    await edit(changed, 2, 2);
    await clerk.delete('Company__c', deleted, { etag: etag(2) });
    await edit(between, 2, 2);
    await edit(between, 3, 3, agentRunId);
    await clerk.create('Ticket__c', { CompanyId__c: created });
    await edit(free, 2, 2, agentRunId);
    const { reverted, skipped, remaining } = await revert(agentRunId);
    assert.deepEqual([reverted, remaining], [[named(free)], 0]);
    assert.deepEqual(
      Object.fromEntries(skipped.map(({ id, reason }: { id: string; reason: string }) => [id, reason])),
      {
        [changed]: 'CHANGED_SINCE',
        [deleted]: 'CHANGED_SINCE',
        [between]: 'CHANGED_SINCE',
        [created]: 'DEPENDENTS_EXIST',
      },
    );
    assert.equal((await clerk.get('Company__c', between)).body.Amount__c, 3);
    assert.equal((await clerk.get('Company__c', created)).status, 200);
  });

  it('replays the response for the same key, and reports the current state for another', async () => {
    const agentRunId = randomUUID();
    const [first, second] = [await company(), await company()];
    for (const id of [first, second])
      await clerk.update('Company__c', id, { Amount__c: 1 }, { etag: etag(1), agentRunId });
    await clerk.update('Company__c', second, { Note__c: 'mine' }, { etag: etag(2) });
    const key = randomUUID();
    const answer = await revert(agentRunId, admin, { key });
    assert.deepEqual(answer, {
      reverted: [named(first)],
      skipped: [{ ...named(second), reason: 'CHANGED_SINCE' }],
      remaining: 0,
    });
    await clerk.update('Company__c', first, { Amount__c: 7 }, { etag: etag(3) });
    assert.deepEqual(await revert(agentRunId, admin, { key }), answer);
    assert.deepEqual(await revert(agentRunId), answer);
    assert.equal((await clerk.get('Company__c', first)).body.Amount__c, 7);
    const other = randomUUID();
    await world.endRun(other);
    const reused = await refusal(admin.send('agent.runs.revert', { runId: other }, {}, undefined, { key }));
    assert.equal(reused.code, 'IDEMPOTENCY_KEY_REUSED');
  });

  it('reverts once for concurrent requests', async () => {
    const agentRunId = randomUUID();
    const ids = await Promise.all(Array.from({ length: 5 }, () => company()));
    for (const id of ids) await clerk.update('Company__c', id, { Amount__c: 1 }, { etag: etag(1), agentRunId });
    const key = randomUUID();
    const answers = await Promise.all([
      revert(agentRunId, admin, { key }),
      revert(agentRunId, admin, { key }),
      revert(agentRunId),
      revert(agentRunId),
    ]);
    for (const { reverted, skipped } of answers) assert.deepEqual([reverted.length, skipped], [5, []]);
    for (const id of ids) assert.equal((await clerk.get('Company__c', id)).body.recordVersion, 3);
  });

  it('is in trail and history with the run and the reverting user', async () => {
    const agentRunId = randomUUID();
    const id = await company();
    const skipped = await company();
    for (const record of [id, skipped])
      await clerk.update('Company__c', record, { Amount__c: 1 }, { etag: etag(1), agentRunId });
    await clerk.update('Company__c', skipped, { Amount__c: 2 }, { etag: etag(2) });
    await revert(agentRunId);
    const { records } = (
      await admin.send('data.audit.list', {}, { agentRunId, operationId: 'agent.runs.revert', take: 10 })
    ).body;
    const seen = records.map(
      (entry: { recordId: string | null; outcome: string; code: string | null; actor: { userId: string } }) =>
        `${entry.recordId} ${entry.outcome} ${entry.code} ${entry.actor.userId === admin.userId}`,
    );
    assert.deepEqual(
      seen.sort(),
      [`null committed null true`, `${id} committed null true`, `${skipped} failed CHANGED_SINCE true`].sort(),
    );
    const history = (await admin.send('data.history.list', { objectApiName: 'Company__c', id }, { agentRunId })).body
      .records;
    assert.deepEqual(
      history.map((entry: { actor: { userId: string } }) => entry.actor.userId),
      [admin.userId, clerk.userId],
    );
  });

  it('resumes a revert that died between two records, with a complete response', async () => {
    const agentRunId = randomUUID();
    const ids = [await company(), await company(), await company()];
    for (const id of ids) await clerk.update('Company__c', id, { Amount__c: 1 }, { etag: etag(1), agentRunId });
    // The newest change is reverted first; a long transaction holds the second record.
    const [oldest, middle, newest] = ids as [string, string, string];
    const lock = await world.database.pool.connect();
    const key = randomUUID();
    const schema = `"t_${world.tenantId.replaceAll('-', '')}"`;
    await lock.query(`BEGIN; SELECT FROM ${schema}."Company__c" WHERE id = '${middle}' FOR UPDATE`);
    try {
      const { reverted, skipped } = await revert(agentRunId, admin, { key });
      assert.deepEqual(reverted, [named(newest), named(oldest)]);
      assert.deepEqual(skipped, [{ ...named(middle), reason: 'WRITE_CONTENTION' }]);
    } finally {
      await lock.query('ROLLBACK');
      lock.release();
    }
    assert.deepEqual((await revert(agentRunId)).reverted, [named(newest), named(middle), named(oldest)]);
  });

  it('stops at its time limit, and continues under the same key without repetition', async function () {
    this.timeout(60_000);
    const agentRunId = randomUUID();
    const ids = await Promise.all(Array.from({ length: 60 }, () => company()));
    for (const id of ids) await clerk.update('Company__c', id, { Amount__c: 1 }, { etag: etag(1), agentRunId });
    // One of them cannot be reverted, which is found out once.
    const [refused] = ids as [string];
    await clerk.update('Company__c', refused, { Note__c: 'mine' }, { etag: etag(2) });
    const key = randomUUID();
    const patienceMs = 10_030;
    let calls = 1;
    let answer = await revert(agentRunId, admin, { key, patienceMs });
    assert.ok(answer.remaining > 0 && answer.reverted.length > 0, JSON.stringify(answer));
    for (; answer.remaining > 0; calls++) {
      const next = await revert(agentRunId, admin, { key, patienceMs });
      assert.ok(next.remaining < answer.remaining);
      assert.equal(next.reverted.length + next.skipped.length + next.remaining, ids.length);
      answer = next;
    }
    assert.ok(calls > 1, `${calls} calls`);
    assert.deepEqual([answer.reverted.length, answer.skipped], [59, [{ ...named(refused), reason: 'CHANGED_SINCE' }]]);
    assert.deepEqual(await revert(agentRunId, admin, { key }), answer);
    const versions = await world.rows(
      'SELECT DISTINCT "recordVersion" AS v FROM $schema."Company__c" WHERE id = ANY($1)',
      [ids.slice(1)],
    );
    assert.deepEqual(versions, [{ v: 3 }]);
    const [noted] = await world.rows(
      `SELECT count(*)::int AS n FROM $schema._audit WHERE agent_run_id = $1 AND code = 'CHANGED_SINCE'`,
      [agentRunId],
    );
    assert.equal(noted?.['n'], 1);
  });

  it('reports remaining records when time runs out', async function () {
    this.timeout(60_000);
    const agentRunId = randomUUID();
    const [code, taken] = [`C-${randomUUID()}`, `C-${randomUUID()}`];
    const first = await company({ Code__c: code });
    const second = await company({ Code__c: taken });
    // The code goes from the first to the second, so that the first, which was touched last, can be reverted after it.
    await clerk.update('Company__c', first, { Code__c: null }, { etag: etag(1), agentRunId });
    await clerk.update('Company__c', second, { Code__c: code }, { etag: etag(1), agentRunId });
    await clerk.update('Company__c', first, { Amount__c: 1 }, { etag: etag(2), agentRunId });
    const call = { key: randomUUID(), patienceMs: 10_000 };
    const answers = [await revert(agentRunId, admin, call), await revert(agentRunId, admin, call)];
    assert.deepEqual(
      answers.map(({ remaining, skipped }) => [remaining, skipped]),
      [
        [2, []],
        [1, []],
      ],
    );
    const done = { reverted: [named(first), named(second)], skipped: [], remaining: 0 };
    assert.deepEqual(await revert(agentRunId, admin, call), done);
    assert.deepEqual(await revert(agentRunId, admin, call), done);
    assert.equal((await clerk.get('Company__c', first)).body.Code__c, code);
  });

  it('requires the permission to approve agent actions, outside of runs', async () => {
    const agentRunId = randomUUID();
    const send = (person: Person, options: CallOptions = {}) =>
      refusal(person.send('agent.runs.revert', { runId: agentRunId }, {}, undefined, options));
    const denied = await send(clerk);
    assert.deepEqual(
      [denied.code, denied.details?.['permission']],
      ['OBJECT_PERMISSION_DENIED', 'approveAgentActions'],
    );
    assert.equal((await send(admin, { agentRunId: randomUUID() })).code, 'APPROVAL_ACTOR_NOT_HUMAN');
  });
});

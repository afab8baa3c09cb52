/** Traces of an agent run: its entries in trail and history, and the records that its requests changed. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { call } from '../../../contracts/call.ts';
import { createWorld, type Person, refusal, type World } from './world.ts';

describe('trail of an agent run', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  const audit = async (query: Record<string, unknown>, person = world.admin) =>
    (await person.send('data.audit.list', {}, query)).body;
  const changed = (person: Person, agentRunId: string, requestIds: string[]) =>
    call(world.platform.broker, 'data.trail.ofRequests', {
      tenantId: person.tenantId,
      userId: person.userId,
      agentRunId,
      requestIds,
    });
  /** Ids of the requests of a run, oldest first. */
  const requestsOf = async (agentRunId: string): Promise<string[]> => {
    const { records } = await audit({ agentRunId, take: 200 });
    return [...new Set<string>(records.map((entry: { requestId: string }) => entry.requestId))].reverse();
  };

  it('is found in the trail and in the history of a record by the run', async () => {
    const [agentRunId, other] = [randomUUID(), randomUUID()];
    const { id } = (await world.clerk.create('Company__c', { name: 'Acme' })).body;
    await world.clerk.update('Company__c', id, { Amount__c: 1 }, { etag: '"1"', agentRunId });
    await world.clerk.update('Company__c', id, { Amount__c: 2 }, { etag: '"2"', agentRunId: other });
    await refusal(world.clerk.update('Company__c', id, { Amount__c: 3 }, { etag: '"1"', agentRunId }));
    const { records, nextCursor } = await audit({ agentRunId: agentRunId.toUpperCase() });
    assert.deepEqual(
      records.map((entry: { outcome: string; code: string | null }) => [entry.outcome, entry.code]),
      [
        ['failed', 'ETAG_MISMATCH'],
        ['committed', null],
      ],
    );
    assert.equal(nextCursor, null);
    assert.equal(records[1].actor.agentRunId, agentRunId);
    const path = { objectApiName: 'Company__c', id };
    const history = (await world.clerk.send('data.history.list', path, { agentRunId: other })).body.records;
    assert.deepEqual(
      history.map((entry: { operation: string; actor: { agentRunId: string } }) => [
        entry.operation,
        entry.actor.agentRunId,
      ]),
      [['update', other]],
    );
    assert.equal((await world.clerk.send('data.history.list', path)).body.records.length, 3);
  });

  it('is continued by a cursor of the same run only', async () => {
    const agentRunId = randomUUID();
    const { id } = (await world.clerk.create('Company__c', { name: 'Acme' }, { agentRunId })).body;
    for (const [etag, Amount__c] of [
      ['"1"', 1],
      ['"2"', 2],
    ] as const)
      await world.clerk.update('Company__c', id, { Amount__c }, { etag, agentRunId });
    const first = await audit({ agentRunId, take: 2 });
    const rest = await audit({ agentRunId, take: 2, cursor: first.nextCursor });
    assert.deepEqual([first.records.length, rest.records.length, rest.nextCursor], [2, 1, null]);
    const path = { objectApiName: 'Company__c', id };
    const page = (await world.clerk.send('data.history.list', path, { agentRunId, take: 2 })).body;
    const mixed = await refusal(
      world.clerk.send('data.history.list', path, { agentRunId: randomUUID(), take: 2, cursor: page.nextCursor }),
    );
    assert.deepEqual([mixed.code, mixed.details], ['CURSOR_QUERY_MISMATCH', { changed: ['agentRunId'] }]);
  });

  it('lists the records that each request changed, including cascaded deletions', async () => {
    const agentRunId = randomUUID();
    const { id } = (await world.clerk.create('Company__c', { name: 'Acme' }, { agentRunId })).body;
    const { id: item } = (await world.clerk.create('Item__c', { name: 'One', CompanyId__c: id })).body;
    await world.clerk.update('Company__c', id, { Amount__c: 1 }, { etag: '"1"', agentRunId });
    await world.clerk.update('Company__c', id, { Amount__c: 1 }, { etag: '"2"', agentRunId }); // changes nothing
    await world.clerk.delete('Company__c', id, { etag: '"2"', agentRunId });
    const requests = await requestsOf(agentRunId);
    assert.equal(requests.length, 3);
    const [created, updated, removed] = requests;
    const company = { objectApiName: 'Company__c', id };
    const found = await changed(world.clerk, agentRunId, [...requests, 'req_unknown']);
    assert.deepEqual(found[created!], [company]);
    assert.deepEqual(found[updated!], [company]);
    const all = found[removed!]!.map(({ objectApiName, id }) => `${objectApiName} ${id}`);
    assert.deepEqual(all.sort(), [`Company__c ${id}`, `Item__c ${item}`]);
    assert.deepEqual(Object.keys(found).sort(), requests.toSorted());
  });

  it('omits invisible records, and other runs and tenants', async () => {
    const agentRunId = randomUUID();
    const { id } = (await world.clerk.create('Company__c', { name: 'Acme' }, { agentRunId })).body;
    await world.clerk.create('Item__c', { name: 'One', CompanyId__c: id }, { agentRunId });
    const requests = await requestsOf(agentRunId);
    // The reader has no access to items.
    assert.deepEqual(Object.values(await changed(world.reader, agentRunId, requests)), [
      [{ objectApiName: 'Company__c', id }],
    ]);
    await world.clerk.delete('Company__c', id, { etag: '"1"' });
    assert.deepEqual(Object.values(await changed(world.reader, agentRunId, requests)).flat().length, 1);
    assert.deepEqual(await changed(world.nobody, agentRunId, requests), {});
    assert.deepEqual(await changed(world.stranger, agentRunId, requests), {});
    assert.deepEqual(await changed(world.clerk, randomUUID(), requests), {});
    assert.deepEqual(await changed(world.clerk, agentRunId, []), {});
  });

  it('finds the entries of a run by an index', async () => {
    const plan = async (condition: string): Promise<string> =>
      (await world.rows(`EXPLAIN SELECT * FROM $schema._audit WHERE ${condition} ORDER BY audit_id DESC LIMIT 50`))
        .map((row) => row['QUERY PLAN'])
        .join('\n');
    await world.rows(
      `INSERT INTO $schema._audit (audit_id, channel, operation_id, outcome, request_id)
        SELECT gen_random_uuid(), 'job', 'test', 'committed', 'req_' || n FROM generate_series(1, 20000) n`,
    );
    await world.rows('ANALYZE $schema._audit');
    assert.match(await plan(`agent_run_id = '${randomUUID()}'`), /_audit_run/);
    assert.match(await plan(`agent_run_id = '${randomUUID()}' AND request_id = 'req_1'`), /_audit_run/);
  });
});

/** The audit trail over the API: what is in it, who sees it, and how it is searched. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { correctPlatformTime } from '../../../lib/values/clock.ts';
import { firstUuidv7 } from '../../../lib/values/ids.ts';
import { sealTenant } from '../../../services/data/trail/chain.ts';
import { createWorld, type Person, refusal, type World } from './world.ts';

const AUDITOR = ['type: PermissionSet', 'apiName: Auditor', 'label: Auditor', 'system:', '  - viewAudit', ''].join(
  '\n',
);

describe('the audit trail', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    await world.deploy(world.tenantId, { 'permissionSets/Auditor.yaml': AUDITOR });
    const { body } = await world.admin.get('User', world.reader.userId);
    await world.admin.update(
      'User',
      world.reader.userId,
      { permissionSetApiNames: ['Auditor'] },
      { etag: `"${body.recordVersion.toString(36)}"` },
    );
  });
  after(() => world?.stop());

  const audit = (person: Person, query: Record<string, unknown> = {}) => person.send('data.audit.list', {}, query);
  const about = async (recordId: string, person = world.admin) => (await audit(person, { recordId })).body.records;

  it('contains every mutation with client, key and address, and is sealed shortly after', async () => {
    const { id } = (await world.clerk.create('Company__c', { name: 'Acme', Amount__c: '0.10' })).body;
    await world.clerk.update('Company__c', id, { Amount__c: 7 }, { etag: '"1"' });
    await world.clerk.delete('Company__c', id, { etag: '"2"' });
    const [removed, changed, created] = await about(id);
    assert.deepEqual(Object.keys(changed), [
      'auditId',
      'at',
      'actor',
      'channel',
      'operationId',
      'outcome',
      'code',
      'requestId',
      'objectApiName',
      'recordId',
      'changes',
      'ip',
      'position',
      'prevHash',
      'hash',
    ]);
    assert.deepEqual(changed.actor, { userId: world.clerk.userId, clientId: 'test', agentRunId: null });
    assert.deepEqual(
      [changed.channel, changed.operationId, changed.outcome, changed.code, changed.objectApiName, changed.ip],
      ['api', 'data.records.update', 'committed', null, 'Company__c', '127.0.0.1'],
    );
    assert.deepEqual(changed.changes, [{ field: 'Amount__c', from: 0.1, to: 7 }]);
    assert.deepEqual([changed.position, changed.prevHash, changed.hash], [null, null, null]);
    assert.match((await audit(world.admin, { recordId: id })).text, /"from":0\.10,"to":7\.00/);
    assert.equal(removed.operationId, 'data.records.delete');
    assert.equal(created.operationId, 'data.records.create');
    await sealTenant(world.database, world.tenantId);
    const [last, middle] = await about(id);
    assert.match(middle.hash, /^[0-9a-f]{64}$/);
    assert.equal(last.prevHash, middle.hash);
    assert.equal(last.position, middle.position + 1);
  });

  it('contains every refused mutation: denied for a missing permission, failed otherwise', async () => {
    const { id } = (await world.admin.create('Company__c', { name: 'Acme' })).body;
    const refused = async (promise: Promise<unknown>) => (await refusal(promise)).code;
    await refused(world.reader.update('Company__c', id, { Code__c: 'x' }, { etag: '"1"' }));
    await refused(world.clerk.update('Company__c', id, { Fixed__c: 'x' }, { etag: '"1"' }));
    await refused(world.clerk.update('Company__c', id, { Amount__c: 'much' }, { etag: '"1"' }));
    await refused(world.clerk.update('Company__c', id, { Amount__c: 1 }, { etag: '"9"' }));
    await refused(world.clerk.delete('Company__c', randomUUID(), { etag: '"1"' }));
    const tried = (await audit(world.admin, { recordId: id })).body.records;
    assert.deepEqual(
      tried.map((row: { outcome: string; code: string }) => [row.outcome, row.code]),
      [
        ['failed', 'ETAG_MISMATCH'],
        ['failed', 'VALIDATION_FAILED'],
        ['denied', 'FIELD_PERMISSION_DENIED'],
        ['denied', 'OBJECT_PERMISSION_DENIED'],
        ['committed', null],
      ],
    );
    const [missing] = (await audit(world.admin, { outcome: 'failed', operationId: 'data.records.delete' })).body
      .records;
    assert.deepEqual([missing.code, missing.changes], ['RECORD_NOT_FOUND', []]);
  });

  it('records the reuse of a key for another request', async () => {
    const key = randomUUID();
    const { id } = (await world.clerk.create('Company__c', { name: 'One' }, { key })).body;
    const code = (await refusal(world.clerk.update('Company__c', id, { name: 'Two' }, { key, etag: '"1"' }))).code;
    assert.equal(code, 'IDEMPOTENCY_KEY_REUSED');
    const [refused] = await about(id);
    assert.deepEqual([refused.outcome, refused.code], ['failed', 'IDEMPOTENCY_KEY_REUSED']);
  });

  it('requires viewAudit, and shows readable fields only', async () => {
    const { id } = (await world.admin.create('Company__c', { name: 'Acme', Code__c: randomUUID(), Secret__c: 's' }))
      .body;
    const error = await refusal(audit(world.clerk));
    assert.deepEqual(
      [error.status, error.code, error.details?.['layer'], error.details?.['permission']],
      [403, 'OBJECT_PERMISSION_DENIED', 'objectPermission', 'viewAudit'],
    );
    assert.equal((await refusal(audit(world.nobody))).code, 'API_ACCESS_DISABLED');
    const [row] = await about(id, world.reader);
    assert.deepEqual(
      row.changes.map((change: { field: string }) => change.field),
      ['Code__c', 'name'],
    );
    const fields = (await about(id))[0].changes.map((change: { field: string }) => change.field);
    assert.ok(fields.includes('Secret__c'));
    assert.equal((await about(id, world.stranger)).length, 0);
  });

  it('is searched by actor, object, operation, outcome and time, page by page', async () => {
    const since = new Date().toISOString();
    for (let n = 0; n < 5; n++) await world.clerk.create('Company__c', { name: `n${n}` });
    await world.admin.create('Vault__c', { name: 'v' });
    const until = new Date().toISOString();
    const count = async (query: Record<string, unknown>) => (await audit(world.admin, query)).body.records.length;
    assert.equal(await count({ from: since, to: until }), 6);
    assert.equal(await count({ from: since, actorId: world.clerk.userId }), 5);
    assert.equal(await count({ from: since, objectApiName: 'Vault__c' }), 1);
    assert.equal(await count({ from: since, operationId: 'data.records.update' }), 0);
    assert.equal(await count({ from: since, outcome: 'denied' }), 0);
    assert.equal(await count({ to: '2020-01-01T00:00:00Z' }), 0);
    assert.equal(await count({ from: '2999-01-01T00:00:00Z' }), 0);
    const walked = [];
    let cursor: string | null = null;
    do {
      const { body } = await audit(world.admin, { from: since, take: 4, ...(cursor ? { cursor } : {}) });
      walked.push(...body.records);
      cursor = body.nextCursor;
      if (cursor)
        assert.deepEqual(
          (await refusal(audit(world.admin, { from: since, take: 4, cursor, outcome: 'denied' }))).details,
          { changed: ['outcome'] },
        );
    } while (cursor);
    assert.equal(walked.length, 6);
    assert.equal(new Set(walked.map((row) => row.auditId)).size, 6);
    assert.equal(
      (await refusal(audit(world.admin, { from: until, to: '2020-01-01T00:00:00Z' }))).code,
      'PARAMETER_CONFLICT',
    );
    assert.equal((await refusal(audit(world.admin, { from: '+275760-09-13T00:00:00Z' }))).code, 'PARAMETER_INVALID');
  });

  it('scans a long trail page by page without an index, and at once with one', async function () {
    this.timeout(60_000);
    const { body } = await world.admin.create('Vault__c', { name: 'far back' });
    await world.rows(
      `INSERT INTO $schema._audit (audit_id, channel, operation_id, outcome, request_id)
        SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid, 'job', 'test.filler', 'committed', 'req'
        FROM generate_series(1, 50001) n`,
    );
    const pages = [];
    let cursor: string | null = null;
    do {
      const page: { records: { recordId: string }[]; nextCursor: string | null } = (
        await audit(world.admin, { operationId: 'data.records.create', take: 200, ...(cursor ? { cursor } : {}) })
      ).body;
      pages.push(page.records.map((row) => row.recordId));
      cursor = page.nextCursor;
    } while (cursor);
    assert.deepEqual([pages.length, pages[0]?.length, pages[1]?.[0]], [2, 0, body.id]);
    const found = await audit(world.admin, { recordId: body.id, operationId: 'data.records.create' });
    assert.deepEqual([found.body.records.length, found.body.nextCursor], [1, null]);
    assert.equal((await audit(world.admin, { operationId: 'test.filler', take: 3 })).body.records.length, 3);
  });

  it('lists changes in commit order, regardless of process clocks', async () => {
    const since = new Date(Date.now() - 1_000).toISOString();
    const { id } = (await world.clerk.create('Company__c', { name: 'Before' })).body;
    const setTime = (ahead: number): void => correctPlatformTime(Date.now() + ahead, Date.now() + ahead);
    setTime(-2 * 3_600_000);
    try {
      await world.clerk.update('Company__c', id, { Amount__c: 1 }, { etag: '"1"' });
      const { id: other } = (await world.clerk.create('Company__c', { name: 'Behind' })).body;
      await world.clerk.delete('Company__c', other, { etag: '"1"' });
    } finally {
      setTime(0);
    }
    await world.clerk.delete('Company__c', id, { etag: '"2"' });
    const { records } = (await audit(world.admin, { from: since, objectApiName: 'Company__c' })).body;
    const operations = records.map((row: { operationId: string }) => row.operationId.replace('data.records.', ''));
    assert.deepEqual(operations, ['delete', 'delete', 'create', 'update', 'create']);
  });

  it('reads a page by the id index in a trail of any length', async () => {
    await world.rows('ANALYZE $schema._audit');
    for (const condition of ['true', `audit_id < '${firstUuidv7(Date.now())}'`]) {
      const text = `EXPLAIN SELECT * FROM $schema._audit WHERE ${condition} ORDER BY audit_id DESC LIMIT 50`;
      const plan = (await world.rows(text)).map((row) => row['QUERY PLAN']).join('\n');
      assert.match(plan, /Index Scan Backward using _audit_pkey/);
      assert.doesNotMatch(plan, /Sort/);
    }
  });

  it('contains actions of the platform on users', async () => {
    const [row] = await about(world.clerk.userId);
    assert.deepEqual([row.operationId, row.channel, row.outcome], ['data.users.provision', 'job', 'committed']);
  });
});

/** Bringing deleted records back. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type CallOptions, codes, createWorld, FILES, type Reply, refusal, type World } from './world.ts';

describe('restoring records', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  const make = async (object: string, body: Record<string, unknown> = {}) =>
    (await world.clerk.create(object, object === 'Ticket__c' ? body : { name: 'Thing', ...body })).body;
  const remove = (object: string, id: string, etag = '"1"') => world.clerk.delete(object, id, { etag });
  const restore = (object: string, id: string, options: CallOptions & { by?: World['clerk'] } = {}): Promise<Reply> =>
    (options.by ?? world.clerk).send('data.records.restore', { objectApiName: object, id }, {}, undefined, options);
  const code = async (promise: Promise<Reply>): Promise<string> => (await refusal(promise)).code;

  it('restores the record unchanged, with the next version', async () => {
    const parent = await make('Company__c');
    const made = await make('Company__c', {
      Code__c: 'BACK-1',
      Amount__c: '1234567890123456.78',
      Quantity__c: 1.125,
      Tags__c: ['y', 'x'],
      Day__c: '2026-11-21',
      When__c: '2026-11-21T10:00:00.123Z',
      Data__c: { deep: [1, null, 'ä'] },
      Place__c: { latitude: 52.5, longitude: 13.4 },
      ParentId__c: parent.id,
    });
    await remove('Company__c', made.id);
    const reply = await restore('Company__c', made.id);
    assert.equal(reply.status, 201);
    assert.deepEqual([reply.headers['ETag'], reply.headers['Location']], ['"2"', `/api/v1/data/Company__c/${made.id}`]);
    const kept = ({ updatedAt, recordVersion, ...rest }: Record<string, unknown>) => rest;
    assert.deepEqual(kept(reply.body), kept(made));
    assert.match(reply.text, /"Amount__c":1234567890123456\.78[,}]/);
    const read = await world.clerk.get('Company__c', made.id);
    assert.equal(read.text, reply.text);
    assert.equal(read.headers['ETag'], '"2"');
    const bin = await world.rows('SELECT FROM $schema._recycle_bin WHERE record_id = $1', [made.id]);
    assert.equal(bin.length, 0);
    const [history] = await world.rows(
      `SELECT changes, record_version FROM $schema._history WHERE record_id = $1 AND operation = 'restore'`,
      [made.id],
    );
    assert.deepEqual(history!['changes'].Code__c, { from: null, to: 'BACK-1' });
    assert.equal(history!['record_version'], 2);
    const [event] = await world.rows(`SELECT type FROM $schema._outbox WHERE record_id = $1 ORDER BY outbox_id DESC`, [
      made.id,
    ]);
    assert.equal(event!['type'], 'data.record.restored');
    const [audit] = await world.rows(
      `SELECT outcome FROM $schema._audit WHERE record_id = $1 AND operation_id = 'data.records.restore'`,
      [made.id],
    );
    assert.equal(audit!['outcome'], 'committed');
    const on = await world.clerk.update(
      'Company__c',
      made.id,
      { name: 'On', Amount__c: 1, Tags__c: null },
      { etag: '"2"' },
    );
    assert.equal(on.headers['ETag'], '"3"');
  });

  it('restores records deleted with it, and none deleted before', async () => {
    const root = await make('Company__c');
    const items = await Promise.all([1, 2, 3].map(() => make('Item__c', { CompanyId__c: root.id })));
    const parts = await Promise.all(items.map((item) => make('Part__c', { ItemId__c: item.id })));
    await remove('Item__c', items[2].id);
    await remove('Company__c', root.id);
    const dry = await world.clerk.check('Company__c', { operation: 'restore', id: root.id });
    assert.deepEqual(
      dry.body.effects
        .filter(({ kind }: { kind: string }) => kind === 'create')
        .map(({ objectApiName, id, count }: Record<string, unknown>) => [objectApiName, id, count]),
      [
        ['Company__c', root.id, undefined],
        ['Item__c', null, 2],
        ['Part__c', null, 2],
      ],
    );
    await restore('Company__c', root.id);
    for (const item of items.slice(0, 2)) assert.equal((await world.clerk.get('Item__c', item.id)).status, 200);
    for (const part of parts.slice(0, 2)) assert.equal((await world.clerk.get('Part__c', part.id)).status, 200);
    assert.equal(await code(world.clerk.get('Item__c', items[2].id)), 'RECORD_NOT_FOUND');
    const events = await world.rows(
      `SELECT data->>'transactionId' AS tx, data->'transactionIndex' AS index FROM $schema._outbox
       WHERE type = 'data.record.restored' AND record_id = ANY($1)`,
      [[root.id, ...items.map(({ id }) => id), ...parts.map(({ id }) => id)]],
    );
    assert.equal(new Set(events.map((event) => event['tx'])).size, 1);
    assert.deepEqual(events.map((event) => event['index']).sort(), [0, 1, 2, 3, 4]);
    // Its parent is back, so the one that went before can follow, with its own detail.
    await restore('Item__c', items[2].id);
    assert.equal((await world.clerk.get('Part__c', parts[2].id)).status, 200);
  });

  it('restores a detail only to an existing master', async () => {
    const root = await make('Company__c');
    const item = await make('Item__c', { CompanyId__c: root.id });
    const part = await make('Part__c', { ItemId__c: item.id });
    await remove('Company__c', root.id);
    for (const [object, id, field] of [
      ['Item__c', item.id, 'CompanyId__c'],
      ['Part__c', part.id, 'ItemId__c'],
    ] as const) {
      const error = await refusal(restore(object, id));
      assert.equal(error.code, 'VALIDATION_FAILED');
      assert.deepEqual(codes(error), [`/${field} REFERENCE_NOT_FOUND`]);
    }
    await restore('Company__c', root.id);
    assert.equal((await world.clerk.get('Part__c', part.id)).status, 200);
  });

  it('clears a reference to a record deleted meanwhile, with a history entry', async () => {
    const parent = await make('Company__c');
    const child = await make('Company__c', { ParentId__c: parent.id });
    await remove('Company__c', child.id);
    await remove('Company__c', parent.id);
    const reply = await restore('Company__c', child.id);
    assert.equal(reply.body.ParentId__c, null);
    const [history] = await world.rows(
      `SELECT changes FROM $schema._history WHERE record_id = $1 AND operation = 'restore'`,
      [child.id],
    );
    assert.deepEqual(history!['changes'].ParentId__c, { from: parent.id, to: null });
    // References that a deletion cleared stay cleared.
    await restore('Company__c', parent.id);
    assert.equal((await world.clerk.get('Company__c', child.id)).body.ParentId__c, null);
  });

  it('restores records that refer to themselves and to each other', async () => {
    const a = await make('Company__c');
    await world.clerk.update('Company__c', a.id, { ParentId__c: a.id }, { etag: '"1"' });
    await remove('Company__c', a.id, '"2"');
    assert.equal((await restore('Company__c', a.id)).body.ParentId__c, a.id);
  });

  it('refuses a unique value that is taken by now', async () => {
    const { id } = await make('Company__c', { Code__c: 'TAKEN-1' });
    await remove('Company__c', id);
    const other = await make('Company__c', { Code__c: 'taken-1' });
    const error = await refusal(restore('Company__c', id));
    assert.deepEqual([error.code, error.details], ['UNIQUE_VALUE_CONFLICT', { field: 'Code__c' }]);
    const dry = await world.clerk.check('Company__c', { operation: 'restore', id });
    assert.equal(dry.body.valid, false);
    await remove('Company__c', other.id);
    assert.equal((await restore('Company__c', id)).status, 201);
  });

  it('answers alike for absent, undeleted and purged records', async () => {
    const live = await make('Company__c');
    const old = await make('Company__c');
    const gone = await make('Company__c');
    for (const { id } of [old, gone]) await remove('Company__c', id);
    await world.rows(
      `UPDATE $schema._recycle_bin SET restorable_until = now() - interval '1 second' WHERE record_id = $1`,
      [old.id],
    );
    const shape = async (promise: Promise<Reply>) => {
      const { code, message, errors, details } = await refusal(promise);
      return { code, message, errors, details };
    };
    const absent = await shape(restore('Company__c', randomUUID()));
    assert.equal(absent.code, 'RECORD_NOT_FOUND');
    for (const [object, id] of [
      ['Company__c', live.id],
      ['Company__c', old.id],
      ['Item__c', gone.id],
      ['Company__c', 'x'],
    ])
      assert.deepEqual(await shape(restore(object, id)), absent);
    assert.deepEqual(await shape(restore('Company__c', gone.id, { by: world.stranger })), absent);
    assert.equal(await code(restore('Vault__c', gone.id)), 'OBJECT_NOT_FOUND');
    assert.equal(await code(restore('Company__c', gone.id, { by: world.reader })), 'OBJECT_PERMISSION_DENIED');
  });

  it('happens once for concurrent requests', async () => {
    const { id } = await make('Company__c');
    await remove('Company__c', id);
    const key = randomUUID();
    const answers = await Promise.allSettled([
      ...Array.from({ length: 4 }, () => restore('Company__c', id)),
      restore('Company__c', id, { key }),
      restore('Company__c', id, { key }),
    ]);
    const done = answers.filter((answer) => answer.status === 'fulfilled').length;
    assert.ok(done === 1 || done === 2, `${done} restored`); // two: the retry of the one that did it
    // The older of the two requests of one key is not carried out after the newer was refused.
    const refusals = (from: number, to?: number) =>
      answers.slice(from, to).flatMap((answer) => (answer.status === 'rejected' ? [answer.reason.code] : []));
    for (const refused of refusals(0, 4)) assert.equal(refused, 'RECORD_NOT_FOUND');
    for (const refused of refusals(4)) assert.match(refused, /^(RECORD_NOT_FOUND|WRITE_CONTENTION)$/);
    assert.equal((await world.clerk.get('Company__c', id)).body.recordVersion, 2);
  });

  it('answers a retry with the stored outcome', async () => {
    const { id } = await make('Company__c');
    await remove('Company__c', id);
    const first = await restore('Company__c', id, { key: 'restore-replay' });
    const again = await restore('Company__c', id, { key: 'restore-replay' });
    assert.deepEqual([again.status, again.text], [201, first.text]);
    assert.equal(again.headers['Idempotency-Replayed'], 'true');
  });

  it('keeps an automatic number', async () => {
    const ticket = await make('Ticket__c');
    await remove('Ticket__c', ticket.id);
    assert.equal((await restore('Ticket__c', ticket.id)).body.name, ticket.name);
  });

  it('adapts the record to the current fields', async () => {
    const made = await make('Company__c', { Amount__c: 123456.78, Tags__c: ['y'], Note__c: 'x' });
    await remove('Company__c', made.id);
    const path = 'objects/Company__c/fields';
    await world.deploy(world.tenantId, {
      [`${path}/Amount__c.yaml`]: FILES[`${path}/Amount__c.yaml`]!.replace('precision: 18', 'precision: 6'),
      [`${path}/Tags__c.yaml`]: FILES[`${path}/Tags__c.yaml`]!.replace(/ {4}- value: y\n {6}label: Y\n/, ''),
      [`${path}/New__c.yaml`]:
        'type: CustomField\napiName: New__c\nobject: Company__c\nlabel: N\nfieldType: integer\nrequired: true\ndefaultValue: 5\n',
    });
    const { body } = await restore('Company__c', made.id, { by: world.admin });
    assert.deepEqual([body.Amount__c, body.Tags__c, body.Note__c, body.New__c], [null, ['y'], 'x', 5]);
    const [history] = await world.rows(
      `SELECT changes FROM $schema._history WHERE record_id = $1 AND operation = 'restore'`,
      [made.id],
    );
    assert.deepEqual(history!['changes'].Amount__c, { from: 123456.78, to: null });
  });
});

/** Create or update by an external id. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type CallOptions, codes, createWorld, FILES, type Person, type Reply, refusal, type World } from './world.ts';

describe('upserts', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
  });
  after(() => world?.stop());

  const upsert = (
    value: string,
    body: unknown,
    options: CallOptions & { field?: string; by?: Person } = {},
  ): Promise<Reply> =>
    (options.by ?? world.clerk).send(
      'data.records.upsert',
      { objectApiName: 'Company__c', externalIdField: options.field ?? 'Code__c', value },
      {},
      body,
      options,
    );
  const tryOut = (value: string, fields: object): Promise<Reply> =>
    world.clerk.check('Company__c', { operation: 'upsert', external: { field: 'Code__c', value }, fields });
  const code = async (promise: Promise<Reply>): Promise<string> => (await refusal(promise)).code;

  it('creates, then updates, and keeps what is equal', async () => {
    const created = await upsert('UP-1', { name: 'First', Count__c: 1 });
    assert.equal(created.status, 201);
    assert.equal(created.body.Code__c, 'UP-1');
    assert.equal(created.headers['Location'], `/api/v1/data/Company__c/${created.body.id}`);
    assert.equal(created.headers['ETag'], '"1"');
    const updated = await upsert('up-1', { Count__c: 2 });
    assert.equal(updated.status, 200);
    assert.deepEqual(
      [updated.body.id, updated.body.name, updated.body.Count__c, updated.body.Code__c, updated.headers['ETag']],
      [created.body.id, 'First', 2, 'UP-1', '"2"'],
    );
    const same = await upsert('UP-1', {});
    assert.deepEqual([same.status, same.headers['ETag']], [200, '"2"']);
    const [audit] = await world.rows(
      `SELECT count(*)::int FROM $schema._audit WHERE record_id = $1 AND operation_id = 'data.records.upsert' AND outcome = 'committed'`,
      [created.body.id],
    );
    assert.equal(audit!['count'], 2);
  });

  it('accepts a body with the same external id and refuses another', async () => {
    const { body } = await upsert('SAME-1', { name: 'x', Code__c: 'SAME-1' });
    const renamed = await upsert('SAME-1', { Code__c: 'same-1' });
    assert.deepEqual([renamed.body.id, renamed.body.Code__c], [body.id, 'same-1']);
    assert.equal(await code(upsert('SAME-1', { Code__c: 'OTHER' })), 'PARAMETER_CONFLICT');
    assert.equal(await code(upsert('SAME-1', { Code__c: null })), 'PARAMETER_CONFLICT');
    assert.deepEqual(codes(await refusal(upsert('SAME-1', { Code__c: 7 }))), ['/Code__c FIELD_TYPE_INVALID']);
    const created = await upsert('SAME-2', { name: 'x', Code__c: 'Same-2' });
    assert.deepEqual([created.status, created.body.Code__c], [201, 'Same-2'], 'as the body spells it');
    const wrong = await refusal(upsert('SAME-3', { name: 'x', Code__c: 7 }));
    assert.deepEqual(codes(wrong), ['/Code__c FIELD_TYPE_INVALID'], 'also of a record that is not there yet');
  });

  it('keeps the conditions of the request', async () => {
    assert.equal(await code(upsert('COND-1', { name: 'x' }, { etag: '"1"' })), 'ETAG_MISMATCH');
    assert.equal((await upsert('COND-1', { name: 'x' }, { ifNoneMatch: '*' })).status, 201);
    const taken = await refusal(upsert('COND-1', { name: 'y' }, { ifNoneMatch: '*' }));
    assert.deepEqual([taken.code, taken.details], ['ETAG_MISMATCH', { currentETag: '"1"' }]);
    assert.equal(await code(upsert('COND-1', { name: 'y' }, { etag: '"7"' })), 'ETAG_MISMATCH');
    assert.equal((await upsert('COND-1', { name: 'y' }, { etag: '"1"' })).headers['ETag'], '"2"');
    assert.equal(await code(upsert('COND-1', {}, { etag: '*' })), 'IF_MATCH_INVALID');
    assert.equal(await code(upsert('COND-1', {}, { etag: '"2"', ifNoneMatch: '*' })), 'PARAMETER_CONFLICT');
  });

  it('checks create and update permission before the version', async () => {
    await upsert('COND-2', { name: 'x' });
    const by = world.reader;
    const denied = async (value: string, options: CallOptions, operation: string) => {
      const { code, details } = await refusal(upsert(value, { name: 'y' }, { ...options, by }));
      assert.deepEqual([code, details?.['operation']], ['OBJECT_PERMISSION_DENIED', operation]);
    };
    await denied('COND-2', { ifNoneMatch: '*' }, 'create');
    await denied('COND-3', { etag: '"1"' }, 'update');
    await denied('COND-2', { etag: '"7"' }, 'update');
  });

  it('answers a hidden field, no external id and an unknown field alike', async () => {
    const shape = async (field: string) => {
      const { code, message, errors } = await refusal(upsert('x', { name: 'x' }, { field }));
      return { code, message, errors };
    };
    const unknown = await shape('Nope__c');
    assert.equal(unknown.code, 'PARAMETER_INVALID');
    for (const field of ['Secret__c', 'name', 'constructor']) assert.deepEqual(await shape(field), unknown);
  });

  it('refuses a blank external id, which would merge unrelated records', async () => {
    for (const value of ['', ' ', '\u3000'])
      assert.equal(await code(upsert(value, { name: 'x' })), 'PARAMETER_INVALID', JSON.stringify(value));
  });

  it('requires the permission for the executed operation', async () => {
    await upsert('PERM-1', { name: 'x' });
    const by = world.reader;
    assert.equal(await code(upsert('PERM-1', { name: 'y' }, { by })), 'OBJECT_PERMISSION_DENIED');
    assert.equal(await code(upsert('PERM-2', { name: 'y' }, { by })), 'OBJECT_PERMISSION_DENIED');
    const invalid = await refusal(upsert('PERM-2', { name: ' ', Count__c: 'x' }));
    assert.deepEqual(codes(invalid), ['/Count__c FIELD_TYPE_INVALID', '/name FIELD_REQUIRED']);
    assert.deepEqual(codes(await refusal(upsert('x'.repeat(41), { name: 'y' }))), ['/Code__c FIELD_TOO_LONG']);
  });

  it('supports a dry run', async () => {
    const dry = await tryOut('DRY-1', { name: 'x' });
    assert.deepEqual([dry.status, dry.body.valid, dry.body.effects[0].kind], [200, true, 'create']);
    const { id } = (await upsert('DRY-1', { name: 'x' })).body;
    const again = await tryOut('DRY-1', { name: 'y' });
    assert.deepEqual(
      [again.body.valid, again.body.effects[0].kind, again.body.effects[0].id, again.body.record.name],
      [true, 'update', id, 'y'],
    );
  });

  it('answers the stored outcome to a retry, regardless of later changes', async () => {
    const key = randomUUID();
    const first = await upsert('RETRY-1', { name: 'x' }, { key, ifNoneMatch: '*' });
    const again = await upsert('RETRY-1', { name: 'x' }, { key, ifNoneMatch: '*' });
    assert.equal(again.text, first.text);
    assert.equal(again.status, 201);
    await world.clerk.delete('Company__c', first.body.id, { etag: '"1"' });
    const late = await upsert('RETRY-1', { name: 'x' }, { key });
    assert.deepEqual([late.text, late.headers['Idempotency-Replayed']], [first.text, 'true']);
    assert.equal(await code(upsert('RETRY-1', { name: 'other' }, { key })), 'IDEMPOTENCY_KEY_REUSED');
  });

  it('creates one record for concurrent requests', async () => {
    for (let round = 0; round < 5; round++) {
      const replies = await Promise.all(
        Array.from({ length: 8 }, (_, i) => upsert(`RACE-${round}`, { name: 'x', Count__c: i })),
      );
      assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 200, 200, 201]);
      assert.equal(new Set(replies.map(({ body }) => body.id)).size, 1);
    }
  });

  it('creates one record for concurrent requests with a duplicate rule', async () => {
    const path = 'objects/Company__c/duplicateRules/SameName.yaml';
    const object = 'objects/Company__c/object.yaml';
    const rule = (active: boolean) => ({
      [object]: FILES[object]!.replace('features:', 'features:\n  duplicates: true'),
      [path]: `type: DuplicateRule\napiName: SameName\nobject: Company__c\nactive: ${active}\naction: block\nscope: visible\nthreshold: 1\nmatch:\n  - field: name\n    method: normalized\n    weight: 1\n`,
    });
    await world.deploy(world.tenantId, rule(true));
    try {
      for (let round = 0; round < 4; round++) {
        const replies = await Promise.all(
          Array.from({ length: 6 }, () => upsert(`TWIN-${round}`, { name: `Twin ${round}` })),
        );
        assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 201]);
      }
      assert.equal(await code(upsert('TWIN-NEW', { name: 'twin 0' })), 'DUPLICATE_RULE');
      const dry = await tryOut('TWIN-NEW', { name: 'twin 0' });
      assert.deepEqual([dry.body.valid, dry.body.errors, dry.body.duplicates.length], [false, [], 1]);
      assert.equal(dry.body.duplicates[0].matches[0].displayName, 'Twin 0');
      assert.doesNotMatch(dry.text, /confirmation/i);
    } finally {
      await world.deploy(world.tenantId, rule(false));
    }
  });

  it('creates a record again that was deleted meanwhile', async () => {
    await upsert('GONE-1', { name: 'x' });
    const remove = async (): Promise<void> => {
      const { body } = await upsert('GONE-1', { name: 'x' });
      await world.clerk.delete('Company__c', body.id, { etag: `"${body.recordVersion.toString(36)}"` }).catch(() => {});
    };
    await Promise.all(
      Array.from({ length: 12 }, async (_, i) =>
        i % 3
          ? upsert('GONE-1', { name: `n${i}` }).then(({ status }) => assert.ok([200, 201].includes(status)))
          : remove().catch((error: { code: string }) => assert.fail(`${error.code}`)),
      ),
    );
  });
});

describe('upserts by an external id that is not unique', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    const path = 'objects/Company__c/fields/Loose__c.yaml';
    const field =
      'type: CustomField\napiName: Loose__c\nobject: Company__c\nlabel: L\nfieldType: integer\nexternalId: true\n';
    await world.deploy(world.tenantId, { [path]: field });
  });
  after(() => world?.stop());

  const upsert = (value: string, body: unknown = { name: 'x' }): Promise<Reply> =>
    world.admin.send(
      'data.records.upsert',
      { objectApiName: 'Company__c', externalIdField: 'Loose__c', value },
      {},
      body,
    );

  it('types the value like the field', async () => {
    assert.equal((await upsert('42')).body.Loose__c, 42);
    assert.equal((await upsert('042')).status, 200);
    assert.equal((await refusal(upsert('4x'))).code, 'PARAMETER_INVALID');
  });

  it('creates one record for concurrent requests, and refuses ambiguous matches', async () => {
    const replies = await Promise.all(Array.from({ length: 6 }, () => upsert('7')));
    assert.equal(new Set(replies.map(({ body }) => body.id)).size, 1);
    await world.admin.create('Company__c', { name: 'Twin', Loose__c: 7 });
    assert.equal((await refusal(upsert('7'))).code, 'UNIQUE_VALUE_CONFLICT');
  });
});

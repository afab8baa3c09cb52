/** Dry runs: the verdict of the write itself, and nothing that stays. DRY_RUN_SEED and DRY_RUN_RUNS replay the property. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { EVENT_TYPE_NAMES } from '../../../contracts/event-types.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { until } from '../../support/until.ts';
import { createWorld, type Person, type Reply, refusal, type World } from './world.ts';

const seed = Number(process.env['DRY_RUN_SEED'] ?? Date.now() % 1_000_000_000);
const numRuns = Number(process.env['DRY_RUN_RUNS'] ?? 150);

describe('dry runs', () => {
  let world: World;
  let clerk: Person;
  before(async function () {
    this.timeout(60_000);
    world = await createWorld();
    clerk = world.clerk;
  });
  after(() => world?.stop());

  const check = (
    operation: 'create' | 'update' | 'delete',
    { objectApiName, id }: { objectApiName: string; id?: string },
    fields?: unknown,
    ifMatch?: string,
  ) => clerk.check(objectApiName, { operation, id, ifMatch, fields });

  /** Everything of the tenant that a write could leave behind. */
  const picture = async (): Promise<unknown> => {
    // What happened before gets its number a moment later.
    const unnumbered = `SELECT FROM $schema._outbox WHERE sequence IS NULL AND type = ANY('{${EVENT_TYPE_NAMES.join()}}')`;
    await until(async () => (await world.rows(unnumbered)).length === 0);
    const names = await world.rows(
      `SELECT c.relname AS name, c.relkind AS kind FROM pg_class c WHERE c.relnamespace = '$schema'::regnamespace
         AND c.relkind IN ('r', 'S') ORDER BY 1`,
    );
    const text = names.map(({ name, kind }) =>
      kind === 'S'
        ? `SELECT '${name}' AS name, (SELECT last_value || ' ' || is_called FROM $schema."${name}") AS found`
        : `SELECT '${name}', (SELECT md5(coalesce(string_agg(t::text, ',' ORDER BY t::text), '')) FROM $schema."${name}" t)`,
    );
    return world.rows(text.join(' UNION ALL '));
  };

  it('shows the record of a create without storing it', async () => {
    const before = await picture();
    const reply = await check('create', { objectApiName: 'Company__c' }, { name: 'Acme', Amount__c: 10.5 });
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.headers, {});
    const { record, ...verdict } = reply.body;
    assert.equal(record.id, null);
    assert.equal(record.name, 'Acme');
    assert.equal(record.recordVersion, 1);
    assert.equal(record.Kind__c, 'a', 'the default of a picklist');
    assert.match(reply.text, /"Amount__c":10\.50[,}]/);
    const fields = ['Active__c', 'Amount__c', 'Kind__c', 'name'];
    assert.deepEqual(verdict, {
      checkOnly: true,
      valid: true,
      errors: [],
      duplicates: [],
      effects: [
        { kind: 'create', objectApiName: 'Company__c', id: null, fields },
        { kind: 'event', objectApiName: 'Company__c', id: null, fields },
      ],
      approvalRequired: false,
    });
    assert.deepEqual(await picture(), before);
  });

  it('consumes no automatic number', async () => {
    const first = await clerk.create('Ticket__c', {});
    for (let i = 0; i < 3; i++) {
      const { body } = await check('create', { objectApiName: 'Ticket__c' }, {});
      assert.equal(body.valid, true);
      assert.equal(body.record.name, null);
    }
    const second = await clerk.create('Ticket__c', {});
    const number = (reply: Reply): number => Number(reply.body.name.slice(4));
    assert.equal(number(second), number(first) + 1);
  });

  it('shows the changes of an update', async () => {
    const made = await clerk.create('Company__c', { name: 'Before', Count__c: 1 });
    const path = { objectApiName: 'Company__c', id: made.body.id };
    const before = await picture();
    const { body } = await check('update', path, { name: 'After', Count__c: 1 }, '"1"');
    assert.equal(body.record.name, 'After');
    assert.equal(body.record.recordVersion, 2);
    assert.deepEqual(
      body.effects.map(({ kind, id, fields }: Record<string, unknown>) => [kind, id, fields]),
      [
        ['update', made.body.id, ['name']],
        ['event', made.body.id, ['name']],
      ],
    );
    const same = await check('update', path, { Count__c: 1 }, '"1"');
    assert.deepEqual([same.body.valid, same.body.record.recordVersion, same.body.effects], [true, 1, []]);
    assert.deepEqual(await picture(), before);
  });

  it('lists the cascaded deletions and cleared references of a delete', async () => {
    const { id } = (await clerk.create('Company__c', { name: 'Root' })).body;
    const item = (await clerk.create('Item__c', { name: 'Item', CompanyId__c: id })).body;
    for (const name of ['a', 'b']) await clerk.create('Part__c', { name, ItemId__c: item.id });
    await clerk.create('Company__c', { name: 'Child', ParentId__c: id });
    const before = await picture();
    const { body } = await check('delete', { objectApiName: 'Company__c', id }, undefined, '"1"');
    assert.equal(body.valid, true);
    assert.equal(body.record, null);
    const effects = body.effects.filter(({ kind }: { kind: string }) => kind !== 'event');
    assert.deepEqual(effects, [
      { kind: 'update', objectApiName: 'Company__c', id: null, fields: ['ParentId__c'], count: 1 },
      { kind: 'delete', objectApiName: 'Company__c', id, fields: [] },
      { kind: 'delete', objectApiName: 'Item__c', id: null, fields: [], count: 1 },
      { kind: 'delete', objectApiName: 'Part__c', id: null, fields: [], count: 2 },
    ]);
    assert.equal(body.effects.length, 2 * effects.length);
    assert.deepEqual(await picture(), before);
  });

  it('turns refusals of the content into the verdict', async () => {
    await clerk.create('Company__c', { name: 'Taken', Code__c: 'DRY-TAKEN' });
    const path = { objectApiName: 'Company__c' };
    const before = await picture();
    const invalid = await check('create', path, { name: ' ', Count__c: 'x', Nope__c: 1 });
    assert.equal(invalid.status, 200);
    assert.deepEqual([invalid.body.valid, invalid.body.record, invalid.body.effects], [false, null, []]);
    assert.deepEqual(
      invalid.body.errors.map((error: { pointer: string; code: string }) => `${error.pointer} ${error.code}`).sort(),
      ['/Count__c FIELD_TYPE_INVALID', '/Nope__c FIELD_UNKNOWN', '/name FIELD_REQUIRED'],
    );
    assert.deepEqual(await picture(), before);
    const taken = await check('create', path, { name: 'x', Code__c: 'dry-taken' });
    assert.deepEqual(
      taken.body.errors.map((error: { field: string; code: string }) => [error.field, error.code]),
      [['Code__c', 'UNIQUE_VALUE_CONFLICT']],
    );
    const { id } = (await clerk.create('Company__c', { name: 'Needed' })).body;
    await clerk.create('Ticket__c', { CompanyId__c: id });
    const needed = await check('delete', { ...path, id }, undefined, '"1"');
    assert.equal(needed.body.valid, false);
    assert.deepEqual(
      needed.body.errors.map((error: { code: string; params: unknown }) => [error.code, error.params]),
      [['DELETE_RESTRICTED', { dependents: [{ objectApiName: 'Ticket__c', count: 1 }] }]],
    );
  });

  it('keeps errors of form and permission, with pointers into the check', async () => {
    const { id } = (await clerk.create('Company__c', { name: 'x' })).body;
    const path = { objectApiName: 'Company__c', id };
    const before = await picture();
    const told = async (promise: Promise<unknown>): Promise<string[]> => {
      const { code, errors = [] } = await refusal(promise);
      return [code, ...errors.map(({ pointer }) => pointer).toSorted()];
    };
    const etag = '"1"';
    assert.deepEqual(await told(check('update', path, { name: 'y' }, '"7"')), ['ETAG_MISMATCH']);
    assert.deepEqual(await told(check('update', path, { name: 'y' })), ['PARAMETER_REQUIRED', '/ifMatch']);
    assert.deepEqual(await told(check('update', path, { name: 'y' }, '*')), ['IF_MATCH_INVALID', '/ifMatch']);
    const unknown = { ...path, id: randomUUID() };
    assert.deepEqual(await told(check('update', unknown, { name: 'y' }, etag)), ['RECORD_NOT_FOUND']);
    const vault = { objectApiName: 'Vault__c' };
    assert.deepEqual(await told(check('create', vault, { name: 'y' })), ['OBJECT_NOT_FOUND']);
    assert.deepEqual(await told(check('update', path, { Fixed__c: 'y' }, etag)), [
      'FIELD_PERMISSION_DENIED',
      '/fields/Fixed__c',
    ]);
    const create = { operation: 'create', fields: { name: 'y' } };
    assert.deepEqual(await told(world.reader.check('Company__c', create)), ['OBJECT_PERMISSION_DENIED']);
    const external = { field: 'Nope__c', value: 'x' };
    assert.deepEqual(await told(clerk.check('Company__c', { operation: 'upsert', external, fields: {} })), [
      'PARAMETER_INVALID',
      '/external/field',
    ]);
    assert.deepEqual(await told(clerk.check('Company__c', { ...create, duplicateConfirmation: 'dct_x' })), [
      'CONFIRMATION_TOKEN_INVALID',
      '/duplicateConfirmation',
    ]);
    assert.deepEqual(await told(clerk.check('Company__c', { operation: 'update', id: 7, extra: 1 })), [
      'PARAMETER_REQUIRED',
      '/extra',
      '/fields',
      '/id',
      '/ifMatch',
    ]);
    const nul = { operation: 'upsert', external: { field: 'Code__c', value: 'a\0b' }, fields: {} };
    assert.deepEqual(await told(clerk.check('Company__c', nul)), ['PARAMETER_INVALID', '/external/value']);
    assert.deepEqual(await picture(), before);
  });

  it('does not block dry runs with the same unique value', async () => {
    const fields = { name: 'x', Code__c: 'DRY-TWIN' };
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => check('create', { objectApiName: 'Company__c' }, fields)),
    );
    for (const reply of replies) assert.equal(reply.body.valid, true, reply.text);
  });

  it('creates and changes no user, and does not call auth', async () => {
    const before = await picture();
    const body = {
      name: 'New',
      username: 'new@one.example',
      email: 'new@one.example',
      profileApiName: 'Clerk',
    };
    const created = await world.admin.check('User', { operation: 'create', fields: body });
    assert.equal(created.body.valid, true, created.text);
    const id = world.reader.userId;
    const { headers } = await world.admin.get('User', id);
    const ifMatch = headers['ETag']!;
    const changed = await world.admin.check('User', { operation: 'update', id, ifMatch, fields: { active: false } });
    assert.equal(changed.body.valid, true, changed.text);
    assert.deepEqual(await picture(), before);
    assert.equal((await world.reader.list('Company__c')).status, 200);
  });

  it(`predicts the result of the write for any body (seed ${seed})`, async function () {
    this.timeout(120_000);
    await clerk.create('Company__c', { name: 'Owner of codes', Code__c: 'c1' });
    const target = (await clerk.create('Company__c', { name: 'Target' })).body;
    const value = fc.oneof(
      fc.constantFrom<unknown>(null, '', ' ', 'a', 'b', 'a1', 'b1', 'c1', 'C2', 'x@y.example', '2026-11-21', target.id),
      fc.constantFrom<unknown>(randomUUID(), ['x'], ['q'], [], true, {}, { Code__c: 'c1' }, { Code__c: 'zz' }),
      fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.string({ maxLength: 50 })),
    );
    const names = fc.constantFrom(
      ...['name', 'name', 'Code__c', 'Code__c', 'Amount__c', 'Quantity__c', 'Count__c', 'Kind__c', 'Sub__c', 'Tags__c'],
      ...['Email__c', 'Day__c', 'ParentId__c', 'ParentId__c', 'ownerId', 'Fixed__c', 'Secret__c', 'id', 'Nope__c'],
    );
    const bodies = fc.dictionary(names, value, { maxKeys: 4 });
    /** The stable part of the answer: the verdict with its violations, and the values. */
    const told = ({ body }: Reply): unknown =>
      body.valid === false ? { errors: body.errors } : settled(body.checkOnly ? body.record : body);
    const settled = ({ id, createdAt, updatedAt, ...rest }: Record<string, unknown>): unknown => rest;
    const real = (promise: Promise<Reply>): Promise<Reply> =>
      promise.catch((error: unknown) => {
        if (!(error instanceof PlatformError)) throw error;
        const { errors = [] } = error;
        if (error.status !== 422 && error.code !== 'UNIQUE_VALUE_CONFLICT') throw error;
        return { body: { valid: false, errors } } as Reply;
      });
    const outcome = (promise: Promise<Reply>): Promise<unknown> =>
      promise.then(told, (error: unknown) => {
        assert.ok(error instanceof PlatformError, String(error));
        const errors = error.errors?.map((one) => ({ ...one, pointer: one.pointer.replace(/^\/fields/, '') }));
        return { code: error.code, errors };
      });
    let version = 1;
    await fc.assert(
      fc.asyncProperty(bodies, fc.boolean(), async (body, update) => {
        const operation = update ? 'update' : 'create';
        const path = { objectApiName: 'Company__c', ...(update ? { id: target.id as string } : {}) };
        const etag = update ? `"${version.toString(36)}"` : undefined;
        const dry = await outcome(check(operation, path, body, etag));
        const reply = real(clerk.send(`data.records.${operation}`, path, {}, body, etag ? { etag } : {}));
        assert.deepEqual(dry, await outcome(reply));
        if (update) version = (await clerk.get('Company__c', target.id)).body.recordVersion;
      }),
      { seed, numRuns },
    );
  });
});

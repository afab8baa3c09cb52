/** Several record writes in one unit: each with all steps of its own, all of them committed or none. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { call as callService } from '../../../contracts/call.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { Templates } from '../../../mixins/database/templates.ts';
import { idempotencyKey } from '../../../mixins/mutation/key.ts';
import { runIdempotent } from '../../../mixins/mutation/mutate.ts';
import { SnapshotCache } from '../../../mixins/snapshot-cache/snapshot-cache.ts';
import { visibleObject } from '../../../services/data/object-access.ts';
import { Tenants } from '../../../services/data/tenants.ts';
import { CREATE_STEPS } from '../../../services/data/write/create.ts';
import { runTasks } from '../../../services/data/write/tasks.ts';
import { UPDATE_STEPS } from '../../../services/data/write/update.ts';
import type { MutationCall, MutationDeps } from '../../../services/data/write/write.ts';
import { createWorld, type Person, refusal, type World } from './world.ts';

describe('record writes in one unit', function () {
  this.timeout(60_000);
  let world: World;
  let tenants: Tenants;
  before(async () => {
    world = await createWorld();
    const { broker } = world.platform;
    tenants = new Tenants(
      world.database,
      new SnapshotCache((tenantId, version) =>
        callService(broker, 'metadata.snapshots.get', version === undefined ? { tenantId } : { tenantId, version }),
      ),
    );
  });
  after(() => world?.stop());

  type Body = Record<string, unknown>;
  type Made = (done: readonly { readonly id: string; readonly etag: string | undefined }[]) => {
    readonly objectApiName: string;
    readonly body: Body;
    /** An update; absent: a create. */
    readonly of?: { readonly id: string; readonly etag: string };
  };
  /** The ids of the records, in the order of their tasks. */
  const write = async (person: Person, tasks: readonly Made[], commits = false): Promise<string[]> => {
    const { database } = world;
    const request = person.asker as RequestContext;
    const deps = { platform: { database }, tenants, templates: new Templates() } as unknown as MutationDeps;
    const call: MutationCall = {
      operationId: 'data.records.create',
      path: { objectApiName: 'Company__c' },
      query: {},
      headers: { idempotencyKey: randomUUID() },
      fingerprint: 'test',
    };
    const key = idempotencyKey(call, request);
    let ids: string[] = [];
    await runIdempotent({ database, request, call, key, service: 'data' }, (attempt) =>
      tenants.withView(request.tenantId, request.userId, (view) =>
        attempt.inUnit(async (unit) => {
          ids = [];
          // A last task that commits claims the key itself.
          const stored = commits ? null : await unit.claim();
          if (stored) return stored;
          unit.actAs('tenant');
          await runTasks(
            unit,
            { deps, call, view, commits },
            tasks.map((next) => (done) => {
              const { objectApiName, body, of } = next(done);
              const id = of?.id ?? uuidv7();
              ids.push(id);
              const access = visibleObject(view, objectApiName);
              return of
                ? { mutation: 'update', steps: UPDATE_STEPS, access, id, body, ifMatch: [of.etag] }
                : { mutation: 'create', steps: CREATE_STEPS, access, id, body };
            }),
          );
          assert.equal(unit.tally.records, tasks.length);
          return commits ? { body: null } : unit.complete({ body: null });
        }),
      ),
    );
    return ids;
  };
  const company =
    (body: Body): Made =>
    () => ({ objectApiName: 'Company__c', body });
  const named = (name: string) =>
    world.rows(`SELECT "name", "Count__c" FROM $schema."Company__c" WHERE "name" LIKE $1 ORDER BY 1`, [`${name}%`]);

  it('go by what the ones before have made, and are one transaction for those who follow events', async () => {
    const ids = await write(world.clerk, [
      company({ name: 'Chain parent' }),
      ([parent]) => ({ objectApiName: 'Company__c', body: { name: 'Chain child', ParentId__c: parent!.id } }),
      ([parent]) => ({
        objectApiName: 'Company__c',
        body: { Count__c: 2 },
        of: { id: parent!.id, etag: parent!.etag! },
      }),
    ]);
    assert.equal(ids[2], ids[0]);
    assert.deepEqual(
      (await named('Chain')).map((row) => [row['name'], row['Count__c']]),
      [
        ['Chain child', null],
        ['Chain parent', 2],
      ],
    );
    const events = await world.rows(
      `SELECT type, data->>'transactionId' AS tx, data->'transactionIndex' AS index, data->'transactionSize' AS size
        FROM $schema._outbox WHERE record_id = ANY($1) ORDER BY outbox_id`,
      [ids],
    );
    assert.deepEqual(
      events.map(({ type, index, size }) => [type, index, size]),
      [
        ['data.record.created', 0, 3],
        ['data.record.created', 1, 3],
        ['data.record.updated', 2, 3],
      ],
    );
    assert.equal(new Set(events.map(({ tx }) => tx)).size, 1);
    const audited = await world.rows('SELECT kind FROM $schema._audit WHERE record_id = ANY($1)', [ids]);
    assert.equal(audited.length, 3);
  });

  it('are all counted when the last of them commits', async () => {
    const rename: Made = ([first]) => ({
      objectApiName: 'Company__c',
      body: { Count__c: 3 },
      of: { id: first!.id, etag: first!.etag! },
    });
    await write(world.clerk, [company({ name: 'Last create' }), company({ name: 'Last create, too' })], true);
    await write(world.clerk, [company({ name: 'Last update' }), rename], true);
    assert.deepEqual(
      (await named('Last')).map((row) => [row['name'], row['Count__c']]),
      [
        ['Last create', null],
        ['Last create, too', null],
        ['Last update', 3],
      ],
    );
    await assert.rejects(write(world.clerk, [], true), /could not be completed/);
  });

  it('leave nothing when one of them is refused', async () => {
    const refused = await refusal(
      write(world.clerk, [company({ name: 'Half' }), company({ name: 'Half, too', Quantity__c: -1 })]),
    );
    assert.equal(refused.code, 'VALIDATION_FAILED');
    assert.deepEqual(await named('Half'), []);
  });

  it('are each subject to the permissions of the caller', async () => {
    const refused = await refusal(write(world.reader, [company({ name: 'Forbidden' })]));
    assert.equal(refused.code, 'OBJECT_PERMISSION_DENIED');
    assert.deepEqual(await named('Forbidden'), []);
  });

  it('may follow one that changes what users hold', async () => {
    const user =
      (name: string): Made =>
      () => ({
        objectApiName: 'User',
        body: {
          displayName: name,
          username: `${name}@one.example`,
          email: `${name}@one.example`,
          profileApiName: 'Reader',
        },
      });
    const ids = await write(world.admin, [user('first'), user('second')]);
    const stored = await world.rows('SELECT FROM $schema."User" WHERE "id" = ANY($1)', [ids]);
    assert.equal(stored.length, 2);
  });
});

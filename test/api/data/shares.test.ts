/** Manual shares over HTTP: each operation works, malformed, forbidden, from another tenant. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { LIMITS } from '../../../lib/limits.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { Database } from '../../../mixins/database/database.ts';
import type { Answer, Api } from '../../support/client.ts';
import { type Deals, startDeals } from './deals.ts';

describe('manual shares over HTTP', () => {
  let deals: Deals;
  let database: Database;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  let sue: Api;
  let eve: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ ada, mia, sam, sue, eve } = deals.as);
    database = new Database(deals.platform.database.url, { size: 2, applicationName: 'shares test' });
  });
  after(async () => {
    await database?.close();
    await deals?.platform.stop();
  });

  const newDeal = async (): Promise<string> => (await deals.deal()).body.id;
  const at = (id: string, object = 'Deal__c'): string => `/data/${object}/${id}`;
  const share = (id: string, body: object, who = sam, options = {}): Promise<Answer> =>
    who.post(`${at(id)}/shares`, body, options);
  const toSue = (access = 'read') => ({ principalType: 'user', principalId: deals.ids.sue, access });
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text);
  const rows = async (text: string, values: unknown[]) => {
    const { rows: tenants } = await database.query<{ id: string }>(
      `SELECT id FROM metadata.tenants WHERE key = 'demo'`,
    );
    const schema = `"t_${tenants[0]!.id.replaceAll('-', '')}"`;
    return (await database.query<Record<string, unknown>>(text.replaceAll('$schema', schema), values)).rows;
  };

  it('open a record to a user for reading, then for editing, and close it again', async () => {
    const id = await newDeal();
    assert.equal((await sue.get(at(id))).status, 404, 'private');
    const shared = await share(id, { ...toSue(), reason: 'Holiday cover' });
    assert.equal(shared.status, 201, shared.text);
    const { shareId, createdAt, ...rest } = shared.body;
    assert.deepEqual(rest, {
      principalType: 'user',
      principalId: deals.ids.sue,
      access: 'read',
      reason: 'Holiday cover',
      createdById: deals.ids.sam,
    });
    assert.match(createdAt, /^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/);
    const seen = await sue.get(at(id));
    assert.equal(seen.status, 200);
    const etag = seen.headers.get('etag')!;
    assert.equal(etag, '"1"', 'sharing is no change of the record');
    assert.ok((await sue.get('/data/Deal__c?take=200')).body.records.some((r: { id: string }) => r.id === id));
    refused(await sue.patch(at(id), { Stage__c: 'won' }, { etag }), 403, 'RECORD_ACCESS_DENIED');

    const edit = await share(id, toSue('edit'), mia);
    assert.deepEqual(
      [edit.status, edit.body.shareId, edit.body.access, edit.body.reason, edit.body.createdById],
      [201, shareId, 'edit', null, deals.ids.mia],
    );
    assert.ok(edit.body.createdAt > createdAt, 'given anew');
    const changed = await sue.patch(at(id), { Stage__c: 'won' }, { etag });
    assert.equal(changed.status, 200, changed.text);
    refused(await sue.delete(at(id), { etag: changed.headers.get('etag')! }), 403, 'RECORD_ACCESS_DENIED');
    const list = await sam.get(`${at(id)}/shares`);
    assert.deepEqual(list.body, { records: [edit.body], nextCursor: null }, 'one share of a principal');

    const gone = await sam.delete(`${at(id)}/shares/${shareId}`);
    assert.deepEqual([gone.status, gone.text], [204, '']);
    assert.equal((await sue.get(at(id))).status, 404);
    assert.deepEqual((await sam.get(`${at(id)}/shares`)).body, { records: [], nextCursor: null });
    refused(await sam.delete(`${at(id)}/shares/${shareId}`), 404, 'RECORD_NOT_FOUND');
  });

  it('open a record to a role with the roles above it, and to a group', async () => {
    const id = (await deals.deal(ada)).body.id;
    for (const who of [mia, sam, sue]) assert.equal((await who.get(at(id))).status, 404);
    const role = await share(id, { principalType: 'role', principalId: 'SalesManager', access: 'read' }, ada);
    assert.equal(role.status, 201, role.text);
    assert.deepEqual(
      await Promise.all([mia, sam, sue].map(async (who) => (await who.get(at(id))).status)),
      [200, 404, 404],
    );
    const group = await share(id, { principalType: 'group', principalId: 'Auditors', access: 'read' }, ada);
    assert.equal(group.status, 201, group.text);
    assert.deepEqual(
      await Promise.all([mia, sam, sue].map(async (who) => (await who.get(at(id))).status)),
      [200, 404, 200],
    );
    await ada.delete(`${at(id)}/shares/${role.body.shareId}`);
    const reps = await share(id, { principalType: 'role', principalId: 'SalesRep', access: 'read' }, ada);
    assert.equal(reps.status, 201);
    assert.deepEqual(
      await Promise.all([mia, sam, sue].map(async (who) => (await who.get(at(id))).status)),
      [200, 200, 200],
      'a role and those above it',
    );
    const list = (await ada.get(`${at(id)}/shares`)).body.records;
    assert.deepEqual(
      list.map((item: { principalId: string }) => item.principalId),
      ['Auditors', 'SalesRep'],
    );
  });

  it('are for the owner, for users above the owner, and for users with modify all', async () => {
    const id = await newDeal();
    const { shareId } = (await share(id, toSue('edit'))).body;
    const other = { principalType: 'group', principalId: 'Auditors', access: 'read' };
    // Sue may change the record, but not share it.
    for (const reply of [
      await share(id, other, sue),
      await sue.get(`${at(id)}/shares`),
      await sue.delete(`${at(id)}/shares/${shareId}`),
      await sue.delete(`${at(id)}/shares/${uuidv7()}`),
    ]) {
      refused(reply, 403, 'RECORD_ACCESS_DENIED');
      assert.equal(reply.body.details.layer, 'sharing');
    }
    for (const who of [mia, ada]) {
      assert.equal((await share(id, other, who)).status, 201);
      assert.equal((await who.get(`${at(id)}/shares`)).body.records.length, 2);
    }
  });

  it('do not reveal a record to users who cannot see it', async () => {
    const id = await newDeal();
    const { shareId } = (await share(id, { principalType: 'role', principalId: 'Ceo', access: 'read' })).body;
    const shapeOf = ({ status, body }: Answer): unknown => ({ status, body: { ...body, requestId: '' } });
    const nowhere = uuidv7();
    const pairs: [Answer, Answer][] = [
      [await share(id, toSue(), sue), await share(nowhere, toSue(), sue)],
      [await sue.get(`${at(id)}/shares`), await sue.get(`${at(nowhere)}/shares`)],
      [await sue.delete(`${at(id)}/shares/${shareId}`), await sue.delete(`${at(nowhere)}/shares/${shareId}`)],
      // No other fault of the request is reported either.
      [
        await share(id, { ...toSue(), principalId: 'nobody' }, sue),
        await share(nowhere, { ...toSue(), principalId: 'nobody' }, sue),
      ],
    ];
    for (const [hidden, absent] of pairs) {
      refused(hidden, 404, 'RECORD_NOT_FOUND');
      assert.deepEqual(shapeOf(hidden), shapeOf(absent));
    }
    refused(await share('not-an-id', toSue(), sam), 400, 'PARAMETER_INVALID');
    refused(await sam.get(`/data/Nope__c/${id}/shares`), 404, 'OBJECT_NOT_FOUND');
  });

  it('are refused for principals that the caller cannot name', async () => {
    const id = await newDeal();
    const cases: [string, string][] = [
      ['user', deals.ids.eve],
      ['user', uuidv7()],
      ['user', 'sue@demo.example'],
      ['user', 'SalesRep'],
      ['role', deals.ids.sue],
      ['role', 'Auditors'],
      ['role', 'salesrep'],
      ['role', 'constructor'],
      ['group', 'SalesRep'],
      ['group', '__proto__'],
    ];
    for (const [principalType, principalId] of cases) {
      const reply = await share(id, { principalType, principalId, access: 'read' });
      refused(reply, 422, 'VALIDATION_FAILED');
      assert.equal(reply.body.message, 'The record was not shared: 1 problem.');
      assert.deepEqual(
        reply.body.errors.map((e: { pointer: string; code: string }) => [e.pointer, e.code]),
        [['/principalId', 'REFERENCE_NOT_FOUND']],
        principalId,
      );
    }
    const pat = (await ada.get(`/data/User?where=${encodeURIComponent('{"username":"pat@demo.example"}')}`)).body
      .records[0];
    const gone = await ada.patch(`/data/User/${pat.id}`, { active: false }, { etag: `"${pat.recordVersion}"` });
    assert.equal(gone.status, 200, gone.text);
    refused(await share(id, { ...toSue(), principalId: pat.id }), 422, 'VALIDATION_FAILED');
    assert.equal((await share(id, { ...toSue(), principalId: deals.ids.sue.toUpperCase() })).status, 201);
    assert.equal((await sue.get(at(id))).status, 200);
  });

  it('report all faults of a body', async () => {
    const id = await newDeal();
    refused(await share(id, { ...toSue(), extra: 1 }), 400, 'BODY_PROPERTY_UNKNOWN');
    const reply = await share(id, { principalType: 'everybody', access: 'full', reason: 5 });
    assert.equal(reply.status, 400, reply.text);
    assert.deepEqual(reply.body.errors.map((e: { pointer: string }) => e.pointer).sort(), [
      '/access',
      '/principalId',
      '/principalType',
      '/reason',
    ]);
    assert.equal((await share(id, { ...toSue(), reason: 'x'.repeat(1_001) })).status, 400);
    const both = await share(id, { ...toSue(), principalId: uuidv7(), reason: 'a\u0000b' });
    assert.ok([400, 422].includes(both.status), both.text);
    assert.equal((await sam.post(`${at(id)}/shares`, undefined)).status, 400);
    assert.equal((await sam.post(`${at(id)}/shares`, '[]')).status, 400);
    refused(await share(id, toSue(), sam, { idempotencyKey: null }), 400, 'IDEMPOTENCY_KEY_REQUIRED');
    refused(await sam.get(`${at(id)}/shares?take=5`), 400, 'PARAMETER_UNKNOWN');
    assert.deepEqual((await sam.get(`${at(id)}/shares`)).body.records, []);
  });

  it('are applied once per idempotency key', async () => {
    const id = await newDeal();
    const idempotencyKey = `share-${randomUUID()}`;
    const replies = await Promise.all([1, 2, 3].map(() => share(id, toSue(), sam, { idempotencyKey })));
    const settled = replies.filter((reply) => reply.status === 201);
    assert.ok(settled.length > 0);
    assert.equal(new Set(settled.map((reply) => reply.body.shareId)).size, 1);
    const again = await share(id, toSue(), sam, { idempotencyKey });
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    refused(await share(id, toSue('edit'), sam, { idempotencyKey }), 409, 'IDEMPOTENCY_KEY_REUSED');
    const key = `unshare-${randomUUID()}`;
    const path = `${at(id)}/shares/${again.body.shareId}`;
    assert.equal((await sam.delete(path, { idempotencyKey: key })).status, 204);
    const replay = await sam.delete(path, { idempotencyKey: key });
    assert.deepEqual([replay.status, replay.text, replay.headers.get('idempotency-replayed')], [204, '', 'true']);
  });

  it('are stored once for simultaneous requests with the same principal', async () => {
    const id = await newDeal();
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, i) => share(id, toSue(i % 2 ? 'read' : 'edit'), i % 3 ? sam : mia)),
    );
    for (const reply of replies) assert.ok([201, 409].includes(reply.status), reply.text);
    assert.equal((await sam.get(`${at(id)}/shares`)).body.records.length, 1);
  });

  it('are revoked once and never exceed their maximum under concurrent requests', async () => {
    const id = await newDeal();
    const { shareId } = (await share(id, toSue())).body;
    const gone = await Promise.all([1, 2, 3, 4].map(() => sam.delete(`${at(id)}/shares/${shareId}`)));
    assert.deepEqual(gone.map((reply) => reply.status).sort(), [204, 404, 404, 404]);
    await rows(
      `INSERT INTO $schema._shares (share_id, object, record_id, principal_type, principal_id, access, created_by_id)
        SELECT gen_random_uuid(), 'Deal__c', $1, 'role', 'R' || n, 'read', $1 FROM generate_series(2, ${LIMITS.record_shares_max}) n`,
      [id],
    );
    const others = ['Ceo', 'SalesManager', 'SalesRep'].map((principalId) =>
      share(id, { principalType: 'role', principalId, access: 'read' }),
    );
    const last = await Promise.all(others);
    assert.deepEqual(last.map((reply) => reply.status).sort(), [201, 413, 413]);
    assert.equal((await sam.get(`${at(id)}/shares`)).body.records.length, LIMITS.record_shares_max);
  });

  it('leave an audit trail: actor, recipient, access and revocation', async () => {
    const id = await newDeal();
    const { shareId } = (await share(id, { ...toSue(), reason: 'why' })).body;
    await share(id, toSue('edit'));
    await sam.delete(`${at(id)}/shares/${shareId}`);
    await share(id, toSue(), sue);
    const audit = await rows(
      `SELECT operation_id, outcome, code, user_id, changes FROM $schema._audit WHERE record_id = $1 AND operation_id LIKE 'data.shares.%' ORDER BY at, audit_id`,
      [id],
    );
    assert.deepEqual(
      audit.map((row) => [row['operation_id'], row['outcome'], row['code'], row['user_id']]),
      [
        ['data.shares.create', 'committed', null, deals.ids.sam],
        ['data.shares.create', 'committed', null, deals.ids.sam],
        ['data.shares.delete', 'committed', null, deals.ids.sam],
        ['data.shares.create', 'failed', 'RECORD_NOT_FOUND', deals.ids.sue],
      ],
    );
    type Side = { access: string; reason: string | null } | null;
    const sides = audit.slice(0, 3).map((row) => (row['changes'] as { share: { from: Side; to: Side } }).share);
    assert.deepEqual(
      sides.map(({ from, to }) => [from?.access, from?.reason, to?.access]),
      [
        [undefined, undefined, 'read'],
        ['read', 'why', 'edit'],
        ['edit', null, undefined],
      ],
    );
    // The participants are visible to every auditor; the content of the share, to users with view all.
    await deals.deploy({
      'permissionSets/Audit.yaml': 'type: PermissionSet\napiName: Audit\nlabel: Audit\nsystem:\n  - viewAudit\n',
    });
    await deals.setUser('sue', { permissionSetApiNames: ['Deals', 'Audit'] });
    const seenBy = async (who: Api) =>
      (await who.get(`/events/audit?recordId=${id}&operationId=data.shares.delete`)).body.records.map(
        (entry: { actor: { userId: string }; changes: { field: string; from: Side }[] }) => [
          entry.actor.userId,
          entry.changes.map(({ field, from }) => [field, from?.access]),
        ],
      );
    assert.deepEqual(await seenBy(sue), [[deals.ids.sam, []]]);
    assert.deepEqual(await seenBy(ada), [[deals.ids.sam, [['share', 'edit']]]]);
    await deals.setUser('sue', { permissionSetApiNames: ['Deals'] });
    const revoked = await rows(
      `SELECT record_id, principal_id, access, revoked_by_id, kept_until - revoked_at = interval '8 days' AS kept FROM $schema._revoked_shares WHERE share_id = $1`,
      [shareId],
    );
    assert.deepEqual(revoked, [
      { record_id: id, principal_id: deals.ids.sue, access: 'edit', revoked_by_id: deals.ids.sam, kept: true },
    ]);
  });

  it('stay when the record gets another owner, and are inactive while it is deleted', async () => {
    const id = await newDeal();
    await share(id, toSue());
    const given = await sam.patch(at(id), { ownerId: deals.ids.mia }, { etag: '"1"' });
    assert.equal(given.status, 200, given.text);
    assert.equal((await sue.get(at(id))).status, 200);
    assert.equal((await mia.get(`${at(id)}/shares`)).body.records.length, 1);
    assert.equal((await sam.get(at(id))).status, 404, 'who gives a record away has no share of it');
    await mia.delete(at(id), { etag: '"2"' });
    refused(await share(id, toSue(), mia), 404, 'RECORD_NOT_FOUND');
    assert.equal((await sue.get(at(id))).status, 404);
    const restored = await mia.post(`${at(id)}/restore`);
    assert.equal(restored.status, 201, restored.text);
    assert.equal((await sue.get(at(id))).status, 200);
  });

  it('are not available for records that follow their parent, nor for users', async () => {
    const id = await newDeal();
    const line = await sam.post('/data/DealLine__c', { name: 'L', Deal__c: id });
    assert.equal(line.status, 201, line.text);
    const path = at(line.body.id, 'DealLine__c');
    assert.deepEqual((await sam.get(`${path}/shares`)).body, { records: [], nextCursor: null });
    const reply = await sam.post(`${path}/shares`, toSue());
    refused(reply, 422, 'VALIDATION_FAILED');
    assert.deepEqual([reply.body.errors[0].pointer, reply.body.errors[0].code], ['', 'REFERENCE_TYPE_INVALID']);
    assert.equal((await sue.get(path)).status, 404);
    await share(id, toSue());
    assert.equal((await sue.get(path)).status, 200, 'the line follows');
    refused(await ada.post(`/data/User/${deals.ids.sam}/shares`, toSue()), 422, 'VALIDATION_FAILED');
    refused(await sam.post(`/data/User/${deals.ids.sam}/shares`, toSue()), 403, 'RECORD_ACCESS_DENIED');
  });

  it('require their scope', async () => {
    const id = await newDeal();
    const reader = await deals.sign('sam', 'data:read');
    refused(await share(id, toSue(), reader), 403, 'SCOPE_INSUFFICIENT');
    assert.equal((await reader.get(`${at(id)}/shares`)).status, 200);
  });

  it('do not cross tenants', async () => {
    const account = await sam.post('/data/Account', { name: 'A' });
    const path = `/data/Account/${account.body.id}/shares`;
    refused(await eve.get(path), 404, 'RECORD_NOT_FOUND');
    refused(
      await eve.post(path, { principalType: 'user', principalId: deals.ids.eve, access: 'edit' }),
      404,
      'RECORD_NOT_FOUND',
    );
  });

  it(`are limited to ${LIMITS.record_shares_max} per record; one of them can still be changed`, async () => {
    const id = await newDeal();
    await rows(
      `INSERT INTO $schema._shares (share_id, object, record_id, principal_type, principal_id, access, created_by_id)
        SELECT gen_random_uuid(), 'Deal__c', $1, 'group', 'G' || n, 'read', $2 FROM generate_series(1, $3) n`,
      [id, deals.ids.sam, LIMITS.record_shares_max - 1],
    );
    assert.equal((await share(id, toSue())).status, 201);
    const more = await share(id, { principalType: 'group', principalId: 'Auditors', access: 'read' });
    refused(more, 413, 'TOO_MANY_ITEMS');
    assert.deepEqual(more.body.details, { max: LIMITS.record_shares_max });
    assert.equal((await share(id, toSue('edit'))).status, 201);
    assert.equal((await sam.get(`${at(id)}/shares`)).body.records.length, LIMITS.record_shares_max);
  });
});

/** Dry runs, upserts and restores over HTTP, by users who see different records; and writes during other changes. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { until } from '../../support/until.ts';
import { type Deals, startDeals } from './deals.ts';

const rule = (active: boolean): Record<string, string> => ({
  'objects/Deal__c/validationRules/NoBadStage.yaml': [
    'type: ValidationRule',
    'apiName: NoBadStage',
    'object: Deal__c',
    `active: ${active}`,
    'condition: record.Stage__c == "bad"',
    'errorField: Stage__c',
    'message: No bad stage.',
    '',
  ].join('\n'),
});

describe('special writes over HTTP', () => {
  let deals: Deals;
  let database: Client;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  let sue: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ ada, mia, sam, sue } = deals.as);
    const fields = ['Deal__c.Stage__c', 'Deal__c.Code__c', 'Deal__c.Lines__c', 'DealLine__c.Deal__c'];
    const right = (name: string): string =>
      `  ${name}:\n    create: true\n    read: true\n    update: true\n    delete: true\n    viewAll: false\n    modifyAll: false\n`;
    await deals.deploy({
      ...fieldFile('Deal__c', 'Code__c', 'fieldType: text\nunique: true\nexternalId: true\nlength: 40'),
      ...fieldFile(
        'Deal__c',
        'Lines__c',
        'fieldType: rollup\nrollup:\n  childObject: DealLine__c\n  referenceField: Deal__c\n  function: count',
      ),
      'permissionSets/Deals.yaml': `type: PermissionSet\napiName: Deals\nlabel: Deals\nobjects:\n${['Deal__c', 'DealLine__c'].map(right).join('')}fields:\n${fields.map((name) => `  ${name}:\n    read: true\n    edit: ${name !== 'Deal__c.Lines__c'}\n`).join('')}`,
    });
    database = new Client({ connectionString: deals.platform.database.url, application_name: 'writes test' });
    await database.connect();
    const { rows } = await database.query(`SELECT id FROM metadata.tenants WHERE key = 'demo'`);
    await database.query(`SET search_path = "t_${rows[0].id.replaceAll('-', '')}"`);
  });
  after(async () => {
    await database?.end();
    await deals?.platform.stop();
  });

  const deal = async (owner = sam, more: Record<string, unknown> = {}): Promise<string> =>
    (await deals.deal(owner, more)).body.id;
  const at = (id: string, more = ''): string => `/data/Deal__c/${id}${more}`;
  const by = (value: string): string => `/data/Deal__c/by/Code__c/${encodeURIComponent(value)}`;
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text);
  const share = async (id: string, access: string): Promise<void> => {
    const body = { principalType: 'user', principalId: deals.ids.sue, access };
    assert.equal((await sam.post(at(id, '/shares'), body)).status, 201);
  };
  const shape = ({ status, body: { requestId, ...body } }: Answer): unknown => [status, body];

  describe('dry runs', () => {
    it('are an operation of their own, without an idempotency key', async () => {
      const body = { operation: 'create', fields: { name: 'x' } };
      const reply = await sam.post('/data/Deal__c/check', body, { idempotencyKey: null });
      assert.equal(reply.status, 200, reply.text);
      assert.deepEqual([reply.body.checkOnly, reply.body.valid, reply.headers.get('etag')], [true, true, null]);
      for (const value of ['true', 'false']) {
        const written = await sam.post(`/data/Deal__c?checkOnly=${value}`, { name: 'x' });
        refused(written, 400, 'PARAMETER_UNKNOWN');
        assert.match(written.body.message, /data\.records\.check: POST \/data\/\{objectApiName\}\/check/);
      }
      refused(await sam.post('/data/Deal__c/check?checkOnly=true', body), 400, 'PARAMETER_UNKNOWN');
    });

    it('require the scope of the operation that they preview', async () => {
      const token = await tokenFor(deals.platform.baseUrl, 'sam', 'data:write');
      const writer = api(deals.platform.baseUrl, token);
      const created = await writer.post('/data/Deal__c/check', { operation: 'create', fields: { name: 'x' } });
      assert.equal(created.body.valid, true, created.text);
      const id = await deal();
      for (const [operation, scope] of [
        ['delete', 'data:delete'],
        ['transition', 'actions:execute'],
      ]) {
        const check = { operation, id, ifMatch: '"1"', ...(operation === 'transition' ? { transitionKey: 'x' } : {}) };
        const reply = await writer.post('/data/Deal__c/check', check);
        refused(reply, 403, 'SCOPE_INSUFFICIENT');
        assert.deepEqual(reply.body.details.required, [scope]);
      }
    });

    it('respect sharing', async () => {
      const id = await deal();
      const etag = '"1"';
      const update = { operation: 'update', id, ifMatch: etag, fields: { name: 'y' } };
      const remove = { operation: 'delete', id, ifMatch: etag };
      refused(await sue.post('/data/Deal__c/check', update), 404, 'RECORD_NOT_FOUND');
      await share(id, 'read');
      refused(await sue.post('/data/Deal__c/check', update), 403, 'RECORD_ACCESS_DENIED');
      refused(await sue.post('/data/Deal__c/check', remove), 403, 'RECORD_ACCESS_DENIED');
      const above = await mia.post('/data/Deal__c/check', remove);
      assert.equal(above.body.valid, true, above.text);
      assert.equal((await sam.get(at(id))).headers.get('etag'), etag);
    });

    it('show the resulting rollups', async () => {
      const id = await deal();
      const check = { operation: 'create', fields: { name: 'x', Deal__c: id } };
      const line = await sam.post('/data/DealLine__c/check', check);
      assert.equal(line.body.valid, true, line.text);
      assert.deepEqual(
        [(await sam.get(at(id))).body.Lines__c, (await sam.get(at(id))).headers.get('etag')],
        [0, '"1"'],
      );
    });
  });

  describe('upserts', () => {
    it('decode the value, and validate its form', async () => {
      const value = 'a/b c%d?ä';
      const created = await sam.put(by(value), { name: 'x' });
      assert.deepEqual([created.status, created.body.Code__c], [201, value], created.text);
      assert.equal((await sam.put(by(value), { Stage__c: 'won' })).status, 200);
      refused(await sam.put(by('f'), { name: 'x' }, { headers: { 'if-none-match': '"1"' } }), 400, 'PARAMETER_INVALID');
      refused(await sam.put(by('f'), { name: 'x' }, { etag: 'W/"1"' }), 400, 'IF_MATCH_INVALID');
      refused(await sam.put(by('f'), [1]), 400, 'PARAMETER_INVALID');
      const only = { headers: { 'if-none-match': '*' } };
      assert.equal((await sam.put(by('f'), { name: 'x' }, only)).status, 201);
      refused(await sam.put(by('f'), { name: 'x' }, only), 412, 'ETAG_MISMATCH');
    });

    it('neither change nor reveal a record that the caller cannot see', async () => {
      const id = await deal(sam, { Code__c: 'HIDDEN-1' });
      const answer = await sue.put(by('hidden-1'), { name: 'mine' });
      const create = await sue.post('/data/Deal__c', { name: 'mine', Code__c: 'hidden-1' });
      refused(answer, 409, 'UNIQUE_VALUE_CONFLICT');
      assert.deepEqual(shape(answer), shape(create));
      const absent = await sue.put(by('absent-1'), {}, { etag: '"1"' });
      assert.deepEqual(shape(await sue.put(by('hidden-1'), {}, { etag: '"1"' })), shape(absent));
      assert.equal((await sam.get(at(id))).body.name, 'Deal');
      await share(id, 'read');
      refused(await sue.put(by('hidden-1'), { name: 'mine' }), 403, 'RECORD_ACCESS_DENIED');
      assert.equal((await mia.put(by('hidden-1'), { name: 'ours' })).status, 200);
    });
  });

  describe('restores', () => {
    it('are for users who could delete the record, and for others it never existed', async () => {
      const id = await deal();
      await share(id, 'read');
      const hidden = await deal();
      for (const one of [id, hidden]) assert.equal((await sam.delete(at(one), { etag: '"1"' })).status, 200);
      const absent = await sue.post(at(randomUUID(), '/restore'));
      refused(absent, 404, 'RECORD_NOT_FOUND');
      assert.deepEqual(shape(await sue.post(at(hidden, '/restore'))), shape(absent));
      refused(await sue.post(at(id, '/restore')), 403, 'RECORD_ACCESS_DENIED');
      const back = await mia.post(at(id, '/restore'));
      assert.deepEqual([back.status, back.headers.get('etag')], [201, '"2"'], back.text);
      assert.equal(back.body.ownerId, deals.ids.sam);
      assert.equal((await sue.get(at(id))).status, 200, 'the share is back');
      refused(await sam.post(at(id, '/restore')), 404, 'RECORD_NOT_FOUND');
    });

    it('require their scope and accept no body', async () => {
      const id = await deal();
      await sam.delete(at(id), { etag: '"1"' });
      const writer = await deals.sign('sam', 'data:read data:write');
      refused(await writer.post(at(id, '/restore')), 403, 'SCOPE_INSUFFICIENT');
      refused(await sam.post(at(id, '/restore'), { x: 1 }), 400, 'REQUEST_MALFORMED');
    });

    it('restore details and recompute rollups', async () => {
      const id = await deal();
      const lines: string[] = [];
      for (const name of ['a', 'b', 'c'])
        lines.push((await sam.post('/data/DealLine__c', { name, Deal__c: id })).body.id);
      const etag = async (): Promise<string> => (await sam.get(at(id))).headers.get('etag')!;
      const line = (index: number): string => `/data/DealLine__c/${lines[index]}`;
      assert.equal((await sam.delete(line(0), { etag: '"1"' })).status, 200);
      assert.equal((await sam.get(at(id))).body.Lines__c, 2);
      assert.equal((await sam.delete(at(id), { etag: await etag() })).status, 200);
      refused(await sam.post(`${line(1)}/restore`), 422, 'VALIDATION_FAILED');
      refused(await sue.post(`${line(1)}/restore`), 404, 'RECORD_NOT_FOUND');
      const back = await sam.post(at(id, '/restore'));
      assert.equal(back.body.Lines__c, 2, back.text);
      const read = await sam.get(at(id));
      assert.deepEqual([read.text, read.headers.get('etag')], [back.text, back.headers.get('etag')]);
      assert.equal((await sam.post(`${line(0)}/restore`)).status, 201);
      assert.equal((await sam.get(at(id))).body.Lines__c, 3);
    });
  });

  describe('a rule that is deployed during a write', () => {
    afterEach(() => deals.deploy(rule(false)));

    it('waits for the write that was validated without it, and applies to the next one', async function () {
      this.timeout(30_000);
      const id = await deal();
      await database.query('BEGIN');
      await database.query('SELECT FROM "Deal__c" WHERE id = $1 FOR UPDATE', [id]);
      const write = sam.patch(at(id), { Stage__c: 'bad' }, { etag: '"1"' });
      await new Promise((resolve) => setTimeout(resolve, 200));
      const deployment = deals.deploy(rule(true));
      await new Promise((resolve) => setTimeout(resolve, 400));
      await database.query('COMMIT');
      const written = await write;
      await deployment;
      assert.ok(written.status === 200 || written.body.errors?.[0].ruleApiName === 'Deal__c.NoBadStage', written.text);
      const next = await sam.post('/data/Deal__c', { name: 'x', Stage__c: 'bad' });
      assert.deepEqual([next.status, next.body.errors?.[0].ruleApiName], [422, 'Deal__c.NoBadStage'], next.text);
    });

    it('applies to every write that begins after its first refusal', async function () {
      this.timeout(60_000);
      const writes: { begun: number; ended: number; reply: Answer }[] = [];
      let ended = false;
      const writer = async (): Promise<void> => {
        while (!ended) {
          const begun = performance.now();
          const reply = await sam.post('/data/Deal__c', { name: 'x', Stage__c: 'bad' });
          writes.push({ begun, ended: performance.now(), reply });
        }
      };
      const writers = Array.from({ length: 4 }, writer);
      await deals.deploy(rule(true));
      await until(() => writes.some(({ reply }) => reply.status === 422));
      ended = true;
      await Promise.all(writers);
      const refusals = writes.filter(({ reply }) => reply.status === 422);
      const first = Math.min(...refusals.map((write) => write.ended));
      assert.ok(refusals.length > 0 && refusals.length < writes.length, `${refusals.length} of ${writes.length}`);
      for (const { begun, reply } of writes)
        assert.ok(reply.status === 422 || (reply.status === 201 && begun < first), reply.text);
    });
  });

  describe('a record whose owner is deactivated', () => {
    it('can be written by users above the owner and by administrators, and given only to active users', async function () {
      this.timeout(30_000);
      const ids = await Promise.all([1, 2, 3].map(() => deal(sue)));
      await deals.setUser('sue', { active: false });
      try {
        refused(await sue.get(at(ids[0]!)), 401, 'TOKEN_REVOKED');
        refused(await sam.get(at(ids[0]!)), 404, 'RECORD_NOT_FOUND');
        for (const [index, who] of [mia, ada].entries()) {
          const changed = await who.patch(at(ids[index]!), { Stage__c: 'kept' }, { etag: '"1"' });
          assert.deepEqual([changed.status, changed.body.ownerId], [200, deals.ids.sue], changed.text);
          // Keeping the record's owner is no transfer.
          const same = await who.patch(at(ids[index]!), { ownerId: deals.ids.sue }, { etag: '"2"' });
          assert.deepEqual([same.status, same.headers.get('etag')], [200, '"2"'], same.text);
          const mine = await deal(who);
          const inactive = await who.patch(at(mine), { ownerId: deals.ids.sue, name: 'x' }, { etag: '"1"' });
          refused(inactive, 422, 'VALIDATION_FAILED');
          assert.deepEqual(
            inactive.body.errors.map(({ pointer, code }: Record<string, string>) => [pointer, code]),
            [['/ownerId', 'REFERENCE_NOT_FOUND']],
          );
          const given = await who.patch(at(ids[index]!), { ownerId: deals.ids.sam }, { etag: '"2"' });
          assert.deepEqual([given.status, given.body.ownerId], [200, deals.ids.sam], given.text);
        }
        const created = await mia.post('/data/Deal__c', { name: 'x', ownerId: deals.ids.sue });
        assert.equal(created.body.errors?.[0].code, 'REFERENCE_NOT_FOUND', created.text);
        assert.equal((await mia.delete(at(ids[2]!), { etag: '"1"' })).status, 200);
        const back = await mia.post(at(ids[2]!, '/restore'));
        assert.deepEqual([back.status, back.body.ownerId], [201, deals.ids.sue], back.text);
      } finally {
        await deals.setUser('sue', { active: true });
      }
    });
  });
});

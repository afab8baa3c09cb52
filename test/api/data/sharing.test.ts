/** Sharing over HTTP: the effect of changed users, roles, groups and configuration on the records. */
import assert from 'node:assert/strict';
import type { Answer, Api } from '../../support/client.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { until } from '../../support/until.ts';
import { type Deals, startDeals } from './deals.ts';

const FILES: Record<string, string> = {
  ...fieldFile('Deal__c', 'Other__c', 'fieldType: reference\nreferenceTo: [Deal__c]'),
  'permissionSets/DealRefs.yaml':
    'type: PermissionSet\napiName: DealRefs\nlabel: Refs\nfields:\n  Deal__c.Other__c:\n    read: true\n    edit: true\n',
};

const group = (name: string, users: readonly string[]): Record<string, string> => ({
  [`groups/${name}.yaml`]: `type: Group\napiName: ${name}\nlabel: ${name}\n${
    users.length > 0 ? `members:\n  users:\n${users.map((user) => `    - ${user}\n`).join('')}` : ''
  }`,
});
const rule = (name: string, body: string): Record<string, string> => ({
  [`objects/Deal__c/sharingRules/${name}.yaml`]: `type: SharingRule\napiName: ${name}\nobject: Deal__c\n${body}`,
});
const withDefault = (shared: string): Record<string, string> => {
  const path = 'objects/Deal__c/object.yaml';
  return { [path]: objectFiles('Deal__c')[path]!.replace('api:', `sharingDefault: ${shared}\napi:`) };
};

describe('sharing over HTTP', () => {
  let deals: Deals;
  let ada: Api;
  let sam: Api;
  let sue: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ ada, sam, sue } = deals.as);
    await deals.deploy(FILES);
    for (const name of ['mia', 'sam'] as const)
      await deals.setUser(name, { permissionSetApiNames: ['Deals', 'DealRefs'] });
  });
  after(() => deals?.platform.stop());

  const at = (id: string): string => `/data/Deal__c/${id}`;
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text);

  it('lets a record keep its reference, also when the user cannot see the target', async () => {
    const hidden = (await deals.deal(ada)).body.id;
    const id = (await deals.deal(ada, { Other__c: hidden, ownerId: deals.ids.sam })).body.id;
    const same = await sam.patch(at(id), { Other__c: hidden }, { etag: '"1"' });
    assert.deepEqual([same.status, same.headers.get('etag')], [200, '"1"'], same.text);
    const more = await sam.patch(at(id), { Other__c: hidden.toUpperCase(), Stage__c: 'x' }, { etag: '"1"' });
    assert.deepEqual([more.status, more.body.Other__c], [200, hidden], more.text);
    const second = (await deals.deal(ada)).body.id;
    refused(await sam.patch(at(id), { Other__c: second }, { etag: '"2"' }), 422, 'VALIDATION_FAILED');
    refused(await sam.post('/data/Deal__c', { name: 'x', Other__c: hidden }), 422, 'VALIDATION_FAILED');
    assert.equal((await sam.patch(at(id), { Other__c: null }, { etag: '"2"' })).status, 200);
    refused(await sam.patch(at(id), { Other__c: hidden }, { etag: '"3"' }), 422, 'VALIDATION_FAILED');
  });

  it('accepts an external id for a reference when it identifies one record visible to the user', async () => {
    await deals.deploy({
      ...fieldFile('Deal__c', 'Ext__c', 'fieldType: text\nexternalId: true'),
      'permissionSets/DealExt.yaml':
        'type: PermissionSet\napiName: DealExt\nlabel: Ext\nfields:\n  Deal__c.Ext__c:\n    read: true\n    edit: true\n',
    });
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'DealRefs', 'DealExt'] });
    const refer = (value: string) => sam.post('/data/Deal__c', { name: 'x', Other__c: { Ext__c: value } });
    const change = (value: string) => sam.patch(at(mine), { Other__c: { Ext__c: value } }, { etag: '"1"' });
    const mine = (await deals.deal(sam, { Ext__c: 'twice' })).body.id;
    await deals.deal(ada, { Ext__c: 'Twice' });
    assert.equal((await refer('TWICE')).body.Other__c, mine, 'what the user cannot see is not counted');
    await deals.deal(sam, { Ext__c: 'TWICE' });
    for (const reply of [await refer('twice'), await change('twice'), await refer('none'), await change('none')]) {
      refused(reply, 422, 'VALIDATION_FAILED');
      const [{ pointer, code, message }] = reply.body.errors;
      assert.deepEqual([pointer, code], ['/Other__c', 'REFERENCE_NOT_FOUND']);
      assert.match(message, /no record you can see, or to more than one/);
    }
  });

  it("gives a group's access to the user who currently has the name of its member", async () => {
    await deals.deploy({
      ...group('Watchers', ['SUSAN@demo.example', 'nobody@demo.example']),
      ...rule('Watched', 'kind: owner\nfrom:\n  role: SalesRep\nto:\n  group: Watchers\naccess: read\n'),
    });
    const id = (await deals.deal(sam)).body.id;
    const status = async () => (await sue.get(at(id))).status;
    assert.equal(await status(), 404);
    await deals.setUser('sue', { username: 'Susan@demo.example' });
    assert.equal(await status(), 200);
    await deals.setUser('sue', { username: 'sue@demo.example' });
    assert.equal(await status(), 404);
    await deals.deploy(group('Watchers', []));
  });

  it('shares a record with the user that a field names, or the owner of the record that it refers to', async function () {
    this.timeout(60_000);
    const { mia } = deals.as;
    await deals.deploy({
      ...fieldFile('Deal__c', 'Agent__c', 'fieldType: reference\nreferenceTo: [User]'),
      ...rule('ByAgent', 'kind: reference\nthrough: Agent__c\naccess: readWrite\n'),
      ...rule('ByOther', 'kind: reference\nthrough: Other__c\naccess: read\n'),
      'permissionSets/DealAgents.yaml':
        'type: PermissionSet\napiName: DealAgents\nlabel: Agents\nfields:\n  Deal__c.Agent__c:\n    read: true\n    edit: true\n',
    });
    const permissionSetApiNames = ['Deals', 'DealRefs', 'DealAgents'];
    for (const name of ['sam', 'sue', 'mia'] as const) await deals.setUser(name, { permissionSetApiNames });
    const { body } = await deals.deal(sam);
    const { id } = body;
    const set = async (fields: Record<string, unknown>, who = ada): Promise<void> => {
      const etag = (await who.get(at(id))).headers.get('etag')!;
      const reply = await who.patch(at(id), fields, { etag });
      assert.equal(reply.status, 200, reply.text);
    };
    const listed = async (): Promise<boolean> =>
      (await sue.get('/data/Deal__c?take=200')).body.records.some((record: { id: string }) => record.id === id);
    const feed = (await sue.get('/data/Deal__c/changes')).body.resumeCursor;
    let cursor: string = (await sue.get(`/data/Deal__c/changes?cursor=${feed}`)).body.resumeCursor;
    const changes = async (): Promise<string[]> => {
      const reply = await sue.get(`/data/Deal__c/changes?cursor=${cursor}`);
      assert.equal(reply.status, 200, reply.text);
      cursor = reply.body.resumeCursor;
      return reply.body.records
        .filter((entry: { id: string }) => entry.id === id)
        .map((entry: { change: string }) => entry.change);
    };
    refused(await sue.get(at(id)), 404, 'RECORD_NOT_FOUND');

    await set({ Agent__c: deals.ids.sue });
    assert.deepEqual([(await sue.get(at(id))).status, await listed(), await changes()], [200, true, ['upserted']]);
    await set({ Stage__c: 'hers' }, sue);
    refused(
      await sue.patch(at(id), { ownerId: deals.ids.sue }, { etag: (await sue.get(at(id))).headers.get('etag')! }),
      403,
      'RECORD_ACCESS_DENIED',
    );
    await changes();
    await set({ Agent__c: null });
    assert.deepEqual([(await sue.get(at(id))).status, await listed(), await changes()], [404, false, ['accessLost']]);

    const other = (await deals.deal(sue)).body.id;
    await changes();
    await set({ Other__c: other });
    assert.deepEqual([(await sue.get(at(id))).status, await listed(), await changes()], [200, true, ['upserted']]);
    refused(await sue.patch(at(id), { Stage__c: 'x' }, { etag: '"1"' }), 403, 'RECORD_ACCESS_DENIED');
    const etag = (await ada.get(at(other))).headers.get('etag')!;
    assert.equal((await ada.patch(at(other), { ownerId: deals.ids.ada }, { etag })).status, 200);
    assert.deepEqual([(await sue.get(at(id))).status, await listed(), await changes()], [404, false, ['accessLost']]);
    assert.equal((await mia.get(at(id))).status, 200, 'the owner and those above reach it as before');
  });

  it('applies a change of the default to the next request, also during writes', async function () {
    this.timeout(60_000);
    const id = (await deals.deal(sam)).body.id;
    const seen: { begun: number; status: number; code: string | undefined }[] = [];
    let ended = false;
    const writer = async (): Promise<void> => {
      while (!ended) {
        const begun = performance.now();
        const { headers } = await sam.get(at(id));
        const reply = await ada.patch(at(id), { Stage__c: String(begun) }, { etag: headers.get('etag')! });
        const others = await mia.patch(at(id), { Stage__c: String(begun) }, { etag: '"0"' });
        seen.push({ begun, status: others.status, code: others.body.code });
        assert.ok([200, 412].includes(reply.status), reply.text);
      }
    };
    // Mia is above no other user for once.
    const mia = await deals.sign('mia', 'data:read data:write');
    await deals.setUser('mia', { roleApiName: null });
    const expected = { readWrite: 'ETAG_MISMATCH', read: 'RECORD_ACCESS_DENIED', private: 'RECORD_NOT_FOUND' };
    try {
      for (const [shared, code] of Object.entries(expected)) {
        ended = false;
        const writers = [writer(), writer()];
        await deals.deploy(withDefault(shared));
        const deployed = performance.now();
        await until(() => seen.some(({ begun }) => begun > deployed));
        ended = true;
        await Promise.all(writers);
        const after = seen.filter(({ begun }) => begun > deployed);
        assert.ok(after.length > 0);
        assert.deepEqual([...new Set(after.map((item) => item.code))], [code], shared);
      }
      const codes = [...new Set(seen.map((item) => item.code))].sort();
      assert.deepEqual(codes, Object.values(expected).sort());
    } finally {
      await deals.setUser('mia', { roleApiName: 'SalesManager' });
    }
  });
});

/** Who reads a file: its owner, and who reads a record that has it. Source: docs/reference/files.md#access. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Answer, Api } from '../../support/client.ts';
import type { Deals } from '../data/deals.ts';
import { post, refused, startFiles, store, to } from './world.ts';

describe('files of records', () => {
  let deals: Deals;
  let sam: Api;
  let sue: Api;
  let mia: Api;
  let eve: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startFiles();
    ({ sam, sue, mia, eve } = deals.as);
  });
  after(() => deals?.platform.stop());

  const newDeal = async (who = sam, more = {}): Promise<string> => (await deals.deal(who, more)).body.id;
  const at = (id: string): string => `/data/Deal__c/${id}`;
  const etagOf = async (path: string, who = sam): Promise<string> => (await who.get(path)).headers.get('etag')!;
  const patch = async (path: string, body: object, who = sam): Promise<Answer> =>
    who.patch(path, body, { etag: await etagOf(path, who) });
  const reads = async (who: Api, fileId: string): Promise<boolean> => {
    const [one, content] = await Promise.all([who.get(`/files/${fileId}`), who.get(`/files/${fileId}/content`)]);
    assert.equal(one.status, content.status, content.text);
    return one.status === 200;
  };

  it('are read by who reads the record, from the moment on until they do not', async () => {
    const deal = await newDeal();
    const { fileId, attachedTo } = await store(sam, 'offer', { query: to(deal) });
    const record = { objectApiName: 'Deal__c', recordId: deal };
    assert.deepEqual(attachedTo, [{ ...record, field: null }]);
    assert.ok(await reads(mia, fileId), 'above the owner of the record');
    assert.ok(!(await reads(sue, fileId)));
    assert.ok(!(await reads(eve, fileId)));
    const share = await sam.post(`${at(deal)}/shares`, {
      principalType: 'user',
      principalId: deals.ids.sue,
      access: 'read',
    });
    assert.ok(await reads(sue, fileId), 'shared');
    assert.deepEqual(
      (await sue.get(`/files${to(deal)}`)).body.records.map((one: { fileId: string }) => one.fileId),
      [fileId],
    );
    assert.equal((await sam.delete(`${at(deal)}/shares/${share.body.shareId}`)).status, 204);
    assert.ok(!(await reads(sue, fileId)), 'no longer shared');
    refused(await sue.get(`/files${to(deal)}`), 404, 'RECORD_NOT_FOUND');
    assert.equal((await sam.delete(at(deal), { etag: await etagOf(at(deal)) })).status, 200);
    assert.ok(!(await reads(mia, fileId)), 'deleted');
    assert.ok(await reads(sam, fileId), 'its owner');
    const restored = await sam.post(`${at(deal)}/restore`);
    assert.ok(restored.status < 300, restored.text);
    assert.ok(await reads(mia, fileId), 'restored');
    // UUIDs compare case-insensitively.
    const detachFrom = { ...record, recordId: record.recordId.toUpperCase() };
    assert.equal((await patch(`/files/${fileId}`, { detachFrom })).body.attachedTo.length, 0);
    assert.ok(!(await reads(mia, fileId)), 'detached');
  });

  it('are in fields, and follow them', async () => {
    const { fileId } = await store(sam, 'scan');
    const deal = await newDeal(sam, { Scan__c: fileId });
    const seen = (await mia.get(`/files/${fileId}`)).body;
    assert.deepEqual(seen.attachedTo, [{ objectApiName: 'Deal__c', recordId: deal, field: 'Scan__c' }]);
    assert.deepEqual((await mia.get(`/files${to(deal)}`)).body.records, [seen]);
    const etag = await etagOf(`/files/${fileId}`);
    const kept = await sam.delete(`/files/${fileId}`, { etag });
    refused(kept, 409, 'DELETE_RESTRICTED');
    assert.deepEqual(kept.body.details.dependents, [{ objectApiName: 'Deal__c', count: 1 }]);
    assert.equal((await patch(at(deal), { Scan__c: null })).status, 200);
    assert.ok(!(await reads(mia, fileId)));
    assert.equal((await patch(at(deal), { Scan__c: fileId })).status, 200);
    assert.ok(await reads(mia, fileId));
    assert.equal((await patch(at(deal), { Scan__c: null })).status, 200);
    assert.equal((await sam.delete(`/files/${fileId}`, { etag })).status, 200);
  });

  it('take only files that the writer reads; another one is like an unknown one', async () => {
    const [unknown, ofSue, ofEve] = [randomUUID(), (await store(sue, 'x')).fileId, (await store(eve, 'x')).fileId];
    const deal = await newDeal();
    for (const id of [unknown, ofSue, ofEve])
      for (const reply of [
        await sam.post('/data/Deal__c', { name: 'Deal', Scan__c: id }),
        await patch(at(deal), { Scan__c: id }),
        await patch(at(deal), { Scan__c: id, name: 'Other' }),
      ]) {
        refused(reply, 422, 'VALIDATION_FAILED');
        const [{ pointer, code, message }] = reply.body.errors;
        assert.deepEqual(
          [pointer, code, message],
          ['/Scan__c', 'REFERENCE_NOT_FOUND', 'Scan__c names no file you can read.'],
        );
      }
    refused(await patch(at(deal), { Scan__c: 'x' }), 422, 'VALIDATION_FAILED');
    // A reader of one record may give its file to another one.
    const shared = (await store(sue, 'shared', { query: to(await newDeal(sue)) })).fileId;
    const ofMia = await newDeal(mia, { Scan__c: shared });
    assert.equal((await mia.get(at(ofMia))).body.Scan__c, shared);
  });

  it('are not shown through a field that the reader does not see', async () => {
    const { ada } = deals.as;
    const { fileId } = await store(ada, 'hidden');
    const deal = await newDeal();
    assert.equal((await patch(at(deal), { Hidden__c: fileId }, ada)).status, 200);
    assert.ok(await reads(ada, fileId));
    assert.ok(!(await reads(sam, fileId)));
    assert.deepEqual((await sam.get(`/files${to(deal)}`)).body.records, []);
  });

  it('are attached, renamed and detached by who may change the record', async () => {
    const deal = await newDeal();
    await sam.post(`${at(deal)}/shares`, { principalType: 'user', principalId: deals.ids.sue, access: 'read' });
    const record = { objectApiName: 'Deal__c', recordId: deal };
    const { fileId } = await store(sam, 'terms', { query: to(deal) });
    const path = `/files/${fileId}`;
    refused(await patch(path, { name: 'b.txt' }, sue), 403, 'RECORD_ACCESS_DENIED');
    refused(await patch(path, { detachFrom: record }, sue), 403, 'RECORD_ACCESS_DENIED');
    refused(await sue.delete(path, { etag: await etagOf(path, sue) }), 403, 'RECORD_ACCESS_DENIED');
    refused(await patch(path, { attachTo: { ...record, recordId: randomUUID() } }, sue), 404, 'RECORD_NOT_FOUND');
    refused(await patch(path, { attachTo: { ...record, objectApiName: 'Nowhere__c' } }, sue), 404, 'OBJECT_NOT_FOUND');
    assert.equal((await patch(path, { name: 'b.txt' }, mia)).body.name, 'b.txt');
    const other = await newDeal(sue);
    const both = await patch(path, { attachTo: { ...record, recordId: other } }, sue);
    assert.deepEqual(
      both.body.attachedTo.map((one: { recordId: string }) => one.recordId).sort(),
      [deal, other].sort(),
    );
    assert.equal((await patch(path, { detachFrom: record }, mia)).status, 200);
    assert.ok(await reads(sue, fileId), 'by the other deal');
    const refusal = await post(sue, Buffer.from('x'), { query: to(deal) });
    refused(refusal, 403, 'RECORD_ACCESS_DENIED');
  });
});

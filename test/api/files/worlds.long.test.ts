/**
 * Random worlds of deals, shares and files: nobody reads a byte who neither owns the file nor reads a record that has it, and
 * everybody else does. FILES_STEPS=500 takes longer; FILES_SEED repeats one.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Answer, Api } from '../../support/client.ts';
import type { Deals } from '../data/deals.ts';
import { startFiles, store, to } from './world.ts';

const STEPS = Number(process.env['FILES_STEPS'] ?? 60);
const seed = Number(process.env['FILES_SEED'] ?? Date.now() % 1_000_000_007);
const PEOPLE = ['mia', 'sam', 'sue', 'eve'] as const;
type Person = (typeof PEOPLE)[number];

interface Deal {
  readonly id: string;
  readonly owner: Person;
  deleted: boolean;
}

interface File {
  readonly id: string;
  readonly owner: Person;
  readonly content: string;
}

describe(`files of random worlds (seed ${seed})`, function () {
  this.timeout(600_000);
  let deals: Deals;
  before(async () => {
    deals = await startFiles();
  });
  after(() => deals?.platform.stop());

  it('are read by their owners and by readers of their records alone', async () => {
    const files: File[] = [];
    const gone: string[] = [];
    const records: Deal[] = [];
    /** Files of deals, as the test has put them there: `field` names those in Scan__c. */
    const has = new Map<string, { field: string | null; attached: Set<string> }>();
    const as = (person: Person): Api => deals.as[person];
    const etagOf = async (who: Api, path: string) => (await who.get(path)).headers.get('etag') ?? '"none"';
    const reads = async (person: Person, { id }: Deal): Promise<boolean> =>
      (await as(person).get(`/data/Deal__c/${id}`)).status === 200;
    const done = ({ status, text }: Answer): boolean => {
      assert.ok(status < 500, text);
      return status < 300;
    };
    const one = <T>(random: number, list: readonly T[]): T | undefined => list[random % Math.max(1, list.length)];

    const steps: Record<string, (a: number, b: number, person: Person) => Promise<void>> = {
      file: async (a, _b, owner) => {
        const content = `content ${a % 5}`;
        files.push({ id: (await store(as(owner), content)).fileId, owner, content });
      },
      deal: async (_a, _b, owner) => {
        if (owner === 'eve') return;
        const { id } = (await deals.deal(as(owner))).body;
        records.push({ id, owner, deleted: false });
        has.set(id, { field: null, attached: new Set() });
      },
      share: async (a, b, person) => {
        const deal = one(a, records);
        if (!deal || person === 'eve') return;
        const share = { principalType: 'user', principalId: deals.ids[person], access: b % 2 ? 'read' : 'edit' };
        await as(deal.owner).post(`/data/Deal__c/${deal.id}/shares`, share);
      },
      unshare: async (a) => {
        const deal = one(a, records);
        if (!deal) return;
        const at = `/data/Deal__c/${deal.id}/shares`;
        const { body } = await as(deal.owner).get(at);
        for (const { shareId } of body.records ?? []) await as(deal.owner).delete(`${at}/${shareId}`);
      },
      attach: async (a, b, person) => {
        const [deal, file] = [one(a, records), one(b, files)];
        if (!deal || !file) return;
        const at = `/files/${file.id}`;
        const body = { attachTo: { objectApiName: 'Deal__c', recordId: deal.id } };
        if (done(await as(person).patch(at, body, { etag: await etagOf(as(person), at) })))
          has.get(deal.id)!.attached.add(file.id);
      },
      detach: async (a, b, person) => {
        const [deal, file] = [one(a, records), one(b, files)];
        if (!deal || !file) return;
        const at = `/files/${file.id}`;
        const body = { detachFrom: { objectApiName: 'Deal__c', recordId: deal.id } };
        if (done(await as(person).patch(at, body, { etag: await etagOf(as(person), at) })))
          has.get(deal.id)!.attached.delete(file.id);
      },
      field: async (a, b, person) => {
        const [deal, file] = [one(a, records), one(b, files)];
        if (!deal || !file) return;
        const at = `/data/Deal__c/${deal.id}`;
        const Scan__c = b % 4 === 0 ? null : file.id;
        if (done(await as(person).patch(at, { Scan__c }, { etag: await etagOf(as(person), at) })))
          has.get(deal.id)!.field = Scan__c;
      },
      drop: async (a, _b, person) => {
        const file = one(a, files);
        if (!file) return;
        const at = `/files/${file.id}`;
        if (done(await as(person).delete(at, { etag: await etagOf(as(person), at) }))) {
          assert.equal(file.owner, person);
          assert.ok(
            [...has.values()].every(({ field }) => field !== file.id),
            'a field refers to it',
          );
          files.splice(files.indexOf(file), 1);
          gone.push(file.id);
          for (const { attached } of has.values()) attached.delete(file.id);
        }
      },
      remove: async (a) => {
        const deal = one(a, records);
        if (!deal || deal.deleted) return;
        const at = `/data/Deal__c/${deal.id}`;
        deal.deleted = done(await as(deal.owner).delete(at, { etag: await etagOf(as(deal.owner), at) }));
      },
      restore: async (a) => {
        const deal = one(a, records);
        if (deal?.deleted && done(await as(deal.owner).post(`/data/Deal__c/${deal.id}/restore`))) deal.deleted = false;
      },
    };

    const check = async (): Promise<void> => {
      for (const person of PEOPLE) {
        const seen = new Set<string>();
        for (const deal of records) if (await reads(person, deal)) seen.add(deal.id);
        for (const { id, owner, content } of files) {
          const may =
            owner === person ||
            [...seen].some((deal) => has.get(deal)!.field === id || has.get(deal)!.attached.has(id));
          const got = await as(person).get(`/files/${id}/content`);
          assert.equal(got.status, may ? 200 : 404, `${person}: ${got.text}`);
          if (may) assert.equal(got.text, content);
          const about = await as(person).get(`/files/${id}`);
          assert.equal(about.status, got.status);
          for (const { recordId } of about.body.attachedTo ?? []) assert.ok(seen.has(recordId), person);
        }
        for (const id of gone) assert.equal((await as(person).get(`/files/${id}/content`)).status, 404);
        for (const { id } of records) {
          const listed = await as(person).get(`/files${to(id)}&take=200`);
          const expected = files.filter((file) => has.get(id)!.field === file.id || has.get(id)!.attached.has(file.id));
          if (!seen.has(id)) assert.equal(listed.status, 404);
          else
            assert.deepEqual(
              listed.body.records.map(({ fileId }: { fileId: string }) => fileId).sort(),
              expected.map((file) => file.id).sort(),
            );
        }
      }
    };

    const kinds = ['file', 'deal', ...Object.keys(steps)];
    const step = fc.record({
      kind: fc.constantFrom(...kinds),
      a: fc.nat(),
      b: fc.nat(),
      person: fc.constantFrom(...PEOPLE),
    });
    // Every world has one of each.
    for (const kind of ['file', 'deal']) await steps[kind]!(0, 0, 'mia');
    const world = fc.sample(step, { seed, numRuns: STEPS, unbiased: true });
    for (const [n, { kind, a, b, person }] of world.entries()) {
      await steps[kind]!(a, b, person);
      if (n % 10 === 9) await check();
    }
    await check();
    assert.ok(files.length + gone.length > 0 && records.length > 0);
  });
});

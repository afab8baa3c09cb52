/** Following the changes of an object: the additions and removals that keep any user's copy up to date. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { Database } from '../../../mixins/database/database.ts';
import type { Answer, Api } from '../../support/client.ts';
import { deploymentEnded, destructiveManifest, fieldFile, wholePackage } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from './deals.ts';

interface Change {
  id: string;
  change: 'upserted' | 'deleted' | 'accessLost';
  record: Record<string, unknown> | null;
  etag: string | null;
}

/** FOLLOWING_ROUNDS=32 makes more changes, and SEED replays one run. */
const ROUNDS = Number(process.env['FOLLOWING_ROUNDS'] ?? 16);
const OBJECTS = ['Deal__c', 'DealLine__c'] as const;
type ObjectName = (typeof OBJECTS)[number];

/** A client: one copy of the records that it can see, kept up to date by changes. */
class Copy {
  readonly records = new Map<string, unknown>();
  readonly user: Api;
  readonly object: ObjectName;
  cursor = '';
  /** When more changes exist than one batch holds, a record may be reported in each batch. */
  behind = false;

  constructor(user: Api, object: ObjectName) {
    this.user = user;
    this.object = object;
  }

  async start(): Promise<this> {
    const first = await this.user.get(`/data/${this.object}/changes`);
    assert.equal(first.status, 200, first.text);
    assert.deepEqual([first.body.records, first.body.nextCursor], [[], null]);
    this.cursor = first.body.resumeCursor;
    for (const [id, record] of await this.list()) this.records.set(id, record);
    return this;
  }

  async list(): Promise<Map<string, unknown>> {
    const found = new Map<string, unknown>();
    let cursor: string | null = null;
    do {
      const { body, text }: Answer = await this.user.get(
        `/data/${this.object}?take=200${cursor ? `&cursor=${cursor}` : ''}`,
      );
      assert.ok(body.records, text);
      for (const record of body.records) found.set(record.id, record);
      cursor = body.nextCursor;
    } while (cursor);
    return found;
  }

  /** Applies the changes to the copy and returns them. `between` runs after each page. */
  async follow(take = 200, between?: () => Promise<unknown>): Promise<Change[]> {
    const told: Change[] = [];
    let cursor: string | null = this.cursor;
    while (cursor !== null) {
      const { body, status, text }: Answer = await this.user.get(
        `/data/${this.object}/changes?take=${take}&cursor=${cursor}`,
      );
      assert.equal(status, 200, text);
      assert.ok(body.records.length <= take);
      if (body.nextCursor && !this.behind) assert.equal(body.records.length, take, 'pages are full');
      told.push(...body.records);
      this.cursor = body.resumeCursor;
      cursor = body.nextCursor;
      if (cursor) await between?.();
    }
    if (!this.behind) assert.equal(new Set(told.map(({ id }) => id)).size, told.length, 'once in a round');
    for (const { id, change, record, etag } of told) {
      if (change === 'upserted') {
        this.records.set(id, record);
        assert.equal(etag, `"${(record!['recordVersion'] as number).toString(36)}"`);
      } else {
        assert.deepEqual([record, etag], [null, null]);
        this.records.delete(id);
      }
    }
    return told;
  }

  async compare(hint: string): Promise<void> {
    const now = await this.list();
    assert.deepEqual([...this.records.keys()].sort(), [...now.keys()].sort(), hint);
    assert.deepEqual(this.records, now, hint);
  }
}

describe('following the changes of an object', () => {
  let deals: Deals;
  let database: Database;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  let sue: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ ada, mia, sam, sue } = deals.as);
    await deals.deploy({
      'objects/Deal__c/sharingRules/Signed.yaml':
        'type: SharingRule\napiName: Signed\nobject: Deal__c\nkind: criteria\ncriteria: record.Stage__c == "1"\nto:\n  group: Auditors\naccess: read\n',
      'objects/Deal__c/sharingRules/Fresh.yaml':
        'type: SharingRule\napiName: Fresh\nobject: Deal__c\nkind: criteria\ncriteria: record.Stage__c == "fresh" && record.recordVersion < 3\nto:\n  group: Auditors\naccess: read\n',
    });
    database = new Database(deals.platform.database.url, { size: 4, applicationName: 'changes test' });
  });
  after(async () => {
    await database?.close();
    await deals?.platform.stop();
  });

  const newDeal = async (who = sam, more = {}): Promise<string> => (await deals.deal(who, more)).body.id;
  const line = async (deal: string, who = ada): Promise<string> => {
    const reply = await who.post('/data/DealLine__c', { name: 'Line', Deal__c: deal });
    assert.equal(reply.status, 201, reply.text);
    return reply.body.id;
  };
  const path = (id: string, object: ObjectName = 'Deal__c'): string => `/data/${object}/${id}`;
  const change = async (id: string, body: object, who = ada, object: ObjectName = 'Deal__c'): Promise<Answer> => {
    const etag = (await who.get(path(id, object))).headers.get('etag')!;
    const reply = await who.patch(path(id, object), body, { etag });
    assert.equal(reply.status, 200, reply.text);
    return reply;
  };
  const remove = async (id: string, who = ada, object: ObjectName = 'Deal__c'): Promise<void> => {
    const reply = await who.delete(path(id, object), { etag: (await who.get(path(id, object))).headers.get('etag')! });
    assert.equal(reply.status, 200, reply.text);
  };
  const share = async (id: string, principalType: string, principalId: string): Promise<string> => {
    const reply = await ada.post(`${path(id)}/shares`, { principalType, principalId, access: 'read' });
    assert.equal(reply.status, 201, reply.text);
    return reply.body.shareId;
  };
  const unshare = async (id: string, shareId: string): Promise<void> => {
    assert.equal((await ada.delete(`${path(id)}/shares/${shareId}`)).status, 204);
  };
  const follow = (who: Api, object: ObjectName = 'Deal__c') => new Copy(who, object).start();
  const brief = (told: readonly Change[]): string[] => told.map(({ id, change: kind }) => `${id} ${kind}`).sort();

  it('reports created, changed and deleted records, each once and in its current state', async () => {
    const [kept, gone] = [await newDeal(), await newDeal()];
    const copy = await follow(sam);
    assert.deepEqual(await copy.follow(), []);
    const created = await newDeal();
    await change(created, { Stage__c: 'a' });
    await change(kept, { Stage__c: 'b' });
    await change(kept, { Stage__c: 'c' });
    await remove(gone);
    const passing = await newDeal();
    await remove(passing);
    assert.deepEqual(
      brief(await copy.follow()),
      [`${created} upserted`, `${kept} upserted`, `${gone} deleted`].sort(),
      'what came and went in between is not told',
    );
    await copy.compare('after changes');
    assert.deepEqual(await copy.follow(), [], 'nothing twice');
    await change(kept, { Secret__c: 'hidden from sam' });
    const [told] = await copy.follow();
    assert.equal(told!.change, 'upserted', 'the version is another one');
    assert.ok(!('Secret__c' in told!.record!));
  });

  it('removes from a copy a record that was listed after the cursor and hidden before it was followed', async () => {
    const cursor = (await sue.get('/data/Deal__c/changes')).body.resumeCursor;
    const [gone, given, never] = [await newDeal(sue), await newDeal(sue), await newDeal(sam)];
    const copy = new Copy(sue, 'Deal__c');
    copy.cursor = cursor;
    for (const [id, record] of await copy.list()) copy.records.set(id, record);
    await remove(gone);
    await change(given, { ownerId: deals.ids.sam });
    await remove(never);
    assert.deepEqual(brief(await copy.follow()), [`${gone} deleted`, `${given} accessLost`].sort());
    await copy.compare('after the list');
    await remove(await newDeal(sue));
    assert.deepEqual(await copy.follow(), [], 'the copy is full: nothing came and went unseen');
  });

  it('reports records that become visible or hidden, and no others', async () => {
    const hers = await newDeal(sue);
    const his = await newDeal(sam);
    const copy = await follow(sue);
    const other = await follow(sam);
    await change(his, { Stage__c: 'not for sue' });
    assert.deepEqual(await copy.follow(), []);
    await change(hers, { ownerId: deals.ids.sam });
    await change(his, { ownerId: deals.ids.sue });
    assert.deepEqual(brief(await copy.follow()), [`${hers} accessLost`, `${his} upserted`].sort());
    assert.deepEqual(brief(await other.follow()), [`${hers} upserted`, `${his} accessLost`].sort());
    await change(hers, { Stage__c: 'now none of her business' });
    await remove(hers);
    assert.deepEqual(await copy.follow(), [], 'what happens to a record out of sight is not told');
    assert.deepEqual(brief(await other.follow()), [`${hers} deleted`]);
    await change(his, { ownerId: deals.ids.sam });
    await remove(his);
    assert.deepEqual(brief(await copy.follow()), [`${his} accessLost`], 'that it was deleted is none of her business');
  });

  it('follows shares with a user, a role or a group, granted and revoked', async () => {
    const id = await newDeal(sam);
    const copy = await follow(sue);
    const all = await follow(mia);
    for (const [type, principal] of [
      ['user', deals.ids.sue],
      ['role', 'SalesRep'],
      ['group', 'Auditors'],
    ] as const) {
      const shareId = await share(id, type, principal);
      assert.deepEqual(brief(await copy.follow()), [`${id} upserted`], type);
      assert.deepEqual(await copy.follow(), []);
      await share(id, type, principal);
      assert.deepEqual(await copy.follow(), [], 'sharing again changes nothing');
      await unshare(id, shareId);
      assert.deepEqual(brief(await copy.follow()), [`${id} accessLost`], type);
    }
    assert.deepEqual(await all.follow(), [], 'who saw it all the time hears nothing');
    const first = await share(id, 'user', deals.ids.sue!);
    await copy.follow();
    await share(id, 'group', 'Auditors');
    await unshare(id, first);
    assert.deepEqual(await copy.follow(), [], 'one way is as good as another');
    await remove(id);
    assert.deepEqual(brief(await copy.follow()), [`${id} deleted`]);
  });

  it('follows a rule that reads a field, and deleting and restoring', async () => {
    const id = await newDeal(sam);
    const one = await line(id);
    const copy = await follow(sue);
    const lines = await follow(sue, 'DealLine__c');
    await change(id, { Stage__c: '1' });
    assert.deepEqual(
      [brief(await copy.follow()), brief(await lines.follow())],
      [[`${id} upserted`], [`${one} upserted`]],
    );
    await remove(id);
    assert.deepEqual(
      [brief(await copy.follow()), brief(await lines.follow())],
      [[`${id} deleted`], [`${one} deleted`]],
    );
    const restore = async (): Promise<void> => {
      const reply = await ada.post(`${path(id)}/restore`);
      assert.equal(reply.status, 201, reply.text);
    };
    await restore();
    assert.deepEqual(
      [brief(await copy.follow()), brief(await lines.follow())],
      [[`${id} upserted`], [`${one} upserted`]],
    );
    await remove(id);
    await restore();
    await change(id, { Stage__c: '2' });
    assert.deepEqual(
      [brief(await copy.follow()), brief(await lines.follow())],
      [[`${id} accessLost`], [`${one} accessLost`]],
    );
    await change(id, { Stage__c: '1' });
    await change(id, { Stage__c: '2' });
    assert.deepEqual([await copy.follow(), await lines.follow()], [[], []]);
  });

  it('follows a rule that reads the version', async () => {
    const id = await newDeal(sam, { Stage__c: 'fresh' });
    const copy = await follow(sue);
    assert.ok(copy.records.has(id));
    await change(id, { name: 'two' });
    assert.deepEqual(brief(await copy.follow()), [`${id} upserted`]);
    await change(id, { name: 'three' });
    assert.deepEqual(brief(await copy.follow()), [`${id} accessLost`]);
  });

  it('reports lines after changes to their deal', async () => {
    const [deal, other] = [await newDeal(sam), await newDeal(sam)];
    const [one, two] = [await line(deal), await line(deal)];
    const copy = await follow(sue, 'DealLine__c');
    const his = await follow(sam, 'DealLine__c');
    const shareId = await share(deal, 'user', deals.ids.sue!);
    assert.deepEqual(brief(await copy.follow()), [`${one} upserted`, `${two} upserted`].sort());
    await change(deal, { Stage__c: 'nothing to do with lines' });
    assert.deepEqual([await copy.follow(), await his.follow()], [[], []]);
    await change(two, { Deal__c: other }, ada, 'DealLine__c');
    assert.deepEqual(brief(await copy.follow()), [`${two} accessLost`]);
    assert.deepEqual(brief(await his.follow()), [`${two} upserted`]);
    await unshare(deal, shareId);
    assert.deepEqual(brief(await copy.follow()), [`${one} accessLost`]);
    await change(deal, { ownerId: deals.ids.sue });
    assert.deepEqual(brief(await copy.follow()), [`${one} upserted`]);
    assert.deepEqual(brief(await his.follow()), [`${one} accessLost`]);
    await remove(deal);
    assert.deepEqual(brief(await copy.follow()), [`${one} deleted`]);
    assert.deepEqual(await his.follow(), []);
  });

  it('removes lines that were listed while their deal was visible and is hidden since', async () => {
    const [deal, other, third] = [await newDeal(sam), await newDeal(sam), await newDeal(sam)];
    const [moved, movedTwice] = [await line(deal), await line(deal)];
    const [deleted, stayed, never] = [await line(deal), await line(deal), await line(other)];
    const copy = new Copy(sue, 'DealLine__c');
    copy.cursor = (await sue.get('/data/DealLine__c/changes')).body.resumeCursor;
    const shareId = await share(deal, 'user', deals.ids.sue!);
    for (const [id, record] of await copy.list()) copy.records.set(id, record);
    assert.equal(copy.records.size, 4);
    await unshare(deal, shareId);
    await change(moved, { Deal__c: other }, ada, 'DealLine__c');
    for (const to of [other, third]) await change(movedTwice, { Deal__c: to }, ada, 'DealLine__c');
    await remove(deleted, ada, 'DealLine__c');
    await change(never, { Deal__c: third }, ada, 'DealLine__c');
    assert.deepEqual(
      brief(await copy.follow()),
      [moved, movedTwice, deleted, stayed].map((id) => `${id} accessLost`).sort(),
    );
    await copy.compare('after the list');
  });

  it('pages through a round, whatever changes between the pages', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 7; n++) ids.push(await newDeal(sam));
    const copy = await follow(sam);
    for (const id of ids) await change(id, { Stage__c: 'x' });
    let n = 0;
    await copy.follow(2, async () => {
      await change(ids[n++]!, { Stage__c: `between ${n}` });
      await change(ids[6 - n]!, { Stage__c: `between ${n}` });
      if (n === 2) await change(ids[0]!, { ownerId: deals.ids.sue });
    });
    await copy.follow(2);
    await copy.compare('after pages');
    assert.deepEqual(await copy.follow(), []);
  });

  it("starts over when a user's visibility changes by other means", async () => {
    const copy = await follow(sue);
    await deals.setUser('sue', { permissionSetApiNames: ['DealsRead'] });
    assert.equal((await copy.follow()).length, 0, 'reading is as before');
    await deals.setUser('sue', { roleApiName: 'SalesManager' });
    const expired = await sue.get(`/data/Deal__c/changes?cursor=${copy.cursor}`);
    assert.deepEqual([expired.status, expired.body.code], [400, 'SYNC_TOKEN_EXPIRED'], expired.text);
    const again = await sue.get(`/data/Deal__c/changes?cursor=${expired.body.details.oldestCursor}`);
    assert.deepEqual([again.status, again.body.records], [200, []]);
    await deals.setUser('sue', { roleApiName: 'SalesRep', permissionSetApiNames: ['Deals'] });
    const mias = await follow(mia);
    await deals.setUser('sue', { displayName: 'Susan' });
    assert.deepEqual(await mias.follow(), [], 'a name decides about nothing');
  });

  it('continues for all users when users are invited, and misses none of their changes', async function () {
    this.timeout(120_000);
    const kept = [await follow(mia), await follow(sam), await follow(sue), await follow(ada)];
    const invite = async (n: number, roleApiName: string | null): Promise<string> => {
      const username = `invited${n}@demo.example`;
      const body = { username, email: username, displayName: `Invited ${n}`, profileApiName: 'SalesRep', roleApiName };
      const reply = await ada.post('/data/User', body);
      assert.equal(reply.status, 201, reply.text);
      return reply.body.id;
    };
    const invited: string[] = [];
    for (let n = 0; n < 44; n++) invited.push(await invite(n, n % 2 ? null : 'SalesRep'));
    for (const copy of kept) assert.deepEqual(await copy.follow(), [], 'nobody starts over');
    const [copy] = kept;
    const id = await newDeal(ada, { ownerId: invited[0] });
    assert.deepEqual(brief(await copy!.follow()), [`${id} upserted`], 'whose owner was invited since');
    await copy!.compare('of the manager');
    const path = `/data/User/${invited[0]}`;
    const etag = (await ada.get(path)).headers.get('etag')!;
    assert.equal((await ada.patch(path, { roleApiName: null }, { etag })).status, 200);
    const expired = await mia.get(`/data/Deal__c/changes?cursor=${copy!.cursor}`);
    assert.deepEqual([expired.status, expired.body.code], [400, 'SYNC_TOKEN_EXPIRED'], 'the owner left the branch');
    const other = kept[1]!;
    assert.equal(
      (await sam.get(`/data/Deal__c/changes?cursor=${other.cursor}`)).status,
      200,
      'which concerns Mia alone',
    );
  });

  it('starts over when a deployment computes a hidden rollup or number for all records', async () => {
    const rollup = (criteria: string): Record<string, string> => ({
      'objects/Deal__c/fields/Parts__c.yaml': `type: CustomField\napiName: Parts__c\nobject: Deal__c\nlabel: Parts\nfieldType: rollup\nrollup:\n  childObject: DealLine__c\n  referenceField: Deal__c\n  function: count\n  criteria: ${criteria}\n`,
    });
    const id = await newDeal(sam, { Stage__c: '1' });
    await line(id);
    const expired = async (copy: Copy, who = sue): Promise<void> => {
      const { status, body, text } = await who.get(`/data/${copy.object}/changes?cursor=${copy.cursor}`);
      assert.deepEqual([status, body.code], [400, 'SYNC_TOKEN_EXPIRED'], text);
    };
    const before = await follow(sue);
    await deals.deploy(rollup('record.name == "Line"'));
    assert.equal(Object.hasOwn((await sue.get(path(id))).body, 'Parts__c'), false, 'hidden from Sue');
    await expired(before);
    const shown = await follow(ada);
    await line(id);
    const [told] = await shown.follow();
    assert.deepEqual([told?.id, told?.record?.['Parts__c']], [id, 2], 'who reads the rollup is told of it');
    const [copy, lines] = [await follow(sue), await follow(sue, 'DealLine__c')];
    assert.ok(copy.records.has(id));
    await deals.deploy(rollup('record.name == "Other"'));
    await expired(copy);
    await expired(lines);
    const over = (expression: string): Record<string, string> => ({
      'objects/DealLine__c/fields/IsPart__c.yaml': `type: CustomField\napiName: IsPart__c\nobject: DealLine__c\nlabel: Part\nfieldType: formula\nformula:\n  expression: ${expression}\n  resultType: boolean\n`,
    });
    await deals.deploy({ ...over('record.name != "Other"'), ...rollup('record.IsPart__c') });
    const counted = await follow(sue);
    await deals.deploy(over('record.name == "Other"'));
    await expired(counted);
    await deals.deploy(rollup('weekday(date(record.createdAt)) > 0'));
    const days = await follow(ada);
    const zone = (name: string): Record<string, string> => ({
      'settings/General.yaml': `type: TenantSettings\napiName: General\nlocale: en\ntimezone: ${name}\ncurrency: EUR\n`,
    });
    await deals.deploy(zone('Pacific/Apia'));
    await expired(days, ada);
    await deals.deploy(zone('Europe/Berlin'));
    const numbered = await follow(sue);
    await deals.deploy({
      'objects/Deal__c/fields/Number__c.yaml':
        'type: CustomField\napiName: Number__c\nobject: Deal__c\nlabel: Number\nfieldType: autoNumber\nformat: D-{0}\n',
    });
    await expired(numbered);
  });

  it('continues when a hidden field with known values gets another type', async () => {
    await deals.deploy(fieldFile('Deal__c', 'Turn__c', 'fieldType: text'));
    const id = await newDeal(sam);
    const lineId = await line(id);
    const write = async (value: string): Promise<void> => {
      const etag = (await ada.get(path(id))).headers.get('etag')!;
      const written = await ada.patch(path(id), { Turn__c: value }, { etag });
      assert.equal(written.status, 200, written.text);
    };
    await write('not a number');
    const [copy, lines] = [await follow(sam), await follow(sam, 'DealLine__c')];
    assert.ok(lines.records.has(lineId));
    await write('12');
    const files = {
      ...fieldFile('Deal__c', 'Turn__c', 'fieldType: integer'),
      ...destructiveManifest({}, { CustomField: ['Deal__c.Turn__c'] }),
    };
    const answer = await ada.post('/metadata/deploy', {
      files,
      package: wholePackage(files),
      allowDestructiveChanges: true,
    });
    const { status, blocked } = await deploymentEnded(ada, answer);
    assert.equal(status, 'SUCCEEDED', JSON.stringify(blocked));
    await lines.follow();
    await lines.compare('lines of a deal whose values were of another type');
    const etag = (await ada.get(path(id))).headers.get('etag')!;
    assert.equal((await ada.delete(path(id), { etag })).status, 200);
    const told = await copy.follow();
    assert.deepEqual(
      told.map(({ change }) => change),
      ['deleted'],
    );
  });

  it('refuses foreign cursors and unknown parameters', async () => {
    const copy = await follow(sam);
    const code = async (who: Api, query: string, object = 'Deal__c'): Promise<string> =>
      (await who.get(`/data/${object}/changes?${query}`)).body.code;
    assert.equal(await code(sue, `cursor=${copy.cursor}`), 'CURSOR_INVALID');
    assert.equal(await code(sam, `cursor=${copy.cursor}`, 'DealLine__c'), 'CURSOR_QUERY_MISMATCH');
    assert.equal(await code(sam, `cursor=${copy.cursor.slice(0, -2)}AA`), 'CURSOR_INVALID');
    assert.equal(await code(sam, 'cursor=c1.'), 'CURSOR_INVALID');
    const { body } = await sam.get('/data/Account?take=1');
    assert.equal(await code(sam, `cursor=${body.nextCursor}`), 'CURSOR_INVALID');
    assert.equal(await code(sam, 'take=0'), 'PARAMETER_INVALID');
    assert.equal(await code(sam, 'includeTotal=true'), 'PARAMETER_UNKNOWN');
    assert.equal(await code(sam, '', 'Nothing__c'), 'OBJECT_NOT_FOUND');
    assert.equal(
      (await sam.get(`/data/Deal__c/changes?take=500&cursor=${copy.cursor}`)).headers.get('x-effective-take'),
      '200',
    );
  });

  it('misses nothing that a slow transaction commits after faster ones were reported', async () => {
    const [slow, quick] = [await newDeal(sam), await newDeal(sam)];
    const copy = await follow(sam);
    const { rows: tenants } = await database.query<{ id: string }>(
      `SELECT id FROM metadata.tenants WHERE key = 'demo'`,
    );
    let commit: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      commit = resolve;
    });
    let begun: () => void = () => {};
    const inside = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const writer = database.tenantTransaction(tenants[0]!.id, async (tx) => {
      await tx.query(
        `WITH u AS (UPDATE ${tx.schema}."Deal__c" SET "Stage__c" = 'late', "recordVersion" = "recordVersion" + 1 WHERE "id" = $1 RETURNING *)
          INSERT INTO ${tx.schema}._audit (audit_id, channel, operation_id, outcome, request_id, object, record_id, kind, record_version, changes)
          SELECT gen_random_uuid(), 'job', 'test', 'committed', 'req', 'Deal__c', "id", 'update', "recordVersion", '{"Stage__c":{"from":null,"to":"late"}}' FROM u`,
        [slow],
      );
      begun();
      await held;
    });
    await inside;
    await change(quick, { Stage__c: 'first' });
    assert.deepEqual(brief(await copy.follow()), [`${quick} upserted`]);
    await change(quick, { Stage__c: 'second' });
    assert.deepEqual(brief(await copy.follow()), [`${quick} upserted`]);
    commit();
    await writer;
    assert.deepEqual(brief(await copy.follow()), [`${slow} upserted`]);
    await copy.compare('after the slow one');
  });

  /** One random change by one of several users; a refused one counts as none. */
  async function anything(random: (below: number) => number, ids: Record<ObjectName, string[]>, shares: string[][]) {
    const pick = <T>(list: readonly T[]): T | undefined => list[random(list.length)];
    const who = pick([sam, sue, ada])!;
    const deal = pick(ids.Deal__c);
    const someLine = pick(ids.DealLine__c);
    const etagOf = async (at: string): Promise<string> => (await ada.get(at)).headers.get('etag') ?? '"0"';
    switch (random(12)) {
      case 0:
      case 1:
        ids.Deal__c.push(await newDeal(pick([sam, sue])!));
        return;
      case 2:
        if (deal) {
          const reply = await ada.post('/data/DealLine__c', { name: 'Line', Deal__c: deal });
          if (reply.status === 201) ids.DealLine__c.push(reply.body.id);
        }
        return;
      case 3:
      case 4:
        if (deal) await who.patch(path(deal), { Stage__c: `${random(5)}` }, { etag: await etagOf(path(deal)) });
        return;
      case 5:
        if (deal)
          await ada.patch(
            path(deal),
            { ownerId: pick([deals.ids.sam, deals.ids.sue, deals.ids.mia, deals.ids.ada]) },
            { etag: await etagOf(path(deal)) },
          );
        return;
      case 6: {
        const principal = pick([
          ['user', deals.ids.sue],
          ['user', deals.ids.sam],
          ['role', 'SalesRep'],
          ['group', 'Auditors'],
        ])!;
        if (!deal) return;
        const body = { principalType: principal[0], principalId: principal[1], access: pick(['read', 'edit']) };
        const reply = await ada.post(`${path(deal)}/shares`, body);
        if (reply.status === 201) shares.push([deal, reply.body.shareId]);
        return;
      }
      case 7: {
        const given = pick(shares);
        if (given) await ada.delete(`${path(given[0]!)}/shares/${given[1]}`);
        return;
      }
      case 8:
        if (deal && random(3) === 0) await who.delete(path(deal), { etag: await etagOf(path(deal)) });
        return;
      case 9:
        if (someLine && deal) {
          const at = path(someLine, 'DealLine__c');
          await ada.patch(at, { Deal__c: deal }, { etag: await etagOf(at) });
        }
        return;
      case 11: {
        const gone = pick([...ids.Deal__c, ...ids.DealLine__c]);
        for (const object of OBJECTS) if (gone) await ada.post(`${path(gone, object)}/restore`);
        return;
      }
      case 10:
        if (someLine) {
          const at = path(someLine, 'DealLine__c');
          if (random(3) === 0) await who.delete(at, { etag: await etagOf(at) });
          else await who.patch(at, { name: `Line ${random(9)}` }, { etag: await etagOf(at) });
        }
    }
  }

  /** Enough refused requests to split the changes into several batches. */
  const crowd = async (count: number): Promise<void> => {
    const { rows: tenants } = await database.query<{ id: string }>(
      `SELECT id FROM metadata.tenants WHERE key = 'demo'`,
    );
    await database.tenantTransaction(tenants[0]!.id, (tx) =>
      tx.query(
        `INSERT INTO ${tx.schema}._audit (audit_id, channel, operation_id, outcome, request_id, object)
          SELECT gen_random_uuid(), 'api', 'data.records.update', 'denied', 'req', o FROM generate_series(1, $1) n, unnest(ARRAY['Deal__c', 'DealLine__c']) o`,
        [count],
      ),
    );
  };

  const copies = async (): Promise<Copy[]> =>
    Promise.all([sam, sue, mia, ada].flatMap((who) => OBJECTS.map((object) => follow(who, object))));

  it('keeps the copies of all users equal to their lists, whatever is changed', async function () {
    this.timeout(120_000);
    const seed = Number(process.env['SEED'] ?? randomInt(2 ** 31));
    const random = randomFrom(seed);
    const ids: Record<ObjectName, string[]> = { Deal__c: [], DealLine__c: [] };
    const shares: string[][] = [];
    const kept = await copies();
    for (const copy of kept) copy.behind = true;
    for (let round = 0; round < ROUNDS; round++) {
      for (let n = random(12); n >= 0; n--) {
        await anything(random, ids, shares);
        if (random(6) === 0) await crowd(400 + random(700));
      }
      const copy = kept[random(kept.length)]!;
      await copy.follow(1 + random(5), () => anything(random, ids, shares));
      if (round % 8 !== 7) continue;
      for (const one of kept) {
        await one.follow();
        await one.compare(`seed ${seed}, round ${round}`);
        assert.deepEqual(await one.follow(), [], `seed ${seed}, round ${round}`);
      }
    }
  });

  it('misses nothing while many users write and many follow', async function () {
    this.timeout(120_000);
    const seed = Number(process.env['SEED'] ?? randomInt(2 ** 31));
    const ids: Record<ObjectName, string[]> = { Deal__c: [], DealLine__c: [] };
    const shares: string[][] = [];
    const kept = await copies();
    for (const copy of kept) copy.behind = true;
    let writing = true;
    const writers = [1, 2, 3, 4].map(async (n) => {
      const random = randomFrom(seed + n);
      for (let left = 45; left > 0; left--) {
        await anything(random, ids, shares);
        if (n === 1 && left % 5 === 0) await crowd(700);
      }
    });
    const followers = kept.map(async (copy, n) => {
      while (writing) await copy.follow(1 + (n % 4) * 3);
    });
    await Promise.all(writers);
    writing = false;
    await Promise.all(followers);
    for (const copy of kept) {
      await copy.follow();
      await copy.compare(`seed ${seed}`);
      assert.deepEqual(await copy.follow(), [], `seed ${seed}`);
    }
  });
});

/** Numbers from a seed (mulberry32). */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** What users are notified of. Source: docs/reference/notifications.md#how-they-arise. */
import assert from 'node:assert/strict';
import { Database } from '../../../mixins/database/database.ts';
import { NOTICE_REQUESTED } from '../../../mixins/notices.ts';
import type { Api } from '../../support/client.ts';
import { deployOverHttp } from '../../support/metadata-tenant.ts';
import { until } from '../../support/until.ts';
import { imported } from '../bulk/bulk.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const COUNTED = ['Counted0', 'Counted1', 'Counted2', 'Counted3', 'Counted4', 'Counted5'];

const ACTION = {
  'objects/Deal__c/actions/Tell.yaml': JSON.stringify({
    type: 'CustomAction',
    apiName: 'Tell',
    object: 'Deal__c',
    label: 'Ask for help',
    effects: [
      { verb: 'sendNotification', type: 'HelpWanted', to: 'owner' },
      { verb: 'sendNotification', type: 'HelpAsked', to: 'actor' },
    ],
  }),
  'objects/Deal__c/actions/Ask.yaml': JSON.stringify({
    type: 'CustomAction',
    apiName: 'Ask',
    object: 'Deal__c',
    label: 'Ask',
    effects: [
      { verb: 'sendNotification', type: 'Asked', to: 'owner', template: 'Asked' },
      { verb: 'sendNotification', type: 'Asked', to: 'actor', template: 'Asked' },
      { verb: 'sendNotification', type: 'AskedAuthor', to: 'createdById', template: 'Asked' },
    ],
  }),
  'objects/Deal__c/actions/Count.yaml': JSON.stringify({
    type: 'CustomAction',
    apiName: 'Count',
    object: 'Deal__c',
    label: 'Count',
    effects: COUNTED.map((type) => ({ verb: 'sendNotification', type, to: 'actor' })),
  }),
  'objects/Deal__c/notificationTemplates/Asked.yaml': JSON.stringify({
    type: 'NotificationTemplate',
    apiName: 'Asked',
    object: 'Deal__c',
    label: 'Asked',
    texts: {
      en: { title: '{actor} asks about {record.name}', body: 'In {record.Stage__c} ({record.Secret__c}), {{urgent}}.' },
      de: { title: '{actor} fragt nach {record.name}', body: 'Version {record.recordVersion}' },
    },
  }),
  'permissionSets/Tell.yaml':
    'type: PermissionSet\napiName: Tell\nlabel: Tell\nactions:\n  - Deal__c.Ask\n  - Deal__c.Count\n  - Deal__c.Tell\n',
};

describe('notifications arise', function () {
  this.timeout(120_000);
  let deals: Deals;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  let sue: Api;
  let database: Database;
  before(async () => {
    deals = await startDeals();
    ({ ada, mia, sam, sue } = deals.as);
    database = new Database(deals.platform.database.url, { size: 2, applicationName: 'notifications test' });
    await deployOverHttp(ada, ACTION);
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'Tell'] });
  });
  after(async () => {
    await database?.close();
    await deals?.platform.stop();
  });

  // biome-ignore lint/suspicious/noExplicitAny: the body of an answer
  const all = async (who: Api, type: string): Promise<any[]> =>
    (await who.get(`/notifications?type=${type}`)).body.records;
  /** The notifications of a type, once there are so many. */
  const told = async (who: Api, type: string, count = 1) => {
    await until(async () => (await all(who, type)).length >= count);
    const found = await all(who, type);
    assert.equal(found.length, count);
    return found;
  };
  const waiting = async (): Promise<number> => {
    const schema = `t_${(await ada.get('/identity')).body.tenant.id.replaceAll('-', '')}`;
    const { rows } = await database.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM ${schema}._outbox WHERE type = '${NOTICE_REQUESTED}'`,
    );
    return rows[0]!.n;
  };

  it('from another owner, in the language of the new one, and from a share', async () => {
    await deals.setUser('sue', { locale: 'de-DE' });
    const deal = await deals.deal(sam);
    const { id } = deal.body;
    const share = { principalType: 'user', principalId: deals.ids.sue, access: 'read' };
    assert.equal((await sam.post(`/data/Deal__c/${id}/shares`, share)).status, 201);
    const [shared] = await told(sue, 'recordShared');
    assert.match(shared.title, /wurde mit Ihnen geteilt$/);
    assert.deepEqual(shared.record, { objectApiName: 'Deal__c', id, name: 'Deal' });
    assert.equal(shared.actor.userId, deals.ids.sam);
    const etag = deal.headers.get('etag')!;
    const given = await sam.patch(`/data/Deal__c/${id}`, { ownerId: deals.ids.mia }, { etag });
    assert.equal(given.status, 200, given.text);
    const [assigned] = await told(mia, 'recordAssigned');
    assert.match(assigned.title, /assigned to you$/);
    assert.equal((await all(sam, 'recordAssigned')).length, 0);
  });

  it('not from a dry run, a refused change, or a change of nothing', async () => {
    const deal = await deals.deal(mia);
    const at = `/data/Deal__c/${deal.body.id}`;
    const etag = deal.headers.get('etag')!;
    const before = (await all(sam, 'recordAssigned')).length;
    const tried = { operation: 'update', id: deal.body.id, ifMatch: etag, fields: { ownerId: deals.ids.sam } };
    assert.equal((await mia.post('/data/Deal__c/check', tried)).body.valid, true);
    assert.equal((await mia.patch(at, { ownerId: deals.ids.sam }, { etag: '"zz"' })).status, 412);
    assert.equal((await mia.patch(at, { ownerId: deals.ids.mia }, { etag })).status, 200);
    assert.equal(await waiting(), 0);
    assert.equal((await all(sam, 'recordAssigned')).length, before);
  });

  it('in the order of their causes, also when they are made together', async () => {
    const deal = await deals.deal(sam);
    const reply = await sam.post(
      `/data/Deal__c/${deal.body.id}/transitions/Count`,
      {},
      {
        etag: deal.headers.get('etag')!,
      },
    );
    assert.equal(reply.status, 201, reply.text);
    const counted = async (): Promise<string[]> =>
      (await sam.get('/notifications')).body.records
        .map(({ type }: { type: string }) => type)
        .filter((type: string) => COUNTED.includes(type));
    await until(async () => (await counted()).length === COUNTED.length);
    assert.deepEqual(await counted(), COUNTED.toReversed());
  });

  it('from the effect of an action, in its transaction', async () => {
    const deal = await deals.deal(sam);
    const { id } = deal.body;
    const etag = deal.headers.get('etag')!;
    const reply = await sam.post(`/data/Deal__c/${id}/transitions/Tell`, {}, { etag });
    assert.equal(reply.status, 201, reply.text);
    assert.deepEqual(
      reply.body.sideEffects.map(({ kind }: { kind: string }) => kind),
      ['notification', 'notification'],
    );
    const [wanted] = await told(sam, 'HelpWanted');
    assert.match(wanted.title, /: Ask for help$/);
    assert.deepEqual(wanted.record, { objectApiName: 'Deal__c', id, name: 'Deal' });
    await told(sam, 'HelpAsked');
    const refused = await sam.post(`/data/Deal__c/${id}/transitions/Tell`, {}, { etag });
    assert.equal(refused.status, 412);
    await until(async () => (await waiting()) === 0);
    assert.equal((await all(sam, 'HelpWanted')).length, 1);
  });

  it('in the words of a template, in the language of each recipient and with what they can read', async () => {
    await deals.setUser('ada', { permissionSetApiNames: ['Tell'] });
    const ask = async (owner: Api, fields: object = {}): Promise<void> => {
      const { id } = (await deals.deal(owner, { name: 'Boat {actor}', Stage__c: '<b>Offer</b>' })).body;
      const read = await ada.get(`/data/Deal__c/${id}`);
      const changed = await ada.patch(
        `/data/Deal__c/${id}`,
        { Secret__c: 'hush', ...fields },
        { etag: read.headers.get('etag')! },
      );
      assert.equal(changed.status, 200, changed.text);
      const asked = await ada.post(`/data/Deal__c/${id}/transitions/Ask`, {}, { etag: changed.headers.get('etag')! });
      assert.equal(asked.status, 201, asked.text);
    };
    await ask(sam);
    const name = (await ada.get('/identity')).body.user.displayName;
    const [ofSam] = await told(sam, 'Asked');
    assert.deepEqual([ofSam.title, ofSam.body], [`${name} asks about Boat {actor}`, 'In <b>Offer</b> (), {urgent}.']);
    const [ofAda] = await told(ada, 'Asked');
    assert.equal(ofAda.body, 'In <b>Offer</b> (hush), {urgent}.');
    await deals.setUser('sue', { locale: 'de-DE' });
    await ask(sue);
    const [ofSue] = await told(sue, 'Asked');
    assert.deepEqual([ofSue.title, ofSue.body], [`${name} fragt nach Boat {actor}`, 'Version 3']);
    // Who has lost the record meanwhile learns nothing of it.
    const deal = await deals.deal(sam, { name: 'Secret boat', Stage__c: 'Offer' });
    const at = `/data/Deal__c/${deal.body.id}`;
    const given = await sam.patch(at, { ownerId: deals.ids.ada }, { etag: deal.headers.get('etag')! });
    const asked = await ada.post(`${at}/transitions/Ask`, {}, { etag: given.headers.get('etag')! });
    assert.equal(asked.status, 201, asked.text);
    await until(async () => (await all(sam, 'AskedAuthor')).length === 2);
    const [ofAuthor] = await all(sam, 'AskedAuthor');
    assert.deepEqual([ofAuthor.title, ofAuthor.body], [`${name} asks about`, 'In  (), {urgent}.']);
    assert.equal(ofAuthor.record, null);
    // 200 characters end within the last one of this name.
    const long = await deals.deal(sam, { name: `a${'😀'.repeat(100)}`, Stage__c: 'Offer' });
    const etag = long.headers.get('etag')!;
    assert.equal((await ada.post(`/data/Deal__c/${long.body.id}/transitions/Ask`, {}, { etag })).status, 201);
    await until(async () => (await all(sam, 'Asked')).length === 2);
    assert.match((await all(sam, 'Asked'))[0].title, /asks about a😀/);
  });

  it('though the database does not take one that was asked for before', async () => {
    const schema = `t_${(await ada.get('/identity')).body.tenant.id.replaceAll('-', '')}`;
    const notice = { type: 'Broken', recipientIds: [deals.ids.sam], data: { title: 'x' }, severity: 'unheard-of' };
    await database.query(`INSERT INTO ${schema}._outbox (type, data) VALUES ('${NOTICE_REQUESTED}', $1)`, [
      JSON.stringify(notice),
    ]);
    const before = (await all(mia, 'recordAssigned')).length;
    const deal = await deals.deal(sam);
    const given = await sam.patch(
      `/data/Deal__c/${deal.body.id}`,
      { ownerId: deals.ids.mia },
      { etag: deal.headers.get('etag')! },
    );
    assert.equal(given.status, 200, given.text);
    await told(mia, 'recordAssigned', before + 1);
    assert.equal(await waiting(), 0);
    assert.deepEqual(await all(sam, 'Broken'), []);
  });

  it('from the end of deployments and jobs', async () => {
    const finished = (await all(ada, 'deploymentFinished')).length;
    assert.ok(finished > 0);
    const job = await imported(
      ada,
      { operation: 'create', objectApiName: 'Account', notify: true },
      'name\nBulk notified\n\n',
    );
    const [ended] = await told(ada, 'bulkJobFinished');
    assert.deepEqual(ended.actions[0].params, { jobId: job.jobId });
    assert.match(ended.body, /succeeded: 1/);
    await imported(ada, { operation: 'create', objectApiName: 'Account' }, 'name\nBulk silent\n');
    assert.equal((await all(ada, 'bulkJobFinished')).length, 1);
  });

  it('once, also when the process that makes them dies before it commits', async () => {
    const deal = await deals.deal(sam);
    const before = (await all(sue, 'recordAssigned')).length;
    const killed = await database.transaction(async (tx) => {
      await tx.query('LOCK TABLE notifications.items IN SHARE MODE');
      const etag = deal.headers.get('etag')!;
      const given = await sam.patch(`/data/Deal__c/${deal.body.id}`, { ownerId: deals.ids.sue }, { etag });
      assert.equal(given.status, 200, given.text);
      let count = 0;
      await until(async () => {
        const { rows } = await database.query<{
          ended: boolean;
        }>(`SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
          WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO notifications.items%' AND datname = current_database()`);
        count += rows.length;
        return count > 0;
      });
      return count;
    });
    assert.equal(killed, 1);
    await told(sue, 'recordAssigned', before + 1);
    await until(async () => (await waiting()) === 0);
    assert.equal((await all(sue, 'recordAssigned')).length, before + 1);
  });
});

/** The log of events: what is in it, for whom, and from where one goes on. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { tenantSchema } from '../../../lib/context.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { until } from '../../support/until.ts';

interface Event {
  readonly type: string;
  readonly subject: string;
  readonly sequence: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
  readonly data: any;
}

describe('events', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  let sue: Api;
  let eve: Api;
  let schema: string;
  let sql: pg.Client;
  const as = async (user: string, scope?: string): Promise<Api> =>
    api(platform.baseUrl, await tokenFor(platform.baseUrl, user, scope));
  before(async () => {
    platform = await startPlatform();
    [ada, sam, sue, eve] = await Promise.all([as('ada'), as('sam'), as('sue'), as('eve')]);
    schema = tenantSchema((await ada.get('/identity')).body.tenant.id);
    sql = new pg.Client({ connectionString: platform.database.url });
    await sql.connect();
  });
  after(async () => {
    await sql?.end();
    await platform?.stop();
  });

  const now = async (who: Api): Promise<string> => (await who.get('/events')).body.resumeCursor;
  /** Everything behind a cursor, page by page. */
  const read = async (who: Api, start: string, query: Record<string, string> = {}): Promise<Event[]> => {
    const events: Event[] = [];
    let cursor: string | null = start;
    while (cursor !== null) {
      const page: Answer = await who.get(`/events?${new URLSearchParams({ ...query, cursor })}`);
      assert.equal(page.status, 200, page.text);
      events.push(...page.body.records);
      cursor = page.body.nextCursor;
    }
    return events;
  };
  const numbered = () =>
    until(async () => {
      const { rows } = await sql.query(
        `SELECT FROM "${schema}"._outbox WHERE sequence IS NULL AND type <> 'auth.user.sync' LIMIT 1`,
      );
      return rows.length === 0;
    });
  const account = async (who: Api, fields: object = {}): Promise<{ id: string; etag: string }> => {
    const made = await who.post('/data/Account', { name: `Follow ${randomUUID()}`, ...fields });
    assert.equal(made.status, 201, made.text);
    return { id: made.body.id, etag: made.headers.get('etag')! };
  };

  it('tell each change of a record, in the form of CloudEvents', async () => {
    const start = await now(ada);
    const { id, etag } = await account(ada, { city: 'Kiel' });
    const changed = await ada.patch(`/data/Account/${id}`, { city: 'Bonn' }, { etag });
    await ada.delete(`/data/Account/${id}`, { etag: changed.headers.get('etag')! });
    await ada.post(`/data/Account/${id}/restore`);
    await numbered();
    const events = (await read(ada, start, { payload: 'full' })).filter(({ data }) => data.id === id);
    assert.deepEqual(
      events.map(({ type, data }) => [type, data.recordVersion]),
      [
        ['data.record.created', 1],
        ['data.record.updated', 2],
        ['data.record.deleted', 2],
        ['data.record.restored', 3],
      ],
    );
    for (const { subject } of events) assert.equal(subject, `Account/${id}`);
    const [created, updated, deleted] = events.map(({ data }) => data);
    assert.equal(created.before, null);
    assert.equal(created.after.city, 'Kiel');
    assert.deepEqual(updated.changedFields.includes('city') && [updated.before.city, updated.after.city], [
      'Kiel',
      'Bonn',
    ]);
    assert.equal(deleted.after, null);
    assert.equal(updated.etag, changed.headers.get('etag'));
    assert.equal(updated.requestId, changed.headers.get('x-request-id'));
    const [thin] = (await read(ada, start)).filter(({ data }) => data.id === id);
    assert.deepEqual([thin!.data.before, thin!.data.after], [null, null]);
  });

  it('have numbers without holes, and pages that join', async () => {
    const start = await now(ada);
    for (let i = 0; i < 5; i++) await account(ada);
    await numbered();
    const all = await read(ada, start);
    assert.ok(all.length >= 5);
    assert.deepEqual(
      all.map(({ sequence }) => Number(sequence) - Number(all[0]!.sequence)),
      all.map((_, i) => i),
      'an administrator sees all',
    );
    assert.deepEqual(await read(ada, start, { take: '2' }), all);
    assert.deepEqual(
      await read(ada, start, { types: 'data.record.created', objects: 'Account' }),
      all.filter(({ type, data }) => type === 'data.record.created' && data.objectApiName === 'Account'),
    );
  });

  it('are for those who can read the record, at this moment', async () => {
    const [start, ofSue] = [await now(sam), await now(sue)];
    const opportunity = await sam.post('/data/Opportunity__c', {
      Name__c: 'Only for Sam',
      AccountId__c: (await account(sam)).id,
    });
    const { id } = opportunity.status === 201 ? opportunity.body : await account(sam);
    await numbered();
    assert.ok((await read(sam, start)).some(({ data }) => data.id === id));
    if (opportunity.status === 201) assert.ok(!(await read(sue, ofSue)).some(({ data }) => data.id === id));
  });

  it('of other tenants are not there', async () => {
    const start = await now(eve);
    await account(ada);
    await numbered();
    assert.deepEqual(await read(eve, start), []);
    const foreign = await eve.get(`/events?cursor=${await now(ada)}`);
    assert.deepEqual([foreign.status, foreign.body.code], [400, 'CURSOR_INVALID']);
  });

  it('can be waited for', async () => {
    const start = await now(sam);
    const waiting = sam.get(`/events?waitSeconds=20&cursor=${start}`);
    const { id } = await account(sam);
    const answer = await waiting;
    assert.equal(answer.body.records[0].data.id, id, answer.text);
    const empty = await sam.get(`/events?waitSeconds=1&cursor=${answer.body.resumeCursor}`);
    assert.deepEqual([empty.body.records, empty.body.nextCursor], [[], null]);
  });

  it('refuse what they do not know', async () => {
    const reply = await sam.get('/events?types=data.record.created,data.record.exploded');
    assert.deepEqual([reply.status, reply.body.code], [400, 'PARAMETER_INVALID']);
    assert.equal((await sam.get('/events?take=501')).status, 400);
    assert.equal((await sam.get('/events?waitSeconds=21')).status, 400);
    assert.equal((await sam.get('/events?cursor=c1.forged')).body.code, 'CURSOR_INVALID');
    const narrow = await as('sam', 'events:read');
    assert.equal((await narrow.get('/events')).status, 200);
    assert.equal((await narrow.get('/events?payload=full')).body.code, 'SCOPE_INSUFFICIENT');
    const without = await as('sam', 'data:read');
    assert.equal((await without.get('/events')).body.code, 'SCOPE_INSUFFICIENT');
  });

  it('that are not kept any more are not passed over in silence', async () => {
    const start = await now(sam);
    const [first, second] = [await account(sam), await account(sam)];
    await numbered();
    await sql.query(
      `DELETE FROM "${schema}"._outbox WHERE sequence <= (SELECT sequence FROM "${schema}"._outbox WHERE record_id = $1)`,
      [first.id],
    );
    const old = await sam.get(`/events?cursor=${start}`);
    assert.deepEqual([old.status, old.body.code], [400, 'SYNC_TOKEN_EXPIRED'], old.text);
    const rest = await read(sam, old.body.details.oldestCursor);
    assert.ok(rest.some(({ data }) => data.id === second.id));
    await sql.query(`UPDATE "${schema}"._epoch SET place = 'elsewhere'`);
    const restored = await sam.get(`/events?cursor=${old.body.details.oldestCursor}`);
    assert.deepEqual([restored.status, restored.body.code], [400, 'SYNC_TOKEN_EXPIRED'], restored.text);
    assert.equal((await sam.get(`/events?cursor=${restored.body.details.oldestCursor}`)).status, 200);
  });

  it('come as a stream, which goes on where its client was', async () => {
    const start = await now(sam);
    const ids = [(await account(sam)).id, (await account(sam)).id];
    const begun = await sam.get(`/events/stream?cursor=${start}&types=data.record.created`);
    const [, cursor = '', type, data = ''] = /id: (\S+)\nevent: (\S+)\ndata: (.*)\n/.exec(begun.text) ?? [];
    assert.deepEqual([type, JSON.parse(data).data.id], ['data.record.created', ids[0]]);
    const next = await sam.get('/events/stream?types=data.record.created', { headers: { 'last-event-id': cursor } });
    assert.match(next.text, new RegExp(`"id":"${ids[1]}"`));
  });
});

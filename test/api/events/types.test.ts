/** Events that are not about records: what each area tells of, and whom. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { uuidv7 } from '../../../lib/values/ids.ts';
import type { Answer, Api } from '../../support/client.ts';
import { deploymentEnded, wholePackage } from '../../support/metadata-tenant.ts';
import { until } from '../../support/until.ts';
import { create, meeting, patch, remove } from '../calendar/world.ts';
import { type Deals, startDeals } from '../data/deals.ts';

interface Event {
  readonly type: string;
  readonly subject: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
  readonly data: any;
}

describe('events of', function () {
  this.timeout(120_000);
  let deals: Deals;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  let sue: Api;
  before(async () => {
    deals = await startDeals();
    ({ ada, mia, sam, sue } = deals.as);
  });
  after(() => deals?.platform.stop());

  /** What each of the users is told, until the first has heard of as many events as are expected. */
  const told = async (
    about: string,
    work: () => Promise<unknown>,
    count: number,
    users: readonly Api[],
  ): Promise<Event[][]> => {
    const starts = await Promise.all(users.map(async (user) => (await user.get('/events')).body.resumeCursor));
    await work();
    const read = async (user: Api, cursor: string): Promise<Event[]> => {
      const page = await user.get(`/events?cursor=${cursor}&take=200`);
      assert.equal(page.status, 200, page.text);
      return page.body.records.filter(({ type }: Event) => type.startsWith(about));
    };
    await until(async () => (await read(users[0]!, starts[0]!)).length >= count);
    return Promise.all(users.map((user, i) => read(user, starts[i]!)));
  };
  const typesOf = (events: readonly Event[] = []): string[] => events.map(({ type }) => type.split('.').at(-1)!);

  it('deployments tell each state, to who has asked and to who may read the configuration', async () => {
    const files = (label: string): Record<string, string> => ({
      'permissionSets/Told.yaml': `type: PermissionSet\napiName: Told\nlabel: ${label}\n`,
    });
    const start = (await ada.get('/events')).body.resumeCursor;
    const about = 'metadata.deployment.';
    const own: string[] = [];
    const deploy = async (content: Record<string, string>, checkOnly = false): Promise<void> => {
      const body = { files: content, package: wholePackage(content), checkOnly };
      const accepted = await ada.post('/metadata/deploy', body);
      own.push(accepted.body.deploymentId);
      await deploymentEnded(ada, accepted);
    };
    /** The last events of the deployment before may get their numbers now. */
    const ofOwn = (events: readonly Event[]) =>
      events.filter(({ type, data }) => type.startsWith(about) && own.includes(data.deploymentId));
    const [seen, hidden] = await told(
      about,
      async () => {
        await deploy(files('Told'));
        await deploy(files('Told twice'), true);
        await until(async () => ofOwn((await ada.get(`/events?cursor=${start}&take=200`)).body.records).length === 7);
      },
      7,
      [ada, sam],
    );
    const events = ofOwn(seen!);
    assert.deepEqual(typesOf(events), [
      'queued',
      'validating',
      'applying',
      'succeeded',
      'queued',
      'validating',
      'succeeded',
    ]);
    const [{ data, subject }] = events as [Event];
    assert.equal(subject, `deployments/${data.deploymentId}`);
    assert.deepEqual(
      [data.userId, data.kind, data.checkOnly, data.actor.userId],
      [deals.ids.ada, 'deploy', false, deals.ids.ada],
    );
    assert.deepEqual(hidden, []);
  });

  it('canceled deployments tell who canceled them', async () => {
    const files = { 'permissionSets/Other.yaml': 'type: PermissionSet\napiName: Other\nlabel: Other\n' };
    const [seen] = await told(
      'metadata.deployment.canceled',
      async () => {
        const accepted: Answer[] = [];
        for (let i = 0; i < 6; i++)
          accepted.push(await ada.post('/metadata/deploy', { files, package: wholePackage(files), checkOnly: true }));
        for (const { body } of accepted.reverse())
          await ada.post(`/metadata/deployments/${body.deploymentId}/cancel`, { reason: 'Not needed.' });
        for (const answer of accepted) await deploymentEnded(ada, answer);
      },
      1,
      [ada],
    );
    assert.ok(seen!.every(({ data }) => data.actor.userId === deals.ids.ada));
  });

  it('dashboards tell that they were published and deleted', async () => {
    const [seen, hidden] = await told(
      'analytics.dashboard.',
      async () => {
        const made = await mia.post('/analytics/dashboards', { name: `Told ${randomUUID()}`, widgets: [] });
        const at = `/analytics/dashboards/${made.body.dashboardId}`;
        const published = await mia.post(`${at}/publish`, { expectedRevision: made.body.revision });
        assert.equal(published.status, 201, published.text);
        const deleted = await mia.delete(at, { etag: published.headers.get('etag')! });
        assert.equal(deleted.status, 204, deleted.text);
      },
      2,
      [mia, sam],
    );
    assert.deepEqual(typesOf(seen), ['published', 'deleted']);
    assert.deepEqual(hidden, []);
  });

  it('connections tell their user and administrators that they have ended, once', async () => {
    const own = await deals.sign('sue', 'me:read me:write events:read');
    const [connection] = (await own.get('/me/connections')).body.records;
    const ended = { auditId: uuidv7(), tenantId: (await ada.get('/identity')).body.tenant.id, userId: deals.ids.sue };
    // As auth sends what happened on the account page, until it knows that data has it.
    const onPage = () =>
      deals.platform.broker.call('data.audit.note', {
        ...ended,
        operationId: 'me.connections.revoke',
        actorId: deals.ids.sue,
        channel: 'ui',
        changes: { connection: { from: 'of-the-page', to: null }, client: { from: 'erp-cli', to: null } },
        event: { type: 'me.connection.revoked', data: { connectionId: 'of-the-page', userId: deals.ids.sue } },
      });
    const [administrator, user, other] = await told(
      'me.connection.revoked',
      async () => {
        assert.equal((await own.delete(`/me/connections/${connection.connectionId}`)).status, 204);
        await onPage();
        await onPage();
      },
      2,
      [ada, sue, sam],
    );
    assert.deepEqual(
      administrator!.map(({ data }) => [data.connectionId, data.userId]),
      [
        [connection.connectionId, deals.ids.sue],
        ['of-the-page', deals.ids.sue],
      ],
    );
    assert.deepEqual(user, administrator);
    assert.deepEqual(other, []);
  });

  it('calendars tell who takes part, and nobody else, administrators among them', async () => {
    const invited = [{ userId: deals.ids.sue }];
    const [organizer, attendee, manager, administrator] = await told(
      'calendar.event.',
      async () => {
        const { eventId } = await create(sam, meeting('2026-03-02', { attendees: invited, visibility: 'private' }));
        await sue.post(`/calendar/events/${eventId}/respond`, { response: 'accepted' });
        assert.equal((await patch(sam, eventId, { attendees: [] })).status, 200);
        assert.equal((await patch(sam, eventId, { title: 'Alone' })).status, 200);
        assert.equal((await remove(sam, eventId)).status, 200);
      },
      5,
      [sam, sue, mia, ada],
    );
    assert.deepEqual(typesOf(organizer), ['created', 'updated', 'updated', 'updated', 'deleted']);
    assert.deepEqual(typesOf(attendee), ['created', 'updated', 'updated'], 'until she is not invited any more');
    assert.deepEqual([manager, administrator], [[], []]);
    const [{ subject, data }] = attendee as [Event];
    const { actor, requestId, ...content } = data;
    assert.deepEqual(content, { eventId: subject.replace('events/', ''), userId: deals.ids.sam });
  });

  it('notifications tell their user, and not who has caused them', async () => {
    const [user, sender] = await told(
      'notifications.',
      async () => {
        const sent = await ada.post('/notifications', {
          type: 'Told',
          recipients: [deals.ids.sam],
          data: { title: 'Told' },
        });
        assert.equal(sent.status, 201, sent.text);
      },
      1,
      [sam, ada],
    );
    assert.deepEqual([user!.length, user![0]!.data.type, user![0]!.data.userId], [1, 'Told', deals.ids.sam]);
    assert.deepEqual(sender, []);
  });
});

/**
 * Random worlds of deals that change hands: events, notifications and calendars tell nobody of a deal who does not find it in
 * their list at that moment, and everybody who does. TELLING_STEPS=500 takes longer; TELLING_SEED repeats one.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Answer, Api } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const STEPS = Number(process.env['TELLING_STEPS'] ?? 60);
const seed = Number(process.env['TELLING_SEED'] ?? Date.now() % 1_000_000_007);
const PEOPLE = ['ada', 'mia', 'sam', 'sue', 'eve'] as const;
type Person = (typeof PEOPLE)[number];
/** eve is of another tenant. */
const COLLEAGUES = ['ada', 'mia', 'sam', 'sue'] as const;
const SELLERS = ['mia', 'sam', 'sue'] as const;
const READABLE: readonly string[] = ['name', 'Stage__c', 'ownerId'];
const TYPES: readonly string[] = ['recordAssigned', 'recordShared', 'Look'];
const FIRST_HOUR = Date.UTC(2027, 0, 1);
const HOUR = 3_600_000;

interface Change {
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface Deal {
  readonly id: string;
  readonly name: string;
  owner: Person;
  readonly changes: Change[];
  /** Who could read it when it was deleted; null: it is not deleted. */
  saw: ReadonlySet<Person> | null;
}

interface Notice {
  readonly to: Person;
  readonly type: string;
  readonly title: string | null;
  readonly deal: Deal;
}

interface Meeting {
  readonly id: string;
  readonly people: readonly Person[];
  readonly isPrivate: boolean;
  readonly deal: Deal;
  readonly from: number;
}

interface Told {
  readonly type: string;
  readonly data: {
    readonly id: string;
    readonly changedFields: readonly string[];
    readonly before: Readonly<Record<string, unknown>> | null;
    readonly after: Readonly<Record<string, unknown>> | null;
  };
}

describe(`what is told of random worlds (seed ${seed})`, function () {
  this.timeout(900_000);
  let deals: Deals;
  before(async () => {
    deals = await startDeals();
  });
  after(() => deals?.platform.stop());

  it('is what each of them finds in their list, and all of it', async () => {
    const records: Deal[] = [];
    const notices: Notice[] = [];
    const meetings: Meeting[] = [];
    /** sue has permissions on deals now and then. */
    let sueMay = true;
    const as = (person: Person): Api => deals.as[person];
    const done = ({ status, text }: Answer): boolean => {
      assert.ok(status < 500, text);
      return status < 300;
    };
    const one = <T>(random: number, list: readonly T[]): T | undefined => list[random % Math.max(1, list.length)];
    const at = ({ id }: Deal): string => `/data/Deal__c/${id}`;
    const etagOf = async (path: string) => (await deals.as.ada.get(path)).headers.get('etag') ?? '"none"';
    const listOf = async (person: Person): Promise<ReadonlySet<string>> => {
      const { status, body } = await as(person).get('/data/Deal__c?take=200');
      assert.ok(status === 200 || status === 404);
      return new Set((body.records ?? []).map(({ id }: { id: string }) => id));
    };
    const start = new Map<Person, string>();
    for (const person of PEOPLE) start.set(person, (await as(person).get('/events')).body.resumeCursor);

    const change = async (deal: Deal, who: Person, fields: Record<string, unknown>): Promise<boolean> => {
      const changed = done(await as(who).patch(at(deal), fields, { etag: await etagOf(at(deal)) }));
      if (changed) deal.changes.push({ type: 'updated', fields });
      return changed;
    };
    const steps: Record<string, (a: number, b: number, person: Person) => Promise<void>> = {
      deal: async (a, _b, owner) => {
        const name = `Deal ${records.length}`;
        const fields = { name, Stage__c: `stage ${a % 5}` };
        const made = await as(owner).post('/data/Deal__c', fields);
        if (done(made))
          records.push({ id: made.body.id, name, owner, changes: [{ type: 'created', fields }], saw: null });
      },
      edit: async (a, b) => {
        const deal = one(a, records);
        if (deal) await change(deal, deal.owner, { Stage__c: `stage ${b}` });
      },
      hide: async (a, b) => {
        const deal = one(a, records);
        if (deal) await change(deal, 'ada', { Secret__c: `secret ${b}` });
      },
      give: async (a, _b, person) => {
        const deal = one(a, records);
        const { owner } = deal ?? {};
        if (!deal || !owner || person === owner || person === 'eve') return;
        if (!(await change(deal, owner, { ownerId: deals.ids[person] }))) return;
        deal.owner = person;
        notices.push({ to: person, type: 'recordAssigned', title: null, deal });
      },
      share: async (a, b, person) => {
        const deal = one(a, records);
        if (!deal || person === 'eve' || person === deal.owner) return;
        const share = { principalType: 'user', principalId: deals.ids[person], access: b % 2 ? 'read' : 'edit' };
        const { status } = await as(deal.owner).post(`${at(deal)}/shares`, share);
        if (status === 201) notices.push({ to: person, type: 'recordShared', title: null, deal });
      },
      unshare: async (a) => {
        const deal = one(a, records);
        if (!deal) return;
        const { body } = await as(deal.owner).get(`${at(deal)}/shares`);
        for (const { shareId } of body.records ?? []) await as(deal.owner).delete(`${at(deal)}/shares/${shareId}`);
      },
      remove: async (a) => {
        const deal = one(a, records);
        if (!deal || deal.saw) return;
        const saw = new Set<Person>();
        for (const person of PEOPLE) if ((await listOf(person)).has(deal.id)) saw.add(person);
        if (!done(await as(deal.owner).delete(at(deal), { etag: await etagOf(at(deal)) }))) return;
        deal.saw = saw;
        deal.changes.push({ type: 'deleted', fields: {} });
      },
      restore: async (a) => {
        const deal = one(a, records);
        if (!deal?.saw || !done(await as(deal.owner).post(`${at(deal)}/restore`))) return;
        deal.saw = null;
        deal.changes.push({ type: 'restored', fields: {} });
      },
      rights: async (a) => {
        // Who saw deals that are deleted then is not asked here.
        if (records.some(({ saw }) => saw)) return;
        sueMay = a % 2 === 0;
        await deals.setUser('sue', { permissionSetApiNames: sueMay ? ['Deals'] : [] });
      },
      notify: async (a, _b, person) => {
        const deal = one(a, records);
        if (!deal || person === 'eve') return;
        const title = `Look ${notices.length}`;
        const record = { objectApiName: 'Deal__c', id: deal.id };
        const notice = { type: 'Look', recipients: [deals.ids[person]], data: { title }, record };
        const sent = done(await deals.as.ada.post('/notifications', notice));
        assert.equal(sent, deal.saw === null, 'administrators read every deal that is there');
        if (sent) notices.push({ to: person, type: 'Look', title, deal });
      },
      meet: async (a, b, person) => {
        const deal = one(a, records);
        const guest = one(b, COLLEAGUES)!;
        if (!deal) return;
        const from = FIRST_HOUR + 2 * HOUR * meetings.length;
        const time = (instant: number) => ({ dateTime: new Date(instant).toISOString().slice(0, 19), timezone: 'UTC' });
        const isPrivate = b % 3 === 0;
        const made = await as(person).post('/calendar/events', {
          title: `Meeting ${meetings.length}`,
          start: time(from),
          end: time(from + HOUR),
          attendees: guest === person || person === 'eve' ? [] : [{ userId: deals.ids[guest] }],
          visibility: isPrivate ? 'private' : 'default',
          record: { objectApiName: 'Deal__c', id: deal.id },
        });
        assert.equal(done(made), (await listOf(person)).has(deal.id), made.text);
        if (made.status !== 201) return;
        meetings.push({ id: made.body.eventId, people: [...new Set([person, guest])], isPrivate, deal, from });
      },
    };

    /** Events of records as the person gets them. */
    const eventsOf = async (person: Person, payload: 'thin' | 'full'): Promise<readonly Told[]> => {
      const events: Told[] = [];
      for (let cursor = start.get(person) ?? null; cursor !== null; ) {
        const query = new URLSearchParams({ cursor, payload, take: '500', objects: 'Deal__c' });
        const page: Answer = await as(person).get(`/events?${query}`);
        assert.equal(page.status, 200, page.text);
        if (person !== 'ada') assert.doesNotMatch(page.text, /secret/i);
        events.push(...page.body.records);
        cursor = page.body.nextCursor;
      }
      return events;
    };
    const checkEvents = async (person: Person, list: ReadonlySet<string>): Promise<void> => {
      const [thin, full] = [await eventsOf(person, 'thin'), await eventsOf(person, 'full')];
      const known = records.filter(({ id, saw }) => (saw ? saw.has(person) : list.has(id)));
      for (const events of [thin, full]) {
        assert.deepEqual(new Set(events.map(({ data }) => data.id)), new Set(known.map(({ id }) => id)), person);
        for (const { id, changes } of known) {
          const told = events.filter(({ data }) => data.id === id);
          assert.deepEqual(
            told.map(({ type }) => type),
            changes.map(({ type }) => `data.record.${type}`),
          );
          for (const [n, { type, fields }] of changes.entries()) {
            const names = Object.keys(fields).filter((name) => person === 'ada' || READABLE.includes(name));
            const { changedFields, before, after } = told[n]!.data;
            if (type === 'updated') assert.deepEqual(changedFields, names, person);
            if (events === thin) assert.deepEqual([before, after], [null, null]);
            else if (type !== 'deleted') for (const name of names) assert.equal(after?.[name], fields[name]);
          }
        }
      }
    };

    const notificationsOf = async (person: Person) => {
      const items: Answer['body'][] = [];
      for (let next: string | null = ''; next !== null; ) {
        const page: Answer = await as(person).get(`/notifications?status=all&take=200${next && `&cursor=${next}`}`);
        items.push(...page.body.records.filter(({ type }: Notice) => TYPES.includes(type)));
        next = page.body.nextCursor;
      }
      return items;
    };
    const checkNotifications = async (person: Person, list: ReadonlySet<string>): Promise<void> => {
      const mine = notices.filter(({ to }) => to === person);
      // Those that follow from a change are made a moment after it.
      await until(async () => (await notificationsOf(person)).length >= mine.length);
      const items = await notificationsOf(person);
      assert.equal(items.length, mine.length, person);
      for (const { record } of items) if (record) assert.ok(list.has(record.id), person);
      for (const { type, title, deal } of mine) {
        const about = items.filter((item) => item.type === type && item.record?.id === deal.id);
        assert.equal(about.length > 0, list.has(deal.id), `${person}: ${type}`);
        if (title !== null) {
          const { record } = items.find((item) => item.title === title);
          assert.deepEqual(
            record,
            list.has(deal.id) ? { objectApiName: 'Deal__c', id: deal.id, name: deal.name } : null,
          );
        }
      }
    };

    type Seen = { readonly eventId: string; readonly title: string | null; readonly record: { id: string } | null };
    const checkCalendars = async (person: Person, list: ReadonlySet<string>): Promise<void> => {
      const isPart = ({ people }: Meeting): boolean => people.includes(person);
      const sees = (meeting: Meeting): boolean => isPart(meeting) || list.has(meeting.deal.id);
      const checkSeen = (events: readonly Seen[], expected: readonly Meeting[]): void => {
        assert.deepEqual(events.map(({ eventId }) => eventId).sort(), expected.map(({ id }) => id).sort(), person);
        for (const { eventId, title, record } of events) {
          const meeting = expected.find(({ id }) => id === eventId)!;
          const isShown = isPart(meeting) || !meeting.isPrivate;
          assert.equal(title !== null, isShown);
          assert.equal(record?.id ?? null, isShown && list.has(meeting.deal.id) ? meeting.deal.id : null, person);
        }
      };
      for (const deal of records) {
        const listed = await as(person).get(`/calendar/events?objectApiName=Deal__c&recordId=${deal.id}&take=200`);
        assert.equal(listed.status, list.has(deal.id) ? 200 : 404, listed.text);
        const expected = meetings.filter((meeting) => meeting.deal === deal);
        if (listed.status === 200) checkSeen(listed.body.records, expected);
      }
      for (const meeting of meetings) {
        const read = await as(person).get(`/calendar/events/${meeting.id}`);
        assert.equal(read.status, sees(meeting) ? 200 : 404, `${person}: ${read.text}`);
        if (read.status === 200) checkSeen([read.body], [meeting]);
      }
      const window = {
        from: new Date(FIRST_HOUR).toISOString(),
        to: new Date(FIRST_HOUR + 30 * 24 * HOUR).toISOString(),
      };
      for (const owner of COLLEAGUES) {
        const query = new URLSearchParams({ calendarId: deals.ids[owner], take: '200', ...window });
        const listed = await as(person).get(`/calendar/events?${query}`);
        const expanded = await as(person).get(`/calendar/events?${query}&expand=true`);
        const expected = meetings.filter((meeting) => meeting.people.includes(owner) && sees(meeting));
        for (const { status, body } of [listed, expanded]) {
          assert.equal(status, person === 'eve' ? 404 : 200);
          if (status === 200) checkSeen(body.records, expected);
        }
      }
      const asked = { userIds: COLLEAGUES.map((name) => deals.ids[name]), ...window, timezone: 'UTC' };
      const free = await as(person).post('/calendar/free-busy', asked);
      if (person === 'eve') assert.equal(free.status, 400);
      else
        assert.deepEqual(
          free.body.users,
          COLLEAGUES.map((name) => ({
            userId: deals.ids[name],
            busy: meetings
              .filter(({ people }) => people.includes(name))
              .map(({ from }) => ({ from: instant(from), to: instant(from + HOUR) })),
          })),
        );
    };
    const instant = (time: number): string => `${new Date(time).toISOString().slice(0, 19)}+00:00`;

    const check = async (): Promise<void> => {
      const made = records.reduce((sum, { changes }) => sum + changes.length, 0);
      await until(async () => (await eventsOf('ada', 'thin')).length >= made);
      for (const person of PEOPLE) {
        const list = await listOf(person);
        if (person === 'ada') assert.equal(list.size, records.filter(({ saw }) => !saw).length);
        await checkEvents(person, list);
        await checkNotifications(person, list);
        await checkCalendars(person, list);
      }
    };

    const kinds = ['deal', 'meet', ...Object.keys(steps)];
    const step = fc.record({
      kind: fc.constantFrom(...kinds),
      a: fc.nat(),
      b: fc.nat(),
      person: fc.constantFrom(...PEOPLE, ...SELLERS),
    });
    // Every world has one of each.
    for (const kind of ['deal', 'notify', 'meet']) await steps[kind]!(0, 0, 'ada');
    const world = fc.sample(step, { seed, numRuns: STEPS, unbiased: true });
    for (const [n, { kind, a, b, person }] of world.entries()) {
      await steps[kind]!(a, b, person);
      if (n % 10 === 9) await check();
    }
    await check();
    assert.ok(records.length > 0 && notices.length > 0 && meetings.length > 0);
  });
});

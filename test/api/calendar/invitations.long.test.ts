/** Mails about events to people outside, through a real mail server, read by another program's parser. */
import assert from 'node:assert/strict';
import type { ParsedMail } from 'mailparser';
import nodeIcal, { type VEvent } from 'node-ical';
import { Client } from 'pg';
import type { Api } from '../../support/client.ts';
import { type MailServer, mailServer, recipient } from '../../support/mail.ts';
import { until } from '../../support/until.ts';
import { type Deals, startDeals } from '../data/deals.ts';
import { at, create, meeting, patch, remove, weekly } from './world.ts';

const GUEST = 'guest@partner.example';
const OTHER = 'other@partner.example';

describe('invitations of people outside', function () {
  this.timeout(120_000);
  let server: MailServer;
  let deals: Deals;
  let sam: Api;
  let database: Client;
  before(async () => {
    server = await mailServer();
    const SMTP_URL = `smtp://127.0.0.1:${server.port}?starttls=off`;
    deals = await startDeals({ env: { SMTP_URL, MAIL_FROM: 'ERP <no-reply@erp.example>' } });
    ({ sam } = deals.as);
    database = new Client({ connectionString: deals.platform.database.url, application_name: 'invitations' });
    await database.connect();
  });
  after(async () => {
    await database?.end();
    await deals?.platform.stop();
    await server?.close();
  });

  interface Told {
    readonly mail: ParsedMail;
    readonly method: string;
    readonly ics: string;
    readonly event: VEvent;
  }

  const ofCalendar = (mail: ParsedMail) =>
    mail.attachments.find(({ contentType }) => contentType === 'text/calendar') ?? assert.fail(`${mail.subject}`);

  /** The next mail to the address, as calendar programs read it. */
  async function next(to = GUEST): Promise<Told> {
    const mail = await server.mails.next({ to });
    const ics = ofCalendar(mail).content.toString();
    for (const line of ics.split('\r\n')) assert.ok(Buffer.byteLength(line) <= 75, line);
    const read = nodeIcal.sync.parseICS(ics);
    const event = Object.values(read).find((one): one is VEvent => one?.type === 'VEVENT');
    assert.ok(event, ics);
    const [, method = ''] = /\r\nMETHOD:(\w+)\r\n/.exec(ics) ?? [];
    return { mail, method, ics, event };
  }
  const waiting = async (): Promise<number> => {
    const { rows } = await database.query(
      `SELECT count(*)::int AS count FROM auth.mails WHERE kind = 'calendarEvent' AND ended_at IS NULL`,
    );
    return rows[0].count;
  };
  /** Resolves when all that was queued is sent; the number of mails about events so far. */
  async function mails(): Promise<number> {
    await until(async () => (await waiting()) === 0);
    return (await server.mails.all({ subject: /^(Invitation|Changed|Canceled): / })).length;
  }
  const guests = (...emails: string[]) => ({ attendees: emails.map((email) => ({ email })) });

  it('are mails that calendar programs take, with the organizer as whom to answer', async () => {
    const title = 'Kick-off; <b>bold</b>, Ünïcode 漢字';
    const attendees = [{ userId: deals.ids.mia }, { email: GUEST, optional: true }];
    const { eventId } = await create(
      sam,
      meeting('2026-12-07', { title, description: 'Line\nBEGIN:VEVENT\n$& and more', location: 'Room 2', attendees }),
    );
    const { mail, method, ics, event } = await next();
    assert.equal(mail.subject, `Invitation: ${title}`);
    assert.deepEqual(
      [mail.from?.value[0]?.address, mail.replyTo?.value[0]?.address, mail.headers.get('auto-submitted')],
      ['no-reply@erp.example', 'sam@demo.example', 'auto-generated'],
    );
    assert.match(server.raw.at(-1) ?? '', /Content-Type: text\/calendar; charset=utf-8; method=REQUEST/);
    assert.match(
      mail.text ?? '',
      /invites you\.[\s\S]*When: Monday, 7 December 2026, 09:00–\d\d:\d\d \(Europe\/Berlin\)[\s\S]*Where: Room 2/,
    );
    assert.ok(String(mail.html).includes('Kick-off; &lt;b&gt;bold&lt;/b&gt;'));
    assert.ok(!(mail.text ?? '').includes('account'), mail.text);
    assert.deepEqual(
      [method, event.uid, event.summary, event.start.toISOString()],
      ['REQUEST', `${eventId}@erp`, title, '2026-12-07T08:00:00.000Z'],
    );
    assert.equal(event.description, 'Line\nBEGIN:VEVENT\n$& and more');
    assert.match(ics, /\r\nORGANIZER;CN="[^"]+":mailto:sam@demo\.example\r\n/);
    assert.deepEqual(ics.replaceAll('\r\n ', '').match(/ATTENDEE.*/g), [
      `ATTENDEE;ROLE=OPT-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:${GUEST}`,
    ]);
    const ofMia = await server.mails.all({ to: 'mia@demo.example', subject: /^Invitation: / });
    assert.equal(ofMia.length, 0, 'users have it in their calendar');
  });

  it('follow changes that matter, with a sequence that rises, and cancellations', async () => {
    const { eventId } = await create(sam, meeting('2026-12-08', { title: 'Review', ...guests(GUEST) }));
    assert.match((await next()).ics, /SEQUENCE:0\r\n/);
    const before = await mails();
    await patch(sam, eventId, { reminders: [{ minutesBefore: 5, channel: 'inApp' }], busy: false });
    assert.equal(await mails(), before, 'what is the business of the organizer alone');
    await patch(sam, eventId, { start: at('2026-12-08T11:00:00'), end: at('2026-12-08T12:00:00') });
    const moved = await next();
    assert.deepEqual(
      [moved.mail.subject, moved.method, moved.event.start.toISOString()],
      ['Changed: Review', 'REQUEST', '2026-12-08T10:00:00.000Z'],
    );
    assert.match(moved.ics, /SEQUENCE:1\r\n/);
    await patch(sam, eventId, guests(GUEST, OTHER));
    assert.equal((await next(OTHER)).mail.subject, 'Invitation: Review');
    await patch(sam, eventId, guests(OTHER));
    const out = await next();
    assert.deepEqual([out.mail.subject, out.method, out.event.status], ['Canceled: Review', 'CANCEL', 'CANCELLED']);
    await patch(sam, eventId, { status: 'canceled' });
    const canceled = await next(OTHER);
    assert.match(canceled.ics, /METHOD:CANCEL[\s\S]*SEQUENCE:2\r\n/);
    await patch(sam, eventId, { status: 'confirmed' });
    assert.match((await next(OTHER)).ics, /METHOD:REQUEST[\s\S]*SEQUENCE:3\r\n/);
    await remove(sam, eventId);
    assert.match((await next(OTHER)).ics, /METHOD:CANCEL[\s\S]*SEQUENCE:4\r\n/);
    assert.equal(await mails(), before + 6);
  });

  it('tell series, their instances, and the part that is changed from one on', async () => {
    const before = await mails();
    const { eventId } = await create(sam, meeting('2026-12-07', { title: 'Weekly', ...weekly, ...guests(GUEST) }));
    const invited = await next();
    assert.ok(invited.event.rrule);
    assert.match(invited.mail.text ?? '', /Repeats: every week on Monday\n/);
    await patch(sam, `${eventId}_20261214T090000`, { title: 'Elsewhere', location: 'Room 9' });
    const one = await next();
    assert.match(one.ics, /RECURRENCE-ID;TZID=Europe\/Berlin:20261214T090000\r\n/);
    assert.deepEqual(
      [one.mail.subject, one.event.location, one.event.rrule],
      ['Changed: Elsewhere', 'Room 9', undefined],
    );
    await remove(sam, `${eventId}_20261221T090000`);
    const left = await next();
    assert.match(left.ics, /METHOD:CANCEL[\s\S]*RECURRENCE-ID;TZID=Europe\/Berlin:20261221T090000\r\n/);
    await patch(sam, `${eventId}_20270104T090000`, { title: 'From then on' }, 'following');
    const [ended, begun] = [await next(), await next()];
    assert.deepEqual([ended.mail.subject, begun.mail.subject], ['Changed: Weekly', 'Invitation: From then on']);
    assert.match(ended.ics, /RRULE:[^\r]*UNTIL=/);
    assert.match(ended.mail.text ?? '', /Repeats: every week on Monday until 28 December 2026, with exceptions\n/);
    assert.ok(!(one.mail.text ?? '').includes('Repeats'), one.mail.text);
    assert.equal(await mails(), before + 5);
  });

  it('tell those who are no longer invited nothing of what the event is from then on', async () => {
    const { eventId } = await create(sam, meeting('2026-12-08', { title: 'Open', ...guests(GUEST) }));
    await next();
    const times = { start: at('2026-12-09T15:00:00'), end: at('2026-12-09T16:00:00') };
    await patch(sam, eventId, { title: 'Secret', description: 'Secret', location: 'Secret', ...times, ...guests() });
    const gone = await next();
    assert.deepEqual(
      [gone.mail.subject, gone.method, gone.event.summary, gone.event.start.toISOString()],
      ['Canceled: Open', 'CANCEL', 'Open', '2026-12-08T08:00:00.000Z'],
    );
    assert.ok(!/secret/i.test(`${gone.mail.text}${gone.ics}`), gone.ics);
    assert.match(gone.ics, /SEQUENCE:1\r\n/);
  });

  it('cancel an instance once, and tell no change that is none', async () => {
    const before = await mails();
    const { eventId } = await create(sam, meeting('2026-12-07', { title: 'Once', ...weekly, ...guests(GUEST) }));
    const id = `${eventId}_20261214T090000`;
    await patch(sam, id, { status: 'canceled' });
    await patch(sam, id, { description: 'More' });
    await remove(sam, id);
    const { body } = await sam.get(`/calendar/events/${eventId}`);
    await patch(sam, eventId, { title: 'Once', recurrence: body.recurrence, start: body.start, end: body.end });
    assert.deepEqual([(await next()).method, (await next()).method], ['REQUEST', 'CANCEL']);
    assert.equal(await mails(), before + 2);
  });

  it('arrive in the order of the changes', async () => {
    const subjects: string[] = [];
    const { eventId } = await create(sam, meeting('2026-12-09', { title: 'In order', ...guests(GUEST) }));
    await patch(sam, eventId, { location: 'Room 3' });
    await patch(sam, eventId, { location: 'Room 4' });
    await remove(sam, eventId);
    for (let n = 0; n < 4; n++) subjects.push((await next()).mail.subject ?? '');
    assert.deepEqual(subjects, [
      'Invitation: In order',
      'Changed: In order',
      'Changed: In order',
      'Canceled: In order',
    ]);
  });

  it('are not sent for what is over, for events of users alone, or for a change that is refused', async () => {
    const before = await mails();
    await create(sam, meeting('2020-01-06', { title: 'Long ago', ...guests(GUEST) }));
    await create(sam, meeting('2026-12-09', { title: 'Among us', attendees: [{ userId: deals.ids.mia }] }));
    const refused = await sam.post(
      '/calendar/events',
      meeting('2026-12-09', { ...weekly, recurrence: ['RRULE:x'], ...guests(GUEST) }),
    );
    assert.equal(refused.status, 422, refused.text);
    assert.equal(await mails(), before);
  });

  it('are limited by address, user and tenant, and the change counts nevertheless', async () => {
    const fill = (count: number) =>
      database.query(
        `INSERT INTO auth.mails (tenant_id, user_id, kind, address_hash, give_up_at, ended_at, outcome)
         SELECT tenant_id, user_id, 'calendarEvent', sha256(i::text::bytea), now(), now(), 'sent'
         FROM auth.credentials, generate_series(1, $2::int) i WHERE user_id = $1`,
        [deals.ids.sam, count],
      );
    await fill(200);
    const before = await mails();
    const { eventId } = await create(
      sam,
      meeting('2026-12-10', { title: 'Too many', ...guests('new@partner.example') }),
    );
    assert.equal(await mails(), before);
    const [entry] = (await deals.as.ada.get(`/events/audit?recordId=${eventId}&take=1`)).body.records;
    assert.ok(JSON.stringify(entry.changes).includes('tooManyMails'), JSON.stringify(entry));
    await remove(sam, eventId);
    assert.equal(await mails(), before, 'who was not invited hears of no cancellation');
    await create(deals.as.mia, meeting('2026-12-10', { title: 'Of another user', ...guests('new@partner.example') }));
    assert.equal((await next('new@partner.example')).method, 'REQUEST');
  });

  it('come with the next change where a limit had kept them back, and cancellations only to those who have one', async () => {
    const late = 'late@partner.example';
    const { mia } = deals.as;
    const limit = (count: number) =>
      database.query(
        `INSERT INTO auth.mails (tenant_id, user_id, kind, address_hash, give_up_at, ended_at, outcome)
         SELECT tenant_id, user_id, 'calendarEvent', sha256($2::text::bytea), now(), now(), 'sent'
         FROM auth.credentials, generate_series(1, $3::int) WHERE user_id = $1`,
        [deals.ids.mia, late, count],
      );
    const before = await mails();
    await limit(20);
    const { eventId } = await create(mia, meeting('2026-12-12', { title: 'Late', ...guests(OTHER, late) }));
    assert.equal((await next(OTHER)).method, 'REQUEST');
    await patch(mia, eventId, { location: 'Room 7' });
    assert.equal((await next(OTHER)).mail.subject, 'Changed: Late');
    await patch(mia, eventId, guests(OTHER));
    await patch(mia, eventId, guests(OTHER, late));
    assert.equal(await mails(), before + 2, 'neither invited nor canceled');
    await database.query(`DELETE FROM auth.mails WHERE address_hash = sha256($1::text::bytea)`, [late]);
    await patch(mia, eventId, { busy: false });
    assert.equal(await mails(), before + 2, 'what is the business of the organizer alone');
    await patch(mia, eventId, { location: 'Room 8' });
    assert.equal((await next(OTHER)).mail.subject, 'Changed: Late');
    assert.equal((await next(late)).mail.subject, 'Invitation: Late');
    await patch(mia, eventId, { location: 'Room 9' });
    assert.equal((await next(OTHER)).mail.subject, 'Changed: Late');
    assert.equal((await next(late)).mail.subject, 'Changed: Late');
    await remove(mia, eventId);
    assert.deepEqual([(await next(OTHER)).method, (await next(late)).method], ['CANCEL', 'CANCEL']);
    assert.equal(await mails(), before + 8);
  });

  it('go to no address twice for one change, however many are invited', async () => {
    const many = Array.from({ length: 20 }, (_, n) => `guest${n}@many.example`);
    const before = await mails();
    const began = performance.now();
    const created = await deals.as.mia.post(
      '/calendar/events',
      meeting('2026-12-11', { title: 'Many', ...guests(...many) }),
    );
    assert.equal(created.status, 201, created.text);
    assert.ok(performance.now() - began < 5_000);
    assert.equal(await mails(), before + many.length);
    const to = (await server.mails.all({ subject: /^Invitation: Many$/ })).map(recipient);
    assert.deepEqual(to.sort(), many.sort());
  });
});

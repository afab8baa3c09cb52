/** The calendar as a file, read by another program's parser. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import nodeIcal, { type VEvent } from 'node-ical';
import { Client } from 'pg';
import { LIMITS } from '../../../lib/limits.ts';
import type { Api } from '../../support/client.ts';
import { type Deals, startDeals } from '../data/deals.ts';
import { at, create, meeting, patch, refused, remove, weekly } from './world.ts';

describe('calendars as files', function () {
  this.timeout(120_000);
  let deals: Deals;
  let sam: Api;
  let mine: string;
  before(async () => {
    deals = await startDeals();
    ({ sam } = deals.as);
    mine = `/calendar/calendars/${deals.ids.sam}`;
  });
  after(() => deals?.platform.stop());

  const eventsIn = (text: string): Map<string, VEvent> =>
    new Map(
      Object.values(nodeIcal.sync.parseICS(text)).flatMap((one) =>
        one?.type === 'VEVENT' ? [[String(one.summary), one] as const] : [],
      ),
    );

  it('have series with exceptions, whole days, and texts with any characters', async () => {
    const long = `Ünïcode; commas, back\\slash\nand ${'a long line '.repeat(20)}`;
    const series = await create(sam, meeting('2026-12-07', { ...weekly, title: 'Series', description: long }));
    await patch(sam, `${series.eventId}_20261214T090000`, {
      title: 'Moved',
      start: at('2026-12-15T15:00:00'),
      end: at('2026-12-15T16:00:00'),
    });
    await remove(sam, `${series.eventId}_20261221T090000`);
    await create(sam, {
      title: 'Days',
      start: { date: '2026-12-24' },
      end: { date: '2026-12-27' },
      visibility: 'private',
      busy: false,
    });
    await create(sam, meeting('2026-12-08', { title: 'With others', attendees: [{ email: 'guest@partner.example' }] }));
    await create(sam, meeting('2040-07-02', { title: 'Far' }));
    const reply = await sam.get(`${mine}/export.ics`);
    assert.deepEqual(
      [reply.status, reply.headers.get('content-type')],
      [200, 'text/calendar; charset=utf-8'],
      reply.text,
    );
    for (const line of reply.text.split('\r\n')) assert.ok(Buffer.byteLength(line) <= 75, line);
    assert.ok(
      reply.text.includes('BEGIN:VTIMEZONE\r\nTZID:Europe/Berlin\r\n') && !reply.text.includes('guest@partner'),
    );
    assert.match(reply.text, /BEGIN:DAYLIGHT\r\n(?:(?!END)[^\r]*\r\n)*RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\r\n/);
    const events = eventsIn(reply.text);
    assert.equal(events.get('Far')?.start.toISOString(), '2040-07-02T07:00:00.000Z');
    const found = events.get('Series');
    assert.ok(found);
    assert.equal(found.description, long);
    assert.equal(found.start.toISOString(), '2026-12-07T08:00:00.000Z');
    assert.equal(found.end?.toISOString(), '2026-12-07T09:00:00.000Z');
    const [moved] = Object.values(found.recurrences ?? {});
    assert.deepEqual(
      [moved?.summary, new Date(String(moved?.start)).toISOString()],
      ['Moved', '2026-12-15T14:00:00.000Z'],
    );
    const rule = found.rrule?.between(new Date('2026-12-01'), new Date('2027-01-01'), true) ?? [];
    assert.deepEqual(
      rule.map((time) => time.toISOString().slice(0, 10)),
      ['2026-12-07', '2026-12-14', '2026-12-21', '2026-12-28'],
    );
    assert.ok(found.exdate && JSON.stringify(found.exdate).includes('2026-12-21'));
    const days = events.get('Days');
    assert.deepEqual([days?.datetype, days?.class, days?.transparency], ['date', 'PRIVATE', 'TRANSPARENT']);
    refused(await deals.as.mia.get(`${mine}/export.ics`), 404, 'CALENDAR_NOT_FOUND');
    refused(await sam.get(`/calendar/calendars/${randomUUID()}/export.ics`), 404, 'CALENDAR_NOT_FOUND');
  });

  it('have what its user sees in full: as organizer and when invited, not what stands on a record', async () => {
    const { mia } = deals.as;
    const record = { objectApiName: 'Deal__c', id: (await deals.deal(sam)).body.id };
    const attendees = [{ userId: deals.ids.mia }];
    await create(sam, meeting('2026-12-09', { title: 'Private, invited', visibility: 'private', attendees, record }));
    await create(sam, meeting('2026-12-09', { title: 'Of others', record }));
    const text = (await mia.get(`/calendar/calendars/${deals.ids.mia}/export.ics`)).text;
    const events = eventsIn(text);
    assert.deepEqual([...events.keys()], ['Private, invited']);
    assert.equal(events.get('Private, invited')?.class, 'PRIVATE');
    assert.ok(!text.includes(record.id));
  });

  it('keep each text in its line', async () => {
    const ends = ['\r\n', '\n', '\r', '\u0085', '\u2028', '\u2029'];
    const description = ends.map((end) => `end${end}BEGIN:VALARM${end}ATTENDEE:mailto:guest@partner.example`).join('');
    await create(sam, meeting('2026-12-10', { title: 'Lines', description, location: description }));
    const { text } = await sam.get(`${mine}/export.ics`);
    assert.equal(eventsIn(text).get('Lines')?.description, description.replaceAll(/\r\n?|[\u0085\u2028\u2029]/g, '\n'));
    for (const line of text.split(/[\r\n\u0085\u2028\u2029]+/)) assert.doesNotMatch(line, /^(BEGIN:VALARM|ATTENDEE)/);
  });

  it('are bounded', async () => {
    const { sue } = deals.as;
    const path = `/calendar/calendars/${deals.ids.sue}/export.ics`;
    const description = '漢'.repeat(LIMITS.calendar_description_max_chars);
    const { eventId } = await create(sue, meeting('2026-12-11', { description }));
    const database = new Client({ connectionString: deals.platform.database.url, application_name: 'export test' });
    await database.connect();
    // Made without the API, which would take longer.
    const copy = (count: number) =>
      database.query(
        `WITH copies AS (
          INSERT INTO calendar.events SELECT (jsonb_populate_record(s, jsonb_build_object('event_id', gen_random_uuid()))).*
            FROM calendar.events s, generate_series(1, ${count}) WHERE event_id = '${eventId}'
            RETURNING tenant_id, event_id, calendar_id, first_at, last_at)
        INSERT INTO calendar.entries (tenant_id, calendar_id, event_id, position, first_at, last_at)
          SELECT tenant_id, calendar_id, event_id, 2, first_at, last_at FROM copies`,
      );
    const size = async (): Promise<number> => Buffer.byteLength((await sue.get(path)).text);
    try {
      const one = await size();
      await copy(1);
      const each = (await size()) - one;
      const more = Math.floor((LIMITS.calendar_export_max_bytes - one) / each);
      await copy(more - 1);
      assert.equal(await size(), one + more * each);
      await copy(1);
      refused(await sue.get(path), 413, 'TOO_MANY_ITEMS');
      await database.query(
        `UPDATE calendar.events SET content = content || '{"description": null}' WHERE calendar_id = '${deals.ids.sue}'`,
      );
      assert.equal((await sue.get(path)).status, 200);
      await copy(LIMITS.calendar_export_events_max);
      await database.query('ANALYZE calendar.events, calendar.entries');
      refused(await sue.get(path), 413, 'TOO_MANY_ITEMS');
    } finally {
      await database.end();
    }
  });
});

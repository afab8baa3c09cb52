/** Calls about calendars as clients make them, for the tests beside this file. */
import assert from 'node:assert/strict';
import type { Answer, Api } from '../../support/client.ts';

const BERLIN = 'Europe/Berlin';

export const refused = (reply: Answer, status: number, code: string, pointers?: readonly string[]): void => {
  assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  if (pointers)
    assert.deepEqual(
      reply.body.errors.map(({ pointer }: { pointer: string }) => pointer),
      pointers,
      reply.text,
    );
};

export const at = (dateTime: string, timezone = BERLIN) => ({ dateTime, timezone });

/** From nine to ten on a day, unless it says otherwise. */
export const meeting = (day: string, more: object = {}) => ({
  title: 'Meeting',
  start: at(`${day}T09:00:00`),
  end: at(`${day}T10:00:00`),
  ...more,
});

export const weekly = { recurrence: ['RRULE:FREQ=WEEKLY;BYDAY=MO'] };

export async function create(who: Api, body: object): Promise<Answer['body'] & { etag: string }> {
  const reply = await who.post('/calendar/events', body);
  assert.equal(reply.status, 201, reply.text);
  return { ...reply.body, etag: reply.headers.get('etag') };
}

export async function patch(who: Api, id: string, body: object, scope?: string): Promise<Answer> {
  const read = await who.get(`/calendar/events/${id}`);
  const query = scope === undefined ? '' : `?scope=${scope}`;
  return who.patch(`/calendar/events/${id}${query}`, body, { etag: read.headers.get('etag') ?? '"0"' });
}

export async function remove(who: Api, id: string, scope?: string): Promise<Answer> {
  const read = await who.get(`/calendar/events/${id}`);
  const query = scope === undefined ? '' : `?scope=${scope}`;
  return who.delete(`/calendar/events/${id}${query}`, { etag: read.headers.get('etag') ?? '"0"' });
}

export const window = (from: string, to: string, more = ''): string =>
  `/calendar/events?expand=true&from=${from}T00:00:00Z&to=${to}T00:00:00Z${more}`;

/** Local starts of the instances with this title in a window. */
export async function starts(who: Api, from: string, to: string, title = 'Meeting', more = ''): Promise<string[]> {
  const reply = await who.get(window(from, to, `&take=200${more}`));
  assert.equal(reply.status, 200, reply.text);
  return reply.body.records
    .filter((one: { title: string }) => one.title === title)
    .map(({ start }: { start: { dateTime?: string; date?: string } }) => start.dateTime ?? start.date);
}

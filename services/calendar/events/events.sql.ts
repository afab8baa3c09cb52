/** Statements about events and the calendars that they stand in. */
import { LIMITS } from '../../../lib/limits.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { EventRow, Override } from './event.ts';

const COLUMNS = `ev.event_id AS "eventId", ev.calendar_id AS "calendarId", ev.version, ev.sequence, ev.start_local AS "startLocal",
  ev.start_timezone AS "startTimezone", ev.end_local AS "endLocal", ev.end_timezone AS "endTimezone", ev.recurrence, ev.content,
  ev.attendees, ev.object_api_name AS "objectApiName", ev.record_id AS "recordId", ev.created_at AS "createdAt",
  ev.updated_at AS "updatedAt"`;

/** For files, which have no people. */
export const WITHOUT_ATTENDEES = COLUMNS.replace('ev.attendees', `'[]'::jsonb AS attendees`);

const OVERRIDE = `jsonb_build_object('originalStart', o.original_start, 'patch', o.patch, 'responses', o.responses)`;

export const eventSql = (tenantId: string, eventId: string, lock = false): Statement => {
  const sql = new Sql();
  return sql.statement(`SELECT ${COLUMNS} FROM calendar.events ev
    WHERE ev.tenant_id = ${sql.bind(tenantId, 'uuid')} AND ev.event_id = ${sql.bind(eventId, 'uuid')}${lock ? ' FOR UPDATE' : ''}`);
};

/** Instances that differ from their series: all of one, or one of them. */
export function overridesSql(tenantId: string, eventId: string, original: string | null = null): Statement {
  const sql = new Sql();
  const one = original === null ? '' : ` AND o.original_start = ${sql.bind(original, 'text')}`;
  return sql.statement(`SELECT o.original_start AS "originalStart", o.patch, o.responses FROM calendar.overrides o
    WHERE o.tenant_id = ${sql.bind(tenantId, 'uuid')} AND o.event_id = ${sql.bind(eventId, 'uuid')}${one}
    ORDER BY o.original_start`);
}

/** Whose events: those in a calendar, or those on a record. `mine`: only those that are also in this one, or on a record. */
export type Listed =
  | { readonly calendarId: string; readonly mine: string | null }
  | { readonly objectApiName: string; readonly recordId: string };

export type ListedRow = EventRow & { readonly position: number; readonly override: Override | null };

interface ListQuery {
  readonly of: Listed;
  /** Position, event and original start of the last one. */
  readonly after: readonly [string, string, string];
  /** Also those that are gone. */
  readonly removed: boolean;
  readonly from: string | null;
  readonly to: string | null;
  readonly take: number;
}

/** Series with the instances that differ from them, each as a row, in the order of their last change. */
export function listSql(tenantId: string, { of, after, removed, from, to, take }: ListQuery): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const source = sourceOf(sql, tenant, of);
  const [position, eventId, original] = after;
  const during = duringOf(sql, source.times, from, to);
  const gone = removed
    ? ` UNION ALL SELECT e.position, e.event_id, NULL, true FROM ${source.tables} WHERE ${source.where} AND e.removed_at IS NOT NULL`
    : '';
  return sql.statement(`WITH found AS (
      SELECT ${source.position} AS position, ${source.event} AS event_id, NULL::text AS original, false AS gone FROM ${source.tables}
      WHERE ${source.where}${source.there}${during}${gone}),
    listed AS (
      SELECT * FROM found
      UNION ALL SELECT f.position, f.event_id, o.original_start, false FROM found f
        JOIN calendar.overrides o ON o.tenant_id = ${tenant} AND o.event_id = f.event_id AND NOT f.gone)
    SELECT l.position, l.event_id AS "eventId", ${COLUMNS.slice(COLUMNS.indexOf(',') + 1)},
      CASE WHEN l.original IS NOT NULL THEN (SELECT ${OVERRIDE} FROM calendar.overrides o
        WHERE o.tenant_id = ${tenant} AND o.event_id = l.event_id AND o.original_start = l.original) END AS override
    FROM listed l LEFT JOIN calendar.events ev ON ev.tenant_id = ${tenant} AND ev.event_id = l.event_id AND NOT l.gone
    WHERE (l.position, l.event_id, coalesce(l.original, '')) >
      (${sql.bind(position, 'bigint')}, ${sql.bind(eventId, 'uuid')}, ${sql.bind(original, 'text')})
    ORDER BY l.position, l.event_id, coalesce(l.original, '') LIMIT ${sql.bind(take, 'int')}`);
}

/** Of an instance that differs, besides what differs. */
const OVERRIDE_BYTES = 200;

export type ExpandedRow = EventRow & {
  readonly overrides: readonly Override[];
  readonly inCalendars: readonly string[];
};

/** Events that may have instances in the window, with those that differ in it; one more than can be shown at most. */
export function windowSql(
  tenantId: string,
  of: Listed | { readonly users: readonly string[] },
  from: string,
  to: string,
  take: number,
  columns = COLUMNS,
): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const source = 'users' in of ? usersSource(sql, tenant, of.users) : sourceOf(sql, tenant, of);
  const during = duringOf(sql, source.times, from, to);
  const margin = `interval '${LIMITS.calendar_event_days_max + 1} days'`;
  const begins = (local: string): string =>
    `${local}::timestamp BETWEEN ${sql.bind(from, 'timestamptz')}::timestamp - ${margin} AND ${sql.bind(to, 'timestamptz')}::timestamp + ${margin}`;
  return sql.statement(`WITH found AS (
      SELECT ${source.event} AS event_id, array_agg(DISTINCT ${source.calendar}) AS calendars FROM ${source.tables}
      WHERE ${source.where}${source.there}${during} GROUP BY 1 LIMIT ${sql.bind(take, 'int')})
    SELECT ${columns}, f.calendars AS "inCalendars", (SELECT coalesce(json_agg(${OVERRIDE}), '[]') FROM calendar.overrides o
        WHERE o.tenant_id = ${tenant} AND o.event_id = ev.event_id
          AND (${begins('o.start_local')} OR ${begins('o.original_start')})) AS overrides
    FROM found f JOIN calendar.events ev ON ev.tenant_id = ${tenant} AND ev.event_id = f.event_id`);
}

/** The events of a calendar that have not ended before `from`, `take` at most: their number, and bytes of JSON with those of instances. */
export function sizeSql(tenantId: string, calendarId: string, from: string, take: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const source = sourceOf(sql, tenant, { calendarId, mine: null });
  return sql.statement(`WITH found AS (SELECT e.event_id FROM ${source.tables}
      WHERE ${source.where}${source.there}${duringOf(sql, source.times, from, null)} LIMIT ${sql.bind(take, 'int')})
    SELECT count(*)::int AS events, coalesce(sum(octet_length(ev.content::text) + coalesce(octet_length(ev.recurrence::text), 0)
      + (SELECT coalesce(sum(octet_length(o.patch::text) + ${OVERRIDE_BYTES}), 0) FROM calendar.overrides o
        WHERE o.tenant_id = ${tenant} AND o.event_id = f.event_id)), 0)::float8 AS bytes
    FROM found f JOIN calendar.events ev ON ev.tenant_id = ${tenant} AND ev.event_id = f.event_id`);
}

interface Source {
  readonly tables: string;
  readonly where: string;
  /** Of entries: they were not removed. */
  readonly there: string;
  readonly position: string;
  readonly event: string;
  readonly calendar: string;
  /** Alias of the table whose span is compared. */
  readonly times: string;
}

const OF_ENTRIES = {
  there: ' AND e.removed_at IS NULL',
  position: 'e.position',
  event: 'e.event_id',
  calendar: 'e.calendar_id',
  times: 'e',
} as const;

const usersSource = (sql: Sql, tenant: string, users: readonly string[]): Source => ({
  ...OF_ENTRIES,
  tables: 'calendar.entries e',
  where: `e.tenant_id = ${tenant} AND e.calendar_id = ANY (${sql.bind(users, 'uuid[]')})`,
});

function sourceOf(sql: Sql, tenant: string, of: Listed): Source {
  if ('recordId' in of)
    return {
      tables: 'calendar.events e',
      where: `e.tenant_id = ${tenant} AND e.record_id = ${sql.bind(of.recordId, 'uuid')}
        AND e.object_api_name = ${sql.bind(of.objectApiName, 'text')}`,
      there: '',
      position: '0::bigint',
      event: 'e.event_id',
      calendar: 'e.calendar_id',
      times: 'e',
    };
  const ofCalendar = `e.tenant_id = ${tenant} AND e.calendar_id = ${sql.bind(of.calendarId, 'uuid')}`;
  if (of.mine === null) return { ...OF_ENTRIES, tables: 'calendar.entries e', where: ofCalendar };
  return {
    ...OF_ENTRIES,
    // The position in another calendar says how often it changes.
    position: '0::bigint',
    tables: `calendar.entries e JOIN calendar.events shown ON shown.tenant_id = e.tenant_id AND shown.event_id = e.event_id`,
    where: `${ofCalendar} AND (shown.record_id IS NOT NULL OR EXISTS (SELECT FROM calendar.entries own WHERE own.tenant_id = ${tenant}
      AND own.calendar_id = ${sql.bind(of.mine, 'uuid')} AND own.event_id = e.event_id AND own.removed_at IS NULL))`,
  };
}

const duringOf = (sql: Sql, alias: string, from: string | null, to: string | null): string =>
  `${from === null ? '' : ` AND ${alias}.last_at > ${sql.bind(from, 'timestamptz')}`}${
    to === null ? '' : ` AND ${alias}.first_at < ${sql.bind(to, 'timestamptz')}`
  }`;

/** Stores an event, new or changed. */
export function storeEventSql(tenantId: string, event: EventRow, span: { firstAt: string; lastAt: string }): Statement {
  const sql = new Sql();
  const { bind } = sql;
  const json = (value: unknown): string => bind(value === null ? null : JSON.stringify(value), 'jsonb');
  return sql.statement(`INSERT INTO calendar.events AS ev (tenant_id, event_id, calendar_id, version, sequence, start_local,
      start_timezone, end_local, end_timezone, recurrence, content, attendees, object_api_name, record_id, first_at, last_at)
    VALUES (${bind(tenantId, 'uuid')}, ${bind(event.eventId, 'uuid')}, ${bind(event.calendarId, 'uuid')}, ${bind(event.version, 'int')},
      ${bind(event.sequence, 'int')}, ${bind(event.startLocal, 'text')}, ${bind(event.startTimezone, 'text')},
      ${bind(event.endLocal, 'text')}, ${bind(event.endTimezone, 'text')}, ${json(event.recurrence)}, ${json(event.content)},
      ${json(event.attendees)}, ${bind(event.objectApiName, 'text')}, ${bind(event.recordId, 'uuid')},
      ${bind(span.firstAt, 'timestamptz')}, ${bind(span.lastAt, 'timestamptz')})
    ON CONFLICT (tenant_id, event_id) DO UPDATE SET version = excluded.version, sequence = excluded.sequence,
      start_local = excluded.start_local, start_timezone = excluded.start_timezone, end_local = excluded.end_local,
      end_timezone = excluded.end_timezone, recurrence = excluded.recurrence, content = excluded.content,
      attendees = excluded.attendees, object_api_name = excluded.object_api_name, record_id = excluded.record_id,
      first_at = excluded.first_at, last_at = excluded.last_at, updated_at = now()
    RETURNING ${COLUMNS}`);
}

/** Stores the attendees of an event again in the transaction that has changed it: its version stays. */
export function storeAttendeesSql(
  tenantId: string,
  { eventId, attendees }: Pick<EventRow, 'eventId' | 'attendees'>,
): Statement {
  const sql = new Sql();
  return sql.statement(`UPDATE calendar.events ev SET attendees = ${sql.bind(JSON.stringify(attendees), 'jsonb')}
    WHERE ev.tenant_id = ${sql.bind(tenantId, 'uuid')} AND ev.event_id = ${sql.bind(eventId, 'uuid')}`);
}

export function storeOverrideSql(
  tenantId: string,
  eventId: string,
  { originalStart, patch, responses }: Override,
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`INSERT INTO calendar.overrides (tenant_id, event_id, original_start, patch, responses, start_local)
    VALUES (${bind(tenantId, 'uuid')}, ${bind(eventId, 'uuid')}, ${bind(originalStart, 'text')}, ${bind(JSON.stringify(patch), 'jsonb')},
      ${bind(JSON.stringify(responses), 'jsonb')}, ${bind(patch.startLocal ?? originalStart, 'text')})
    ON CONFLICT (tenant_id, event_id, original_start) DO UPDATE
      SET patch = excluded.patch, responses = excluded.responses, start_local = excluded.start_local`);
}

export function deleteOverridesSql(tenantId: string, eventId: string, originals: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM calendar.overrides o WHERE o.tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND o.event_id = ${sql.bind(eventId, 'uuid')} AND o.original_start = ANY (${sql.bind(originals, 'text[]')})`);
}

export function deleteEventSql(tenantId: string, eventId: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM calendar.events ev
    WHERE ev.tenant_id = ${sql.bind(tenantId, 'uuid')} AND ev.event_id = ${sql.bind(eventId, 'uuid')}`);
}

/** The calendars in which an event stands. */
export function calendarsOfSql(tenantId: string, eventId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT e.calendar_id AS "calendarId" FROM calendar.entries e WHERE e.tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND e.event_id = ${sql.bind(eventId, 'uuid')} AND e.removed_at IS NULL`);
}

interface Entered {
  readonly eventId: string;
  /** Where it stands, and where it stands no longer. */
  readonly calendars: readonly string[];
  readonly removed: readonly string[];
  readonly span: { readonly firstAt: string; readonly lastAt: string };
}

/** Gives the event the next position in each of the calendars, which are locked in the order of their ids. */
export function enterSql(tenantId: string, { eventId, calendars, removed, span }: Entered): Statement {
  const sql = new Sql();
  const { bind } = sql;
  const tenant = bind(tenantId, 'uuid');
  const gone = bind(removed, 'uuid[]');
  return sql.statement(`WITH taken AS (
      INSERT INTO calendar.calendars AS c (tenant_id, calendar_id, position)
        SELECT ${tenant}, id, 1 FROM unnest(${bind(calendars, 'uuid[]')} || ${gone}) id ORDER BY id
      ON CONFLICT (tenant_id, calendar_id) DO UPDATE SET position = c.position + 1 RETURNING c.calendar_id, c.position)
    INSERT INTO calendar.entries (tenant_id, calendar_id, event_id, position, removed_at, first_at, last_at)
      SELECT ${tenant}, calendar_id, ${bind(eventId, 'uuid')}, position, CASE WHEN calendar_id = ANY (${gone}) THEN now() END,
        ${bind(span.firstAt, 'timestamptz')}, ${bind(span.lastAt, 'timestamptz')} FROM taken
    ON CONFLICT (tenant_id, calendar_id, event_id) DO UPDATE SET position = excluded.position,
      removed_at = excluded.removed_at, first_at = excluded.first_at, last_at = excluded.last_at`);
}

/** Counts an event that a user organizes, or no longer does: so many they have, and so many the tenant. */
export function countSql(tenantId: string, calendarId: string, by: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(`WITH counted AS (
      UPDATE calendar.calendars SET events = events + ${sql.bind(by, 'int')}
      WHERE tenant_id = ${tenant} AND calendar_id = ${sql.bind(calendarId, 'uuid')} RETURNING events)
    SELECT (SELECT events FROM counted) AS "ofUser",
      (SELECT sum(events)::int FROM calendar.calendars WHERE tenant_id = ${tenant}) AS "ofTenant"`);
}

/** Puts a mail about an event to a person outside into the outbox of auth, unless a limit is reached. */
export function queueMailSql(tenantId: string, organizerId: string, address: string, mail: object): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT auth.queue_calendar_mail(${sql.bind(tenantId, 'uuid')}, ${sql.bind(organizerId, 'uuid')},
    ${sql.bind(address, 'text')}, ${sql.bind(JSON.stringify(mail), 'jsonb')}) AS outcome`);
}

/** Position of the last change of a calendar; no row: there was none. */
export function positionSql(tenantId: string, calendarId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT position FROM calendar.calendars
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND calendar_id = ${sql.bind(calendarId, 'uuid')}`);
}

export function forgetRemovedSql(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM calendar.entries e WHERE e.tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND e.removed_at < now() - interval '${LIMITS.calendar_sync_days + 1} days'`);
}

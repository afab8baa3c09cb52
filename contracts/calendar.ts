/** Public operations of calendar: events with recurrence, answers, and who is busy when. Source: docs/reference/calendar.md. */
import { type Static, Type } from 'typebox';
import { LIMITS } from '../lib/limits.ts';
import { type ActionsOf, defineOperation, defineParameter, nullable } from '../lib/operation.ts';
import { RecordReference } from './data/record.ts';
import { cursor, effectiveTake, KEY_ERRORS, nextCursor, take } from './data/rows.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { CALENDAR_GUIDANCE } from './guidance/calendar.ts';

export interface CalendarActions extends ActionsOf<typeof CALENDAR_OPERATIONS> {
  /**
   * The file of a user's calendar with this name, for who has the link of the user; `body` null when `ifNoneMatch` names
   * it. Throws TOO_MANY_ITEMS.
   */
  'calendar.feeds.read': {
    params: { tenantId: string; userId: string; name: string; ifNoneMatch: string | null };
    result: { etag: string; body: Uint8Array | null };
  };
}

const closed = { additionalProperties: false };
const uuid = Type.String({ format: 'uuid' });
const timestamp = Type.String({ format: 'date-time' });

const RESPONSES = ['needsAction', 'accepted', 'tentative', 'declined'] as const;
export type Response = (typeof RESPONSES)[number];

const DAY = '^\\d{4}-\\d{2}-\\d{2}$';
const LOCAL_TIME = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(?::\\d{2})?$';
const EVENT_ID = '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:_\\d{8}(?:T\\d{6})?)?$';

const Moment = Type.Object(
  {
    dateTime: Type.Optional(
      Type.String({ pattern: LOCAL_TIME, description: 'Local time in `timezone`, such as `2026-11-21T09:30:00`.' }),
    ),
    timezone: Type.Optional(Type.String({ maxLength: 64, description: 'IANA name, such as `Europe/Berlin`.' })),
    date: Type.Optional(Type.String({ pattern: DAY, description: 'Of an event of whole days, instead of both.' })),
  },
  {
    ...closed,
    title: 'CalendarTime',
    description: '`dateTime` with `timezone`, or `date`. The end of whole days is the first day that is free again.',
  },
);
export type Moment = Static<typeof Moment>;

const Reminder = Type.Object(
  {
    minutesBefore: Type.Integer({ minimum: 0, maximum: LIMITS.calendar_reminder_minutes_max }),
    channel: Type.Enum(['email', 'inApp'] as const, { title: 'ReminderChannel' }),
  },
  { ...closed, title: 'CalendarReminder' },
);

const Status = Type.Enum(['confirmed', 'tentative', 'canceled'] as const, { title: 'CalendarEventStatus' });
const Visibility = Type.Enum(['default', 'private'] as const, { title: 'CalendarVisibility' });

const Recurrence = Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.calendar_recurrence_line_max_chars }), {
  minItems: 1,
  maxItems: LIMITS.calendar_recurrence_lines_max,
  description: 'One `RRULE` and any `EXDATE` and `RDATE` (RFC 5545), such as `RRULE:FREQ=WEEKLY;BYDAY=MO`.',
});

const properties = {
  title: Type.String({ minLength: 1, maxLength: LIMITS.calendar_title_max_chars, pattern: '^[^\\0]*$' }),
  description: nullable(Type.String({ maxLength: LIMITS.calendar_description_max_chars, pattern: '^[^\\0]*$' })),
  location: nullable(Type.String({ maxLength: LIMITS.calendar_location_max_chars, pattern: '^[^\\0]*$' })),
  start: Moment,
  end: Moment,
  recurrence: nullable(Recurrence),
  status: Status,
  visibility: Visibility,
  busy: Type.Boolean({ description: 'Default: true. false: the time counts as free.' }),
  attendees: Type.Array(
    Type.Object(
      {
        userId: Type.Optional(uuid),
        email: Type.Optional(Type.String({ minLength: 3, maxLength: 254 })),
        optional: Type.Optional(Type.Boolean({ description: 'Default: false.' })),
      },
      { ...closed, title: 'CalendarAttendeeInput', description: 'A user of the tenant, or an address outside.' },
    ),
    { maxItems: LIMITS.calendar_attendees_max },
  ),
  reminders: Type.Array(Reminder, { maxItems: LIMITS.calendar_reminders_max }),
  record: nullable(RecordReference),
};

const changes = Type.Partial(Type.Object(properties)).properties;
const { title, start, end } = properties;

const CreateBody = Type.Object({ ...changes, title, start, end }, { ...closed, title: 'CalendarEventCreation' });
const ChangeBody = Type.Object(changes, { ...closed, title: 'CalendarEventChange', minProperties: 1 });
export type EventChange = Static<typeof ChangeBody>;

const CalendarEvent = Type.Object(
  {
    eventId: Type.String({
      description: 'Of an instance of a series: the id of the series, `_`, and the original start.',
    }),
    calendarId: uuid,
    iCalUid: Type.String(),
    title: nullable(Type.String({ description: 'null: only the time is shown.' })),
    description: nullable(Type.String()),
    location: nullable(Type.String()),
    start: Moment,
    end: Moment,
    allDay: Type.Boolean(),
    recurrence: nullable(Type.Array(Type.String())),
    recurringEventId: nullable(Type.String({ description: 'Of an instance: the id of its series.' })),
    originalStart: nullable(Moment),
    status: Status,
    visibility: Visibility,
    busy: Type.Boolean(),
    organizerId: uuid,
    attendees: Type.Array(
      Type.Object(
        {
          userId: nullable(uuid),
          email: nullable(Type.String({ description: 'Of attendees outside; that of a user is a field of the user.' })),
          response: Type.Enum([...RESPONSES], { title: 'CalendarResponse' }),
          comment: nullable(Type.String({ description: 'What the user has said with the response.' })),
          optional: Type.Boolean(),
        },
        { title: 'CalendarAttendee' },
      ),
    ),
    reminders: Type.Array(Reminder),
    record: nullable(RecordReference),
    sequence: Type.Integer({ minimum: 0 }),
    createdAt: timestamp,
    updatedAt: timestamp,
  },
  { title: 'CalendarEvent' },
);
export type CalendarEvent = Static<typeof CalendarEvent>;

const Calendar = Type.Object(
  {
    calendarId: uuid,
    ownerId: uuid,
    timezone: Type.String({ description: 'Of the owner.' }),
    access: Type.Enum(['owner'] as const, { title: 'CalendarAccess' }),
  },
  { title: 'Calendar' },
);

const eventId = defineParameter({
  name: 'eventId',
  required: true,
  description: 'Id of an event, a series, or an instance of a series.',
  schema: Type.String({ pattern: EVENT_ID }),
  example: '0193d3c0-1c2d-7e3f-8a4b-5c6d7e8f9a0b',
});
const calendarId = defineParameter({
  name: 'calendarId',
  required: true,
  description: 'Id of the calendar of the caller.',
  schema: uuid,
  example: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
});
const scope = defineParameter({
  name: 'scope',
  description: 'What of a series. Default: the instance whose id the path has, or the whole series.',
  schema: Type.Enum(['this', 'following', 'series'] as const, { title: 'CalendarScope' }),
  example: 'series',
});

const USER = '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33';
const BERLIN = 'Europe/Berlin';
const EXAMPLE: CalendarEvent = {
  eventId: eventId.example,
  calendarId: USER,
  iCalUid: `${eventId.example}@erp`,
  title: 'Weekly review',
  description: null,
  location: 'Room 2',
  start: { dateTime: '2026-11-23T09:30:00', timezone: BERLIN },
  end: { dateTime: '2026-11-23T10:00:00', timezone: BERLIN },
  allDay: false,
  recurrence: ['RRULE:FREQ=WEEKLY;BYDAY=MO'],
  recurringEventId: null,
  originalStart: null,
  status: 'confirmed',
  visibility: 'default',
  busy: true,
  organizerId: USER,
  attendees: [],
  reminders: [],
  record: null,
  sequence: 0,
  createdAt: '2026-11-21T00:01:22.123+00:00',
  updatedAt: '2026-11-21T00:01:22.123+00:00',
};

/** An iCalendar file. */
const FILE = {
  status: 200,
  description: 'The file.',
  contentType: 'text/calendar; charset=utf-8',
  schema: Type.String({ title: 'CalendarFile' }),
  headers: { 'Content-Disposition': { description: 'A name for the file.', schema: Type.String() } },
} as const;
const ETAG = { ETag: { description: 'Of this version of the event and its instances.', schema: Type.String() } };
const READ = { tag: 'calendar', scopes: ['calendar:read'] } as const;
const WRITE = { tag: 'calendar', scopes: ['calendar:write'] } as const;
const TARGET_ERRORS = [
  'PARAMETER_INVALID',
  'BODY_PROPERTY_UNKNOWN',
  'RECURRENCE_INVALID',
  'OBJECT_NOT_FOUND',
  'RECORD_NOT_FOUND',
  'TOO_MANY_ITEMS',
] as const;
const dateTime = Type.String({ format: 'date-time' });

const CALENDAR_OPERATIONS = [
  defineOperation({
    ...READ,
    operationId: 'calendar.calendars.list',
    method: 'GET',
    path: '/calendar/calendars',
    summary: 'List calendars',
    description: 'The calendar of the caller: every user has one, whose id is that of the user.',
    response: {
      status: 200,
      description: 'The calendars.',
      schema: Type.Object({ records: Type.Array(Calendar), nextCursor }, { title: 'CalendarList' }),
      example: {
        records: [{ calendarId: USER, ownerId: USER, timezone: BERLIN, access: 'owner' as const }],
        nextCursor: null,
      },
    },
    errors: [],
    action: 'calendar.calendars.list',
  }),
  defineOperation({
    ...READ,
    operationId: 'calendar.calendars.export',
    method: 'GET',
    path: '/calendar/calendars/{calendarId}/export.ics',
    summary: 'Export a calendar',
    description: 'The calendar of the caller as an iCalendar file (RFC 5545), from a year ago on, without attendees.',
    cost: 2,
    pathParameters: [calendarId],
    response: FILE,
    errors: ['CALENDAR_NOT_FOUND', 'TOO_MANY_ITEMS'],
    action: 'calendar.calendars.export',
  }),
  defineOperation({
    ...READ,
    operationId: 'calendar.events.list',
    method: 'GET',
    path: '/calendar/events',
    summary: 'List events',
    description:
      'Those of a calendar or of a record that the caller may see: series and the instances that differ from them, in the order ' +
      'of their last change; with `expand` every instance between `from` and `to`, by time. `syncToken` answers what has changed.',
    queryParameters: [
      {
        name: 'calendarId',
        description: 'Default: that of the caller. It is the id of its user.',
        schema: uuid,
        example: USER,
      },
      {
        name: 'objectApiName',
        description: 'apiName of the object of the record whose events are listed.',
        schema: Type.String({ minLength: 1, maxLength: 80 }),
        example: 'Account',
      },
      {
        name: 'recordId',
        description: 'Id of the record whose events are listed.',
        schema: uuid,
        example: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
      },
      {
        name: 'from',
        description: 'Events that end after it.',
        schema: dateTime,
        example: '2026-11-23T00:00:00+01:00',
      },
      {
        name: 'to',
        description: 'Events that begin before it.',
        schema: dateTime,
        example: '2026-11-30T00:00:00+01:00',
      },
      {
        name: 'expand',
        description: `Series become their instances. Needs \`from\` and \`to\`, at most ${LIMITS.calendar_window_days_max} days.`,
        schema: Type.Boolean(),
        example: true,
      },
      {
        name: 'syncToken',
        description: '`nextSyncToken` of an earlier list.',
        schema: Type.String({ maxLength: 2_000 }),
      },
      take,
      cursor,
    ],
    response: {
      status: 200,
      description: 'A page of events.',
      schema: Type.Object(
        {
          records: Type.Array(CalendarEvent),
          removedEventIds: Type.Array(Type.String(), {
            description: 'With `syncToken`: events that are gone from the calendar, with all of their instances.',
          }),
          nextCursor,
          nextSyncToken: nullable(
            Type.String({ description: 'On the last page of a list of the own calendar without `from` and `to`.' }),
          ),
        },
        { title: 'CalendarEventList' },
      ),
      headers: effectiveTake,
      example: { records: [EXAMPLE], removedEventIds: [], nextCursor: null, nextSyncToken: null },
    },
    errors: [
      'PARAMETER_INVALID',
      'PARAMETER_REQUIRED',
      'PARAMETER_CONFLICT',
      'CURSOR_INVALID',
      'CURSOR_EXPIRED',
      'CURSOR_QUERY_MISMATCH',
      'SYNC_TOKEN_EXPIRED',
      'CALENDAR_NOT_FOUND',
      'OBJECT_NOT_FOUND',
      'RECORD_NOT_FOUND',
      'TOO_MANY_ITEMS',
    ],
    action: 'calendar.events.list',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'calendar.events.create',
    method: 'POST',
    path: '/calendar/events',
    summary: 'Create an event',
    description: 'In the calendar of the caller, who organizes it, and in those of the users who attend.',
    risk: 'medium',
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: CreateBody,
      example: {
        title: 'Weekly review',
        start: { dateTime: '2026-11-23T09:30:00', timezone: BERLIN },
        end: { dateTime: '2026-11-23T10:00:00', timezone: BERLIN },
        recurrence: ['RRULE:FREQ=WEEKLY;BYDAY=MO'],
      },
    },
    response: {
      status: 201,
      description: 'The event.',
      schema: CalendarEvent,
      headers: { ...ETAG, Location: { description: 'Address of the event.', schema: Type.String() } },
      example: EXAMPLE,
    },
    errors: [...KEY_ERRORS, ...TARGET_ERRORS],
    action: 'calendar.events.create',
  }),
  defineOperation({
    ...READ,
    operationId: 'calendar.events.get',
    method: 'GET',
    path: '/calendar/events/{eventId}',
    summary: 'Read an event',
    description: 'For its organizer and attendees, and for those who can read its record.',
    pathParameters: [eventId],
    response: { status: 200, description: 'The event.', schema: CalendarEvent, headers: ETAG, example: EXAMPLE },
    errors: ['PARAMETER_INVALID', 'EVENT_NOT_FOUND'],
    action: 'calendar.events.get',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'calendar.events.update',
    method: 'PATCH',
    path: '/calendar/events/{eventId}',
    summary: 'Change an event',
    description:
      'By its organizer: an event, an instance of a series, an instance and those that follow, or the series.',
    risk: 'medium',
    precondition: 'ifMatch',
    pathParameters: [eventId],
    queryParameters: [scope],
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: ChangeBody,
      example: { location: 'Room 3' },
    },
    response: {
      status: 200,
      description: 'What was changed; for `following`, the new series.',
      schema: CalendarEvent,
      headers: ETAG,
      example: { ...EXAMPLE, location: 'Room 3' },
    },
    errors: [...KEY_ERRORS, ...TARGET_ERRORS, 'EVENT_NOT_FOUND', 'RECORD_ACCESS_DENIED'],
    action: 'calendar.events.update',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'calendar.events.delete',
    method: 'DELETE',
    path: '/calendar/events/{eventId}',
    summary: 'Delete an event',
    description: 'By its organizer; an instance of a series becomes an `EXDATE`. It cannot be restored.',
    risk: 'high',
    precondition: 'ifMatch',
    pathParameters: [eventId],
    queryParameters: [scope],
    response: {
      status: 200,
      description: 'What was deleted.',
      schema: Type.Object(
        { eventId: Type.String(), deleted: Type.Boolean(), deletedAt: timestamp },
        { title: 'CalendarEventDeletion' },
      ),
      example: { eventId: eventId.example, deleted: true, deletedAt: '2026-11-21T00:01:22.123+00:00' },
    },
    errors: [...KEY_ERRORS, 'PARAMETER_INVALID', 'EVENT_NOT_FOUND', 'RECORD_ACCESS_DENIED', 'TOO_MANY_ITEMS'],
    action: 'calendar.events.delete',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'calendar.events.respond',
    method: 'POST',
    path: '/calendar/events/{eventId}/respond',
    summary: 'Answer an invitation',
    description: 'For an event, a series, or an instance of it, by a user who attends.',
    risk: 'low',
    cost: 1,
    pathParameters: [eventId],
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: Type.Object(
        {
          response: Type.Enum(['accepted', 'tentative', 'declined'] as const, { title: 'CalendarAnswer' }),
          comment: Type.Optional(Type.String({ maxLength: LIMITS.calendar_comment_max_chars, pattern: '^[^\\0]*$' })),
        },
        { ...closed, title: 'CalendarEventResponse' },
      ),
      example: { response: 'accepted' },
    },
    response: { status: 201, description: 'The event.', schema: CalendarEvent, headers: ETAG, example: EXAMPLE },
    errors: [
      ...KEY_ERRORS,
      'PARAMETER_INVALID',
      'BODY_PROPERTY_UNKNOWN',
      'EVENT_NOT_FOUND',
      'RECORD_ACCESS_DENIED',
      'TOO_MANY_ITEMS',
    ],
    action: 'calendar.events.respond',
  }),
  defineOperation({
    ...READ,
    operationId: 'calendar.freeBusy.query',
    method: 'POST',
    path: '/calendar/free-busy',
    summary: 'Read when people are busy',
    description: 'Of active users of the tenant: when, and nothing else.',
    mutation: false,
    cost: 2,
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: Type.Object(
        {
          userIds: Type.Array(uuid, { minItems: 1, maxItems: LIMITS.calendar_free_busy_users_max }),
          from: dateTime,
          to: dateTime,
          timezone: Type.String({ maxLength: 64, description: 'IANA name: where days begin that are taken whole.' }),
        },
        { ...closed, title: 'FreeBusyQuery' },
      ),
      example: {
        userIds: [USER],
        from: '2026-11-23T00:00:00+01:00',
        to: '2026-11-28T00:00:00+01:00',
        timezone: BERLIN,
      },
    },
    response: {
      status: 200,
      description: 'For each user, in the order that was asked for, the times that are taken.',
      schema: Type.Object(
        {
          users: Type.Array(
            Type.Object(
              {
                userId: uuid,
                busy: Type.Array(Type.Object({ from: timestamp, to: timestamp }, { title: 'BusyTime' })),
              },
              { title: 'FreeBusyOfUser' },
            ),
          ),
        },
        { title: 'FreeBusy' },
      ),
      example: {
        users: [{ userId: USER, busy: [{ from: '2026-11-23T08:30:00+00:00', to: '2026-11-23T09:00:00+00:00' }] }],
      },
    },
    errors: ['PARAMETER_INVALID', 'BODY_PROPERTY_UNKNOWN', 'TOO_MANY_ITEMS'],
    action: 'calendar.freeBusy.query',
  }),
] as const;

export const SERVICE = {
  purpose: 'Calendars: events with recurrence, answers to invitations, and who is busy when.',
  listens: 'health',
  awaitedByGateway: false,
  kubernetes: {
    replicas: { min: 2, max: 3 },
    connections: 3,
    requests: { cpu: '100m', memory: '192Mi' },
    limits: { cpu: '1', memory: '512Mi' },
  },
  database: {
    tenants: 'records',
    jobs: true,
    roleRoutines: ['auth.queue_calendar_mail(uuid, uuid, text, jsonb)'],
  },
  operations: CALENDAR_OPERATIONS,
  guidance: CALENDAR_GUIDANCE,
  repeatable: ['calendar.feeds.read'],
  calls: [
    'auth.mails.organizer',
    'data.epochs.get',
    'data.principals.check',
    'data.records.readable',
    'data.users.access',
    'metadata.tenants.list',
  ],
  consent: {
    'calendar:read': { area: 'calendar', text: 'Read your calendar, and when colleagues are busy.' },
    'calendar:write': { area: 'calendar', text: 'Create, change and delete your events, and answer invitations.' },
  },
  moving: {
    parts: [
      { name: 'calendar/calendars', table: 'calendar.calendars', group: 'records' },
      { name: 'calendar/events', table: 'calendar.events', group: 'records' },
      { name: 'calendar/overrides', table: 'calendar.overrides', group: 'records' },
      { name: 'calendar/entries', table: 'calendar.entries', group: 'records' },
    ],
  },
} as const satisfies ServiceDeclaration<typeof CALENDAR_OPERATIONS>;

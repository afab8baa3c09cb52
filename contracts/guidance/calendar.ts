/** Guidance for the operations of calendar. */
import type { Guidance } from './types.ts';

export const CALENDAR_GUIDANCE = {
  'calendar.calendars.list': {
    whenToUse: 'To learn the id and the time zone of the calendar of the caller.',
    whenNotToUse: 'Not for events: `calendar.events.list` has them.',
    preconditions: [],
    commonErrors: [],
  },
  'calendar.calendars.export': {
    whenToUse: 'To take the calendar into another program once.',
    whenNotToUse: 'Not to keep a copy up to date: sync tokens of `calendar.events.list` do that.',
    preconditions: [],
    commonErrors: ['CALENDAR_NOT_FOUND', 'TOO_MANY_ITEMS'],
  },
  'calendar.events.list': {
    whenToUse:
      'With `expand`, `from` and `to` to show a week or a month; without them, with `syncToken`, to keep a copy up to date; with a record, for its events.',
    whenNotToUse: 'Not to find a time that suits several people: `calendar.freeBusy.query` does that.',
    preconditions: [],
    commonErrors: ['PARAMETER_REQUIRED', 'SYNC_TOKEN_EXPIRED', 'TOO_MANY_ITEMS'],
  },
  'calendar.events.create': {
    whenToUse: 'To put an event, or a series of them, into the calendar of the caller and of those who are invited.',
    whenNotToUse: 'Not for a date that belongs to a record alone: that is a field of the record.',
    preconditions: ['The ids of the users who are invited.', 'A record that is named can be read by the caller.'],
    commonErrors: ['PARAMETER_INVALID', 'RECURRENCE_INVALID', 'RECORD_NOT_FOUND'],
  },
  'calendar.events.get': {
    whenToUse: 'Before a change, for the ETag; or to read one instance of a series.',
    whenNotToUse: 'Not for several events: list them.',
    preconditions: ['The id of the event, or of the instance, from a list.'],
    commonErrors: ['EVENT_NOT_FOUND'],
  },
  'calendar.events.update': {
    whenToUse: 'To move an event, or to change what it says or who attends; with `scope`, of a series.',
    whenNotToUse: 'Not to answer an invitation: `calendar.events.respond` does that.',
    preconditions: ['The ETag of the event.', 'The caller organizes it.'],
    commonErrors: ['ETAG_MISMATCH', 'RECURRENCE_INVALID', 'RECORD_ACCESS_DENIED'],
  },
  'calendar.events.delete': {
    whenToUse: 'When a person has said that the event does not take place and need not be remembered.',
    whenNotToUse: 'Not when attendees shall see that it was called off: set its status to `canceled`.',
    preconditions: ['The ETag of the event.', 'The caller organizes it.'],
    commonErrors: ['ETAG_MISMATCH', 'RECORD_ACCESS_DENIED', 'EVENT_NOT_FOUND'],
  },
  'calendar.events.respond': {
    whenToUse: 'When the person who is invited has said whether they come.',
    whenNotToUse: 'Not for other attendees: each answers for themselves.',
    preconditions: ['The caller is an attendee of the event.'],
    commonErrors: ['RECORD_ACCESS_DENIED', 'EVENT_NOT_FOUND'],
  },
  'calendar.freeBusy.query': {
    whenToUse: 'To find a time at which several people are free.',
    whenNotToUse: 'Not to read what they do: their events are theirs.',
    preconditions: ['The ids of active users.'],
    commonErrors: ['PARAMETER_INVALID', 'TOO_MANY_ITEMS'],
  },
} as const satisfies Readonly<Record<string, Guidance>>;

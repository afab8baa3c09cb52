/** Guidance for the operations of notifications. */
import type { Guidance } from './types.ts';

export const NOTIFICATIONS_GUIDANCE = {
  'notifications.items.list': {
    whenToUse: 'To show a user their notifications, or how many unread notifications they have (`take=1`).',
    whenNotToUse: 'Not to follow changes of records: `data.changes.list` answers those.',
    preconditions: [],
    commonErrors: ['CURSOR_EXPIRED', 'CURSOR_QUERY_MISMATCH'],
  },
  'notifications.items.get': {
    whenToUse: 'To read one notification, such as one that a mail or an event names.',
    whenNotToUse: 'Not for the record that it is about: read the record.',
    preconditions: ['The notification is one of the caller.'],
    commonErrors: ['NOTIFICATION_NOT_FOUND'],
  },
  'notifications.items.update': {
    whenToUse: 'When the user has read a notification, wants to keep it as unread, or is done with it (`archived`).',
    whenNotToUse: 'Not for many at once: `notifications.items.markAllRead` takes one request.',
    preconditions: ['The id of the notification, from `notifications.items.list`.'],
    commonErrors: ['NOTIFICATION_NOT_FOUND'],
  },
  'notifications.items.markAllRead': {
    whenToUse: 'When the user has seen the list.',
    whenNotToUse: 'Not with the present time: what arrived after the list was read would be marked unseen.',
    preconditions: ['`createdAt` of the newest notification that was shown.'],
    commonErrors: ['PARAMETER_INVALID'],
  },
  'notifications.items.send': {
    whenToUse: 'To tell users of the tenant something that no record and no transition tells them.',
    whenNotToUse: 'Not for what follows from a change of state: give the transition the effect `sendNotification`.',
    preconditions: [
      'The user has the permission `sendNotifications`, and can see the recipients and the record.',
      'A `dedupeKey` where the same may be sent again.',
    ],
    commonErrors: ['VALIDATION_FAILED', 'OBJECT_PERMISSION_DENIED', 'RATE_LIMIT_EXCEEDED'],
  },
  'notifications.deliveries.list': {
    whenToUse: 'To learn why a notification did not arrive on a channel.',
    whenNotToUse: 'Not to learn whether it was read: `status` of the notification says so.',
    preconditions: ['The notification is one of the caller.'],
    commonErrors: ['NOTIFICATION_NOT_FOUND'],
  },
  'notifications.preferences.get': {
    whenToUse: 'To show a user which notifications they get on which channel, and their quiet hours.',
    whenNotToUse: 'Not to learn what became of one notification: `notifications.deliveries.list` says that.',
    preconditions: [],
    commonErrors: [],
  },
  'notifications.preferences.update': {
    whenToUse: 'When the user has said that they want more or fewer notifications, or none at night.',
    whenNotToUse: 'Not for other users: everybody chooses for themselves.',
    preconditions: ['The types, from `notifications.preferences.get`.'],
    commonErrors: ['VALIDATION_FAILED', 'PARAMETER_INVALID'],
  },
} as const satisfies Record<string, Guidance>;

/** Guidance for the operations of events. */
import type { Guidance } from './types.ts';

export const EVENTS_GUIDANCE = {
  'events.items.list': {
    whenToUse: 'To learn what has happened since a moment, of any kind and object, in order and without gaps.',
    whenNotToUse: 'Not to keep a copy of one object: its changes come with the records, and say what to drop.',
    preconditions: ['The scope `events:read`; for `payload=full` also `data:read`.'],
    commonErrors: ['SYNC_TOKEN_EXPIRED', 'PARAMETER_INVALID'],
  },
  'events.stream.get': {
    whenToUse: 'To receive events as they happen, over one connection that stays open.',
    whenNotToUse: 'Not from a program that runs now and then: read pages from the last cursor.',
    preconditions: ['The scope `events:read`; for `payload=full` also `data:read`.'],
    commonErrors: ['SYNC_TOKEN_EXPIRED', 'CONCURRENCY_LIMIT_EXCEEDED'],
  },
  'events.subscriptions.create': {
    whenToUse: 'To have events sent to an https address of your own as they happen.',
    whenNotToUse: 'Not for a program without a public address: it reads pages or follows the stream.',
    preconditions: ['The scope `events:manage`; for `payload: full` also `data:read`.', 'A public https address.'],
    commonErrors: ['WEBHOOK_URL_INVALID', 'PARAMETER_INVALID', 'TOO_MANY_ITEMS'],
  },
  'events.subscriptions.list': {
    whenToUse: 'To see where events of this user are sent, and what is suspended.',
    whenNotToUse: 'Not for single attempts: the deliveries of a subscription have them.',
    preconditions: [],
    commonErrors: ['CURSOR_EXPIRED'],
  },
  'events.subscriptions.get': {
    whenToUse: 'To read the state of a subscription, and its ETag before a change.',
    whenNotToUse: 'Not to get the secret again: it is shown once, and replaced when it is lost.',
    preconditions: [],
    commonErrors: ['SUBSCRIPTION_NOT_FOUND'],
  },
  'events.subscriptions.update': {
    whenToUse: 'To change what is sent and where to, to pause, and to go on after a suspension.',
    whenNotToUse: 'Not to replace the secret: that is an operation of its own.',
    preconditions: ['The ETag of the subscription.'],
    commonErrors: ['ETAG_MISMATCH', 'WEBHOOK_URL_INVALID'],
  },
  'events.subscriptions.delete': {
    whenToUse: 'When nothing is to be sent any more.',
    whenNotToUse: 'Not for a while: pause it, and what happens meanwhile is sent later.',
    preconditions: ['The ETag of the subscription.'],
    commonErrors: ['ETAG_MISMATCH', 'SUBSCRIPTION_NOT_FOUND'],
  },
  'events.subscriptions.test': {
    whenToUse: 'To see that the receiver answers and verifies, before anything happens.',
    whenNotToUse: 'Not to send earlier events again: replay does.',
    preconditions: ['An active subscription.'],
    commonErrors: ['SUBSCRIPTION_NOT_FOUND'],
  },
  'events.subscriptions.replay': {
    whenToUse: 'After the receiver has lost something, or was away for too long.',
    whenNotToUse: 'Not for events that are still tried again by themselves.',
    preconditions: ['The events are kept: they are not older than 7 days.'],
    commonErrors: ['CURSOR_INVALID', 'SUBSCRIPTION_NOT_FOUND'],
  },
  'events.subscriptions.rotateSecret': {
    whenToUse: 'When the secret was lost or seen by others, and regularly.',
    whenNotToUse: 'Not again within 24 hours: only the newest two secrets sign.',
    preconditions: ['The receiver takes several signatures, as libraries of Standard Webhooks do.'],
    commonErrors: ['SUBSCRIPTION_NOT_FOUND'],
  },
  'events.deliveries.list': {
    whenToUse: 'To find out what a receiver has got and what it has answered.',
    whenNotToUse: 'Not to read events: their content is not kept with the deliveries.',
    preconditions: [],
    commonErrors: ['SUBSCRIPTION_NOT_FOUND'],
  },
} as const satisfies Readonly<Record<string, Guidance>>;

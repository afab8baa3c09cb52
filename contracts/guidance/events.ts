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
} as const satisfies Readonly<Record<string, Guidance>>;

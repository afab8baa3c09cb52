/** Guidance for the operations of ratelimit. */
import type { Guidance } from './types.ts';

export const RATELIMIT_GUIDANCE = {
  'me.limits.get': {
    whenToUse: 'Before a long piece of work, to see whether the units that are left are enough; it costs nothing.',
    whenNotToUse: 'Not between the requests of a loop: every answer has `X-RateLimit-Remaining` and `RateLimit`.',
    preconditions: [],
    commonErrors: ['TOKEN_EXPIRED'],
  },
} as const satisfies Readonly<Record<string, Guidance>>;

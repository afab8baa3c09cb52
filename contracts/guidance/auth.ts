/** Guidance for the operations of auth. */
import type { Guidance } from './types.ts';

export const AUTH_GUIDANCE = {
  'me.identity.get': {
    whenToUse:
      'First after signing in: to learn in whose name, in which tenant and with which scopes the token acts, and whether the tenant is a sandbox.',
    whenNotToUse:
      'Not to learn which objects and fields can be used: scopes are only the upper bound. Ask `schema.objects.list`.',
    preconditions: [],
    commonErrors: ['TOKEN_EXPIRED', 'TOKEN_REVOKED'],
  },
  'me.connections.list': {
    whenToUse: 'When a person wants to see which applications act in their name, or which one is to be revoked.',
    whenNotToUse: 'Not for the connection of this token alone: `me.identity.get` describes it.',
    preconditions: [],
    commonErrors: ['SCOPE_INSUFFICIENT', 'CURSOR_EXPIRED'],
  },
} as const satisfies Readonly<Record<string, Guidance>>;

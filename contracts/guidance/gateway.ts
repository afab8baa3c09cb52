/** Guidance for the operations of the gateway itself. */
import type { Guidance } from './types.ts';

export const GATEWAY_GUIDANCE = {
  'schema.openapi.get': {
    whenToUse: 'To generate a client, or to look up the exact schema of a body, parameter or answer.',
    whenNotToUse:
      "Not to learn a tenant's objects and fields: it never names them. Ask `schema.objects.list` and `schema.objects.describe`.",
    preconditions: [],
    commonErrors: ['RATE_LIMIT_EXCEEDED'],
  },
  'schema.scopes.list': {
    whenToUse: 'Before asking a person to authorize an application, to choose the few scopes that its work needs.',
    whenNotToUse: 'Not to learn what this connection may do: `me.identity.get` has the scopes of the token.',
    preconditions: [],
    commonErrors: ['RATE_LIMIT_EXCEEDED'],
  },
  'schema.capabilities.get': {
    whenToUse:
      'To learn what this instance offers: operations with risk and cost, limits, rate policies, sign-in addresses.',
    whenNotToUse: 'Not to learn what is left of a limit: that is `me.limits.get`.',
    preconditions: [],
    commonErrors: ['RATE_LIMIT_EXCEEDED'],
  },
  'schema.deprecations.list': {
    whenToUse: 'For administrators, before an upgrade and now and then: which clients must be changed, and until when.',
    whenNotToUse:
      'Not to learn whether one operation is deprecated: its answers say so in headers, and `schema.capabilities.get` for all.',
    preconditions: ['The user has the permission `metadataRead`.'],
    commonErrors: ['METADATA_PERMISSION_DENIED'],
  },
} as const satisfies Readonly<Record<string, Guidance>>;

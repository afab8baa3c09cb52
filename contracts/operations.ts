/** The rows of all public operations: routes, documents and checks are made from these. */
import type { Operation } from '../lib/operation.ts';
import { AUTH_OPERATIONS } from './auth.ts';
import { DATA_OPERATIONS } from './data.ts';
import { GATEWAY_OPERATIONS } from './gateway.ts';
import { METADATA_OPERATIONS } from './metadata.ts';
import { RATELIMIT_OPERATIONS } from './ratelimit.ts';

/** The rows of all public operations, in the order of the documents. */
export const OPERATIONS: readonly Operation[] = [
  ...GATEWAY_OPERATIONS,
  ...AUTH_OPERATIONS,
  ...RATELIMIT_OPERATIONS,
  ...DATA_OPERATIONS,
  ...METADATA_OPERATIONS,
];

/**
 * Guidance for assistants on each operation beyond its row. It is published with the documents and used by no
 * service. An operation without guidance does not compile. Source: docs/reference/assistant-manifest.md.
 */
import { AGENT_GUIDANCE } from './guidance/agent.ts';
import { ANALYTICS_GUIDANCE } from './guidance/analytics.ts';
import { AUTH_GUIDANCE } from './guidance/auth.ts';
import { DATA_GUIDANCE } from './guidance/data.ts';
import { GATEWAY_GUIDANCE } from './guidance/gateway.ts';
import { METADATA_GUIDANCE } from './guidance/metadata.ts';
import { RATELIMIT_GUIDANCE } from './guidance/ratelimit.ts';
import type { Guidance } from './guidance/types.ts';
import type { OperationId } from './operations.ts';

export const GUIDANCE: Readonly<Record<OperationId, Guidance>> = {
  ...GATEWAY_GUIDANCE,
  ...AUTH_GUIDANCE,
  ...RATELIMIT_GUIDANCE,
  ...DATA_GUIDANCE,
  ...ANALYTICS_GUIDANCE,
  ...METADATA_GUIDANCE,
  ...AGENT_GUIDANCE,
};

/**
 * The context of a request: its user and client, tenant and request id. Only the edges (gateway, job runner, seed)
 * create it; it is passed on as `ctx.meta.request` and never merged with anything that a caller sent. Between processes
 * the gateway alone sends one, sealed for its call (mixins/bus).
 */

import { PlatformError } from './errors/platform-error.ts';
import type { Scope } from './operation.ts';

/** An approval, with the fingerprint of the approved request. */
export interface UsedApproval {
  readonly id: string;
  readonly fingerprint: string;
  /** The effects that the dry run showed and the execution must repeat; absent: unknown, so nothing is executed. */
  readonly basis?: string;
}

export interface RequestContext {
  /** `req_` and 26 Crockford base32 characters. */
  readonly requestId: string;
  readonly clientRequestId: string | null;
  readonly tenantId: string;
  readonly userId: string;
  readonly clientId: string;
  readonly grantId: string;
  readonly scopes: readonly Scope[];
  /** The client is flagged as an agent. */
  readonly agent: boolean;
  /** A person signed in, and no agent acts for them; false for a client that acts for itself. */
  readonly person: boolean;
  /** The tenant asks people for a recent sign-in with two factors, and this one is older or has one. */
  readonly lacksStepUp?: boolean;
  /** The run that agent has admitted the call to. */
  readonly agentRunId: string | null;
  /** The run that the request is about without being made under it: the trail of what it does names this run. */
  readonly aboutRunId?: string;
  /** The approval that the change consumes. */
  readonly approval?: UsedApproval;
  /** A mutation is carried out and rolled back. */
  readonly dryRun?: boolean;
  /** Of a dry run under a run: the mutation itself would need an approval. */
  readonly approvalRequired?: boolean;
  /** Objects on which an agent policy denies the operation, besides that of its path; absent: none. */
  readonly deniedObjects?: readonly string[];
  /** RFC 3339, end of the access token's life; null for internal work. */
  readonly tokenExpiresAt: string | null;
  /** Network address of the caller, for the audit trail. */
  readonly ip: string | null;
  readonly channel: 'api' | 'cli' | 'mcp' | 'ui' | 'job';
  /** Until when the caller waits for the response, in the time of the platform (lib/values/clock.ts). */
  readonly deadline: number;
}

/** For whom a service asks another one something in its parameters: of a request context what such an answer needs. */
export type Asker = Pick<
  RequestContext,
  'requestId' | 'tenantId' | 'userId' | 'clientId' | 'deadline' | 'deniedObjects'
>;

export const askerOf = ({ requestId, tenantId, userId, clientId, deadline, deniedObjects }: Asker): Asker => ({
  requestId,
  tenantId,
  userId,
  clientId,
  deadline,
  ...(deniedObjects ? { deniedObjects } : {}),
});

/** Reported by an action in the meta of its answer. */
export interface DatabaseTimeMeta {
  /** Milliseconds that connections to the database were held. */
  databaseMs?: number;
}

export interface RequestMeta {
  request?: RequestContext;
}

/** The request context of a call; a call without one is a bug and is refused. */
export function requestContext(ctx: { readonly meta: RequestMeta }): RequestContext {
  const context = ctx.meta.request;
  if (!context?.tenantId) throw new PlatformError('INTERNAL_ERROR', 'The call carries no request context.');
  return context;
}

/**
 * PostgreSQL schema and role of a tenant: `t_` and the tenant id without hyphens. Derived instead of looked up, so that
 * the tenant of the request context is the only input.
 */
export function tenantSchema(tenantId: string): string {
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(tenantId))
    throw new PlatformError('INTERNAL_ERROR', 'The tenant id is not a UUID.');
  return `t_${tenantId.replaceAll('-', '')}`;
}

/** The caller, and the runs and approvals that they see. Source: docs/reference/agents.md. */
import { CLI_CLIENT_ID } from '../../contracts/auth.ts';
import type { UserIdentity } from '../../contracts/data.ts';
import { accessFor } from '../../lib/access/rules.ts';
import type { Access } from '../../lib/access/types.ts';
import type { RequestContext } from '../../lib/context.ts';
import { apiAccessDisabled } from '../../lib/errors/access.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Snapshot } from '../../lib/schema/snapshot.ts';
import type { Sight } from './runs/run.sql.ts';

/** Looks a user up by id; null: there is none. */
export type FindUser = (tenantId: string, userId: string) => Promise<UserIdentity | null>;

/** Ids of the clients that may act in a tenant. */
export const activeClients = ({ externalClients }: Snapshot): string[] => [
  CLI_CLIENT_ID,
  ...Object.values(externalClients).flatMap(({ clientId, active }) => (active ? [clientId] : [])),
];

/** 403 for a client that was set inactive or removed a moment ago, which the gateway may not have heard of. */
export function requireActiveClient({ clientId }: RequestContext, snapshot: Snapshot): void {
  if (activeClients(snapshot).includes(clientId)) return;
  throw new PlatformError('CLIENT_DISABLED', 'The client application is disabled.');
}

/** The user behind the request; 403 unless they are active and have the API permission. */
export async function requireActiveUser(findUser: FindUser, request: RequestContext): Promise<UserIdentity> {
  const user = await findUser(request.tenantId, request.userId);
  if (!user?.active || !user.apiEnabled) throw apiAccessDisabled();
  return user;
}

/** A user's permissions that concern no particular record. */
export const accessOf = (snapshot: Snapshot, user: UserIdentity): Access =>
  accessFor(snapshot, { ...user, userId: user.id, timezone: user.timezone ?? snapshot.tenant.timezone });

/** True for a connection of a user who manages the tenant's agents. */
export const overseesAgents = (request: RequestContext, user: UserIdentity): boolean =>
  request.scopes.includes('agent:approve') && request.person && user.systemPermissions.includes('approveAgentActions');

/** The runs that are acted under: those of this user and client. */
export const ownRuns = ({ userId, clientId }: RequestContext): Sight => ({ userId, clientId });

/** The runs that are shown: those of the user, to an agent only its own, to people who oversee agents all. */
export function visibleRuns(request: RequestContext, user: UserIdentity): Sight {
  if (overseesAgents(request, user)) return { userId: null, clientId: null };
  return { userId: request.userId, clientId: request.agent ? request.clientId : null };
}

/** The user of a token: `GET /identity`. Source: docs/reference/authentication.md. */

import type { UserIdentity } from '../../contracts/data.ts';
import type { OperationOutput } from '../../contracts/operations.ts';
import { API_VERSION } from '../../lib/addresses.ts';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../lib/operation.ts';
import type { Clients, Tenant } from './clients.ts';

/** Throws TOKEN_REVOKED when the tenant or the user behind the token is gone. */
export async function identity(
  request: RequestContext,
  clients: Clients,
  user: () => Promise<UserIdentity | null>,
): Promise<OperationReply & { body: OperationOutput<'me.identity.get'> }> {
  const [tenant, found, client] = await Promise.all([
    clients.tenant({ tenantId: request.tenantId }),
    user(),
    clients.find(request.clientId, request.tenantId),
  ]);
  if (!tenant || !found) throw new PlatformError('TOKEN_REVOKED', 'The user of the token does not exist any more.');
  return {
    body: {
      tenant: tenantOf(tenant),
      user: {
        id: found.id,
        username: found.username,
        displayName: found.displayName,
        email: found.email,
        locale: found.locale ?? tenant.locale,
        timezone: found.timezone ?? tenant.timezone,
        profileApiName: found.profileApiName,
        roleApiName: found.roleApiName,
        active: found.active,
        apiEnabled: found.apiEnabled,
      },
      connection: {
        clientId: request.clientId,
        clientName: client?.name ?? request.clientId,
        grantId: request.grantId,
        scopes: [...request.scopes],
        agent: request.agent,
        actingFor: null,
        tokenExpiresAt: request.tokenExpiresAt,
      },
      apiVersion: API_VERSION,
    },
  };
}

function tenantOf({
  id,
  name,
  region,
  edition,
  sandbox,
  locale,
  timezone,
  currency,
}: Tenant): OperationOutput<'me.identity.get'>['tenant'] {
  return {
    id,
    name,
    region,
    defaultLocale: locale,
    defaultTimezone: timezone,
    defaultCurrency: currency,
    edition,
    sandbox,
  };
}

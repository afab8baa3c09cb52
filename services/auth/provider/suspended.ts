/**
 * Users and clients of a suspended tenant get no tokens. Nothing that they have is ended or used up by the refusal: when
 * the tenant is resumed, the same refresh tokens and sessions go on. Source: docs/reference/tenants.md#suspended.
 */
import { errors } from 'oidc-provider';
import type { Clients } from '../clients.ts';

export const SUSPENDED_ERROR = 'access_denied';
export const SUSPENDED_DESCRIPTION = 'the tenant is suspended by the operator of the platform';

/** Not invalid_grant, after which applications throw their tokens away. */
export async function refuseSuspended(clients: Clients, tenantId: string): Promise<void> {
  if (await clients.isSuspended(tenantId)) throw new errors.AccessDenied(SUSPENDED_DESCRIPTION);
}

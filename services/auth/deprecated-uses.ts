/** For administrators: which clients of their tenant must be changed before an operation is gone. */
import type { AuthActions } from '../../contracts/auth.ts';
import { formatTimestamp } from '../../lib/values/time.ts';
import type { Clients } from './clients.ts';
import type { AuthStore } from './store/store.ts';

/** Clients that are named for one tenant, over all operations. */
const CLIENTS_MAX = 1_000;

type Listed = AuthActions['auth.deprecatedUses.list'];

export async function listDeprecatedUses(
  { store, clients }: { store: AuthStore; clients: Clients },
  { tenantId, operationIds }: Listed['params'],
): Promise<Listed['result']> {
  const rows = await store.deprecatedUses.list(tenantId, operationIds, CLIENTS_MAX);
  const uses = rows.map(async ({ operationId, clientId, requests, lastUsedAt }) => ({
    operationId,
    clientId,
    clientName: (await clients.find(clientId, tenantId))?.name ?? clientId,
    requests,
    lastUsedAt: formatTimestamp(new Date(lastUsedAt)),
  }));
  return { uses: await Promise.all(uses) };
}

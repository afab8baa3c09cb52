/**
 * Live grants, for gateways that cannot ask auth: by auth's own tables and rule, and by the clients that the
 * tenant's configuration has now. Source: docs/reference/authentication.md.
 */
import { ACCOUNT_CLIENT_ID, APP_CLIENTS, CLI_CLIENT_ID } from '../../../contracts/auth.ts';
import type { DataActions } from '../../../contracts/data.ts';
import { type DeclaredClient, isGrantOf } from '../../../lib/access/client-marks.ts';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import type { Tenants } from '../tenants.ts';
import { metadataVersionStatement } from '../users/directory.sql.ts';
import { type LivingGrant, livingGrants, suspendedStatement } from './confirm.sql.ts';

type Grants = DataActions['data.grants.confirm']['params']['grants'];

const BUILT_IN: ReadonlySet<string> = new Set([
  ACCOUNT_CLIENT_ID,
  CLI_CLIENT_ID,
  ...APP_CLIENTS.map(({ clientId }) => clientId),
]);

/** The ids of those grants that live, of tenants that are not suspended, and whose client may still be used. */
export async function confirmGrants(database: Database, tenants: Tenants, grants: Grants): Promise<string[]> {
  const byTenant = Map.groupBy(
    grants.filter(({ tenantId }) => isUuid(tenantId)),
    ({ tenantId }) => tenantId,
  );
  const living = await Promise.all(
    [...byTenant].map(([tenantId, asked]) => confirmOfTenant(database, tenants, tenantId, asked)),
  );
  return living.flat();
}

async function confirmOfTenant(
  database: Database,
  tenants: Tenants,
  tenantId: string,
  asked: Grants,
): Promise<string[]> {
  const ids = asked.map(({ grantId }) => grantId);
  const [{ suspended, found }, { metadataVersion }] = await Promise.all([
    database.shared('data', tenantId, async (tx) => {
      const state = tx.one<{ suspended: boolean }>(suspendedStatement(tenantId));
      const living = tx.all<LivingGrant>(livingGrants(tenantId, ids));
      return { found: await living, ...(await state) };
    }),
    database.tenant(tenantId, (tx) => tx.one<{ metadataVersion: number }>(metadataVersionStatement(tx.schema))),
  ]);
  if (suspended) return [];
  const snapshot = await tenants.snapshot(tenantId, metadataVersion);
  const byId = new Map(found.map((grant) => [grant.id, grant]));
  return asked
    .filter((grant) => {
      const client = usableClient(snapshot, grant.clientId);
      return client !== null && isGrantOf(byId.get(grant.grantId), grant, client);
    })
    .map(({ grantId }) => grantId);
}

/** The client as the configuration has it; null: there is none, or it is disabled. */
export function usableClient(snapshot: Snapshot | null, clientId: string): DeclaredClient | null {
  if (BUILT_IN.has(clientId)) return { meta: null };
  const meta = Object.values(snapshot?.externalClients ?? {}).find((client) => client.clientId === clientId);
  return meta?.active ? { meta } : null;
}

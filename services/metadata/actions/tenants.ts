/** Actions for the other services: tenants, their snapshots, and templates that the platform deploys. */
import type { ActionHandlers } from '../../../contracts/call.ts';
import type { MetadataActions } from '../../../contracts/metadata.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import type { Platform } from '../../../mixins/platform.ts';
import { listDashboardComponents } from '../dashboards.ts';
import { cancelForOperator, listOpenDeployments } from '../deployments/operator.ts';
import { listOperatorLimits, setOperatorLimits } from '../operator-limits.ts';
import type { Snapshots } from '../snapshots.ts';
import { findTenant, listTenants } from '../store.ts';
import { createTenant, deployTemplate } from '../tenants.ts';

const TENANTS_DEFAULT = 100;
const TENANTS_MAX = 1_000;

/** `changed` is called after a commit that made a new version of a tenant's configuration. */
export const tenantActions = (
  { database, config }: Platform,
  snapshots: Snapshots,
  changed: (tenantId: string, metadataVersion: number) => void,
) => {
  const registry = <T>(work: (tx: Tx) => Promise<T>): Promise<T> => database.shared('metadata', null, work);
  return {
    'snapshots.get': ({ params: { tenantId, version } }) =>
      isUuid(tenantId) ? snapshots.get(tenantId, version) : null,
    'tenants.get': ({ params: { tenantId, key } }) => {
      if (tenantId !== undefined) return isUuid(tenantId) ? registry((tx) => findTenant(tx, { id: tenantId })) : null;
      return key === undefined ? null : registry((tx) => findTenant(tx, { key }));
    },
    'tenants.list': ({ params: { after = null, take = TENANTS_DEFAULT } }) =>
      registry((tx) => listTenants(tx, after, Math.min(take, TENANTS_MAX))),
    'tenants.create': async ({ params }) => {
      const { tenant, created } = await createTenant(database, config.region, params);
      return { tenantId: tenant.id, created };
    },
    'tenants.setLimits': ({ params }) => setOperatorLimits(database, params),
    'tenants.listLimits': ({ params: { after, take = TENANTS_DEFAULT } }) =>
      listOperatorLimits(database, { after, take: Math.min(take, TENANTS_MAX) }),
    'tenants.listDeployments': ({ params }) => listOpenDeployments(database, params),
    'tenants.cancelDeployment': ({ params }) => cancelForOperator(database, params),
    'dashboards.list': ({ params }) => listDashboardComponents(database, params),
    'templates.deploy': async ({ params: { tenantId, files } }) => {
      const { applied, ...result } = await deployTemplate(database, tenantId, files);
      if (applied) changed(tenantId, result.metadataVersion);
      return result;
    },
  } satisfies Partial<ActionHandlers<'metadata', MetadataActions>>;
};

/** Actions for the other services: tenants, their snapshots, and templates that the platform deploys. */
import type { ActionHandlers } from '../../../contracts/call.ts';
import type { MetadataActions } from '../../../contracts/metadata.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import type { Platform } from '../../../mixins/platform.ts';
import { listDashboardComponents } from '../dashboards.ts';
import { cancelForOperator, listOpenDeployments } from '../deployments/operator.ts';
import { findTraces, listDeletions } from '../lifecycle/erase.ts';
import { TenantLifecycle } from '../lifecycle/tenant-lifecycle.ts';
import { listOperatorLimits, setOperatorLimits } from '../operator-limits.ts';
import type { Snapshots } from '../snapshots.ts';
import { findTenant, listTenants } from '../store.ts';
import { createWithTemplate, deployTemplate } from '../tenants.ts';

const TENANTS_DEFAULT = 100;
const TENANTS_MAX = 1_000;

interface Notices {
  /** Called after a commit that made a new version of a tenant's configuration. */
  readonly changed: (tenantId: string, metadataVersion: number) => void;
  /** Called after a commit that changed what all services know of a tenant. */
  readonly tenantChanged: (tenantId: string) => void;
}

export const tenantActions = (
  { database, config }: Platform,
  snapshots: Snapshots,
  { changed, tenantChanged }: Notices,
) => {
  const lifecycle = new TenantLifecycle(database, tenantChanged);
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
    'tenants.create': ({ params }) => createWithTemplate(database, config.region, params, changed),
    'tenants.describe': ({ params }) => lifecycle.describe(params),
    'tenants.suspend': ({ params }) => lifecycle.suspend(params),
    'tenants.resume': ({ params }) => lifecycle.resume(params),
    'tenants.rename': ({ params }) => lifecycle.rename(params),
    'tenants.delete': ({ params }) => lifecycle.delete(params),
    'tenants.undelete': ({ params }) => lifecycle.undelete(params),
    'tenants.listDeletions': ({ params: { key } }) => listDeletions(database, key),
    'tenants.findTraces': ({ params: { tenantId } }) => findTraces(database, tenantId),
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

import type { Context, ServiceSchema } from 'moleculer';
import type { Platform } from '../../config/platform.ts';
import { isUuid } from '../../lib/ids.ts';
import type { MetadataActions } from './contract.ts';
import { Snapshots } from './snapshots.ts';
import { findTenant, listTenants } from './store.ts';
import { createTenant, deployTemplate, upgradeTenants } from './tenants.ts';

type Params<K extends keyof MetadataActions> = Context<MetadataActions[K]['params']>;

/** The Moleculer schema of metadata: it declares and delegates. */
export default function metadataService(platform: Platform): ServiceSchema {
  const { database, config } = platform;
  const snapshots = new Snapshots(database);
  const changed = (ctx: Context, tenantId: string, metadataVersion: number): void => {
    ctx.broker.broadcast('metadata.schema.changed', { tenantId, metadataVersion });
  };
  return {
    name: 'metadata',
    actions: {
      'snapshots.get': (ctx: Params<'metadata.snapshots.get'>) =>
        isUuid(ctx.params.tenantId) ? snapshots.get(ctx.params.tenantId, ctx.params.version) : null,
      'tenants.get': async (ctx: Params<'metadata.tenants.get'>) => {
        const { tenantId, key } = ctx.params;
        if (tenantId === undefined) return key === undefined ? null : findTenant(database, { key });
        return isUuid(tenantId) ? findTenant(database, { tenantId }) : null;
      },
      'tenants.list': (ctx: Params<'metadata.tenants.list'>) =>
        listTenants(database, ctx.params.after ?? null, Math.min(ctx.params.take ?? 100, 1_000)),
      'tenants.create': async (ctx: Params<'metadata.tenants.create'>) => {
        const { tenant, created } = await createTenant(database, config.region, ctx.params);
        return { tenantId: tenant.id, created };
      },
      'templates.deploy': async (ctx: Params<'metadata.templates.deploy'>) => {
        const { applied, ...result } = await deployTemplate(database, ctx.params.tenantId, ctx.params.files);
        if (applied) changed(ctx, ctx.params.tenantId, result.metadataVersion);
        return result;
      },
    },
    async started() {
      const upgraded = await upgradeTenants(database);
      if (upgraded > 0) this.logger.info(`Brought the schemas of ${upgraded} tenants up to date.`);
    },
  };
}

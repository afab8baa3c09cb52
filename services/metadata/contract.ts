/** Public operations and internal actions of metadata. */
import type { Operation } from '../../lib/operation.ts';
import type { Snapshot, TenantInfo } from '../../lib/snapshot/types.ts';

export interface MetadataActions {
  /** The snapshot of a tenant as JSON bytes; without `version` the current one. RECORD: unknown tenant → null. */
  'metadata.snapshots.get': {
    params: { tenantId: string; version?: number };
    result: { version: number; snapshot: Buffer } | null;
  };
  'metadata.tenants.get': {
    params: { tenantId?: string; key?: string };
    result: (TenantInfo & { suspended: boolean; metadataVersion: number }) | null;
  };
  'metadata.tenants.list': {
    params: { after?: string; take?: number };
    result: (TenantInfo & { suspended: boolean; metadataVersion: number })[];
  };
  /**
   * Creates a tenant with its schema, role and the core template (User object, standard profiles). Idempotent by key.
   * Returns the tenant; the administrator is a User record made through data.users.provision.
   */
  'metadata.tenants.create': {
    params: {
      key: string;
      name: string;
      region?: string;
      edition?: string;
      sandbox?: boolean;
      locale?: string;
      timezone?: string;
      currency?: string;
    };
    result: { tenantId: string; created: boolean };
  };
  /** Deploys a project with the platform as actor (templates); waits for the end. Throws METADATA_INVALID when blocked. */
  'metadata.templates.deploy': {
    params: { tenantId: string; files: Record<string, string> };
    result: { metadataVersion: number; changes: number };
  };
}

/** Broadcast when a new metadataVersion is committed. A wake-up only: readers also compare versions in their statements. */
export interface MetadataEvents {
  'metadata.schema.changed': { tenantId: string; metadataVersion: number };
}

export type { Snapshot };

export const METADATA_OPERATIONS: readonly Operation[] = [];

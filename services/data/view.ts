/** What one user sees of one tenant, as everything in this service is given it. */
import type { Access } from '../../lib/access/types.ts';
import type { Snapshot } from '../../lib/schema/snapshot.ts';

/** The versions of configuration and permissions that a statement saw. */
export interface Versions {
  readonly metadataVersion: number;
  readonly accessVersion: number;
}

/** One user's sight of one tenant at one pair of versions. Immutable. */
export interface View extends Versions {
  readonly tenantId: string;
  readonly snapshot: Snapshot;
  readonly access: Access;
  /** Names this view in caches. */
  readonly key: string;
}

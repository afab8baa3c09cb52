/** One user's view of one tenant: the input of everything in this service. */
import type { Access } from '../../lib/access/types.ts';
import type { Snapshot } from '../../lib/schema/snapshot.ts';

/** The versions of configuration and permissions that a statement saw. */
export interface Versions {
  readonly metadataVersion: number;
  readonly accessVersion: number;
}

/** Columns of Versions, of `_state state`. */
export const VERSION_COLUMNS = 'state.metadata_version AS "metadataVersion", state.access_version AS "accessVersion"';

/** A user's view of a tenant at one pair of versions. Immutable. */
export interface View extends Versions {
  readonly tenantId: string;
  readonly snapshot: Snapshot;
  readonly access: Access;
  /** Names this view in caches. */
  readonly key: string;
}

/** The time zone of the caller, or of the tenant when the caller has none. */
export const timezoneOf = ({ access, snapshot }: View): string => access.principal.timezone || snapshot.tenant.timezone;

/** Common to the operations on manual shares. */
import { PlatformError } from '../../../lib/errors/platform-error.ts';

/** The columns of a share of `_shares sh`, as the API returns it. */
export const SHARE_COLUMNS = `sh.share_id AS "shareId", sh.principal_type AS "principalType",
  sh.principal_id AS "principalId", sh.access, sh.reason,
  sh.created_at AS "createdAt", sh.created_by_id AS "createdById"`;

/** 403 for callers who can read the record, but do not have the full access that sharing it needs. */
export const sharingDenied = (): PlatformError =>
  new PlatformError('RECORD_ACCESS_DENIED', 'You may read this record, but you may not share it.', {
    details: { layer: 'sharing' },
  });

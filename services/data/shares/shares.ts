/** What the operations on manual shares have in common. */
import { PlatformError } from '../../../lib/errors/platform-error.ts';

/** The columns of a share of `_shares sh`, as it is shown. */
export const SHARE_COLUMNS = `sh.share_id AS "shareId", sh.principal_type AS "principalType", sh.principal_id AS "principalId", sh.access, sh.reason,
  sh.created_at AS "createdAt", sh.created_by_id AS "createdById"`;

/** 403 to who reads the record but does not decide who else does. */
export const sharingDenied = (): PlatformError =>
  new PlatformError('RECORD_ACCESS_DENIED', 'You may read this record, but not decide who else does.', {
    details: { layer: 'sharing' },
  });

/** The login of the service looks across tenants. */
import type { Statement } from '../../../mixins/database/statement.ts';

/** Each tenant counts once: one that is going to be deleted is suspended as well. */
export interface TenantNumbers {
  readonly active: number;
  readonly suspended: number;
  readonly deleting: number;
}

export const tenantNumbers = (): Statement => ({
  text: `SELECT count(*) FILTER (WHERE NOT suspended AND delete_at IS NULL)::integer AS active,
      count(*) FILTER (WHERE suspended AND delete_at IS NULL)::integer AS suspended,
      count(*) FILTER (WHERE delete_at IS NOT NULL)::integer AS deleting
    FROM metadata.tenants`,
});

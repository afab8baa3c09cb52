import type { StoredGrant } from '../../../lib/access/client-marks.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export interface LivingGrant extends StoredGrant {
  readonly id: string;
}

/** Those of the grants that are live. */
export function livingGrants(tenantId: string, grantIds: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT id, user_id AS "userId", client_id AS "clientId", authentication
       FROM auth.living_grants(${sql.bind(tenantId, 'uuid')}, ${sql.bind(grantIds, 'text[]')})`,
  );
}

/** True when the tenant is suspended or gone. */
export const suspendedStatement = (tenantId: string): Statement => ({
  text: 'SELECT metadata.tenant_suspended($1) AS suspended',
  values: [tenantId],
});

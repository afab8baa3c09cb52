/** The statement that asks for the version of a tenant's schema. */
import type { Statement } from '../../mixins/database/statement.ts';

export const schemaVersionStatement = (tenantId: string): Statement => ({
  text: 'SELECT metadata.tenant_schema_version($1) AS version',
  values: [tenantId],
});

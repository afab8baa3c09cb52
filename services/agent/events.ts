/** Events of runs and approvals in the outbox of their tenant, outside of the frame of mutations. */
import type { Tx } from '../../mixins/database/database.ts';
import { serviceRole, tenantRole } from '../../mixins/database/roles.ts';
import { Sql } from '../../mixins/database/sql.ts';
import { type Caller, CallerSql, outboxSql } from '../../mixins/mutation/audit.ts';

export type Events = readonly {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}[];

/** Writes events in the transaction of what they tell about; it goes on as the role of this service. */
export async function writeEvents(
  tx: Tx,
  caller: Caller & { readonly tenantId: string },
  events: Events,
): Promise<void> {
  tx.actAs(tenantRole(caller.tenantId));
  const { schema } = tx;
  const written = events.map(({ type, data }) => {
    const sql = new Sql();
    const event = { type, data: sql.bind(JSON.stringify(data), 'jsonb') };
    return tx.query(sql.statement(outboxSql(schema, new CallerSql(sql, caller), event)));
  });
  tx.actAs(serviceRole('agent', caller.tenantId));
  await Promise.all(written);
}

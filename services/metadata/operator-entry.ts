/** Audits an operator's actions in the trail of the tenant. */
import { requestId } from '../../lib/values/ids.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { serviceRole, tenantRole } from '../../mixins/database/roles.ts';
import { randomRest, timeOrderedIdSql } from '../../mixins/database/time-ordered-id.ts';
import { eventStatement } from './event.sql.ts';

type OperatorAct =
  | `metadata.tenants.${'setLimits' | 'cancelDeployment' | 'suspend' | 'resume' | 'rename' | 'delete' | 'undelete'}`
  | 'tenants.export';

/** Writes the entry, and events, in the transaction of the change, which goes on as the role of the service. */
export async function writeOperatorEntry(
  tx: Tx,
  tenantId: string,
  operationId: OperatorAct,
  changes: object,
  events: readonly { type: string; data: object }[] = [],
): Promise<void> {
  tx.actAs(tenantRole(tenantId));
  await tx.query({
    text: `INSERT INTO ${tx.schema}._audit (audit_id, channel, operation_id, outcome, request_id, changes)
      VALUES (${timeOrderedIdSql('$1::text')}, 'job', $2, 'committed', $3, $4)`,
    values: [randomRest(), operationId, requestId(), JSON.stringify(changes)],
  });
  const platform = { userId: null, clientId: null, agentRunId: null, requestId: requestId() };
  for (const { type, data } of events) await tx.query(eventStatement(tx.schema, type, platform, data));
  tx.actAs(serviceRole('metadata', tenantId));
}

/** Mutations that were refused before they reached their service, as entries of the audit trail. */
import type { RequestContext } from '../../../lib/context.ts';
import { isUuid, uuidv7 } from '../../../lib/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import type { DataActions } from '../contract.ts';

export async function recordDenial(
  database: Database,
  request: RequestContext,
  denial: DataActions['data.audit.deny']['params'],
): Promise<null> {
  await database.tenant(request.tenantId, (tx) =>
    tx.arrays({
      text: `INSERT INTO ${tx.schema}._audit (audit_id, user_id, client_id, agent_run_id, channel, operation_id, outcome, code, request_id, idempotency_key, object, record_id, ip)
        VALUES ($1, $2, $3, $4, $5, $6, 'denied', $7, $8, $9, $10, $11, $12)`,
      values: [
        uuidv7(),
        request.userId,
        request.clientId,
        isUuid(request.agentRunId ?? '') ? request.agentRunId : null,
        request.channel,
        denial.operationId,
        denial.code,
        request.requestId,
        denial.idempotencyKey,
        denial.objectApiName,
        denial.recordId,
        request.ip,
      ],
    }),
  );
  return null;
}

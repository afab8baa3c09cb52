/** Entries of the audit trail about requests themselves, beside those that each changed record leaves. */
import type { RequestContext } from '../../../lib/context.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import type { Sql } from '../../../mixins/database/sql.ts';

export interface Entry {
  readonly operationId: string;
  readonly outcome: 'committed' | 'denied' | 'failed';
  readonly code: string | null;
  readonly idempotencyKey: string | null;
  readonly objectApiName: string | null;
  readonly recordId: string | null;
  /** SQL of jsonb. */
  readonly changes?: string;
}

/** `INSERT INTO _audit … SELECT …` of one entry; a FROM or WHERE may follow. */
export const entrySql = (
  schema: string,
  { bind }: Sql,
  request: RequestContext,
  { operationId, outcome, code, idempotencyKey, objectApiName, recordId, changes = 'NULL' }: Entry,
): string =>
  `INSERT INTO ${schema}._audit (audit_id, user_id, client_id, agent_run_id, channel, request_id, ip,
      operation_id, outcome, code, idempotency_key, object, record_id, changes)
    SELECT ${bind(uuidv7(), 'uuid')}, ${bind(request.userId, 'uuid')}, ${bind(request.clientId, 'text')}, ${bind(request.agentRunId, 'uuid')}, ${bind(request.channel, 'text')}, ${bind(request.requestId, 'text')}, ${bind(request.ip, 'text')},
      ${bind(operationId, 'text')}, ${bind(outcome, 'text')}, ${bind(code, 'text')}, ${bind(idempotencyKey, 'text')}, ${bind(objectApiName, 'text')}, ${bind(recordId, 'uuid')}, ${changes}`;

/** Audit entries about events outside this service: refusals, and actions of operators. */

import type { DataActions } from '../../../contracts/data.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { isUuid, requestId } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { auditSql, CallerSql, outboxSql, platformCaller } from '../../../mixins/mutation/audit.ts';
import { isTenantGone } from '../users/directory.ts';

export async function recordDenial(
  database: Database,
  request: RequestContext,
  denial: DataActions['data.audit.deny']['params'],
): Promise<null> {
  // The request was refused before its form was checked.
  const agentRunId = isUuid(request.agentRunId ?? '') ? request.agentRunId : null;
  const sql = new Sql();
  return recordRefusal(database, request.tenantId, (schema) =>
    sql.statement(
      auditSql(schema, sql, new CallerSql(sql.for({ ...request, agentRunId })), { ...denial, outcome: 'denied' }),
    ),
  );
}

/** Dropped when the tenant is gone: its trail went with it, and the reporter would try again for ever. */
async function recordRefusal(
  database: Database,
  tenantId: string,
  statementOf: (schema: string) => Statement,
): Promise<null> {
  try {
    await database.tenant(tenantId, (tx) => tx.query(statementOf(tx.schema)));
  } catch (error) {
    if (!isTenantGone(error)) throw error;
  }
  return null;
}

const SIGN_IN = 'auth.user.signIn';

/** The caller is anonymous, so the entry has no actor: they only named the user of the record. */
export async function recordSignInDenial(
  database: Database,
  { tenantId, userId, code, clientId, ip, requestId }: DataActions['data.audit.denySignIn']['params'],
): Promise<null> {
  const sql = new Sql();
  const caller = { userId: null, clientId, agentRunId: null, channel: 'ui', requestId, ip } as const;
  const entry = { operationId: SIGN_IN, outcome: 'denied', code, objectApiName: 'User', recordId: userId } as const;
  return recordRefusal(database, tenantId, (schema) =>
    sql.statement(auditSql(schema, sql, new CallerSql(sql.for(caller)), entry)),
  );
}

/** Of an operator or of the holder of a link, whom the platform does not know; or of a user on a page (`actorId`). */
export async function recordAct(
  database: Database,
  {
    tenantId,
    auditId,
    operationId,
    userId,
    channel,
    actorId,
    changes,
    event,
  }: DataActions['data.audit.note']['params'],
): Promise<null> {
  const sql = new Sql();
  const objectApiName = userId === null ? null : 'User';
  const entry = { operationId, outcome: 'committed', objectApiName, recordId: userId } as const;
  await database.tenant(tenantId, (tx) => {
    const caller = new CallerSql(sql.for(platformCaller(channel, requestId(), actorId)));
    const columns = {
      auditId: sql.bind(auditId, 'uuid'),
      ...(changes ? { changes: sql.bind(JSON.stringify(changes), 'jsonb') } : {}),
    };
    const insert = `${auditSql(tx.schema, sql, caller, entry, columns)} ON CONFLICT (audit_id) DO NOTHING`;
    if (!event) return tx.query(sql.statement(insert));
    const data = sql.bind(JSON.stringify(event.data), 'jsonb');
    const insertEvent = outboxSql(tx.schema, caller, { type: event.type, data });
    return tx.query(sql.statement(`WITH noted AS (${insert} RETURNING audit_id) ${insertEvent} FROM noted`));
  });
  return null;
}

const SUPPRESSED = 'events.audit.suppressed';

/** One entry for refusals that have none of their own. */
export async function recordSuppressed(
  database: Database,
  { tenantId, count, since }: DataActions['data.audit.suppress']['params'],
): Promise<null> {
  const sql = new Sql();
  return recordRefusal(database, tenantId, (schema) => {
    const caller = new CallerSql(sql.for(platformCaller('job', requestId())));
    const changes = sql.bind(JSON.stringify({ suppressed: count, since }), 'jsonb');
    return sql.statement(auditSql(schema, sql, caller, { operationId: SUPPRESSED, outcome: 'denied' }, { changes }));
  });
}

/** The statement that writes an event into the outbox of a tenant, as the role of the tenant. */
import type { Statement } from '../../mixins/database/statement.ts';

/** The user, client and agent run that caused an event; null for acts of the platform. */
export interface EventActor {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly agentRunId: string | null;
  readonly requestId: string;
}

/** `schema` is quoted. */
export const eventStatement = (schema: string, type: string, actor: EventActor, data: object): Statement => ({
  text: `INSERT INTO ${schema}._outbox (type, user_id, client_id, agent_run_id, request_id, data)
    VALUES ($1, $2, $3, $4, $5, $6)`,
  values: [type, actor.userId, actor.clientId, actor.agentRunId, actor.requestId, JSON.stringify(data)],
});

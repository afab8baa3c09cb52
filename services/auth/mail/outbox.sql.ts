/** Statements about mails on their way. Those that take mails run as the login role: they belong to all tenants. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { MAIL_KINDS, type NewMail } from './kinds.ts';

export function queueMail({ tenantId, userId, kind, address, details = {} }: NewMail): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT auth.queue_mail(${sql.bind(tenantId, 'uuid')}, ${sql.bind(userId, 'uuid')}, ${sql.bind(kind, 'text')},
       ${sql.bind(address, 'text')}, ${sql.bind(JSON.stringify(details), 'jsonb')},
       ${sql.bind(MAIL_KINDS[kind].trySeconds, 'integer')}) AS outcome`,
  );
}

/** Of so many due mails the next ones are chosen. */
const LOOKED_AT = 5_000;

/**
 * Leases due mails, so that no other process takes them: of each tenant one after the other, those that a person
 * waits for first. A mail about an event waits until the earlier ones to its address have ended: calendar programs and
 * people take the last one for what is so.
 */
export function takeMails(limit: number, leaseSeconds: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `WITH due AS (
       SELECT tenant_id, id, kind, due_at FROM auth.mails mail
       WHERE ended_at IS NULL AND due_at <= clock_timestamp() AND give_up_at > now()
         AND NOT (kind = 'calendarEvent' AND EXISTS (
           SELECT FROM auth.mails earlier
           WHERE earlier.tenant_id = mail.tenant_id AND earlier.address_hash = mail.address_hash
             AND earlier.kind = 'calendarEvent' AND earlier.ended_at IS NULL
             AND (earlier.created_at, earlier.id) < (mail.created_at, mail.id)))
       ORDER BY due_at LIMIT ${LOOKED_AT}),
     ranked AS (
       SELECT tenant_id, id, due_at, kind = 'passwordReset' AS awaited, row_number() OVER (
         PARTITION BY tenant_id ORDER BY kind = 'passwordReset' DESC, due_at) AS place
       FROM due),
     taken AS (
       SELECT mail.tenant_id, mail.id FROM ranked JOIN auth.mails mail USING (tenant_id, id)
       WHERE mail.ended_at IS NULL AND mail.due_at <= clock_timestamp()
       ORDER BY ranked.place, ranked.awaited DESC, ranked.due_at
       LIMIT ${sql.bind(limit, 'integer')} FOR UPDATE OF mail SKIP LOCKED)
     UPDATE auth.mails mail SET attempts = attempts + 1,
       due_at = clock_timestamp() + make_interval(secs => ${sql.bind(leaseSeconds, 'integer')})
     FROM taken WHERE mail.tenant_id = taken.tenant_id AND mail.id = taken.id
     RETURNING mail.tenant_id AS "tenantId", mail.id, mail.user_id AS "userId", mail.kind, mail.address, mail.details,
       mail.attempts`,
  );
}

interface Taken {
  readonly tenantId: string;
  readonly id: string;
  readonly attempts: number;
}

/** By the number of the attempt: what another process has taken since belongs to that one. */
const taken = (sql: Sql, { tenantId, id, attempts }: Taken): string =>
  `tenant_id = ${sql.bind(tenantId, 'uuid')} AND id = ${sql.bind(id, 'uuid')}
     AND attempts = ${sql.bind(attempts, 'integer')} AND ended_at IS NULL`;

const WITHOUT_CONTENT = 'address = NULL, details = NULL';

export function endMail(mail: Taken, outcome: 'sent' | 'refused' | 'needless'): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.mails SET ended_at = now(), outcome = ${sql.bind(outcome, 'text')}, ${WITHOUT_CONTENT}
     WHERE ${taken(sql, mail)}`,
  );
}

/** It is tried again after a while. `untried`: the attempt does not count, since nothing of it was sent. */
export function postponeMail(mail: Taken, seconds: number, untried: boolean): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.mails SET due_at = clock_timestamp() + make_interval(secs => ${sql.bind(seconds, 'float8')}),
       attempts = attempts - ${sql.bind(untried ? 1 : 0, 'integer')}
     WHERE ${taken(sql, mail)}`,
  );
}

/** Gives up what was tried for too long and is not being sent at this moment; one row for each kind. */
export function giveUpMails(): Statement {
  const sql = new Sql();
  return sql.statement(
    `WITH over AS (
       UPDATE auth.mails SET ended_at = now(), outcome = 'gaveUp', ${WITHOUT_CONTENT}
       WHERE ended_at IS NULL AND give_up_at < now() AND (attempts = 0 OR due_at <= clock_timestamp())
       RETURNING kind)
     SELECT kind, count(*)::int AS count FROM over GROUP BY kind`,
  );
}

/** `waiting`: it is on its way. */
export type MailState = 'waiting' | 'sent' | 'refused' | 'gaveUp' | 'needless';

export function mailStates(tenantId: string, ids: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT notifications_id AS id, coalesce(outcome, 'waiting') AS state FROM auth.mails
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND notifications_id = ANY (${sql.bind(ids, 'uuid[]')})`);
}

export interface QueueState {
  readonly waiting: number;
  readonly oldestSeconds: number;
}

export function queueState(): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT count(*)::int AS waiting,
       coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS "oldestSeconds"
     FROM auth.mails WHERE ended_at IS NULL`,
  );
}

/** Remains of mails that old are not counted any more. */
export const DELETE_ENDED_MAILS = "DELETE FROM auth.mails WHERE ended_at < now() - interval '2 days'";

/**
 * Makes notifications of what was asked for in the outboxes of tenants. A row goes in the transaction in which its
 * notifications come: nothing is lost and nothing comes twice, whenever a process dies.
 */
import { LIMITS } from '../../lib/limits.ts';
import type { Notice } from '../../lib/notice.ts';
import { requestId } from '../../lib/values/ids.ts';
import { sqlState, type Tx } from '../../mixins/database/database.ts';
import { serviceRole, tenantRole } from '../../mixins/database/roles.ts';
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';
import type { JobPayload } from '../../mixins/jobs/queue.ts';
import { CallerSql, outboxSql, platformCaller } from '../../mixins/mutation/audit.ts';
import type { Unit } from '../../mixins/mutation/unit.ts';
import { NOTICE_REQUESTED } from '../../mixins/notices.ts';
import { createItems, readRecipients, readTexts, type Texts, type Users } from './create.ts';
import type { NotificationsDeps } from './deps.ts';
import { countSentSql } from './items.sql.ts';

const BATCH = 100;

interface RequestedRow {
  readonly outboxId: string;
  readonly notice: Notice;
}

type Event = Parameters<Unit['emit']>[0];

/** For services whose own work is repeated until it is done. */
export async function notify(deps: NotificationsDeps, tenantId: string, notice: Notice): Promise<void> {
  const users = await readRecipients(deps, tenantId, namedIn(notice));
  const texts = await readTexts(deps, tenantId, notice, users);
  await deps.database.tenantTransaction(tenantId, (tx) => make(tx, tenantId, [{ notice, texts }], users));
}

const namedIn = ({ recipientIds, actor }: Notice): readonly string[] =>
  actor ? [...recipientIds, actor.userId] : recipientIds;

interface Prepared {
  readonly notice: Notice;
  readonly texts: Texts;
}

/** The notifications and their events; the transaction acts as the tenant's role. */
async function make(tx: Tx, tenantId: string, notices: readonly Prepared[], users: Users): Promise<void> {
  const { schema } = tx;
  const events: Event[] = [];
  tx.actAs(serviceRole('notifications', tenantId));
  for (const prepared of notices)
    if (await isWithinLimit(tx, tenantId, prepared.notice))
      await createItems(tx, tenantId, prepared, users, (event) => events.push(event));
  tx.actAs(tenantRole(tenantId));
  for (const event of events) await tx.query(eventSql(schema, event));
}

/** Users invite and uninvite whom they like, so what that causes counts as notifications that they send. */
async function isWithinLimit(tx: Tx, tenantId: string, { type, actor, recipientIds }: Notice): Promise<boolean> {
  if (!actor || !type.startsWith('calendar')) return true;
  const { sent } = await tx.one<{ sent: number }>(
    countSentSql({ tenantId, userId: actor.userId }, recipientIds.length),
  );
  return sent <= LIMITS.notification_sent_per_hour_max;
}

/**
 * Works off what waits in the outbox of the tenant. A notice that the database does not take is logged and given up: those
 * behind it would wait for ever.
 */
export async function workOff(deps: NotificationsDeps, { tenantId }: JobPayload, signal: AbortSignal): Promise<void> {
  let take = BATCH;
  while (!signal.aborted) {
    const waiting = await deps.database.tenant(tenantId, (tx) => tx.all<RequestedRow>(waitingSql(tx.schema, take)));
    const [first] = waiting;
    if (!first) return;
    try {
      // Another process has them: it works off what is behind them as well.
      if ((await makeWaiting(deps, tenantId, waiting)) === 0) return;
      take = BATCH;
    } catch (error) {
      if (!/^2[23]/.test(sqlState(error) ?? '')) throw error;
      take = 1;
      if (waiting.length > 1) continue;
      deps.log.error({ err: error, tenantId, type: first.notice.type }, 'A notice cannot be made and is given up.');
      await deps.database.tenant(tenantId, (tx) => tx.query(takeSql(tx.schema, [first.outboxId])));
    }
  }
}

/** Answers how many of the notices this process has made. */
async function makeWaiting(
  deps: NotificationsDeps,
  tenantId: string,
  waiting: readonly RequestedRow[],
): Promise<number> {
  const users = await readRecipients(
    deps,
    tenantId,
    waiting.flatMap(({ notice }) => namedIn(notice)),
  );
  const notices = new Map<string, Prepared>();
  for (const { outboxId, notice } of waiting)
    notices.set(outboxId, { notice, texts: await readTexts(deps, tenantId, notice, users) });
  return deps.database.tenantTransaction(tenantId, async (tx) => {
    const rows = await tx.all<{ outboxId: string }>(takeSql(tx.schema, [...notices.keys()]));
    const taken = new Set(rows.map(({ outboxId }) => outboxId));
    // In their order, in which the rows do not come.
    const inOrder = [...notices].flatMap(([outboxId, notice]) => (taken.has(outboxId) ? [notice] : []));
    await make(tx, tenantId, inOrder, users);
    return rows.length;
  });
}

/** Notices of one tenant, in the order in which they were asked for. An index has these rows alone. */
const waitingSql = (schema: string, take: number): Statement => ({
  text: `SELECT outbox_id AS "outboxId", data AS notice FROM ${schema}._outbox
    WHERE type = '${NOTICE_REQUESTED}' ORDER BY outbox_id LIMIT ${take}`,
});

function takeSql(schema: string, ids: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM ${schema}._outbox WHERE type = '${NOTICE_REQUESTED}' AND outbox_id IN (
    SELECT outbox_id FROM ${schema}._outbox WHERE type = '${NOTICE_REQUESTED}' AND outbox_id = ANY (${sql.bind(ids, 'bigint[]')})
    ORDER BY outbox_id FOR UPDATE SKIP LOCKED) RETURNING outbox_id AS "outboxId"`);
}

function eventSql(schema: string, { type, recordId, data }: Event): Statement {
  const sql = new Sql();
  const event = {
    type,
    recordId: sql.bind(recordId ?? null, 'uuid'),
    data: sql.bind(JSON.stringify(data), 'jsonb'),
  };
  return sql.statement(outboxSql(schema, new CallerSql(sql.for(platformCaller('job', requestId()))), event));
}

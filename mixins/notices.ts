/**
 * Asks notifications to tell users of something: a row of the tenant's outbox and a job, in the transaction that causes it.
 * Neither is there without the other, and the row goes with the notifications that are made of it.
 * Source: docs/reference/notifications.md#how-they-arise.
 */
import type { Notice } from '../lib/notice.ts';
import type { Tx } from './database/database.ts';
import { Sql } from './database/sql.ts';
import type { Jobs } from './jobs/jobs.ts';
import { type JobPayload, jobQueue } from './jobs/queue.ts';
import { type Caller, CallerSql, outboxSql } from './mutation/audit.ts';

/** Type of the row. It is no event for subscribers. */
export const NOTICE_REQUESTED = 'notifications.notification.requested';

/** One for each transaction that has asked. Every process that asks declares the queue. */
export const NOTICES = jobQueue<JobPayload>('notifications.notices', {
  attempts: 300,
  retrySeconds: 5,
  retryMaxSeconds: 600,
  pollSeconds: 2,
  concurrency: 2,
  perTenant: 1,
  oneForEachKey: false,
});

/** The transaction acts as the role of the tenant. The notice has no values of records: recipients may not see them. */
export async function requestNotice(
  tx: Tx,
  jobs: Jobs,
  caller: Caller & { readonly tenantId: string },
  notice: Notice,
): Promise<void> {
  if (notice.recipientIds.length === 0) return;
  const sql = new Sql();
  const data = sql.bind(JSON.stringify(notice), 'jsonb');
  await tx.query(sql.statement(outboxSql(tx.schema, new CallerSql(sql.for(caller)), { type: NOTICE_REQUESTED, data })));
  await jobs.enqueue(NOTICES, { tenantId: caller.tenantId }, { tx });
}

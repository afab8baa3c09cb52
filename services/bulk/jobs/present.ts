/** A job as callers see it. */
import type { BulkJob } from '../../../contracts/bulk.ts';
import type { JobRow } from './job.sql.ts';

export const presentJob = (row: JobRow): BulkJob => ({
  jobId: row.jobId,
  operation: row.operation,
  objectApiName: row.objectApiName,
  state: row.state,
  format: row.request.format,
  checkOnly: row.request.checkOnly ?? false,
  createdAt: row.createdAt,
  startedAt: row.startedAt,
  finishedAt: row.finishedAt,
  expiresAt: row.expiresAt,
  counts: {
    total: row.total,
    processed: row.processed,
    succeeded: row.succeeded,
    failed: row.failed,
    unprocessed: row.total === null ? null : row.total - row.processed,
  },
  createdBy: row.userId,
  error: row.error,
});

/** Numbers for metrics: the work of this process, and the jobs of all tenants, which every process of the service reports. */
import { LIMITS } from '../../lib/limits.ts';
import type { Database } from '../../mixins/database/database.ts';
import type { Statement } from '../../mixins/database/statement.ts';
import { askedRow } from '../../mixins/metrics/asked-numbers.ts';
import type { Metrics } from '../../mixins/metrics/metrics.ts';

export interface Numbers {
  succeeded: number;
  failed: number;
  exported: number;
  /** Milliseconds for which jobs paused to give way to other work. */
  pausedMs: number;
}

export const newNumbers = (): Numbers => ({ succeeded: 0, failed: 0, exported: 0, pausedMs: 0 });

interface OpenJobs {
  readonly queued: number;
  readonly processing: number;
  readonly canceling: number;
  readonly stuck: number;
  readonly waitingSeconds: number;
}

export function registerNumbers(metrics: Metrics, database: Database, numbers: Numbers): void {
  metrics.counters('erp_bulk_rows_total', 'Rows of bulk jobs that this process has handled.', ['outcome'], () => [
    [{ outcome: 'succeeded' }, numbers.succeeded],
    [{ outcome: 'failed' }, numbers.failed],
    [{ outcome: 'exported' }, numbers.exported],
  ]);
  metrics.counters(
    'erp_bulk_paused_seconds_total',
    'Time in which bulk jobs of this process gave way to other work.',
    [],
    () => [[{}, numbers.pausedMs / 1_000]],
  );
  const none = { queued: 0, processing: 0, canceling: 0, stuck: 0, waitingSeconds: 0 };
  const read = askedRow<OpenJobs>(database, openJobsStatement, none);
  metrics.gauges('erp_bulk_jobs', 'Bulk jobs of all tenants that wait or are at work.', ['state'], () => [
    [{ state: 'queued' }, read().queued],
    [{ state: 'processing' }, read().processing],
    [{ state: 'canceling' }, read().canceling],
  ]);
  metrics.gauge(
    'erp_bulk_jobs_stuck',
    'Bulk jobs that were taken up several times since they last got on.',
    () => read().stuck,
  );
  metrics.gauge(
    'erp_bulk_oldest_waiting_seconds',
    'For how long a bulk job waits whose tenant has no others in front of it.',
    () => read().waitingSeconds,
  );
}

/** Attempts without progress after which a job counts as stuck. */
const STUCK_ATTEMPTS = 5;

function openJobsStatement(): Statement {
  return {
    text: `SELECT queued, processing, canceling, stuck,
      coalesce(extract(epoch FROM clock_timestamp() - oldest), 0)::float8 AS "waitingSeconds"
      FROM bulk.numbers(${LIMITS.bulk_processing_max}, ${STUCK_ATTEMPTS})`,
  };
}

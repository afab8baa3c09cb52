/** Numbers of this process, for metrics. */
import type { Metrics } from '../../mixins/metrics/metrics.ts';

export interface Numbers {
  succeeded: number;
  failed: number;
  exported: number;
  /** Milliseconds that chunks waited for because others were at work. */
  pausedMs: number;
}

export const newNumbers = (): Numbers => ({ succeeded: 0, failed: 0, exported: 0, pausedMs: 0 });

export function registerNumbers(metrics: Metrics, numbers: Numbers): void {
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
}

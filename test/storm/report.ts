/** What a storm was like, for people. */
import type { Traffic } from './client.ts';
import type { Ledger } from './ledger.ts';
import type { Load } from './load.ts';
import type { Checked } from './oracles.ts';
import type { FaultKind } from './schedule.ts';
import type { StormOptions } from './storm.ts';

export interface ReportInput {
  readonly options: StormOptions;
  readonly kinds: readonly FaultKind[];
  readonly ms: number;
  readonly traffic: Traffic;
  readonly ledger: Ledger;
  readonly load: Load;
  readonly checked: Checked;
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Markdown tables. */
export function report({ options, kinds, ms, traffic, ledger, load, checked }: ReportInput): string {
  const { done, skipped } = traffic.faults;
  const rows = kinds.map((kind) => {
    const some = done.filter(({ fault }) => fault.kind === kind);
    // From the end of the fault until the last failed answer that it explains; none failed after most of them.
    const recoveries = some
      .map(({ ended, lastFailure }) => Math.max(0, (lastFailure ?? 0) - (ended ?? 0)))
      .sort((a, b) => a - b);
    const at = (part: number): string =>
      some.length ? seconds(recoveries[Math.min(some.length - 1, Math.floor(some.length * part))]!) : '–';
    return `| ${kind} | ${some.length} | ${at(0.5)} | ${at(1)} |`;
  });
  const answered = ledger.intentions.filter(({ answer }) => answer !== null).length;
  const failures = [...traffic.failures].sort(([, a], [, b]) => b - a);
  return [
    `seed ${options.seed}, ${seconds(ms)}, ${done.length} faults (${skipped.length} left out)`,
    '',
    '| fault | times | recovery p50 | recovery max |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
    '| what | number |',
    '| --- | --- |',
    `| requests | ${traffic.requests} |`,
    `| intentions | ${ledger.intentions.length} |`,
    `| intentions with a final answer | ${answered} |`,
    ...failures.map(([what, count]) => `| failed attempts: ${what} | ${count} |`),
    `| failed attempts without a fault while the machine was overloaded | ${traffic.overloaded} |`,
    `| longest time without a successful write | ${seconds(traffic.silence)} |`,
    `| copies made anew (outdated cursors) | ${load.followers.reduce((sum, { restarts }) => sum + restarts, 0)} |`,
    ...[...checked].map(([what, count]) => `| checked: ${what} | ${count} |`),
    ...traffic.cluster.members.map(
      ({ name, memory }) => `| memory of ${name} | ${Math.round(memory / 1024 ** 2)} MiB |`,
    ),
    `| violations | ${traffic.violations.all.length} ${traffic.violations.counts()} |`,
  ].join('\n');
}

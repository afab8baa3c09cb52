/** Human-readable report of a storm. */
import type { Traffic } from './client.ts';
import type { Ledger } from './ledger.ts';
import type { Load } from './load.ts';
import type { Checked } from './oracles.ts';
import type { FaultKind } from './schedule.ts';
import type { StormOptions } from './storm.ts';

interface ReportInput {
  readonly options: StormOptions;
  readonly kinds: readonly FaultKind[];
  readonly ms: number;
  readonly traffic: Traffic;
  readonly ledger: Ledger;
  readonly load: Load;
  readonly checked: Checked;
}

/** Of what failed on an overloaded machine: enough to see what it was. */
const OVERLOADED_SHOWN = 10;
const OVERLOADED_CHARACTERS = 200;

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
    `| mutations | ${ledger.intentions.length} |`,
    `| mutations with a final answer | ${answered} |`,
    ...failures.map(([what, count]) => `| failed attempts: ${what} | ${count} |`),
    `| failed attempts without a fault while the machine was overloaded | ${traffic.overloaded.length} |`,
    ...traffic.overloaded
      .slice(0, OVERLOADED_SHOWN)
      .map((text) => `| of these | ${text.slice(0, OVERLOADED_CHARACTERS)} |`),
    `| longest time without a successful write | ${seconds(traffic.silence)} |`,
    `| copies made anew (outdated cursors) | ${load.followers.reduce((sum, { restarts }) => sum + restarts, 0)} |`,
    ...eventRows(load),
    ...[...checked].map(([what, count]) => `| checked: ${what} | ${count} |`),
    ...traffic.cluster.members.map(({ name, memory, memoryTrend }) => {
      const [most, first, last] = [memory, ...memoryTrend].map((bytes) => Math.round(bytes / 1024 ** 2));
      return `| memory of ${name} at most; in the first minute, in the last one | ${most} MiB; ${first}, ${last} |`;
    }),
    `| violations | ${traffic.violations.all.length} ${traffic.violations.counts()} |`,
  ].join('\n');
}

/** What those have heard who follow events; a receiver may hear of one more than once. */
function eventRows({ listeners: { puller, streamer, receiver } }: Load): string[] {
  const { ids } = receiver.heard;
  return [
    `| events asked for; times that it began anew | ${puller.heard.ids.length}; ${puller.restarts} |`,
    `| events of streams; connections | ${streamer.heard.ids.length}; ${streamer.connections} |`,
    `| events that a receiver has taken; more than once | ${new Set(ids).size}; ${ids.length - new Set(ids).size} |`,
    `| deliveries that it has refused; left without an answer | ${receiver.refused}; ${receiver.unanswered} |`,
  ];
}

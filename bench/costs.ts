/** The recorded costs of requests, and the comparison of measured ones with them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Work } from './work.ts';

/** Cost of one request. */
export interface Cost extends Work {
  /** Processor time in that of the limit server. */
  readonly cpu: number;
}

/** List, get, create and update. */
export const WORKLOADS = ['W1', 'W4', 'W5', 'W6'];

const RECORD = join(import.meta.dirname, 'results', 'cost.json');

interface Measure {
  readonly unit: string;
  readonly digits: number;
  /** Accepted, as shares of the recorded value. A gain beyond it is to be recorded, or it could be lost again unnoticed. */
  readonly more: number;
  readonly less: number;
}

/** Equal in all starts but for rounding. */
const EXACT = { digits: 0, more: 0.03, less: 0.03 };

const MEASURES: Record<keyof Cost, Measure> = {
  statements: { unit: 'statements', ...EXACT, digits: 1 },
  calls: { unit: 'function calls', ...EXACT },
  promises: { unit: 'promises', ...EXACT },
  // Differs by some percent between starts: answers of the database arrive in varying parts.
  kilobytes: { unit: 'kB allocated', digits: 1, more: 0.1, less: 1 },
  // Two starts of the same code differ by up to a quarter.
  cpu: { unit: "times the limit's processor time", digits: 2, more: 0.25, less: 1 },
};
const NAMES = Object.keys(MEASURES).filter((name): name is keyof Cost => name in MEASURES);

type Costs = Readonly<Record<string, Partial<Cost>>>;

const recorded = (): Costs => JSON.parse(readFileSync(RECORD, 'utf8'));

const rounded = (name: keyof Cost, value: number): number => Number(value.toFixed(MEASURES[name].digits));

/** Keeps the measured values in place of those that are recorded; others stay. */
export function record(costs: Costs): void {
  const kept: Record<string, Partial<Cost>> = { ...recorded() };
  for (const [workload, cost] of Object.entries(costs)) {
    const measured = NAMES.map((name) => [name, cost[name] ?? kept[workload]?.[name]] as const);
    kept[workload] = Object.fromEntries(
      measured.flatMap(([name, value]) => (value === undefined ? [] : [[name, rounded(name, value)]])),
    );
  }
  writeFileSync(RECORD, `${JSON.stringify(kept, null, 2)}\n`);
}

/** One line for each measured value, beside the recorded one. */
export const lines = (costs: Costs): string[] => compared(costs).map(({ line }) => line);

/** The lines of values that differ from the recorded ones by more than is accepted. */
export const deviations = (costs: Costs): string[] =>
  compared(costs).flatMap(({ line, accepted }) => (accepted ? [] : [line]));

function compared(costs: Costs): { readonly line: string; readonly accepted: boolean }[] {
  const known = recorded();
  return Object.entries(costs).flatMap(([workload, cost]) =>
    NAMES.flatMap((name) => {
      const measured = cost[name];
      if (measured === undefined) return [];
      const { unit, more, less } = MEASURES[name];
      const now = rounded(name, measured);
      const before = known[workload]?.[name];
      if (before === undefined) return [{ line: `${workload}: ${now} ${unit}, none recorded`, accepted: false }];
      const change = now / before - 1;
      const percent = `${change < 0 ? '' : '+'}${(change * 100).toFixed(1)} %`;
      return [
        {
          line: `${workload}: ${now} ${unit}, ${before} recorded (${percent})`,
          accepted: change <= more && change >= -less,
        },
      ];
    }),
  );
}

/** The error for `deviations`. */
export const advice = (differing: readonly string[]): string => `${differing.join('\n')}

A request costs more or less than bench/results/cost.json says. \`npm run bench:cost -- --work --functions .\` prints the
functions that it calls. If the change is intended, run \`npm run bench:cost -- --work --record\` (without \`--work\` for processor
time), and commit the file together with the change and the reason.`;

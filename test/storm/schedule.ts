/** Which faults a storm has, and when: a pure function of the seed. */
import { type Random, randomOf } from './random.ts';

/** faults.ts implements each kind. */
export const FAULT_KINDS = [
  'kill',
  'terminate',
  'stall',
  'split',
  'clock',
  'database',
  'sessions',
  'readOnly',
  'disk',
  'bus',
  'restore',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  /** Milliseconds after the beginning of the storm. */
  readonly at: number;
  readonly kind: FaultKind;
  /** A process, or what the fault is about. */
  readonly target: string;
  /** How it is done, where there are several ways. */
  readonly way: string;
  /** How long it lasts; the time until the next start of a process that was ended. */
  readonly ms: number;
}

interface ScheduleOptions {
  readonly seed: number;
  readonly ms: number;
  readonly kinds: readonly FaultKind[];
  /** Faults per minute, on average. */
  readonly rate: number;
  /** Names of the processes. */
  readonly processes: readonly string[];
}

/** A storm has calm times, in which nothing new happens and everything has to recover. */
const CYCLE_MS = 120_000;
const CALM_MS = 25_000;
/** A restore stops everything for a while. */
const RESTORE_EVERY_MS = 300_000;
/** Steps of a clock in seconds: a little, more than processes allow each other, and hours. */
const CLOCK_STEPS = ['-3600', '-45', '-5', '5', '45', '3600'];

const LASTING: Readonly<Record<FaultKind, readonly [least: number, most: number]>> = {
  kill: [0, 5_000],
  terminate: [0, 5_000],
  stall: [500, 30_000],
  split: [500, 20_000],
  clock: [1_000, 15_000],
  database: [0, 8_000],
  sessions: [0, 0],
  readOnly: [1_000, 10_000],
  disk: [1_000, 10_000],
  bus: [0, 5_000],
  restore: [5_000, 20_000],
};

/** Short ones are more frequent than long ones. */
const lasting = (random: Random, kind: FaultKind): number => {
  const [least, most] = LASTING[kind];
  return Math.round(least + (most - least) * random.next() ** 2);
};

function targetAndWay(random: Random, kind: FaultKind, processes: readonly string[]): { target: string; way: string } {
  const process = random.pick(processes);
  switch (kind) {
    case 'split':
      return {
        target: `${process}/${random.pick(['database', 'bus'])}`,
        way: random.pick(['reset', 'drop', 'halfOpen', 'delay']),
      };
    case 'clock':
      return { target: process, way: random.pick(CLOCK_STEPS) };
    case 'database':
      return { target: 'database', way: random.pick(['kill', 'immediate', 'fast']) };
    case 'sessions':
      return { target: 'database', way: String(random.integer(1, 20)) };
    case 'disk':
      return { target: 'database', way: random.pick(['tables', 'wal']) };
    case 'readOnly':
    case 'restore':
      return { target: 'database', way: '' };
    case 'bus':
      return { target: 'bus', way: '' };
    default:
      return { target: process, way: '' };
  }
}

/** All faults of a storm in the order of their times. */
export function schedule({ seed, ms, kinds, rate, processes }: ScheduleOptions): Fault[] {
  const random = randomOf(seed, 'faults');
  const faults: Fault[] = [];
  const stormy = CYCLE_MS - CALM_MS;
  let restored = Number.NEGATIVE_INFINITY;
  // The first faults come when the load runs.
  for (let at = 3_000; ; ) {
    at += Math.round((-Math.log(1 - random.next()) * 60_000) / rate);
    if (at % CYCLE_MS > stormy) at = Math.ceil(at / CYCLE_MS) * CYCLE_MS;
    if (at >= ms) return faults;
    const possible = at < restored + RESTORE_EVERY_MS ? kinds.filter((kind) => kind !== 'restore') : kinds;
    if (!possible.length) continue;
    const kind = random.pick(possible);
    if (kind === 'restore') restored = at;
    faults.push({ at, kind, ...targetAndWay(random, kind, processes), ms: lasting(random, kind) });
  }
}

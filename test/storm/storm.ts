/** A storm: a cluster, people at work, faults, and then the question whether everything is as it should be. */
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { logs, removeLogs } from '../support/processes.ts';
import { removeTemporaryFolders } from '../support/temporary.ts';
import { GRACE_MS, Traffic } from './client.ts';
import { Cluster, MEMBERS } from './cluster.ts';
import { Faults } from './faults.ts';
import { Ledger } from './ledger.ts';
import { Load } from './load.ts';
import { watchMachine } from './machine.ts';
import { type Checked, checkEverything } from './oracles.ts';
import { randomOf } from './random.ts';
import { report } from './report.ts';
import { restoreDatabase } from './restoring.ts';
import { type FaultKind, schedule } from './schedule.ts';
import { type Violation, Violations } from './violations.ts';

export interface StormOptions {
  readonly seed: number;
  /** How long faults happen. */
  readonly ms: number;
  readonly kinds: readonly FaultKind[];
  /** Faults per minute, on average. */
  readonly rate: number;
  /** Data folder and logs stay where they are. */
  readonly keep: boolean;
  readonly say: (text: string) => void;
  /** Ends it early: everything is stopped and removed. */
  readonly signal?: AbortSignal;
}

const PROGRESS_EVERY_MS = 5_000;
/** Time for clients to get their last answers when the faults are over. */
const LAST_ANSWERS_MS = 120_000;

/** Everything that was found. */
interface Outcome {
  readonly violations: readonly Violation[];
  readonly report: string;
}

export async function storm(options: StormOptions): Promise<Outcome> {
  const begun = performance.now();
  mkdirSync(logs, { recursive: true });
  const timed = (text: string): string => `${((performance.now() - begun) / 1_000).toFixed(1).padStart(7)} s  ${text}`;
  const note = (text: string): void =>
    appendFileSync(
      join(logs, 'storm.log'),
      `${timed(text)
        .replace(/\s*\n\s*/g, ' ')
        .slice(0, 1_000)}\n`,
    );
  const say = (text: string): void => {
    note(text);
    options.say(timed(text));
  };
  const violations = new Violations(say);
  say('starting the cluster');
  const cluster = await Cluster.start({ smallDisk: options.kinds.includes('disk') });
  const kinds = options.kinds.filter((kind) => kind !== 'disk' || cluster.diskCanBeFull);
  if (kinds.length < options.kinds.length) say('no full disks: this user may not mount a file system (root may)');
  const faults = new Faults(
    cluster,
    (text) => say(`fault: ${text}`),
    (text) => note(`fault ${text}`),
  );
  const traffic = new Traffic(cluster, faults, violations, note);
  // An aborted client does not wait for its answer.
  options.signal?.addEventListener('abort', () => (traffic.ended = true), { once: true });
  const ledger = new Ledger(randomOf(options.seed, 'ledger'), violations);
  const load = new Load(traffic, ledger, options.seed);
  let checked: Checked = new Map();
  const endWatch = watchMachine();
  try {
    say(`the cluster is ready at ${cluster.baseUrl}`);
    await load.prepare();
    say('the load begins');
    const stormBegun = performance.now();
    traffic.restartSilence();
    load.start();
    const progress = setInterval(() => {
      const ready = cluster.gateways.filter((member) => member.ready).length;
      const failures = [...traffic.failures.values()].reduce((sum, count) => sum + count, 0);
      say(
        `${traffic.requests} requests, ${ledger.intentions.length} mutations, ${failures} failed attempts, ` +
          `${faults.done.length} faults, ${ready} gateways ready, ${violations.all.length} violations`,
      );
    }, PROGRESS_EVERY_MS);
    let restoring = 0;
    try {
      for (const fault of schedule({ ...options, kinds, processes: Object.keys(MEMBERS) })) {
        await until(stormBegun + fault.at + restoring, options.signal);
        const before = performance.now();
        if (fault.kind !== 'restore') faults.begin(fault);
        else await restoreDatabase({ traffic, ledger, load }, fault);
        // A restore takes as long as it takes; what follows comes later.
        restoring += performance.now() - before;
      }
      await until(stormBegun + options.ms + restoring, options.signal);
      say('the faults are over');
      await faults.over();
      await cluster.whole();
      say('every process is ready');
      // Load without faults: from now on nothing may fail.
      await until(performance.now() + GRACE_MS, options.signal);
      const last = setTimeout(() => (traffic.ended = true), LAST_ANSWERS_MS);
      await load.stop();
      clearTimeout(last);
    } finally {
      clearInterval(progress);
    }
    const ms = performance.now() - stormBegun;
    say('the load is over; checking');
    checked = await checkEverything(traffic, ledger, load);
    options.signal?.throwIfAborted();
    return { violations: violations.all, report: report({ options, kinds, ms, traffic, ledger, load, checked }) };
  } finally {
    endWatch();
    traffic.ended = true;
    await load.stop();
    load.listeners.close();
    const keep = options.keep || violations.all.length > 0;
    await cluster.stop({ keep: options.keep });
    if (!keep) removeLogs();
    removeTemporaryFolders();
  }
}

async function until(time: number, signal: AbortSignal | undefined): Promise<void> {
  for (let left = time - performance.now(); left > 0; left = time - performance.now())
    await pause(left, undefined, signal ? { signal } : {});
}

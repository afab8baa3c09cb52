/**
 * `npm run storm -- [--seed 42] [--minutes 60] [--faults kill,split] [--rate 4] [--keep]`: breaks a cluster in random ways
 * while people work on it, and proves that nothing was lost, done twice or left half done. Exit code 0: nothing was wrong;
 * 1: something was; 2: the storm could not be carried out. See README.md in this folder.
 */
import { randomInt } from 'node:crypto';
import { readArguments, refuse } from '../../scripts/arguments.ts';
import { logs } from '../support/processes.ts';
import { FAULT_KINDS, type FaultKind } from './schedule.ts';
import { storm } from './storm.ts';
import { explained } from './violations.ts';

const COMMAND = {
  name: 'storm',
  usage: `npm run storm -- [--seed NUMBER] [--minutes 3] [--faults ${FAULT_KINDS.join(',')}] [--rate 4] [--keep]

Breaks a cluster of its own in random ways while people work on it. It needs nats-server on the PATH, and root for full
disks. --rate: faults per minute; --keep: the data and what the processes printed stay.`,
  exitCode: 2,
};

const isKind = (name: string): name is FaultKind => (FAULT_KINDS as readonly string[]).includes(name);

function readOptions() {
  const { values } = readArguments(COMMAND, {
    options: {
      seed: { type: 'string' },
      minutes: { type: 'string', default: '3' },
      faults: { type: 'string', default: FAULT_KINDS.join(',') },
      rate: { type: 'string', default: '4' },
      keep: { type: 'boolean', default: false },
    },
  });
  const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
  const [minutes, rate] = [Number(values.minutes), Number(values.rate)];
  const kinds = values.faults.split(',').filter(isKind);
  if (!Number.isSafeInteger(seed)) refuse(COMMAND, '--seed is a whole number.');
  if (!(minutes > 0) || !(rate > 0)) refuse(COMMAND, '--minutes and --rate are numbers above 0.');
  if (kinds.length !== values.faults.split(',').length)
    refuse(COMMAND, `--faults are some of ${FAULT_KINDS.join(',')}.`);
  return { seed, ms: minutes * 60_000, kinds, rate, keep: values.keep };
}

const aborted = new AbortController();
let stopping = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    // Once: in good order. Twice: at once; the processes are ended along with this one.
    if (stopping) process.exit(2);
    stopping = true;
    aborted.abort();
  });

try {
  const options = readOptions();
  const again = `npm run storm -- --seed ${options.seed} --minutes ${options.ms / 60_000} --rate ${options.rate} --faults ${options.kinds}`;
  console.log(again);
  const { violations, report } = await storm({ ...options, say: console.log, signal: aborted.signal });
  console.log(`\n${report}`);
  if (violations.length)
    console.log(
      `\n${explained(violations[0]!)}\n\n${violations.length} violations. What the processes printed: ${logs}\nThe same faults again:\n${again}`,
    );
  process.exit(violations.length ? 1 : 0);
} catch (error) {
  console.error(`storm: ${error instanceof Error ? error.message : error}`);
  process.exit(2);
}

/**
 * The database goes back to a backup, as after the loss of a disk. The load stands still at the moment of the backup and
 * while it is put back, so that the ledger can go back to the same moment.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Traffic } from './client.ts';
import type { Ledger } from './ledger.ts';
import type { Load } from './load.ts';
import type { Fault } from './schedule.ts';

interface Restoring {
  readonly traffic: Traffic;
  readonly ledger: Ledger;
  readonly load: Load;
}

/** Backs up, lets people work for the time of the fault, and puts the backup back. */
export async function restoreDatabase({ traffic, ledger, load }: Restoring, fault: Fault): Promise<void> {
  const { cluster, faults, violations } = traffic;
  await faults.over();
  await cluster.whole();
  await load.stop();
  await ledger.resolve();
  const putBack = ledger.snapshot();
  await faults.carryOut({ ...fault, way: 'backup' }, () => cluster.backUp());
  await cluster.whole();
  load.start();
  await pause(fault.ms);
  await load.stop();
  await faults.carryOut(fault, () => cluster.restore());
  putBack();
  traffic.restoredAt = performance.now();
  await cluster.whole();
  for (const follower of load.followers) {
    const before = follower.restarts;
    await follower.follow();
    if (follower.restarts === before)
      violations.add({
        oracle: 'a restored database is noticed',
        what: `${follower.client.username} goes on with a cursor of ${follower.object} from before`,
      });
  }
  const { puller } = load.listeners;
  const before = puller.restarts;
  await puller.follow();
  if (puller.restarts === before)
    violations.add({ oracle: 'a restored database is noticed', what: 'events go on with a cursor from before' });
  load.start();
  traffic.restartSilence();
}

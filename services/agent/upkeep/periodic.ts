/** Periodic work of the agent service, each round in one of its processes. */
import type { ServiceBroker } from 'moleculer';
import { periodicQueue } from '../../../mixins/jobs/queue.ts';
import type { Platform } from '../../../mixins/platform.ts';
import { cancelUnauthorized, expireDue } from './upkeep.ts';

const EXPIRY = periodicQueue('agent.expiry', { everySeconds: 15, pollSeconds: 5, firstAfterSeconds: 5 });
const GRANTS = periodicQueue('agent.grants', { everySeconds: 60, pollSeconds: 15, firstAfterSeconds: 10 });

/** Offers to do the periodic work in this process. */
export async function startPeriodicWork({ database, jobs }: Platform, broker: ServiceBroker): Promise<void> {
  await jobs.repeat(EXPIRY, (signal) =>
    expireDue(database, signal, (tenantId, error) =>
      broker.logger.warn(
        { err: error, tenantId },
        'What has expired was not written down; the next round tries again.',
      ),
    ),
  );
  await jobs.repeat(GRANTS, (signal) => cancelUnauthorized(database, broker, signal));
}

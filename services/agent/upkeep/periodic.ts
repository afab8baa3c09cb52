/** Periodic work of the agent service, each round in one of its processes. */
import { periodicQueue } from '../../../mixins/jobs/queue.ts';
import { warnOf } from '../../../mixins/log-failure.ts';
import type { Platform } from '../../../mixins/platform.ts';
import type { AgentDeps } from '../deps.ts';
import { sendNotices } from './notices.ts';
import { cancelUnauthorized, dropOldContents, expireDue } from './upkeep.ts';

const EXPIRY = periodicQueue('agent.expiry', { everySeconds: 15, pollSeconds: 5, firstAfterSeconds: 5 });
const NOTICES = periodicQueue('agent.notices', { everySeconds: 5, pollSeconds: 5, firstAfterSeconds: 5 });
const CONTENTS = periodicQueue('agent.contents', { everySeconds: 3_600, pollSeconds: 60, firstAfterSeconds: 60 });
const GRANTS = periodicQueue('agent.grants', { everySeconds: 60, pollSeconds: 15, firstAfterSeconds: 10 });

/** Offers to do the periodic work in this process. */
export async function startPeriodicWork({ database, jobs, broker, log }: Platform, deps: AgentDeps): Promise<void> {
  await jobs.repeat(EXPIRY, (signal) =>
    expireDue(database, signal, (tenantId, error) =>
      warnOf(log, error, 'What has expired was not written down; the next round tries again.', { tenantId }),
    ),
  );
  await jobs.repeat(NOTICES, (signal) =>
    sendNotices(deps, signal, (tenantId, error) =>
      warnOf(log, error, 'Approvers were not sent mails; the next round tries again.', { tenantId }),
    ),
  );
  await jobs.repeat(CONTENTS, (signal) =>
    dropOldContents(database, signal, (tenantId, error) =>
      warnOf(log, error, 'Old outputs of runs were not left out; the next round tries again.', { tenantId }),
    ),
  );
  await jobs.repeat(GRANTS, (signal) => cancelUnauthorized(database, broker, signal));
}

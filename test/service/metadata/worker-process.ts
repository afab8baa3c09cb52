/** A worker of deployments as a process of its own, so that a test can kill it: <database url> <tenant id>. */

import { readConfig } from '../../../config/env.ts';
import { Database } from '../../../mixins/database/database.ts';
import { DeploymentWorker } from '../../../services/metadata/deployments/run.ts';
import { Planning } from '../../../services/metadata/planning/planning.ts';

const [url, tenantId] = process.argv.slice(-2) as [string, string];
const runner = new DeploymentWorker(new Database(url, { size: 4, applicationName: 'doomed worker' }), {
  planning: new Planning(),
  leaseSeconds: 60,
  rateLimits: readConfig({}).rateLimits,
  committed: () => {},
  later: async () => {},
  failed: (error) => console.error(error),
});
await runner.run(tenantId);

/** A worker of deployments as a process of its own, so that a test can kill it: <database url> <tenant id> <lease>. */

import { readConfig } from '../../../config/env.ts';
import { Database } from '../../../mixins/database/database.ts';
import { DeploymentWorker } from '../../../services/metadata/deployments/run.ts';
import { Planning } from '../../../services/metadata/planning/planning.ts';

const [url, tenantId, leaseSeconds] = process.argv.slice(-3) as [string, string, string];
const runner = new DeploymentWorker(new Database(url, { size: 4, applicationName: 'doomed worker' }), {
  planning: new Planning(),
  leaseSeconds: Number(leaseSeconds),
  rateLimits: readConfig({}).rateLimits,
  committed: () => {},
  failed: (error) => console.error(error),
});
await runner.run(tenantId);

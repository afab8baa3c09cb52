/** What main.ts hands to every service of this process. */

import type { Config } from '../config/env.ts';
import type { Database } from './database/database.ts';
import type { Jobs } from './jobs/jobs.ts';
import type { Metrics } from './metrics/metrics.ts';

export interface Platform {
  readonly config: Config;
  readonly database: Database;
  readonly jobs: Jobs;
  readonly metrics: Metrics;
}

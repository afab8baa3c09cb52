/** Passed by main.ts to every service of this process. */

import type { ServiceBroker } from 'moleculer';
import type { Config } from '../config/env.ts';
import type { ServiceName } from '../config/services.ts';
import type { CountedBlobs } from './blobs/counted.ts';
import type { Database } from './database/database.ts';
import type { Timekeeper } from './database/timekeeper.ts';
import type { Jobs } from './jobs/jobs.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { GuardedFetch } from './outbound.ts';

export interface Platform {
  readonly service: ServiceName;
  readonly config: Config;
  /** The door of one service: signed in as its own login. */
  readonly database: Database;
  /** The doors of all services of this process, by service. */
  readonly databases: ReadonlyMap<string, Database>;
  readonly timekeeper: Pick<Timekeeper, 'agrees'>;
  readonly jobs: Jobs;
  readonly blobs: CountedBlobs;
  readonly metrics: Metrics;
  readonly broker: ServiceBroker;
  /** Names the service in its lines. */
  readonly log: ServiceBroker['logger'];
  /** Requests to addresses that tenants name. */
  readonly outbound: GuardedFetch;
}

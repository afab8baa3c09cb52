/** Dependencies of this service's handlers. */

import type { ActionMap } from '../../contracts/call.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Database } from '../../mixins/database/database.ts';
import type { FindUser } from './callers.ts';
import type { Configurations } from './configurations.ts';

type Ask<Name extends keyof ActionMap> = (params: ActionMap[Name]['params']) => Promise<ActionMap[Name]['result']>;

export interface AgentDeps {
  readonly database: Database;
  readonly configurations: Configurations;
  readonly sealingKeys: SealingKeys;
  readonly findUser: FindUser;
  /** Asks data for the active users who hold a permission, a page of them. */
  readonly usersHolding: Ask<'data.users.holding'>;
  /** Has auth mail a request to those who may decide about it. */
  readonly notify: Ask<'notifications.notify'>;
  readonly askApprovers: Ask<'auth.mails.askApprovers'>;
  /** Asks data whether a user could execute an operation on a record. */
  readonly checkAccess: Ask<'data.access.check'>;
  /** Asks analytics whether a user could change dashboards by an operation. */
  readonly checkDashboard: Ask<'analytics.access.check'>;
  /** Asks data which records a user can see. */
  readonly seenRecords: Ask<'data.records.seen'>;
  /** Asks bulk what a job carries out. */
  readonly carriedOut: Ask<'bulk.jobs.carried'>;
  /** Asks data what requests of a run have changed. */
  readonly recordsOfRequests: Ask<'data.trail.ofRequests'>;
}

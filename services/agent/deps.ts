/** What the handlers of this service work with. */
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Database } from '../../mixins/database/database.ts';
import type { FindUser } from './callers.ts';
import type { Configurations } from './configurations.ts';

export interface AgentDeps {
  readonly database: Database;
  readonly configurations: Configurations;
  readonly sealingKeys: SealingKeys;
  readonly findUser: FindUser;
}

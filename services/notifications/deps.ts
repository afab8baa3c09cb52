/** Dependencies of this service's operations and jobs. */
import type { DataActions } from '../../contracts/data.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Database } from '../../mixins/database/database.ts';

type Asked<K extends keyof DataActions> = (question: DataActions[K]['params']) => Promise<DataActions[K]['result']>;

export interface NotificationsDeps {
  readonly database: Database;
  readonly sealingKeys: SealingKeys;
  readonly listUsers: Asked<'data.users.list'>;
  readonly seenRecords: Asked<'data.records.seen'>;
}

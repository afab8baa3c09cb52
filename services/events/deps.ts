/** Dependencies of this service's operations. */
import type { DataActions } from '../../contracts/data.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Database } from '../../mixins/database/database.ts';

type EventRecords = DataActions['data.events.read'];

export interface EventsDeps {
  readonly database: Database;
  readonly sealingKeys: SealingKeys;
  /** Public address of the platform. */
  readonly baseUrl: string;
  /** The asker's system permissions, and the changes of records as far as they can read them. */
  readonly readRecords: (question: EventRecords['params']) => Promise<EventRecords['result']>;
}

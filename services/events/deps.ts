/** Dependencies of this service's operations. */
import type { DataActions } from '../../contracts/data.ts';
import type { DeliveryStatus } from '../../contracts/events.ts';
import type { Notice } from '../../lib/notice.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Database, Tx } from '../../mixins/database/database.ts';
import type { Caller } from '../../mixins/mutation/audit.ts';
import type { GuardedFetch } from '../../mixins/outbound.ts';
import type { DeliveryQueue } from './webhooks/queue.ts';

type EventRecords = DataActions['data.events.read'];

export interface EventsDeps {
  readonly database: Database;
  readonly sealingKeys: SealingKeys;
  /** Public address of the platform. */
  readonly baseUrl: string;
  /** Requests to receivers. */
  readonly webhooks: GuardedFetch;
  /** Hosts of receivers that may have addresses which are not public. */
  readonly privateHosts: readonly string[];
  readonly numbers: { readonly deliveries: Record<DeliveryStatus, number> };
  readonly deliveries: Pick<DeliveryQueue, 'add' | 'hasRoom'>;
  /** Asks for a notification with the transaction, which acts as the tenant's role. */
  readonly notify: (tx: Tx, caller: Caller & { tenantId: string }, notice: Notice) => Promise<void>;
  readonly isSuspended: (tenantId: string) => Promise<boolean>;
  /** The asker's system permissions, and the changes of records as far as they can read them. */
  readonly readRecords: (question: EventRecords['params']) => Promise<EventRecords['result']>;
}

/** Dependencies of this service's operations. */
import type { DataActions } from '../../contracts/data.ts';
import type { DeliveryStatus } from '../../contracts/events.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Database } from '../../mixins/database/database.ts';
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
  readonly deliveries: Pick<DeliveryQueue, 'add'>;
  readonly isSuspended: (tenantId: string) => Promise<boolean>;
  /** The asker's system permissions, and the changes of records as far as they can read them. */
  readonly readRecords: (question: EventRecords['params']) => Promise<EventRecords['result']>;
}

/** Dependencies of this service's operations. */
import type { DataActions } from '../../contracts/data.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Database } from '../../mixins/database/database.ts';
import type { GuardedFetch } from '../../mixins/outbound.ts';
import type { DeliveryStatus } from './webhooks/delivery.sql.ts';

export interface Delivering {
  readonly tenantId: string;
  readonly subscriptionId: string;
}

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
  /** Queues deliveries of a subscription; one that is queued or at work is not queued twice. */
  readonly enqueue: (work: Delivering) => Promise<void>;
  readonly isSuspended: (tenantId: string) => Promise<boolean>;
  /** The asker's system permissions, and the changes of records as far as they can read them. */
  readonly readRecords: (question: EventRecords['params']) => Promise<EventRecords['result']>;
}

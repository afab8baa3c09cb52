/** Types of the public API that the page reads (docs/reference/webhooks.md). */

export type State = 'active' | 'paused' | 'suspended';
export type Status = 'pending' | 'delivered' | 'parked';

/** What people choose. */
export interface Settings {
  name: string;
  url: string;
  eventTypes: string[];
  objects: string[];
  payload: 'thin' | 'full';
  ordering: 'none' | 'perRecord';
}

export interface Subscription extends Settings {
  subscriptionId: string;
  state: State;
  reason: string | null;
  signing: 'hmac' | 'ed25519';
  publicKey: string | null;
  failureCount: number;
  createdAt: string;
}

export interface SubscriptionWithSecret extends Subscription {
  /** null: it was in an earlier answer. */
  secret: string | null;
}

export interface Attempt {
  at: string;
  /** null: there was no answer. */
  status: number | null;
  latencyMs: number;
  responseHead: string | null;
  failure: string | null;
}

export interface Delivery {
  deliveryId: string;
  /** That of its event; null: it has none yet. */
  sequence: string | null;
  /** The position before its event; null: it has none yet. */
  cursor: string | null;
  eventType: string;
  subject: string;
  status: Status;
  attempts: Attempt[];
  nextAttemptAt: string | null;
}

export interface Page<Entry> {
  records: Entry[];
  nextCursor: string | null;
}

export interface ObjectSummary {
  apiName: string;
  label: string;
}

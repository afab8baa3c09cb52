/** A service's request to notify users. Source: docs/reference/notifications.md#how-they-arise. */

export const SEVERITIES = ['info', 'warning', 'critical'] as const;
export type Severity = (typeof SEVERITIES)[number];

/** Texts follow from type and data; data holds labels of the configuration, numbers, names of
 * webhooks of the recipient and, for those who are invited, titles of events, never values of records. */
export interface Notice {
  /** One of the platform, or the type of an effect. */
  readonly type: string;
  readonly recipientIds: readonly string[];
  readonly data: Readonly<Record<string, string | number>>;
  /** Of the object of `record`: texts follow from it, with values that the recipient can read when they are made. */
  readonly template?: string | null;
  readonly severity?: Severity;
  readonly record?: { readonly objectApiName: string; readonly id: string } | null;
  readonly actor?: { readonly userId: string; readonly agentRunId: string | null } | null;
  /** The operation for which it is an occasion. */
  readonly action?: {
    readonly kind: 'approval' | 'deployment' | 'event' | 'job' | 'subscription';
    readonly id: string;
  };
  /** A recipient gets one notification of a type with it. */
  readonly dedupeKey?: string | null;
}

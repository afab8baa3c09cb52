/** Types of the public API that the page reads (docs/reference/notifications.md). */

export type Status = 'unread' | 'read' | 'archived';

export interface Notification {
  notificationId: string;
  title: string;
  /** May be empty. */
  body: string;
  severity: 'info' | 'warning' | 'critical';
  /** null: the user cannot read it, or there is none. */
  record: { objectApiName: string; id: string; name: string | null } | null;
  actions: { label: string; operationId: string; params: Record<string, string> }[];
  status: Status;
  createdAt: string;
}

export interface NotificationList {
  records: Notification[];
  nextCursor: string | null;
  unreadCount: number;
}

/** Those that the page offers. */
export type Channel = 'inApp' | 'email' | 'webhook';

export interface Preferences {
  records: { type: string; channels: Record<Channel, boolean>; locked: boolean }[];
  /** HH:MM in the time zone of the user. */
  quietHours: { from: string; to: string } | null;
}

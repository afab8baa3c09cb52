/** Kinds of mails, and how long each is tried. Source: docs/reference/mail.md. */
import type { Severity } from '../../../lib/notice.ts';
import type { Repetition } from '../../../lib/repetition.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Kind {
  /** After so long it is given up. */
  readonly trySeconds: number;
  /** How long the link in it can be used, from the moment at which it is sent. */
  readonly linkSeconds: number | null;
}

export const MAIL_KINDS = {
  /** To a new user: a link with which they choose a password. */
  invitation: { trySeconds: 2 * DAY, linkSeconds: 7 * DAY },
  /** After a forgotten password. Expires after an hour; the user can request another. */
  passwordReset: { trySeconds: HOUR, linkSeconds: HOUR },
  passwordChanged: { trySeconds: 2 * DAY, linkSeconds: null },
  /** To the new address: a link with which its user confirms it. */
  addressConfirmation: { trySeconds: 2 * DAY, linkSeconds: 7 * DAY },
  /** To the earlier address: a link that undoes the change. */
  addressChanged: { trySeconds: 2 * DAY, linkSeconds: 7 * DAY },
  /** To the new address, when the change was undone after it had taken effect. */
  addressUndone: { trySeconds: 2 * DAY, linkSeconds: null },
  /** A sign-in in a browser that was not known. */
  newSignIn: { trySeconds: 2 * DAY, linkSeconds: null },
  /** To those who decide about a request of an agent: a link to its page, which asks for a sign-in. */
  approvalRequested: { trySeconds: 2 * DAY, linkSeconds: null },
  /** What somebody was notified of. */
  notification: { trySeconds: 2 * DAY, linkSeconds: null },
  /** To a person outside whom a user has invited to an event. */
  calendarEvent: { trySeconds: 2 * DAY, linkSeconds: null },
} as const satisfies Record<string, Kind>;

export type MailKind = keyof typeof MAIL_KINDS;

/** Stored values of a mail besides those read when it is sent; never a secret. */
export interface MailDetails {
  /** The address that takes the place of this one. */
  newAddress?: string;
  /** RFC 3339: when it happened. */
  at?: string;
  browser?: string | null;
  system?: string | null;
  network?: string;
  /** The request of an agent; a user gets one mail about it. */
  approvalId?: string;
  request?: MailedRequest;
  /** Of a mail about notifications: there is one with this id. */
  notificationsId?: string;
  notifications?: MailedNotifications;
  calendar?: MailedEvent;
}

/** An event of the user, told to a person outside. */
export interface MailedEvent {
  readonly method: 'REQUEST' | 'CANCEL';
  /** The person was invited before. */
  readonly again: boolean;
  readonly title: string;
  readonly location: string | null;
  /** RFC 3339: of the first time. */
  readonly startAt: string;
  readonly endAt: string;
  /** null: whole days. */
  readonly timezone: string | null;
  /** null or absent: it takes place once. */
  readonly repetition?: Repetition | null;
  /** The same as iCalendar. */
  readonly ics: string;
}

/** Notifications that are told in one mail, the newest last. */
interface MailedNotification {
  readonly title: string;
  readonly body: string;
  readonly severity: Severity;
  /** Name of the user who has caused it; null: there is none, or it had better not be shown. */
  readonly from: string | null;
}

export interface MailedNotifications {
  readonly items: readonly MailedNotification[];
  /** It has what came in this time; null: it has what just came. */
  readonly digest: 'daily' | 'weekly' | null;
  /** How many others there are. */
  readonly more: number;
  /** Token of the link by which the user ends such mails. */
  readonly unsubscribe: string;
}

/** A request of an agent, without any value of a record. */
export interface MailedRequest {
  readonly clientName: string;
  readonly agentKey: string;
  /** Name of the user in whose name the agent asks. */
  readonly inNameOf: string;
  readonly operationId: string;
  readonly summary: string;
  /** RFC 3339. */
  readonly expiresAt: string;
}

export interface NewMail {
  readonly tenantId: string;
  readonly userId: string;
  readonly kind: MailKind;
  readonly address: string;
  readonly details?: MailDetails;
}

/** `noAddress`: it goes nowhere. `tooManyMails`: the user, the address or the tenant has had too many. */
export type Queued = 'queued' | 'tooManyMails' | 'noAddress' | 'off';

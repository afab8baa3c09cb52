/** Parts of a language: a file of this folder, and its line in languages.ts. */
import type { RepetitionPattern } from '../../../../lib/repetition.ts';
import type { MailedNotifications, MailedRequest, MailKind } from '../kinds.ts';

/** Values in mails. Names are as their owners wrote them: one line each, not escaped. */
export interface MailValues {
  /** Null where the name of the user had better not be shown. */
  readonly name: string | null;
  readonly tenant: string;
  /** The user's sign-in name; null when it should not be shown. */
  readonly signInName: string | null;
  /** Host of the platform. */
  readonly host: string;
  /** When the link ends, in words of the language; null without a link. */
  readonly linkEnds: string | null;
  /** When it happened. */
  readonly at: string | null;
  readonly newAddress: string | null;
  readonly browser: string | null;
  readonly system: string | null;
  readonly network: string | null;
  /** The request of an agent; names are null where they had better not be shown. */
  readonly request: MailValuesOfRequest | null;
  readonly notifications: Pick<MailedNotifications, 'items' | 'more' | 'digest'> | null;
  /** Address that ends such mails. */
  readonly unsubscribe: string | null;
  readonly event: MailValuesOfEvent | null;
}

/** The pattern with its weekdays in words of the language; empty: there are none. */
export type Every = Omit<RepetitionPattern, 'weekdays'> & { readonly weekdays: string };

/** How an event repeats. */
interface RepetitionValues {
  /** null: by a rule that the file beside says better than words. */
  readonly every: Every | null;
  readonly count: number | null;
  /** In words of the language. */
  readonly until: string | null;
  readonly exceptions: boolean;
}

interface MailValuesOfEvent {
  readonly change: 'invited' | 'changed' | 'canceled';
  readonly title: string;
  readonly location: string | null;
  /** In words of the language. */
  readonly when: string;
  /** In words of the language; null: it takes place once. */
  readonly repeats: string | null;
  /** Name and address. */
  readonly organizer: string;
}

interface MailValuesOfRequest extends Pick<MailedRequest, 'agentKey' | 'operationId' | 'summary'> {
  readonly clientName: string | null;
  readonly inNameOf: string | null;
  /** In words of the language. */
  readonly until: string;
}

export interface MailText {
  readonly subject: string;
  readonly title: string;
  /** Paragraphs before the button. */
  readonly before: readonly string[];
  /** Facts of the mail as names and values; those without a value are left out. */
  readonly facts?: readonly (readonly [name: string, value: string | null])[];
  /** Label of the button; absent: the mail has no link. */
  readonly button?: string;
  /** Paragraphs after it. */
  readonly after: readonly string[];
  /** In place of what is said of accounts. */
  readonly footer?: string;
}

export interface Language {
  /** BCP 47. */
  readonly tag: string;
  greeting(name: string | null): string;
  /** Said of the address below a button. */
  readonly linkBelow: string;
  footer(values: Pick<MailValues, 'tenant' | 'host'>): string;
  repetition(values: RepetitionValues): string;
  readonly kinds: { readonly [Kind in MailKind]: (values: MailValues) => MailText };
}

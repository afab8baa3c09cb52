/** Parts of a language: a file of this folder, and its line in texts.ts. */
import type { NOTIFICATION_ACTIONS, PlatformType } from '../../../contracts/notifications.ts';

/** Values of a notice as text; absent where the notice has none. */
interface TextValues {
  /** Label of the object. */
  readonly object: string;
  /** Label of the transition or action. */
  readonly transition: string;
  /** Display name of the user who caused it. */
  readonly actor: string | null;
  readonly succeeded: string;
  readonly failed: string;
  readonly agent: string;
  /** Name of the webhook. */
  readonly webhook: string;
  /** Title of the event. */
  readonly event: string;
  /** Its start. */
  readonly when: string;
  readonly repeats: boolean;
  /** The recipient was left out of an event that takes place. */
  readonly uninvited: boolean;
}

export interface NotificationText {
  readonly title: string;
  readonly body: string;
}

export interface Language {
  /** BCP 47. */
  readonly tag: string;
  readonly types: { readonly [Type in PlatformType]: (values: TextValues) => NotificationText };
  /** Labels. */
  readonly actions: { readonly [Kind in keyof typeof NOTIFICATION_ACTIONS]: string };
  /** Of a type that a transition or action names. */
  effect(values: TextValues): NotificationText;
}

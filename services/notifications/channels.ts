/** Which notifications of a user go to which channel. Source: docs/reference/notifications.md#preferences. */
import type { Channel, PlatformType } from '../../contracts/notifications.ts';
import { ownEntry } from '../../lib/schema/lookup.ts';
import { isPlatformType } from './texts/texts.ts';

export type Channels = Readonly<Record<Channel, boolean>>;

/** By type, where they differ from the default. */
export type ChosenChannels = Readonly<Record<string, Partial<Channels>>>;

/** Nothing is sent by push. */
const ALL: Channels = { inApp: true, email: true, push: false, webhook: true };
const WITHOUT_MAIL: Channels = { ...ALL, email: false };

/** The end of what somebody has started and waits for is no mail unless they want one. */
const DEFAULTS: Partial<Record<PlatformType, Channels>> = {
  bulkJobFinished: WITHOUT_MAIL,
  deploymentFinished: WITHOUT_MAIL,
};

/** Others wait for what these ask for: nobody can turn them off. */
export const isLocked = (type: string): boolean => type === 'agentApprovalRequested';

export function channelsOf(type: string, chosen: ChosenChannels): Channels {
  const defaults = (isPlatformType(type) && DEFAULTS[type]) || ALL;
  return isLocked(type) ? defaults : { ...defaults, ...ownEntry(chosen, type) };
}

/** When a mail about a notification may leave. Source: docs/reference/notifications.md#mails. */
import type { UserIdentity } from '../../contracts/data.ts';
import type { Severity } from '../../lib/notice.ts';
import { dayAt, startOfDay } from '../../lib/values/relative-dates.ts';
import { afterQuietHours, type QuietHours } from './quiet-hours.ts';

/** Decides when mails are due: what the user has chosen, and when the last mails left, in milliseconds since 1970. */
export interface Wishes extends Pick<UserIdentity, 'emailDigest' | 'timezone'> {
  readonly quiet: QuietHours | null;
  readonly mailedAt: number | null;
  readonly criticalMailedAt: number | null;
}

interface Mailed {
  readonly severity: Severity;
  /** In milliseconds since 1970. */
  readonly createdAt: number;
}

const COLLECT_MS = 2_000;
const BETWEEN_MAILS_MS = 10 * 60_000;
/** What follows so soon is sent in the same mail. */
export const SAME_MAIL_MS = 60_000;
const BEFORE_DIGEST: QuietHours = { from: '00:00', to: '08:00' };
const A_MONDAY = 4; // day 0 was a Thursday

const waitsForDigest = ({ emailDigest }: Wishes, { severity }: Mailed): boolean =>
  severity !== 'critical' && (emailDigest === 'daily' || emailDigest === 'weekly');

/** When a mail with the notification is due, `now` or later, in milliseconds since 1970. */
export function mailTime(wishes: Wishes, item: Mailed, now: number): number {
  const { quiet } = wishes;
  const isCritical = item.severity === 'critical';
  const mailedAt = isCritical ? wishes.criticalMailedAt : wishes.mailedAt;
  const timezone = wishes.timezone ?? 'UTC';
  const next = Math.max(now, item.createdAt + COLLECT_MS, (mailedAt ?? 0) + BETWEEN_MAILS_MS);
  if (isCritical) return next;
  const digest = waitsForDigest(wishes, item) ? nextDigest(wishes, Math.max(item.createdAt, mailedAt ?? 0)) : next;
  return afterQuietHours(Math.max(next, digest), quiet, timezone);
}

/** The time until which a notification whose mail is due has to wait all the same; null: it can be mailed. */
export function heldUntil(wishes: Wishes, item: Mailed, now: number): number | null {
  const at = mailTime(wishes, item, now);
  return at > now + (waitsForDigest(wishes, item) ? 0 : SAME_MAIL_MS) ? at : null;
}

/**
 * The first digest after `instant`: at eight in the morning of the user, of each day or of Mondays, or when their quiet hours
 * end. Callers give the time of the last mail where it is later, so that a period has one digest.
 */
function nextDigest({ emailDigest, quiet, timezone }: Wishes, instant: number): number {
  const zone = timezone ?? 'UTC';
  const days = emailDigest === 'weekly' ? 7 : 1;
  const today = dayAt(instant, zone);
  for (let day = today - ((today - A_MONDAY) % days); ; day += days) {
    const at = afterQuietHours(afterQuietHours(startOfDay(day, zone), BEFORE_DIGEST, zone), quiet, zone);
    if (at > instant) return at;
  }
}

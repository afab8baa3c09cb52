/**
 * Notifications of users about events to which they are invited: asked for in the transaction of the change, of which the
 * organizer, who makes it, needs none. Source: docs/reference/calendar.md#notifications.
 */
import type { Notice } from '../../../lib/notice.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import type { CalendarDeps } from '../deps.ts';
import {
  contentOf,
  type EventRow,
  hasEnded,
  instanceId,
  instanceTimes,
  isCanceled,
  momentsOf,
  type Override,
} from './event.ts';

const usersOf = ({ attendees }: Pick<EventRow, 'attendees'>): string[] =>
  attendees.flatMap(({ userId }) => userId ?? []);

type Type = 'calendarInvitation' | 'calendarEventMoved' | 'calendarEventCanceled';

/** Notifications of one change. Nobody is told of what is over. */
export class UserNotices {
  readonly #notices: Pick<Notice, 'type' | 'recipientIds' | 'data' | 'action'>[] = [];

  /** An event, or a series: to those who are invited, who no longer are, and who are asked for another time. */
  changed(before: EventRow | null, event: EventRow, overrides: readonly Override[], isMoved: boolean): void {
    if (hasEnded(event, overrides)) return;
    const invited = before && !isCanceled(before) ? usersOf(before) : [];
    const kept = isCanceled(event) ? [] : usersOf(event);
    const gone = invited.filter((userId) => !kept.includes(userId));
    // They may not see the change.
    this.#add('calendarEventCanceled', gone, before ?? event, null, !isCanceled(event));
    this.#add(
      'calendarInvitation',
      kept.filter((userId) => !invited.includes(userId)),
      event,
    );
    if (isMoved)
      this.#add(
        'calendarEventMoved',
        kept.filter((userId) => invited.includes(userId)),
        event,
      );
  }

  /** One instance of a series. `wasCanceled`: before the change. */
  instanceChanged(event: EventRow, override: Override, wasCanceled: boolean, isMoved: boolean): void {
    if (isCanceled(event) || hasEnded({ ...event, recurrence: null, ...instanceTimes(event, override) }, [])) return;
    const users = usersOf(event);
    const canceled = isCanceled(event, override);
    if (canceled && !wasCanceled) this.#add('calendarEventCanceled', users, event, override);
    else if (!canceled && wasCanceled) this.#add('calendarInvitation', users, event, override);
    else if (!canceled && isMoved) this.#add('calendarEventMoved', users, event, override);
  }

  /** Notes that an instance, or the event or series, no longer takes place. */
  removed(event: EventRow, overrides: readonly Override[], instance: Override | null): void {
    const status = 'canceled';
    if (instance)
      this.instanceChanged(
        event,
        { ...instance, patch: { ...instance.patch, status } },
        isCanceled(event, instance),
        false,
      );
    else if (!isCanceled(event) && !hasEnded(event, overrides))
      this.#add('calendarEventCanceled', usersOf(event), event);
  }

  /** The last step of the change: from then on the transaction acts as the tenant's role. */
  async ask({ notify }: Pick<CalendarDeps, 'notify'>, unit: Unit): Promise<void> {
    if (this.#notices.length === 0 || unit.checkOnly) return;
    const { userId, agentRunId } = unit.request;
    unit.actAs('tenant');
    for (const notice of this.#notices)
      await notify(unit.tx, unit.request, { ...notice, actor: { userId, agentRunId } });
  }

  #add(
    type: Type,
    recipientIds: readonly string[],
    event: EventRow,
    override: Override | null = null,
    uninvited = false,
  ): void {
    if (recipientIds.length === 0) return;
    const times = override ? instanceTimes(event, override) : event;
    this.#notices.push({
      type,
      recipientIds,
      data: {
        event: contentOf(event, override).title,
        ...momentsOf(times),
        ...(times.startTimezone === null ? {} : { timezone: times.startTimezone }),
        ...(override === null && event.recurrence ? { repeats: 1 } : {}),
        ...(uninvited ? { uninvited: 1 } : {}),
      },
      // Who is no longer invited does not see it, and what is canceled may be deleted.
      ...(type === 'calendarEventCanceled'
        ? {}
        : { action: { kind: 'event', id: override ? instanceId(event, override.originalStart) : event.eventId } }),
    });
  }
}

/**
 * Mails to people outside about events to which they are invited: in the outbox in the transaction of the change, which sets
 * limits. Source: docs/reference/calendar.md#people-outside.
 */
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import type { CalendarDeps } from '../deps.ts';
import { eventFor, type Organizer, type Told } from '../ics.ts';
import { repetitionOf } from '../recurrence/repetition.ts';
import { wallOf } from '../recurrence/times.ts';
import {
  type Attendee,
  contentOf,
  type EventRow,
  hasEnded,
  instanceTimes,
  isCanceled,
  momentsOf,
  type Override,
} from './event.ts';
import { queueMailSql, storeAttendeesSql } from './events.sql.ts';
import { UserNotices } from './notices.ts';
import { inTurns } from './turns.ts';

type Outsider = Attendee & { readonly email: string };

const outsidersOf = ({ attendees }: Pick<EventRow, 'attendees'>): Outsider[] =>
  attendees.filter((one): one is Outsider => one.email !== null);

const isTold = ({ untold }: Attendee): boolean => untold !== true;

/**
 * The organizer as mails name them; null: nobody outside is invited, or no mails leave.
 * @throws PlatformError AGENT_POLICY_DENIED under a run, when people outside are invited: mails cannot be taken back.
 */
export async function organizerOf(
  { organizer }: Pick<CalendarDeps, 'organizer'>,
  { tenantId, userId, agentRunId }: Pick<RequestContext, 'tenantId' | 'userId' | 'agentRunId'>,
  attendees: readonly { readonly email?: string | null | undefined }[],
): Promise<Organizer | null> {
  if (attendees.every(({ email }) => email == null)) return null;
  if (agentRunId !== null)
    throw new PlatformError(
      'AGENT_POLICY_DENIED',
      'Events with people outside cannot be created, changed or deleted under a run: let a person do it.',
    );
  return organizer({ tenantId, userId });
}

/**
 * Mails of one change. Without an organizer there are none. They are the last step of it: from then on to the end of the
 * transaction, other mails about events of the tenant wait, so that none passes the limits or an earlier one.
 */
export class Invitations {
  readonly #unit: Unit;
  readonly #organizer: Organizer | null;
  /** By what became of them, for the audit trail. */
  readonly mails: Record<string, number> = {};
  /** Collects the notifications of users about the same change. */
  readonly users = new UserNotices();

  constructor(unit: Unit, organizer: Organizer | null) {
    this.#unit = unit;
    this.#organizer = organizer;
  }

  /** An event, or a series with what differs from it: to those who are invited, and to those who were. */
  async changed(
    before: EventRow | null,
    event: EventRow,
    overrides: readonly Override[],
    matters: boolean,
  ): Promise<void> {
    if (hasEnded(event, overrides)) return;
    const known = before && !isCanceled(before) ? outsidersOf(before) : [];
    const invited = new Set(known.filter(isTold).map(({ email }) => email));
    const kept = isCanceled(event) ? [] : outsidersOf(event);
    const gone = known.filter(({ email }) => invited.has(email) && !kept.some((one) => one.email === email));
    const request = { method: 'REQUEST', event, overrides, isInstance: false } as const;
    // They may not see the change.
    const ended = { ...(before ?? event), sequence: event.sequence };
    const told = [
      ...(await this.#tell({ method: 'CANCEL', event: ended, overrides: [], isInstance: false }, gone, true)),
      // Those whom a limit has kept from being invited are invited by the next change that others are told of.
      ...(await this.#tell(
        request,
        kept.filter(({ email }) => !invited.has(email) && (matters || !known.some((one) => one.email === email))),
        false,
      )),
      ...(await this.#tell(request, matters ? kept.filter(({ email }) => invited.has(email)) : [], true)),
    ];
    await this.#remember(event, told, kept);
  }

  /** One instance of a series. `wasCanceled`: before the change. */
  async instanceChanged(event: EventRow, override: Override, wasCanceled: boolean): Promise<void> {
    const canceled = isCanceled(event, override);
    if (
      isCanceled(event) ||
      (canceled && wasCanceled) ||
      hasEnded({ ...event, recurrence: null, ...instanceTimes(event, override) }, [])
    )
      return;
    await this.#tell(
      { method: canceled ? 'CANCEL' : 'REQUEST', event, overrides: [override], isInstance: true },
      outsidersOf(event).filter(isTold),
      true,
    );
  }

  /** Events, series and instances that do not take place. `event`: with the sequence of the end. */
  async removed(event: EventRow, overrides: readonly Override[], instance: Override | null): Promise<void> {
    if (isCanceled(event)) return;
    if (instance) {
      const canceled = { ...instance, patch: { ...instance.patch, status: 'canceled' } } as const;
      return this.instanceChanged(event, canceled, isCanceled(event, instance));
    }
    if (!hasEnded(event, overrides))
      await this.#tell(
        { method: 'CANCEL', event, overrides: [], isInstance: false },
        outsidersOf(event).filter(isTold),
        true,
      );
  }

  /** Keeps with the event who has heard that it takes place: nobody else hears that it does not. */
  async #remember(event: EventRow, told: readonly string[], kept: readonly Outsider[]): Promise<void> {
    if (told.length === 0) return;
    const attendees = event.attendees.map(({ untold, ...one }): Attendee => {
      const isUntold = one.email !== null && told.includes(one.email) ? kept.length === 0 : untold === true;
      return { ...one, ...(isUntold ? { untold: true } : {}) };
    });
    const { tx, request } = this.#unit;
    await tx.query(storeAttendeesSql(request.tenantId, { ...event, attendees }));
  }

  /** Answers the addresses for which a mail was queued. */
  async #tell(told: Told, people: readonly Outsider[], again: boolean): Promise<string[]> {
    const organizer = this.#organizer;
    if (!organizer || people.length === 0) return [];
    const queued: string[] = [];
    const { tx, request } = this.#unit;
    const { event, overrides, isInstance, method } = told;
    const [instance] = isInstance ? overrides : [];
    const times = instance ? instanceTimes(event, instance) : event;
    const { title, location } = contentOf(event, instance);
    const moments = momentsOf(times);
    const repetition =
      isInstance || !event.recurrence
        ? null
        : repetitionOf(wallOf(event.startLocal), event.recurrence, overrides.length > 0);
    const written = await eventFor(told, organizer, platformTime());
    for await (const { email, optional } of inTurns(people)) {
      const ics = written({ address: email, optional });
      const mail = { method, again, title, location, ...moments, timezone: times.startTimezone, repetition, ics };
      const { outcome } = await tx.one<{ outcome: string }>(
        queueMailSql(request.tenantId, event.calendarId, email, mail),
      );
      this.mails[outcome] = (this.mails[outcome] ?? 0) + 1;
      if (outcome === 'queued') queued.push(email);
    }
    return queued;
  }
}

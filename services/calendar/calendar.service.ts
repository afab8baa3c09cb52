import type { ServiceSchema } from 'moleculer';
import type { CalendarActions } from '../../contracts/calendar.ts';
import { type ActionHandlers, answering, call } from '../../contracts/call.ts';
import { orEarlier } from '../../mixins/mutation/earlier.ts';
import { NOTICES, requestNotice } from '../../mixins/notices.ts';
import type { Platform } from '../../mixins/platform.ts';
import { sealingKeys } from '../../mixins/sealing-keys.ts';
import type { CalendarDeps } from './deps.ts';
import { listEvents } from './events/list.ts';
import { getEvent, listCalendars } from './events/read.ts';
import { createEvent, deleteEvent, respondToEvent, updateEvent } from './events/write.ts';
import { exportCalendar, readFeed } from './export.ts';
import { queryFreeBusy } from './free-busy.ts';
import { sweepPeriodically } from './sweep.ts';

/** The Moleculer schema of calendar: it declares and delegates. */
export default async function calendarService(platform: Platform): Promise<ServiceSchema> {
  const { database, broker, jobs } = platform;
  const deps: CalendarDeps = {
    database,
    sealingKeys: await sealingKeys(platform, 'cursors and sync tokens of calendars'),
    epoch: (question) => call(broker, 'data.epochs.get', question),
    unknownPrincipals: (question) => call(broker, 'data.principals.check', question),
    readable: (question) => call(broker, 'data.records.readable', question),
    access: (question) => call(broker, 'data.users.access', question),
    organizer: (question) => call(broker, 'auth.mails.organizer', question),
    notify: (tx, request, notice) => requestNotice(tx, jobs, request, notice),
  };
  const answer = answering(deps);

  return {
    name: 'calendar',
    actions: {
      'calendars.list': answer(listCalendars),
      'calendars.export': answer(exportCalendar),
      'feeds.read': ({ params }) => readFeed(deps, params),
      'events.list': answer(listEvents),
      'events.create': answer(orEarlier(createEvent)),
      'events.get': answer(getEvent),
      'events.update': answer(orEarlier(updateEvent)),
      'events.delete': answer(orEarlier(deleteEvent)),
      'events.respond': answer(orEarlier(respondToEvent)),
      'freeBusy.query': answer(queryFreeBusy),
    } satisfies ActionHandlers<'calendar', CalendarActions>,
    async started() {
      await jobs.declare(NOTICES);
      await sweepPeriodically(platform);
    },
  };
}

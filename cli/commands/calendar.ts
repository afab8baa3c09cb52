/** `calendar`: events, invitations, and when people are busy. */
import { Argument, Option } from '@commander-js/extra-typings';
import type { OperationInput, OperationOutput } from '../../contracts/operations.ts';
import { LIMITS } from '../../lib/limits.ts';
import { act, addGroup, type Group, type Program, type Run } from '../command.ts';
import { wholeNumber } from '../data/assignments.ts';
import { colleagueIdOf, findColleague } from '../data/names.ts';
import { parseReference, RECORD } from '../data/references.ts';
import { isDay, localTimeZone, periodOf, withOffset } from '../data/times.ts';
import type { Answer, Api } from '../http/api.ts';

type CalendarEvent = OperationOutput<'calendar.events.get'>;
type Creation = OperationInput<'calendar.events.create'>['body'];
type Moment = Creation['start'];
type Attendee = NonNullable<Creation['attendees']>[number];

/** Users who cannot read usernames and addresses know their colleagues by the displayed name. */
const PERSON = 'username, address or id, or the displayed name where you cannot read these';

export function addCalendar(program: Program): void {
  const calendar = addGroup(program, 'calendar', 'events in calendars, and when people are busy');
  addReads(calendar);
  addChanges(calendar);
}

const collect = (item: string, before: readonly string[] = []): string[] => [...before, item];

function addReads(calendar: Group): void {
  calendar
    .command('events')
    .description('list events by time, with each instance of a series')
    .option('--from <time>', 'that end after it (default: today)')
    .option('--to <time>', 'that begin before it (default: seven days later)')
    .option('--calendar <user>', `of this user, as far as you may see them: ${PERSON} (default: yours)`)
    .option('--take <number>', `events per page (default: ${LIMITS.take_default})`, wholeNumber)
    .option('--cursor <cursor>', 'go on where an earlier page ended')
    .action(
      act(async (run, { calendar: user, take, cursor, ...period }) => {
        const api = await run.api();
        const answer = await api.call('calendar.events.list', {
          query: {
            ...periodOf(period),
            expand: true,
            ...(user ? { calendarId: await colleagueIdOf(api, user) } : {}),
            ...(take ? { take } : {}),
            ...(cursor ? { cursor } : {}),
          },
        });
        const { records, nextCursor } = answer.body;
        run.output.result(answer, () => {
          run.output.table(
            [
              { title: 'Id', whole: true },
              { title: 'Start' },
              { title: 'End' },
              { title: 'Title' },
              { title: 'Location' },
            ],
            records.map(({ eventId, start, end, title, location }) => [
              eventId,
              momentText(start),
              momentText(end),
              title ?? '',
              location ?? '',
            ]),
          );
          if (nextCursor) run.output.note(`There are more: --cursor ${nextCursor}`);
        });
      }),
    );
  calendar
    .command('free-busy')
    .description('show when people are busy')
    .requiredOption('--user <user>', `whose: ${PERSON}; several times for several`, collect)
    .option('--from <time>', 'default: today')
    .option('--to <time>', 'default: seven days later')
    .action(
      act(async (run, { user: users, ...period }) => {
        const api = await run.api();
        const userIds = await Promise.all(users.map((user) => colleagueIdOf(api, user)));
        const body = { userIds, ...periodOf(period), timezone: localTimeZone() };
        const answer = await api.call('calendar.freeBusy.query', { body });
        const local = (time: string): string => withOffset(new Date(time));
        run.output.result(answer, () =>
          run.output.table(
            [{ title: 'User' }, { title: 'From' }, { title: 'To' }],
            answer.body.users.flatMap(({ busy }, at) =>
              busy.map(({ from, to }) => [users[at] ?? '', local(from), local(to)]),
            ),
          ),
        );
      }),
    );
}

function addChanges(calendar: Group): void {
  calendar
    .command('create')
    .description('create an event in your calendar, and invite people')
    .requiredOption('--title <title>', 'what it is')
    .requiredOption('--start <time>', 'such as 2026-11-23T09:30, or a day: 2026-11-23')
    .requiredOption('--end <time>', 'of whole days: the first day that is free again')
    .option('--timezone <name>', 'of start and end, such as Europe/Berlin (default: that of this machine)')
    .option('--attendee <user>', `invite: ${PERSON}, or an address outside; several times for several`, collect)
    .option('--record <record>', `what it is about: ${RECORD}`)
    .action(
      act(async (run, { title, start, end, timezone = localTimeZone(), attendee: invited = [], record }) => {
        const api = await run.api();
        const attendees = await Promise.all(invited.map((text) => attendeeOf(run, api, text)));
        const body = {
          title,
          start: momentOf(start, timezone),
          end: momentOf(end, timezone),
          ...(attendees.length > 0 ? { attendees } : {}),
          ...(record === undefined ? {} : { record: recordOf(record) }),
        };
        show(run, await api.call('calendar.events.create', { body }, { what: 'The creation' }));
      }),
    );
  calendar
    .command('respond')
    .description('answer an invitation to an event, a series or an instance of it')
    .argument('<eventId>')
    .addArgument(new Argument('<response>').choices(['accepted', 'tentative', 'declined'] as const))
    .action(
      act(async (run, eventId, response) =>
        show(run, await (await run.api()).call('calendar.events.respond', { path: { eventId }, body: { response } })),
      ),
    );
  calendar
    .command('delete')
    .description('delete an event, a series or instances of it; they cannot be restored')
    .argument('<eventId>')
    .addOption(
      new Option('--scope <scope>', 'what of a series (default: what the id names)').choices([
        'this',
        'following',
        'series',
      ] as const),
    )
    .action(
      act(async (run, eventId, { scope }) => {
        const api = await run.api();
        const path = { eventId };
        const ifMatch = (await api.call('calendar.events.get', { path })).headers.get('etag') ?? '';
        const input = { path, query: scope ? { scope } : {}, headers: { ifMatch } };
        const answer = await api.call('calendar.events.delete', input, { what: 'The deletion' });
        run.output.result(answer, () => run.output.line(run.output.terminal.pretty ? `Deleted ${eventId}` : eventId));
      }),
    );
}

const momentOf = (text: string, timezone: string): Moment =>
  isDay(text) ? { date: text } : { dateTime: text, timezone };

const momentText = ({ date, dateTime = '', timezone = '' }: Moment): string =>
  date ?? `${dateTime.slice(0, 'YYYY-MM-DDTHH:mm'.length).replace('T', ' ')} ${timezone}`;

/** A user whom the caller can look up, or else a person outside. */
async function attendeeOf(run: Run, api: Api, text: string): Promise<Attendee> {
  const userId = text.includes('@') ? await findColleague(api, text) : await colleagueIdOf(api, text);
  if (userId !== null) return { userId };
  run.output.note(
    `No user whom you can look up has ${text}: an invitation is mailed to this address. Name a colleague by ${PERSON}.`,
  );
  return { email: text };
}

function recordOf(text: string): NonNullable<Creation['record']> {
  const { objectApiName, recordId } = parseReference(text);
  return { objectApiName, id: recordId };
}

function show({ output }: Run, answer: Answer<CalendarEvent>): void {
  const { eventId, title, start, end, attendees } = answer.body;
  output.result(answer, () => {
    if (!output.terminal.pretty) return output.line(eventId);
    output.pairs([
      ['id', eventId],
      ['title', title ?? ''],
      ['start', momentText(start)],
      ['end', momentText(end)],
      ...attendees.map(({ userId, email, response }) => ['attendee', `${email ?? userId} ${response}`] as const),
    ]);
  });
}

/** A page of the log for one user, of whichever way of delivery. Source: docs/reference/events.md. */
import type { Asker } from '../../../lib/context.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { hasPassed, inEpoch, requireEpoch } from '../../../mixins/epoch/epoch.ts';
import type { EventsDeps } from '../deps.ts';
import { type Asked, type LogEvent, type LogRow, logStatement } from '../log/log.sql.ts';
import { type Visible, visibleEvents } from '../log/visible.ts';
import type { LogPosition } from './cursor.ts';
import { Together } from './together.ts';

interface PageQuestion extends Pick<Asked, 'types' | 'objects' | 'take'> {
  readonly asker: Asker;
  /** null: what happens from now on. */
  readonly start: LogPosition | null;
  readonly full: boolean;
}

export interface LogPage {
  readonly events: Visible['events'];
  readonly position: LogPosition;
  readonly oldest: LogPosition;
  /** There are further events, which the reader may know of or not. */
  readonly more: boolean;
}

/** Events that a page looks at, where the user may know of few. */
const CANDIDATES_MIN = 200;

const readersOf = memoize((_database: Database) => ({
  pages: new Together<LogPage>(),
  logs: new Together<LogRow[]>(),
}));

/** The page for a stream. Streams of a tenant are woken together: those of one user share a page, those of all one look at the log. */
export const readPageTogether: typeof readPage = (deps, question, expired) => {
  const { asker, ...asked } = question;
  const { requestId: _, deadline: __, ...who } = asker;
  return readersOf(deps.database).pages.ask(JSON.stringify([who, asked]), () =>
    readPage(deps, question, expired, true),
  );
};

/** `expired`: makes the error of a position that cannot be continued. */
export function readPage(
  deps: EventsDeps,
  { asker, start, full, ...asked }: PageQuestion,
  expired: (isOld: boolean, oldest: LogPosition) => Error,
  together = false,
): Promise<LogPage> {
  const { tenantId } = asker;
  return inEpoch(deps.database, tenantId, async () => {
    const after = start?.sequence ?? null;
    const candidates = Math.max(asked.take, CANDIDATES_MIN);
    const look = { ...asked, after, take: candidates };
    const read = (): Promise<LogRow[]> =>
      deps.database.tenant(tenantId, (tx) => tx.all<LogRow>(logStatement(tx.schema, look)));
    const rows = await (together ? readersOf(deps.database).logs.ask(JSON.stringify([tenantId, look]), read) : read());
    const [place] = rows;
    if (!place) throw new Error('The log has no head.');
    const { epoch, last, oldest: oldestSequence } = place;
    const isAhead = start?.epoch === epoch && start.sequence > last;
    requireEpoch(place, hasPassed(place) || isAhead);
    const oldest = { epoch, sequence: oldestSequence };
    if (start && start.epoch !== epoch) throw expired(false, oldest);
    if (start && start.sequence < oldestSequence) throw expired(true, oldest);
    const found = rows.filter((row): row is LogRow & LogEvent => row.sequence !== null);
    const { events, cutAt } = await visibleEvents(deps, asker, found.slice(0, candidates), full);
    const page = events.slice(0, asked.take);
    const ends = [
      Math.min(last, (after ?? last) + LIMITS.events_scan_max),
      ...(cutAt ? [cutAt.sequence - 1] : []),
      ...(found.length > candidates ? [found[candidates - 1]?.sequence ?? last] : []),
      ...(events.length > page.length ? [page.at(-1)?.event.sequence ?? last] : []),
    ];
    const sequence = Math.min(...ends);
    return { events: page, position: { epoch, sequence }, oldest, more: sequence < last };
  });
}

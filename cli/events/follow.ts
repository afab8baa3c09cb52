/** Follows the events of the tenant, page by page: a page that was lost is asked for again from the same cursor. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CloudEvent } from '../../contracts/events.ts';
import type { OperationOutput } from '../../contracts/operations.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { Run } from '../command.ts';
import { ApiFailure, EXIT, Failure, usage } from '../failure.ts';
import type { Api, CallInput } from '../http/api.ts';
import { AnswerTooLarge } from '../http/transport.ts';
import { onInterrupt } from '../output/interrupt.ts';
import { plain } from '../output/table.ts';

export interface FollowOptions {
  types?: string | undefined;
  objects?: string | undefined;
  payload?: 'thin' | 'full' | undefined;
  cursor?: string | undefined;
  fromStart?: true | undefined;
  /** false: end with the newest event. */
  follow: boolean;
}

type Query = NonNullable<CallInput<'events.items.list'>['query']>;

/** After the attempts of a call have failed, such as while the platform restarts. */
const PAUSE_SECONDS = 5;

/** Hands each event to `take` in order, until Ctrl-C or the newest event. Ends with the cursor to continue from. */
export async function followEvents(
  run: Run,
  options: FollowOptions,
  take: (event: CloudEvent) => Promise<void> | void,
): Promise<void> {
  if (options.cursor !== undefined && options.fromStart) throw usage('--cursor and --from-start cannot be combined.');
  const api = await run.api();
  const { types, objects, payload, follow } = options;
  const query: Query = {
    take: LIMITS.events_take_max,
    ...(types === undefined ? {} : { types }),
    ...(objects === undefined ? {} : { objects }),
    ...(payload === undefined ? {} : { payload }),
  };
  // Shorter than --timeout, so that a wait does not end as a lost connection.
  const wait = Math.min(LIMITS.events_wait_seconds_max, Math.floor(run.options.timeout / 2));
  let cursor = options.cursor ?? (await beginning(api, options));
  const tell = (): void => run.output.note(`Continue with --cursor ${cursor}`);
  const restore = onInterrupt(() => {
    run.output.note('');
    tell();
  });
  try {
    for (let first = true; ; first = false) {
      const waitSeconds = first || !follow ? 0 : wait;
      const { records, nextCursor, resumeCursor } = await pageFrom(run, api, { ...query, cursor, waitSeconds }, !first);
      if (first && follow) run.output.note('Waiting for events. Ctrl-C ends it.');
      for (const event of records) await take(event);
      cursor = resumeCursor;
      if (!follow && nextCursor === null) break;
    }
    tell();
  } catch (error) {
    if (!isRefused(error)) tell();
    throw error;
  } finally {
    restore();
  }
}

/** Asked for before the first wait: without a cursor, the repetition of a lost request would begin later. */
async function beginning(api: Api, { fromStart }: FollowOptions): Promise<string> {
  const { resumeCursor, oldestCursor } = (await api.call('events.items.list', {})).body;
  return fromStart ? oldestCursor : resumeCursor;
}

async function pageFrom(
  run: Run,
  api: Api,
  query: Query,
  patient: boolean,
): Promise<OperationOutput<'events.items.list'>> {
  for (;;) {
    try {
      return (await api.call('events.items.list', { query })).body;
    } catch (error) {
      if (error instanceof ApiFailure && error.code === 'SYNC_TOKEN_EXPIRED') throw expired(error);
      if (!patient || !isPassing(error)) throw error;
      run.output.note(`${plain(error.message)} Trying again in ${PAUSE_SECONDS} seconds.`);
      await sleep(PAUSE_SECONDS * 1_000);
    }
  }
}

const isPassing = (error: unknown): error is Failure =>
  error instanceof ApiFailure
    ? error.answer.retryable === true || error.status >= 500
    : error instanceof Failure && error.code === 'CLIENT_NETWORK' && !(error instanceof AnswerTooLarge);

/** The platform refuses the request itself, so that its cursor leads nowhere. */
const isRefused = (error: unknown): boolean =>
  error instanceof Failure && (error.code === 'SYNC_TOKEN_EXPIRED' || error.exitCode === EXIT.validation);

/** Events were missed, which is a failure of following and no fault of the command. */
function expired({ code, message, answer }: ApiFailure): Failure {
  return new Failure(code, EXIT.error, message, {
    body: answer,
    hint: `Read what you follow anew, then continue with --cursor ${answer.details?.['oldestCursor']}`,
  });
}

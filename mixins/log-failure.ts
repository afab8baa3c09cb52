/**
 * Why a request or a piece of work has failed, for the log: the caller gets the code and the request id. What another
 * part of the system cannot do at the moment has lines of its own when that begins and ends; the work that fails
 * meanwhile is logged in few, short lines.
 */
import type { Middleware, ServiceBroker } from 'moleculer';
import { PlatformError } from '../lib/errors/platform-error.ts';
import { messageOf } from '../lib/errors/thrown.ts';
import { type FailureKind, failureOf } from './database/failures.ts';
import { middleware } from './moleculer.ts';
import { isServiceUnavailable } from './service-unavailable.ts';

type Log = Pick<ServiceBroker['logger'], 'info' | 'warn' | 'error'>;

/** Of each kind of outage there is one line in so many milliseconds, with the number of those that were left out. */
const OUTAGE_EVERY_MS = 1_000;

interface Told {
  at: number;
  untold: number;
}

/** Failures of single statements, though the database is all right. */
const SINGLE: ReadonlySet<string> = new Set<FailureKind>(['timedOut', 'contended']);

/** Outages that were told, by their kind, of which there are about ten. */
const told = new WeakMap<Log, Map<string, Told>>();

/** Errors that a line has told of: who hands them on need not tell again. */
const logged = new WeakSet<object>();

/** At level `error` what is a bug, at `warn` what others could not do, at `info` what passes (a lock, a conflict). */
export function logFailure(log: Log, name: string, requestId: string | null, error: unknown): void {
  if (error instanceof Error) logged.add(error);
  const known = error instanceof PlatformError;
  const cause = known ? error.cause : error;
  if (cause === undefined) return;
  const fields = { ...(requestId === null ? {} : { requestId }), ...(known ? { code: error.code } : {}) };
  const message = `${name} failed.`;
  const kind = outageOf(error);
  if (kind !== null) logOutage(log, kind, { ...fields, reason: messageOf(cause) }, message);
  else if (known && error.status < 500) log.info({ err: cause, ...fields }, message);
  else if (failureOf(cause)) log.warn({ err: cause, ...fields }, message);
  else log.error({ err: cause, ...fields }, message);
}

/** Work that is tried again has failed: at `warn`, with the error, unless it is an outage. */
export function warnOf(log: Log, error: unknown, message: string, fields: object = {}): void {
  const kind = outageOf(error);
  if (kind === null) log.warn({ err: error, ...fields }, message);
  else logOutage(log, kind, { ...fields, reason: messageOf(causeOf(error)) }, message);
}

/** A caller's error says what to do, its cause what has happened. */
const causeOf = (error: unknown): unknown => (error instanceof PlatformError ? error.cause : null) ?? error;

/** The unavailable part: the kind of database failure, or another service; null: the work itself failed. */
function outageOf(error: unknown): string | null {
  const isKnown = error instanceof PlatformError;
  if (isKnown && error.status < 500) return null;
  const cause = causeOf(error);
  const failure = failureOf(cause);
  if (failure) return SINGLE.has(failure.kind) ? null : failure.kind;
  return isServiceUnavailable(cause) || (isKnown && error.code === 'SERVICE_UNAVAILABLE') ? 'service' : null;
}

/** The broker's warning for each call without a provider. */
const NOBODY = /^Service '.{1,200}' is not (?:available|found|registered)/;

/** Middleware of a broker: its own lines about calls without a provider are limited like those about other outages. */
export const brokerWarnings: Middleware = middleware({
  name: 'BrokerWarnings',
  created(broker: ServiceBroker) {
    const { logger } = broker;
    const { warn } = logger;
    logger.warn = (...parameters: unknown[]): void => {
      const [message] = parameters;
      if (typeof message !== 'string' || !NOBODY.test(message)) warn(...parameters);
      else logOutage(logger, 'service', { reason: message }, 'A call failed.');
    };
  },
});

interface Called {
  readonly requestID: string | null;
}

/** Middleware of a broker: an action that fails for no fault of its caller has a line in the service where it did. */
export function failedActions(): Middleware {
  let log: Log;
  return middleware({
    name: 'FailedActions',
    created(broker: ServiceBroker) {
      log = broker.logger;
    },
    localAction(next: (ctx: Called) => Promise<unknown>, { name }: { name: string }) {
      return (ctx: Called) =>
        next(ctx).catch((error: unknown) => {
          if (!(error instanceof Error && logged.has(error))) logFailure(log, name, ctx.requestID, error);
          throw error;
        });
    },
  });
}

function logOutage(log: Log, kind: string, fields: object, message: string): void {
  let kinds = told.get(log);
  if (!kinds) told.set(log, (kinds = new Map()));
  const now = performance.now();
  const before = kinds.get(kind);
  if (before && now - before.at < OUTAGE_EVERY_MS) {
    before.untold++;
    return;
  }
  kinds.set(kind, { at: now, untold: 0 });
  log.warn({ ...fields, outage: kind, ...(before?.untold ? { untold: before.untold } : {}) }, message);
}

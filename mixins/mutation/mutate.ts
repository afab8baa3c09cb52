/**
 * The one frame of every mutation: exactly once per idempotency key, repeated when a deployment or another transaction
 * got in the way, and recorded when it was refused. Source: docs/reference/idempotency.md.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { platformTime } from '../../lib/values/clock.ts';
import type { Database } from '../database/database.ts';
import { endStaleApproval, runHook } from './agent-run.ts';
import { isTransient, platformErrorOf, waitedForDeployment, waitedForTableOrValue } from './errors.ts';
import { type IdempotencyKey, idempotencyKey } from './key.ts';
import { concludeDryRun, concludeRefusal } from './refusal.ts';
import { type DataRole, type Hook, inTransaction, singleStatementUnit, type Unit, type UnitOptions } from './unit.ts';
import { approving, refused } from './verdict.ts';

/** A mutation waits for a deployment until this long before its deadline. */
const DEPLOYMENT_PATIENCE_MS = 15_000;

/** Answer of a mutation that was not committed. */
interface ErrorMapping {
  /** Maps a driver error that only the service can explain, such as a violated constraint of its own tables. */
  readonly toError?: (error: unknown) => PlatformError | null;
  /** For a dry run: what a refusal of the content answers; null: it remains an error. */
  readonly verdictOf?: (failure: PlatformError) => OperationReply | null;
}

export interface Mutation extends ErrorMapping {
  /** Owner of the tables that the work uses. */
  readonly role: DataRole;
  /**
   * Does the work as `role` and returns what the caller is answered, which is stored under the key. It throws a
   * PlatformError to refuse. It may run several times; only one run is committed. Entries and events that it leaves in
   * the unit are written in the same transaction.
   */
  readonly work: (unit: Unit) => Promise<OperationReply>;
  /** Decisions of other services that run in the same transaction, after the work. */
  readonly hooks?: readonly Hook[];
}

/**
 * Runs a mutation: claim the key, `work` in a unit (one transaction), hooks, audit, outbox, stored outcome, commit. A
 * duplicate request gets the stored outcome, or 409 while the first one is still in progress. Transient failures are
 * repeated; a refusal is recorded with its key and thrown.
 */
export function mutate(
  database: Database,
  request: RequestContext,
  call: OperationCall,
  { role, work, hooks = [], ...errorMapping }: Mutation,
): Promise<OperationReply> {
  const key = idempotencyKey(call, request);
  const service = role === 'tenant' ? 'data' : role.service;
  const verdictOf = request.dryRun ? { verdictOf: (failure: PlatformError) => refused(request, failure) } : {};
  return runIdempotent({ database, request, call, key, service, hooks, ...verdictOf, ...errorMapping }, ({ inUnit }) =>
    inUnit(async (unit) => {
      const stored = await unit.claim();
      if (stored) return stored;
      unit.actAs(role);
      const reply = await unit.complete(await work(unit));
      return request.dryRun ? verdictOn(reply, unit) : reply;
    }),
  );
}

/** `reply`: what the mutation would have answered. */
function verdictOn({ body }: OperationReply, { request, effects }: Unit): OperationReply {
  return approving(request, Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body), effects);
}

/** A mutation whose statements claim and complete the key by themselves. */
interface IdempotentMutation extends ErrorMapping {
  readonly database: Database;
  readonly request: RequestContext;
  readonly call: OperationCall;
  readonly key: IdempotencyKey;
  /** Service that runs it. */
  readonly service: string;
  readonly hooks?: readonly Hook[];
}

/** One attempt at a mutation. */
export interface Attempt {
  /**
   * Runs `work` in a unit that is a transaction, as the tenant's role. `single` is tried before where one statement may
   * do everything by itself; null: it did nothing.
   */
  inUnit(
    work: (unit: Unit) => Promise<OperationReply>,
    single?: (unit: Unit) => Promise<OperationReply | null>,
  ): Promise<OperationReply>;
}

/**
 * The frame without the statements about the key, for mutations that include these in their own to save round trips:
 * `attempt` is repeated after a transient failure, and its refusal is recorded. Everything that it commits must claim
 * and complete the key in the same transaction (key.sql.ts).
 */
export async function runIdempotent(
  mutation: IdempotentMutation,
  attempt: (attempt: Attempt) => Promise<OperationReply>,
): Promise<OperationReply> {
  const { database, request, key, service, verdictOf } = mutation;
  const noted: NotedBasis = { basis: null };
  const outcome = await untilDecided(mutation, attempt, noted);
  if (key.checkOnly) {
    const verdict = await concludeDryRun(mutation, outcome, verdictOf);
    return noted.basis === null || outcome instanceof PlatformError ? verdict : { ...verdict, basis: noted.basis };
  }
  if (!(outcome instanceof PlatformError)) return outcome;
  // A process that dies before it leaves an approval that the next attempt finds stale again.
  if (outcome.code === 'APPROVAL_STALE') await endStaleApproval(database, service, request);
  return concludeRefusal(mutation, outcome);
}

/**
 * A part of a mutation that is committed by itself, under a key with `part`: repeated after a transient failure. Its
 * refusal is thrown and not recorded, because the mutation as a whole is still going on.
 */
export async function runPart(
  mutation: IdempotentMutation,
  attempt: (attempt: Attempt) => Promise<OperationReply>,
): Promise<OperationReply> {
  const outcome = await untilDecided(mutation, attempt, { basis: null });
  if (outcome instanceof PlatformError) throw outcome;
  return outcome;
}

/** The basis of a dry run under a run; null: its content was refused, or it is under no run. */
interface NotedBasis {
  basis: string | null;
}

async function untilDecided(
  mutation: IdempotentMutation,
  attempt: (attempt: Attempt) => Promise<OperationReply>,
  noted: NotedBasis,
): Promise<OperationReply | PlatformError> {
  const { request, toError } = mutation;
  for (let count = 0; ; count++) {
    try {
      noted.basis = null;
      return await attempt(attemptOf(mutation, noted, count > 0));
    } catch (error) {
      // Nothing was begun, and to record that would have to wait for a connection once more.
      if (error instanceof PlatformError && error.code === 'CONCURRENCY_LIMIT_EXCEEDED') throw error;
      if (!mayRepeat(error, count, request.deadline)) return platformErrorOf(error, toError);
      await pause(5 + Math.random() * 20 * 2 ** Math.min(count, 5));
    }
  }
}

/** `cautious`: after an attempt that failed on a lock, the single statement is not tried again. */
function attemptOf(mutation: IdempotentMutation, noted: NotedBasis, cautious: boolean): Attempt {
  const { database, request, call, key } = mutation;
  const hooks = hooksOf(mutation, noted);
  const options: UnitOptions = { request, call, key, hooks };
  return {
    inUnit: (work, single) =>
      database.tenant(request.tenantId, async (tx) => {
        if (single && !cautious && !key.checkOnly && hooks.length === 0) {
          const done = await single(singleStatementUnit(tx, options));
          if (done) return done;
        }
        return inTransaction(tx, options, cautious, work);
      }),
  };
}

/** A change under a run needs the leave of the run, behind everything else. */
function hooksOf({ request, key, service, hooks = [] }: IdempotentMutation, noted: NotedBasis): readonly Hook[] {
  const underRun = runHook(service, request, key.checkOnly, (basis) => {
    noted.basis = basis;
  });
  return underRun ? [...hooks, underRun] : hooks;
}

function mayRepeat(error: unknown, count: number, deadline: number): boolean {
  const now = platformTime();
  if (waitedForDeployment(error)) return now < deadline - DEPLOYMENT_PATIENCE_MS;
  if (now >= deadline) return false;
  return isTransient(error) ? count < LIMITS.retries_serialization_max : count === 0 && waitedForTableOrValue(error);
}

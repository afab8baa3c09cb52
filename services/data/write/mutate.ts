/**
 * The frame of every mutation of records: exactly once per idempotency key, repeated when the configuration or another
 * transaction got in the way, and recorded when it was refused. Source: docs/reference/idempotency.md.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { LIMITS } from '../../../config/limits.ts';
import type { ObjectAccess } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import { isConnectionError, type Tx } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { type IdempotencyKey, idempotencyKey } from '../../../mixins/mutation/key.ts';
import { SHARE_STEPS, UNSHARE_STEPS } from '../shares/steps.ts';
import { schemaOf } from '../sql.ts';
import { recordNotFound, visibleObject } from '../tenants.ts';
import type { View } from '../view.ts';
import { bodyObject } from './body.ts';
import { passed } from './check-only.ts';
import { CREATE_STEPS } from './create.ts';
import { DELETE_STEPS } from './delete.ts';
import { mayAskDuplicates } from './duplicates.ts';
import { concludeCheck, concludeFailure, isDeployment, isLockedOut, isTransient, toPlatformError } from './failures.ts';
import { RESTORE_STEPS } from './restore.ts';
import { noteRollups } from './rollups.ts';
import { TRANSITION_STEPS } from './transition.ts';
import { withAllConflicts } from './unique.ts';
import { UPDATE_STEPS } from './update.ts';
import { updateAtOnce } from './update-at-once.ts';
import { upsert, upsertVersions } from './upsert.ts';
import { type Mutation, type MutationDeps, parseIfMatch, runSteps, type Step, type Task, type Write } from './write.ts';

/** What an operation asks for: an upsert becomes a create or an update. */
export type Asked = Mutation | 'upsert';

interface Form {
  readonly steps: readonly Step[];
  /** It changes what the caller has seen. */
  readonly ifMatch: boolean;
  readonly body: 'needed' | 'optional' | 'none';
}

const FORMS: Readonly<Record<Mutation, Form>> = {
  create: { steps: CREATE_STEPS, ifMatch: false, body: 'needed' },
  update: { steps: UPDATE_STEPS, ifMatch: true, body: 'needed' },
  delete: { steps: DELETE_STEPS, ifMatch: true, body: 'none' },
  restore: { steps: RESTORE_STEPS, ifMatch: false, body: 'none' },
  transition: { steps: TRANSITION_STEPS, ifMatch: true, body: 'optional' },
  share: { steps: SHARE_STEPS, ifMatch: false, body: 'needed' },
  unshare: { steps: UNSHARE_STEPS, ifMatch: false, body: 'none' },
};

/** A write waits for a deployment, but stops so long before its own deadline. */
const DEPLOYMENT_PATIENCE_MS = 15_000;

export async function mutate(
  deps: MutationDeps,
  mutation: Asked,
  request: RequestContext,
  call: OperationCall,
): Promise<OperationReply> {
  const key = idempotencyKey(call, request, call.query['checkOnly'] === true);
  const ifMatch = versionsOf(mutation, call);
  const body = bodyOf(mutation, call);
  for (let attempt = 0; ; attempt++) {
    let view: View | undefined;
    let outcome: OperationReply | PlatformError;
    try {
      outcome = await deps.tenants.withView(request.tenantId, request.userId, (current) => {
        view = current;
        const round: Round = { deps, request, key, ifMatch, view: current, cautious: attempt > 0 };
        if (mutation !== 'upsert') return once(round, { mutation, call, body, external: null });
        return upsert(deps.platform.database, current, call, body, (task) => once(round, task));
      });
    } catch (error) {
      const again = isDeployment(error)
        ? Date.now() < request.deadline - DEPLOYMENT_PATIENCE_MS
        : (isTransient(error) ? attempt < LIMITS.retries_serialization_max : attempt === 0 && isLockedOut(error)) &&
          Date.now() < request.deadline;
      if (again) {
        await pause(5 + Math.random() * 20 * 2 ** Math.min(attempt, 5));
        continue;
      }
      outcome = toPlatformError(view, call, error);
    }
    if (key.checkOnly) return concludeCheck(deps.platform, request, call, key, outcome);
    if (!(outcome instanceof PlatformError)) return outcome;
    return concludeFailure(deps.platform, request, call, key, outcome);
  }
}

/** The versions that the record may have. */
function versionsOf(mutation: Asked, call: OperationCall): readonly string[] {
  if (mutation === 'upsert') return upsertVersions(call);
  return FORMS[mutation].ifMatch ? parseIfMatch(call.headers.ifMatch) : [];
}

function bodyOf(mutation: Asked, call: OperationCall): Record<string, unknown> {
  const form = mutation === 'upsert' ? 'needed' : FORMS[mutation].body;
  if (form === 'none' || (form === 'optional' && (call.body ?? null) === null)) return {};
  return bodyObject(call.body);
}

/** One attempt at a request. */
interface Round {
  readonly deps: MutationDeps;
  readonly request: RequestContext;
  readonly key: IdempotencyKey;
  readonly ifMatch: readonly string[];
  readonly view: View;
  /** Another transaction got in the way before. */
  readonly cautious: boolean;
}

async function once(
  { deps, request, key, ifMatch, view, cautious }: Round,
  { mutation, call, body, external }: Task,
): Promise<OperationReply> {
  const access = visibleObject(view, call.path['objectApiName'] ?? '');
  const id = mutation === 'create' ? uuidv7() : (call.path['id'] ?? '').toLowerCase();
  if (!isUuid(id)) throw recordNotFound();
  const usernameConflict = await usernameConflictOf(deps, mutation, request.tenantId, id, access, body);
  const begin = (tx: Tx, commit: Write['commit']): Write => ({
    deps,
    mutation,
    request,
    call,
    checkOnly: key.checkOnly,
    effects: [],
    key,
    view,
    object: access.object,
    access,
    schema: schemaOf(request.tenantId),
    id,
    tx,
    commit,
    transactionId: uuidv7(),
    place: { index: 0, size: 1 },
    within: false,
    made: [],
    usernameConflict,
    external,
    body,
    given: [],
    invalid: [],
    denied: [],
    ifMatch,
    recordVersion: 0,
    reached: 'read',
    stored: {},
    changed: [],
    confirmed: null,
    reply: null,
  });
  const run = async (write: Write): Promise<OperationReply> => {
    const reply = await runSteps(write, FORMS[mutation].steps);
    await noteRollups(write);
    return key.checkOnly ? passed(write, reply) : reply;
  };
  let write: Write | null = null;
  const attempt = async (tx: Tx): Promise<OperationReply> => {
    // One statement is one transaction by itself. Behind a lost race for locks a write goes the longer way.
    if (!cautious && !key.checkOnly) {
      write = begin(tx, (statement) => tx.arrays(statement));
      if (mutation === 'create' && !(external && !external.field.unique) && !mayAskDuplicates(write)) return run(write);
      const done = mutation === 'update' ? await updateAtOnce(write) : null;
      if (done) return done;
    }
    return inTransaction(tx, cautious, key.checkOnly, (commit) => {
      write = begin(tx, commit);
      return run(write);
    });
  };
  const { database } = deps.platform;
  const reply = await database.tenant(request.tenantId, attempt).catch(async (error: unknown) => {
    throw await withAllConflicts(database, write, error);
  });
  if (access.object.apiName === 'User' && !key.checkOnly) await deps.usersChanged(request.tenantId);
  return reply;
}

/** Asked before a connection is taken: auth needs one, too. */
async function usernameConflictOf(
  deps: MutationDeps,
  mutation: Mutation,
  tenantId: string,
  userId: string,
  access: ObjectAccess,
  body: Record<string, unknown>,
): Promise<PlatformError | null> {
  const { username } = body;
  if (access.object.apiName !== 'User' || (mutation !== 'create' && mutation !== 'update')) return null;
  if (!access.permission[mutation]) return null;
  if (typeof username !== 'string' || username.trim() === '') return null;
  try {
    await deps.checkUsername(tenantId, userId, username);
    return null;
  } catch (error) {
    if (error instanceof PlatformError && error.code === 'UNIQUE_VALUE_CONFLICT') return error;
    throw new PlatformError('SERVICE_UNAVAILABLE', 'Usernames cannot be checked at the moment.', {
      retryAfterSeconds: 1,
      cause: error,
    });
  }
}

/**
 * BEGIN travels with the first statement, COMMIT with the last one, which the work sends through `commit`. Work that
 * never sends it is rolled back, and so is a dry run, which asks for what is otherwise checked at the end instead.
 */
async function inTransaction<T>(
  tx: Tx,
  cautious: boolean,
  checkOnly: boolean,
  work: (commit: Write['commit']) => Promise<T>,
): Promise<T> {
  tx.gather();
  tx.client.query('BEGIN').catch(() => {});
  let committed = false;
  const commit = async (statement: Statement) => {
    tx.gather();
    const last = tx.arrays(statement);
    const end = tx.client.query(checkOnly ? 'SET CONSTRAINTS ALL IMMEDIATE' : 'COMMIT');
    end.catch(() => {});
    const result = await last;
    await end;
    committed = !checkOnly;
    return result;
  };
  try {
    // A statement locks its tables before it runs. Waiting for a deployment while holding them would be a deadlock.
    if (cautious) await tx.query(`SELECT FROM ${tx.schema}._state FOR SHARE`);
    return await work(commit);
  } catch (error) {
    if (isConnectionError(error)) committed = true; // the connection is gone, and the transaction with it
    throw error;
  } finally {
    if (!committed) await tx.client.query('ROLLBACK');
  }
}

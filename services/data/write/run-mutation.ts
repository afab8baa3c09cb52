/** Mutations of records: from an operation to the steps of one record, in the frame of every mutation. */

import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { RequestContext } from '../../../lib/context.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { isNumbered } from '../../../lib/schema/field-types/registry.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { type IdempotencyKey, idempotencyKey, withoutKey } from '../../../mixins/mutation/key.ts';
import { type Attempt, runIdempotent } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { refused } from '../../../mixins/mutation/verdict.ts';
import { recordNotFound, visibleObject } from '../object-access.ts';
import { SHARE_STEPS, UNSHARE_STEPS } from '../shares/steps.ts';
import type { View } from '../view.ts';
import { bodyObject } from './body.ts';
import { passed } from './check-only.ts';
import { recordError } from './constraint-errors.ts';
import { CREATE_STEPS } from './create.ts';
import { DELETE_STEPS } from './delete.ts';
import { mayAskDuplicates } from './duplicates.ts';
import { namesFiles } from './files.ts';
import { RESTORE_STEPS } from './restore.ts';
import { noteRollups } from './rollups.ts';
import { standardObject } from './standard-objects.ts';
import { TRANSITION_STEPS } from './transition.ts';
import { withAllConflicts } from './unique.ts';
import { UPDATE_STEPS } from './update.ts';
import { updateAtOnce } from './update-at-once.ts';
import { upsert, upsertVersions } from './upsert.ts';
import {
  type Mutation,
  type MutationCall,
  type MutationDeps,
  newWrite,
  parseIfMatch,
  runSteps,
  type Step,
  type Task,
  type Write,
} from './write.ts';

/** The requested kind of write: an upsert becomes a create or an update. */
export type RequestedMutation = Mutation | 'upsert';

/** Parts of a mutation. */
interface MutationSpec {
  readonly steps: readonly Step[];
  /** True when it changes a record that the caller has read. */
  readonly ifMatch: boolean;
  readonly body: 'needed' | 'optional' | 'none';
}

const SPECS: Readonly<Record<Mutation, MutationSpec>> = {
  create: { steps: CREATE_STEPS, ifMatch: false, body: 'needed' },
  update: { steps: UPDATE_STEPS, ifMatch: true, body: 'needed' },
  delete: { steps: DELETE_STEPS, ifMatch: true, body: 'none' },
  restore: { steps: RESTORE_STEPS, ifMatch: false, body: 'none' },
  transition: { steps: TRANSITION_STEPS, ifMatch: true, body: 'optional' },
  share: { steps: SHARE_STEPS, ifMatch: false, body: 'needed' },
  unshare: { steps: UNSHARE_STEPS, ifMatch: false, body: 'none' },
};

/** How an operation deviates from the mutation of a record that it is. */
interface Deviation {
  /** The view by which it is decided. */
  readonly seenAs: (view: View) => View;
  readonly steps: readonly Step[];
}

/** Runs a mutation; under a run that is a dry run it is tried out. */
export const runRecordMutation = async (
  deps: MutationDeps,
  mutation: RequestedMutation,
  request: RequestContext,
  call: MutationCall,
  deviation?: Deviation,
): Promise<OperationReply> => mutateRecord(deps, mutation, request, call, idempotencyKey(call, request), deviation);

/** Tries a mutation out for a request that is no mutation itself. */
export const tryRecordMutation = (
  deps: MutationDeps,
  mutation: RequestedMutation,
  request: RequestContext,
  call: MutationCall,
): Promise<OperationReply> => mutateRecord(deps, mutation, request, call, withoutKey(request));

async function mutateRecord(
  deps: MutationDeps,
  mutation: RequestedMutation,
  request: RequestContext,
  call: MutationCall,
  key: IdempotencyKey,
  deviation?: Deviation,
): Promise<OperationReply> {
  const { database } = deps.platform;
  const ifMatch = versionsOf(mutation, call);
  const body = bodyOf(mutation, call);
  let view: View | undefined;
  return runIdempotent(
    {
      database,
      request,
      call,
      key,
      service: 'data',
      toError: (error) => recordError(view, call, error),
      verdictOf: (failure) => refused(request, failure),
    },
    (attempt) =>
      deps.tenants.withView(request.tenantId, request.userId, (current) => {
        view = deviation ? deviation.seenAs(current) : current;
        const steps = deviation?.steps;
        const context: AttemptContext = { deps, request, checkOnly: key.checkOnly, attempt, ifMatch, view, steps };
        if (mutation !== 'upsert') return runTask(context, { mutation, call, body, external: null });
        return upsert(database, view, call, body, (task) => runTask(context, task));
      }),
  );
}

/** The versions that the record may have. */
function versionsOf(mutation: RequestedMutation, call: MutationCall): readonly string[] {
  if (mutation === 'upsert') return upsertVersions(call);
  return SPECS[mutation].ifMatch ? parseIfMatch(call.headers.ifMatch) : [];
}

function bodyOf(mutation: RequestedMutation, call: MutationCall): Record<string, unknown> {
  const body = mutation === 'upsert' ? 'needed' : SPECS[mutation].body;
  if (body === 'none' || (body === 'optional' && (call.body ?? null) === null)) return {};
  return bodyObject(call.body);
}

/** One attempt at a request, with the view that it uses. */
interface AttemptContext {
  readonly deps: MutationDeps;
  readonly request: RequestContext;
  readonly checkOnly: boolean;
  readonly attempt: Attempt;
  readonly ifMatch: readonly string[];
  readonly view: View;
  /** Default: those of the mutation. */
  readonly steps?: readonly Step[] | undefined;
  /** The task is a part of a larger unit, which commits. */
  readonly part?: Pick<Write, 'place' | 'created'> & {
    /** Called with the write before its first step. */
    readonly begun: (write: Write) => void;
    /** Its steps; default: those of the mutation. */
    readonly steps?: (steps: readonly Step[]) => readonly Step[];
  };
}

/** Runs a mutation as a part of a larger unit: `unit` is the part. */
export function runWithin(
  unit: Unit,
  context: Omit<AttemptContext, 'attempt' | 'checkOnly' | 'ifMatch' | 'request'>,
  mutation: RequestedMutation,
  call: MutationCall,
  ifMatch: readonly string[] = versionsOf(mutation, call),
): Promise<OperationReply> {
  const { request, checkOnly } = unit;
  const body = bodyOf(mutation, call);
  const attempt: Attempt = { inUnit: (work) => work(unit) };
  const own: AttemptContext = { ...context, request, checkOnly, ifMatch, attempt };
  if (mutation !== 'upsert') return runTask(own, { mutation, call, body, external: null });
  return upsert(own.deps.platform.database, own.view, call, body, (task) => runTask(own, task));
}

/** Runs one task, in a unit of its own where it is no part of another one. */
async function runTask(context: AttemptContext, task: Task): Promise<OperationReply> {
  const { deps, request, checkOnly, attempt, ifMatch, view, steps, part } = context;
  const { mutation, call, body } = task;
  const access = visibleObject(view, call.path.objectApiName);
  const id = mutation === 'create' ? uuidv7() : (call.path['id'] ?? '').toLowerCase();
  if (!isUuid(id)) throw recordNotFound();
  const special = standardObject(access.object);
  // Asked before a connection is taken: another service needs one, too.
  const usernameConflict = (await special?.usernameConflict(deps, request.tenantId, id, access, task)) ?? null;
  let write: Write | null = null;
  const begin = (unit: Unit): Write => {
    noteFacts(unit, view, access.object);
    const own = { ...task, unit, deps, view, access, id, body, ifMatch, usernameConflict };
    if (!part) return (write = newWrite(own));
    write = newWrite({ ...own, ownRequest: true, place: part.place, created: part.created });
    part.begun(write);
    return write;
  };
  const reply = await attempt
    .inUnit(
      (unit) => run(begin(unit), steps, part?.steps),
      (unit) => atOnce(begin(unit)),
    )
    .catch(async (error: unknown) => {
      // Of a part, the transaction must be rolled back first.
      throw part ? error : await withAllConflicts(deps.platform.database, write, error);
    });
  if (!checkOnly && !part) await special?.committed(deps, request.tenantId);
  return reply;
}

/** Dependencies of a record change's approval besides its effects. */
function noteFacts({ facts, request }: Unit, { snapshot }: View, object: ObjectMeta): void {
  if (request.agentRunId === null) return;
  const rights = standardObject(object)?.changesAccess ? rightsOf(snapshot) : '';
  const own = `${versionOf(object)} ${rights}`;
  // The parts of a composite request may be on several objects.
  if (!facts.configuration?.includes(own))
    facts.configuration = facts.configuration === null ? own : `${facts.configuration} ${own}`;
  facts.isDerived = (objectApiName, name) => {
    const field = ownEntry(ownEntry(snapshot.objects, objectApiName)?.fields ?? {}, name);
    return field !== undefined && (isNumbered(field) || (field.rollup ?? null) !== null);
  };
}

/** Components that decide what a name gives a user. */
const rightsOf = memoize(({ profiles, permissionSets, roles, groups }: Snapshot): string =>
  hash('sha256', canonicalize({ profiles, permissionSets, roles, groups }) ?? ''),
);

const versionOf = memoize((object: ObjectMeta): string => hash('sha256', canonicalize(object) ?? ''));

async function run(
  write: Write,
  steps = SPECS[write.mutation].steps,
  change?: (steps: readonly Step[]) => readonly Step[],
): Promise<OperationReply> {
  const reply = await runSteps(write, change ? change(steps) : steps);
  await noteRollups(write);
  return write.unit.checkOnly && !write.unit.key.part ? passed(write, reply) : reply;
}

/** One statement is one transaction by itself: the whole mutation, where nothing needs another one. Null: it does. */
async function atOnce(write: Write): Promise<OperationReply | null> {
  const { mutation, external } = write;
  if (mutation === 'update') return updateAtOnce(write);
  if (mutation !== 'create' || (external && !external.field.unique) || mayAskDuplicates(write)) return null;
  return namesFiles(write) ? null : run(write);
}

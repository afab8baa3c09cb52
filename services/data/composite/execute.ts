/**
 * Carries out the parts of a composite request in their order: in one transaction, or each in one of its own. The gateway has
 * checked the scopes of all parts, and the policy of a run (services/gateway/pipeline/parts.ts). Source:
 * docs/reference/composite.md.
 */
import { hash } from 'node:crypto';
import type { CompositeRequestBody } from '../../../contracts/data/composite.ts';
import { operationRow } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationCall, OperationReply, PartCall } from '../../../lib/operation.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { failKeySql } from '../../../mixins/mutation/key.sql.ts';
import { type IdempotencyKey, idempotencyKey, stepKey, storedReply } from '../../../mixins/mutation/key.ts';
import { mutate, runIdempotent } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import type { ReadDeps } from '../read/read.ts';
import { assertFresh } from '../tenants.ts';
import type { Versions, View } from '../view.ts';
import { lockStateSql } from '../write/checks.sql.ts';
import { inSavepoint, refusalOf, within } from '../write/parts.ts';
import { type RequestedMutation, runWithin } from '../write/run-mutation.ts';
import { standardObject } from '../write/standard-objects.ts';
import { TaskSequence } from '../write/tasks.ts';
import type { MutationCall, MutationDeps, Write } from '../write/write.ts';
import { type Expansion, resolved } from './resolve.ts';
import { Results } from './results.ts';

/** Answers a call of an operation that a part may name. */
export type PartHandler = (request: RequestContext, call: OperationCall) => Promise<OperationReply>;

/** Dependencies of the handlers of parts, bound to the one transaction. */
export interface PartDeps {
  readonly read: ReadDeps;
  readonly write: (
    mutation: RequestedMutation,
  ) => (request: RequestContext, call: MutationCall) => Promise<OperationReply>;
}

interface CompositeDeps {
  readonly read: ReadDeps;
  readonly write: MutationDeps;
  /** The handlers of the operations by their actions. */
  readonly handlersOf: (deps: PartDeps) => (action: string) => PartHandler;
  /** The same for parts that are transactions of their own. */
  readonly handlers: (action: string) => PartHandler;
}

type CompositeCall = OperationCall<CompositeRequestBody>;

/** Refusals of the request as a whole: no further part is executed. */
const ENDS_ALL: ReadonlySet<string> = new Set([
  'IDEMPOTENCY_IN_PROGRESS',
  'IDEMPOTENCY_KEY_REUSED',
  'TOKEN_REVOKED',
  'API_ACCESS_DISABLED',
]);

/**
 * Answers CompositeResult.
 * @throws PlatformError COMPOSITE_FAILED when `allOrNone` and a part was refused: nothing is stored then.
 */
export async function executeComposite(
  deps: CompositeDeps,
  request: RequestContext,
  call: CompositeCall,
): Promise<OperationReply> {
  const { allOrNone = true, checkOnly = false } = call.body ?? {};
  const own = idempotencyKey(call, request);
  const key = { ...own, checkOnly: own.checkOnly || checkOnly };
  const parts = call.parts ?? [];
  return allOrNone || key.checkOnly
    ? inOneTransaction(deps, request, call, parts, key, allOrNone)
    : oneByOne(deps, request, call, parts, key);
}

async function inOneTransaction(
  deps: CompositeDeps,
  request: RequestContext,
  call: CompositeCall,
  parts: readonly PartCall[],
  key: IdempotencyKey,
  allOrNone: boolean,
): Promise<OperationReply> {
  const { tenants, platform } = deps.write;
  const { tenantId, userId } = request;
  const reply = await runIdempotent({ database: platform.database, request, call, key, service: 'data' }, (attempt) =>
    tenants.withView(tenantId, userId, (view) =>
      attempt.inUnit(async (unit) => {
        const stored = await unit.claim();
        if (stored) return stored;
        await lockState(unit, view, parts);
        const results = await runAll(deps, unit, view, parts, allOrNone);
        const names = parts.map(({ referenceId }) => referenceId);
        if (!allOrNone || results.failed === undefined)
          return unit.complete({
            body: results.answer(allOrNone, !unit.checkOnly, unit.checkOnly ? unit.effects : undefined),
          });
        const undone = results.rolledBack(names);
        if (unit.checkOnly) return unit.complete({ body: { allOrNone, committed: false, results: undone } });
        throw new PlatformError('COMPOSITE_FAILED', `The part ${results.failed} failed, so that nothing was stored.`, {
          details: { results: undone },
        });
      }),
    ),
  );
  if (!key.checkOnly)
    for (const special of new Set(parts.map((part) => standardObject({ apiName: objectOf(part) }))))
      await special?.committed(deps.write, tenantId);
  return reply;
}

/** The call of a part that names an object. */
const namedCall = (part: PartCall): MutationCall => ({
  ...part.call,
  path: { ...part.call.path, objectApiName: objectOf(part) },
});

const objectOf = ({ call }: PartCall): string => call.path['objectApiName'] ?? '';

/** Locks metadata and access versions until the end, so that no part is refused by a view that is out of date. */
async function lockState(unit: Unit, view: View, parts: readonly PartCall[]): Promise<void> {
  const objects = parts.map((part) => ({ apiName: objectOf(part) }));
  const object = objects.find((one) => standardObject(one)?.changesAccess) ?? { apiName: '' };
  const versions = await unit.tx.one<Versions>(lockStateSql(unit.schema, object));
  assertFresh(view, versions.metadataVersion, versions.accessVersion);
}

/** Runs the parts in the transaction of the unit; with `allOrNone` it stops at the first that fails. */
async function runAll(
  deps: CompositeDeps,
  unit: Unit,
  view: View,
  parts: readonly PartCall[],
  allOrNone: boolean,
): Promise<Results> {
  const results = new Results();
  const expansion: Expansion = { left: LIMITS.composite_body_max_bytes };
  const size = parts.filter(({ call }) => operationRow(call.operationId)?.mutation).length;
  const sequence = new TaskSequence(unit, view, { size });
  const own = within(deps.write, unit.tx);
  let write: Write | null = null;
  const handlers = deps.handlersOf({
    read: readWithin(deps.read, own, sequence),
    write: (mutation) => (_request, call) =>
      sequence.run(unit.part(), async (part, { view: current, place, created }) => {
        const begun = (begins: Write): void => {
          write = begins;
        };
        const reply = await runWithin(
          part,
          { deps: own, view: current, part: { place, created, begun } },
          mutation,
          call,
        );
        if (!write) throw new Error('The part was not written.');
        return [write, reply] as const;
      }),
  });
  for (const part of parts) {
    write = null;
    try {
      const call = resolved(part, results, expansion);
      const handler = handlers(operationRow(call.operationId)?.action ?? '');
      const reply = await inSavepoint(unit, () => handler(unit.request, call));
      results.add(part.referenceId, reply);
    } catch (error) {
      const refusal = await refusalOf(own, sequence.view, namedCall(part), write, error);
      if (ENDS_ALL.has(refusal.code) || refusal.code === 'INTERNAL_ERROR' || unit.tx.isAbandoned) throw error;
      results.refuse(part.referenceId, refusal);
      if (allOrNone) break;
    }
  }
  return results;
}

/** Reads see what the parts before have done. */
const readWithin = (deps: ReadDeps, { platform }: MutationDeps, sequence: TaskSequence): ReadDeps => ({
  ...deps,
  database: platform.database,
  tenants: Object.create(deps.tenants, {
    view: { value: async () => sequence.view },
    versions: { value: async () => sequence.view },
    withView: { value: (_tenantId: string, _userId: string, work: (view: View) => unknown) => work(sequence.view) },
  }),
});

/**
 * Each part under a key that is derived from that of the request: after a crash the same request goes on behind the last
 * part that was committed.
 */
async function oneByOne(
  { write, handlers }: CompositeDeps,
  request: RequestContext,
  call: CompositeCall,
  parts: readonly PartCall[],
  key: IdempotencyKey,
): Promise<OperationReply> {
  const { database } = write.platform;
  const stored = await database.tenant(request.tenantId, async (tx) => {
    const sql = new Sql();
    // A key that failed can be claimed again, which is how the request goes on after a crash.
    const open = await tx.first(sql.statement(failKeySql(tx.schema, sql.for(key).of, false)));
    return open ? null : storedReply(tx, key);
  });
  if (stored) return stored;
  const results = new Results();
  const expansion: Expansion = { left: LIMITS.composite_body_max_bytes };
  for (const [index, part] of parts.entries())
    try {
      const made = resolved(part, results, expansion);
      const row = operationRow(made.operationId);
      const stores = row?.mutation === true;
      if (!stores) results.requireRoom();
      const own = stores ? keyed(made, key, index) : made;
      results.add(part.referenceId, await handlers(row?.action ?? '')(request, own), stores);
    } catch (error) {
      if (!(error instanceof PlatformError) || error.status >= 500 || ENDS_ALL.has(error.code)) throw error;
      results.refuse(part.referenceId, error);
    }
  return mutate(database, request, call, {
    role: 'tenant',
    work: async (unit) => {
      unit.tally.records = 0;
      return { body: results.answer(false, true) };
    },
  });
}

const keyed = (call: OperationCall, key: IdempotencyKey, index: number): OperationCall => ({
  ...call,
  headers: { ...call.headers, idempotencyKey: stepKey(key, index) },
  fingerprint: hash('sha256', `${key.fingerprint} ${index}`),
});

/**
 * Taking a transition or action: the record is locked, the reasons against it are checked, its effects are computed
 * from the record as it is, and then everything is written in one transaction. Source: docs/reference/transitions.md.
 */

import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import type { Facts } from '../../../lib/expression/evaluate.ts';
import { storedFieldsOf } from '../../../lib/expression/formulas.ts';
import { isObject } from '../../../lib/json/objects.ts';
import type { Notice } from '../../../lib/notice.ts';
import { ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import { sqlState } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { CallerSql, outboxSql } from '../../../mixins/mutation/audit.ts';
import { visibleObject } from '../object-access.ts';
import { columnName, exactJson, outputOf, reachSql, table } from '../sql.ts';
import { compiledEffects, type Message, recipientField, valuesOf, withInput } from '../transitions/effects.ts';
import {
  guardHolds,
  guardMessage,
  permissionsMissing,
  type Situation,
  startsIn,
  stateIn,
  storedFacts,
  type TransitionOrAction,
  unavailableReasons,
  visibleTransitions,
  wrongState,
} from '../transitions/transitions-and-actions.ts';
import { checkDependentPicklists, readValue } from './body.ts';
import { noteEffect } from './check-only.ts';
import { toPlatformError } from './constraint-errors.ts';
import { CREATE_STEPS } from './create.ts';
import { confirmedSql } from './duplicates.sql.ts';
import { checkDuplicates } from './duplicates.ts';
import { checkFiles } from './files.ts';
import { notice } from './notices.ts';
import { checkRecordType } from './record-types.ts';
import { type Comparison, comparisonSql, referencesSql, resolveValues } from './references.ts';
import { feedsRollups, type PendingReference } from './rollups.ts';
import { checkRules } from './rules.ts';
import { deniedParentsSql, parentDenied } from './sharing.ts';
import { runTasks } from './tasks.ts';
import { type Transition, trailSql } from './trail.ts';
import { answerSql, changeSql } from './update.sql.ts';
import { lockRecord, matchVersion, refuseUnreached, storeAndAnswer } from './update.ts';
import { pointerTo, validationFailed } from './violations.ts';
import type { FieldValue, Step, Write } from './write.ts';

/** One step: what it finds out on the way belongs to this one request. */
export const TRANSITION_STEPS: readonly Step[] = [take];

interface SideEffect {
  readonly kind: 'create' | 'notification' | 'event';
  readonly objectApiName: string;
  readonly id: string;
}

/** In the order of the checks of every mutation. */
async function take(write: Write): Promise<void> {
  const key = write.call.path['transitionKey'] ?? '';
  const transition = visibleTransitions(write.access).find(({ meta }) => meta.key === key);
  const requested = transition && readInput(write, transition);
  await lockRecord(
    write,
    requested && { ...compiledEffects(transition), pending: await pendingReferences(write, transition, requested) },
  );
  if (write.reply) return;
  if (!requested) throw new PlatformError('TRANSITION_NOT_FOUND', 'There is no such transition for this connection.');
  const [missing] = permissionsMissing(transition, write.view);
  if (missing) throw missing;
  refuseUnreached(write);
  matchVersion(write);
  const { input, comment } = fitting(requested);
  const state = stateIn(write.access, write.stored);
  const facts = storedFacts(write.view, write.object, write.stored, write.unit.budget);
  refuseConflict(write, transition, state, facts);
  const known = withInput(facts, compiledEffects(transition), input);
  const execution: Transition = {
    executionId: uuidv7(),
    key,
    fromState: state,
    toState: transition.to ?? state,
    comment,
  };
  await setFields(write, transition, known);
  const created = await createRecords(write, transition, known);
  await store(write, execution, created, messagesOf(write, transition, known));
}

/** The input and comment of the request, and everything that is wrong with them. */
interface GivenInput {
  readonly input: Record<string, unknown>;
  readonly comment: string | null;
  readonly errors: Violation[];
}

function readInput({ body }: Write, transition: TransitionOrAction): GivenInput {
  // The gateway has checked the form of both.
  const given = { input: ownEntry(body, 'input'), comment: ownEntry(body, 'comment') };
  const input = isObject(given.input) ? given.input : {};
  const comment = typeof given.comment === 'string' ? given.comment : null;
  const { input: check } = compiledEffects(transition);
  const errors: Violation[] = check
    ? check(input)
    : Object.keys(input).map((name) =>
        violation(`/input${pointerTo(name)}`, 'FIELD_UNKNOWN', 'The transition takes no input.'),
      );
  if (transition.meta.requiresComment && (comment === null || comment.trim() === ''))
    errors.push(violation('/comment', 'FIELD_REQUIRED', 'The transition requires a comment.'));
  return { input, comment, errors };
}

function fitting(requested: GivenInput): GivenInput {
  const { errors } = requested;
  if (errors.length === 0) return requested;
  throw new PlatformError('TRANSITION_INPUT_INVALID', 'The input of the transition is not valid.', { errors });
}

/**
 * References to parents with rollups that the effects will set, computed before anything is locked: all parents are
 * locked in one order. If the record changes in between, the version that was sent is no longer its own.
 */
async function pendingReferences(
  write: Write,
  transition: TransitionOrAction,
  { input, errors }: GivenInput,
): Promise<PendingReference[]> {
  const { view, object } = write;
  const ready = compiledEffects(transition);
  const set = [{ objectApiName: object.apiName, fields: ready.updates }, ...ready.creates];
  const asked = set.flatMap(({ objectApiName, fields }) =>
    fields
      .filter(([field]) => feedsRollups(write, objectApiName, field))
      .map((value) => ({ objectApiName, field: value[0], expression: value[1] })),
  );
  if (asked.length === 0 || errors.length > 0) return [];
  const reads = new Set(asked.flatMap(({ expression }) => storedFieldsOf(object, expression)));
  const stored = await readAhead(
    write,
    [...reads].map((name) => requireField(object, name)),
  );
  if (!stored) return [];
  const facts = withInput(storedFacts(view, object, stored, write.unit.budget), ready, input);
  return asked.flatMap(({ objectApiName, field, expression }) => {
    const id = valuesOf([[field, expression]], facts, [])[field];
    return typeof id === 'string' && isUuid(id.toLowerCase()) ? [{ objectApiName, field, id: id.toLowerCase() }] : [];
  });
}

/** Stored values of the record as the caller sees it now; null: they do not. Its id is known without asking. */
async function readAhead(write: Write, fields: readonly FieldMeta[]): Promise<Record<string, unknown> | null> {
  const {
    view,
    object,
    id,
    unit: { schema, tx },
  } = write;
  if (fields.every((field) => field.apiName === 'id')) return { id };
  const sql = new Sql();
  const seen = reachSql(view, sql, object.apiName, 'read', 't');
  const row = await tx.first<{ stored: Record<string, unknown> }>(
    sql.statement(`SELECT ${exactJson('t', fields)} AS stored FROM ${table(schema, object.apiName)} t
      WHERE t."id" = ${sql.bind(id, 'uuid')} AND ${seen}`),
  );
  return row?.stored ?? null;
}

/** 409 when the state is another one or the guard does not hold; `allowed` says what could be done instead. */
function refuseConflict(write: Write, transition: TransitionOrAction, state: string | null, facts: Facts): void {
  const fits = startsIn(transition, state);
  if (fits && guardHolds(transition, facts)) return;
  const {
    view,
    access,
    unit: { request },
  } = write;
  const situation: Situation = {
    view,
    scopes: request.scopes,
    access,
    state,
    editable: true,
    facts,
    misplaced: new Map(),
  };
  const allowed = visibleTransitions(access).filter((other) => unavailableReasons(other, situation).length === 0);
  throw new PlatformError('STATE_CONFLICT', fits ? guardMessage(transition) : wrongState(transition), {
    details: {
      currentState: state,
      allowed: allowed.map(({ meta }) => meta.key),
      reason: fits ? 'guard' : 'state',
    },
  });
}

/** The new state and what the effects set, held to everything that a PATCH is held to. */
async function setFields(write: Write, transition: TransitionOrAction, facts: Facts): Promise<void> {
  const { view, object } = write;
  const given: FieldValue[] = [];
  for (const [name, value] of Object.entries(valuesOf(compiledEffects(transition).updates, facts, write.invalid))) {
    const read = readValue(view, requireField(object, name), value, pointerTo(name), write.unit.budget);
    if ('code' in read) write.invalid.push(read);
    else given.push(read);
  }
  const resolved = await compareWithStored(write, given);
  const field =
    transition.kind === 'transition' && object.stateModel ? requireField(object, object.stateModel.field) : null;
  const state: FieldValue[] = field ? [{ field, value: transition.to, lookup: null }] : [];
  write.given = [...state, ...resolved.given];
  write.changed = [
    ...(field && transition.to !== ownEntry(write.stored, field.apiName) ? state : []),
    ...resolved.changed,
  ];
  write.invalid.push(
    ...checkDependentPicklists(write.access, write.given, write.stored),
    ...checkRecordType(write.access, write.given, write.stored),
  );
  await checkFiles(write);
  await checkRules(write);
  if (write.invalid.length > 0) throw validationFailed(write.invalid.map((found) => placed(write, found)));
  await checkDuplicates(write);
}

/** A violation of a value that no body holds; a field that the caller cannot read is not named. */
function placed({ access }: Write, found: Violation): Violation {
  const visible = found.field === null || ownEntry(access.fields, found.field)?.read === true;
  if (visible) return { ...found, pointer: '' };
  return violation('', found.code, 'A value that this sets cannot be stored.', { ruleApiName: found.ruleApiName });
}

/** Looks references up and compares values with stored ones, as the lock does it for values that a body gives. */
async function compareWithStored(
  write: Write,
  given: readonly FieldValue[],
): Promise<Pick<Write, 'given' | 'changed'>> {
  if (given.length === 0) return { given: [], changed: [] };
  const {
    object,
    unit: { schema, tx },
  } = write;
  const sql = new Sql();
  const { cte, ids } = referencesSql(write, given, (item) => sql.for(item));
  const denied = deniedParentsSql(write, sql, ids, (item) => `stored.${columnName(item.field)}`) ?? 'false';
  const row = await tx.one<Comparison & { denied: boolean }>(
    sql.statement(`WITH ${cte}
      SELECT ${comparisonSql(sql, given, ids, 'stored')}, ${denied} AS denied
      FROM refs, ${table(schema, object.apiName)} stored WHERE stored."id" = ${sql.bind(write.id, 'uuid')}`),
  );
  if (row.denied) throw parentDenied();
  return resolveValues(write, given, row);
}

/** Records that the transition creates, each through the whole pipeline of a create, as the caller. */
async function createRecords(write: Write, transition: TransitionOrAction, facts: Facts): Promise<SideEffect[]> {
  const { unit, view } = write;
  const created: SideEffect[] = [];
  let part = write;
  const tasks = compiledEffects(transition).creates.map(({ objectApiName, fields }) => () => {
    part = write;
    const access = visibleObject(view, objectApiName);
    const invalid: Violation[] = [];
    const body = valuesOf(fields, facts, invalid);
    const id = uuidv7();
    created.push({ kind: 'create', objectApiName, id });
    return { mutation: 'create', steps: CREATE_STEPS, access, id, body, invalid } as const;
  });
  if (tasks.length === 0) return created;
  const begun = (next: Write): void => void (part = next);
  try {
    await runTasks(unit, { deps: write.deps, call: write.call, view, before: 1, begun }, tasks);
  } catch (error) {
    throw part === write ? error : refusalOfPart(part, error);
  }
  return created;
}

/** Refusals of a part point to nothing in the body, and reveal nothing that the caller cannot see. */
function refusalOfPart(part: Write, error: unknown): unknown {
  // Everything but what the content of a record is refused for is tried again or answered further up.
  if (!(error instanceof PlatformError) && !/^2[23]/.test(sqlState(error) ?? '')) return error;
  const { view, call, object } = part;
  const path = { ...call.path, objectApiName: object.apiName };
  const failure = toPlatformError(view, { ...call, path }, error);
  const { errors = [] } = failure;
  return failure.withErrors(
    errors.map((found) => ({ ...placed(part, found), params: { ...found.params, objectApiName: object.apiName } })),
  );
}

interface OutgoingMessage {
  readonly effect: SideEffect;
  readonly sent: Notice | { readonly event: string; readonly data: Record<string, unknown> };
}

function messagesOf(write: Write, transition: TransitionOrAction, facts: Facts): OutgoingMessage[] {
  const {
    object,
    unit: { request },
  } = write;
  const invalid: Violation[] = [];
  const messages = compiledEffects(transition).messages.map((message: Message): OutgoingMessage => {
    const effect = { kind: message.kind, objectApiName: object.apiName, id: write.id };
    if (message.kind === 'event')
      return { effect, sent: { event: `custom.${message.type}`, data: valuesOf(message.data, facts, invalid) } };
    const [field] = recipientField(message.to);
    const set = write.given.find((item) => item.field.apiName === field);
    const recipient = field === undefined ? request.userId : set ? set.value : (ownEntry(write.stored, field) ?? null);
    return {
      effect,
      sent: {
        type: message.type,
        template: message.template,
        recipientIds: recipient === null ? [] : [String(recipient)],
        data: { object: object.label, transition: transition.meta.label },
        record: { objectApiName: object.apiName, id: write.id },
        actor: { userId: request.userId, agentRunId: request.agentRunId },
      },
    };
  });
  if (invalid.length > 0) throw validationFailed(invalid.map((found) => ({ ...found, field: null })));
  return messages;
}

/** Rollups may have moved the record on while records were created below it. */
async function currentVersion(
  { object, id, recordVersion, unit: { schema, tx } }: Write,
  created: number,
): Promise<number> {
  if (created === 0) return recordVersion;
  const sql = new Sql();
  const row = await tx.one<{ recordVersion: number }>(
    sql.statement(`SELECT "recordVersion" FROM ${table(schema, object.apiName)} WHERE "id" = ${sql.bind(id, 'uuid')}`),
  );
  return row.recordVersion;
}

/** An execution changes the record in any case: a caller who repeats it with the old ETag has not seen it. */
async function store(
  write: Write,
  execution: Transition,
  created: readonly SideEffect[],
  messages: readonly OutgoingMessage[],
): Promise<void> {
  const { object, changed } = write;
  const sql = new Sql();
  const version = (await currentVersion(write, created.length)) + 1;
  const sideEffects = [...created, ...messages.map((message) => message.effect)];
  const ctes = [
    ...changeSql(write, sql, version),
    ...trailSql(write, sql.for(write), object, {
      kind: 'transition',
      from: 'change',
      transactionSize: created.length + 1,
      transition: execution,
    }),
    ...confirmedSql(write, sql.for(write), 'change'),
    ...messages.flatMap((message, index) => messageSql(write, sql, message, execution, `message${index}`)),
  ];
  const answer = (last: Sql, alias: string): string => executionSql(write, last, alias, execution, sideEffects);
  for (const { sent } of messages) if ('recipientIds' in sent) await notice(write, sent);
  const reply = await storing(write, () => storeAndAnswer(write, sql, ctes, { status: 201, version, answer }));
  noteEffect(write, 'transition', object, { id: write.id, fields: changed.map(({ field }) => field.apiName) });
  if (write.unit.checkOnly)
    for (const { effect } of messages)
      write.unit.effects.push({ kind: effect.kind, objectApiName: object.apiName, id: write.id, fields: [] });
  write.reply = reply;
}

/** SQL of the answer as text, of the row `alias`; that of a dry run is the record alone. */
function executionSql(
  write: Write,
  sql: Sql,
  alias: string,
  execution: Transition,
  sideEffects: readonly SideEffect[],
): string {
  const record = `${answerSql(write, alias)}::text`;
  if (write.unit.checkOnly) return record;
  const { executionId, key, fromState, toState } = execution;
  const before = JSON.stringify({ executionId, transitionKey: key, fromState, toState }).slice(0, -1);
  const at = outputOf(alias, requireField(write.object, 'updatedAt'));
  const after = `,"sideEffects":${JSON.stringify(sideEffects)}}`;
  return `${sql.bind(before, 'text')} || ',"executedAt":' || to_json(${at})::text
    || ',"record":' || ${record} || ${sql.bind(after, 'text')}`;
}

/** Events of the tenant, written in addition to the event of the change itself. */
function messageSql(write: Write, sql: Sql, { sent }: OutgoingMessage, execution: Transition, name: string): string[] {
  if (write.unit.checkOnly || 'recipientIds' in sent) return [];
  const {
    object,
    unit: { schema, request },
  } = write;
  const { executionId, key, fromState, toState } = execution;
  const content = {
    data: sent.data,
    transition: { executionId, key, fromState, toState },
    transactionId: write.unit.transactionId,
  };
  const event = outboxSql(schema, new CallerSql(sql.for(request)), {
    type: sent.event,
    objectApiName: object.apiName,
    recordId: 'record_id',
    recordVersion: 'record_version',
    data: sql.bind(JSON.stringify(content), 'jsonb'),
  });
  return [`${name} AS (${event} FROM change)`];
}

/** Refusals of the database, such as a duplicate value, point to nothing in the body. */
async function storing<T>(write: Write, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!/^2[23]/.test(sqlState(error) ?? '')) throw error;
    const failure = toPlatformError(write.view, write.call, error);
    const { errors = [] } = failure;
    throw failure.withErrors(errors.map((found) => placed(write, found)));
  }
}

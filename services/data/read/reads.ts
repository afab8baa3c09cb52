/** The read operations: from a request to the bytes of its answer. Source: docs/reference/records.md. */
import { setTimeout as pause } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { type RequestContext, tenantSchema } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { constrain } from '../../../lib/query/constrain.ts';
import { continuePlan, sealCursor } from '../../../lib/query/cursor.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { planGet, planList } from '../../../lib/query/plan.ts';
import { type CompiledList, compileGet, compileList } from '../../../lib/query/sql.ts';
import type { CompiledQuery, ListRequest, Plan, QueryView } from '../../../lib/query/types.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { type Database, isConnectionError, sqlState } from '../../../mixins/database/database.ts';
import { timezoneOf } from '../evaluation.ts';
import { etagOf } from '../sql.ts';
import { fetchPage, fetchRecord } from '../store.ts';
import { assertFresh, recordNotFound, requireApi, type Tenants, type View, visibleObject } from '../tenants.ts';
import { describeObject, describeObjects, schemaOfObject } from './describe.ts';

export interface ReadDeps {
  readonly database: Database;
  readonly tenants: Tenants;
  /** 32 bytes, the same in every process. */
  readonly cursorKey: Uint8Array;
  readonly statements: PreparedReads;
}

export type Read = (deps: ReadDeps, request: RequestContext, call: OperationCall) => Promise<OperationReply>;

const READ_ATTEMPTS_MAX = 3;

/**
 * Runs a read; a lost connection or a lock that a deployment holds is tried again, what cannot be helped becomes an
 * error of the catalogue.
 */
export async function runRead(
  read: Read,
  deps: ReadDeps,
  request: RequestContext,
  call: OperationCall,
): Promise<OperationReply> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read(deps, request, call);
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      const passing = isConnectionError(error) || PASSING_STATES.has(sqlState(error) ?? '');
      if (passing && attempt < READ_ATTEMPTS_MAX && Date.now() < request.deadline) {
        await pause(20 * 4 ** attempt);
        continue;
      }
      if (passing)
        throw new PlatformError('SERVICE_UNAVAILABLE', 'The records cannot be reached at the moment.', {
          retryAfterSeconds: 1,
          cause: error,
        });
      if (sqlState(error)?.startsWith('22'))
        throw new PlatformError('FILTER_VALUE_INVALID', 'A value of the query does not fit its field.', {
          cause: error,
        });
      throw new PlatformError('INTERNAL_ERROR', 'The records could not be read.', { cause: error });
    }
  }
}

/** Serialization failure, deadlock, lock timeout. */
const PASSING_STATES: ReadonlySet<string> = new Set(['40001', '40P01', '55P03']);

const objectName = (call: OperationCall): string => call.path['objectApiName'] ?? '';

const queryView = (view: View): QueryView => ({
  access: view.access,
  snapshot: view.snapshot,
  now: Date.now(),
  timezone: timezoneOf(view),
});

/** True when If-None-Match names the tag; weak comparison (RFC 9110 section 13.1.2). */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((tag) => {
    const given = tag.trim();
    return given === '*' || given === etag || given === `W/${etag}`;
  });
}

const notModified = (etag: string): OperationReply => ({ status: 304, headers: { ETag: etag }, body: null });

/**
 * Answers from the configuration alone, but never from an outdated one: the versions are read first, which costs one
 * short statement.
 */
async function fromSnapshot(
  deps: ReadDeps,
  request: RequestContext,
  answer: (view: View) => OperationReply,
): Promise<OperationReply> {
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const versions = await deps.tenants.versions(request.tenantId);
    assertFresh(view, versions.metadataVersion, versions.accessVersion);
    requireApi(view);
    return answer(view);
  });
}

export const listObjects: Read = (deps, request) =>
  fromSnapshot(deps, request, (view) => ({ body: describeObjects(view.access, request.scopes) }));

export const describe: Read = (deps, request, call) =>
  fromSnapshot(deps, request, (view) => {
    const description = describeObject(view.access, visibleObject(view, objectName(call)), request.scopes);
    const etag = `"${description['schemaVersion']}"`;
    if (matches(call.headers.ifNoneMatch, etag)) return notModified(etag);
    return { headers: { ETag: etag }, body: description };
  });

export const getSchema: Read = (deps, request, call) =>
  fromSnapshot(deps, request, (view) => {
    const object = visibleObject(view, objectName(call));
    const etag = `"${describeObject(view.access, object, request.scopes)['schemaVersion']}"`;
    if (matches(call.headers.ifNoneMatch, etag)) return notModified(etag);
    return { headers: { ETag: etag }, body: schemaOfObject(view.access, object, request.scopes) };
  });

export const listRecords: Read = (deps, request, call) => page(deps, request, call, 'query', call.query);

export const queryRecords: Read = async (deps, request, call) => {
  const { body } = call;
  if (body === undefined || body === null)
    throw new PlatformError('BODY_REQUIRED', 'The query must be sent as a JSON object.');
  if (typeof body !== 'object' || Array.isArray(body))
    throw new PlatformError('PARAMETER_INVALID', 'The query must be a JSON object.', {
      errors: [violation('', 'PARAMETER_INVALID', 'The query must be a JSON object.')],
    });
  return page(deps, request, call, 'body', body as Record<string, unknown>);
};

async function page(
  deps: ReadDeps,
  request: RequestContext,
  call: OperationCall,
  source: 'query' | 'body',
  raw: Record<string, unknown>,
): Promise<OperationReply> {
  const { tenantId, userId } = request;
  const parsed = parseListQuery(raw, source);
  const asked = `${source} ${call.ieee754Compatible ?? false} ${objectName(call)} ${JSON.stringify(raw)}`;
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const at = queryView(view);
    const seal = sealFor(request, deps.cursorKey, at.now);
    const known = raw['cursor'] === undefined && !RELATIVE.test(asked);
    const key = `${view.key} ${asked}`;
    let prepared = known ? deps.statements.lists.get(key) : undefined;
    if (!prepared) {
      const object = visibleObject(view, objectName(call));
      const planned = planList(parsed, object.object, at, { ieee754Compatible: call.ieee754Compatible ?? false });
      const plan = continuePlan(planned, parsed, seal);
      prepared = { list: parsed, plan, compiled: compileList(constrain(plan, view.access), tenantSchema(tenantId)) };
      if (known) deps.statements.lists.set(key, prepared);
    }
    const { list, plan, compiled } = prepared;
    const found = await deps.database.tenant(tenantId, (tx) =>
      fetchPage(tx, compiled, (read) => {
        assertFresh(view, read.metadataVersion, read.accessVersion);
        return read.lastKeys && sealCursor(read.lastKeys, plan, list, seal);
      }),
    );
    return list.takeClamped ? { headers: { 'X-Effective-Take': String(list.take) }, body: found } : { body: found };
  });
}

interface PreparedList {
  readonly list: ListRequest;
  readonly plan: Plan;
  readonly compiled: CompiledList;
}

/**
 * What one data service has made ready, by view: of its own database, for elsewhere the same versions can mean another
 * configuration.
 */
export class PreparedReads {
  /** Clients ask the same lists again and again: what they ask, by user and view, made ready once. */
  readonly lists = new LRUCache<string, PreparedList>({
    maxSize: 32 * 1024 * 1024,
    sizeCalculation: ({ compiled }, key) => compiled.text.length + key.length * 3 + 2_048,
  });
  /** Statements of gets, by view and shape. */
  readonly gets = new LRUCache<string, CompiledQuery>({
    maxSize: 32 * 1024 * 1024,
    sizeCalculation: (compiled, shape) => compiled.text.length + shape.length,
  });
}

/** A value that may stand for a date relative to now: its plan is good for this moment only. */
const RELATIVE = /TODAY|YESTERDAY|TOMORROW|THIS_|LAST_|NEXT_/;

export const getRecord: Read = async (deps, request, call) => {
  const { record, etag } = await readOne(deps, request, call, fieldsOf(call));
  if (matches(call.headers.ifNoneMatch, etag)) return notModified(etag);
  return { headers: { ETag: etag }, body: record };
};

function fieldsOf(call: OperationCall): readonly string[] | null {
  if (call.query['fields'] === undefined) return null;
  return parseListQuery({ fields: call.query['fields'] }, 'query').fields;
}

function readOne(
  deps: ReadDeps,
  request: RequestContext,
  call: OperationCall,
  fields: readonly string[] | null,
): Promise<{ record: Buffer; etag: string }> {
  const id = (call.path['id'] ?? '').toLowerCase();
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const object = visibleObject(view, objectName(call));
    const shape = `${view.key} ${object.object.apiName} ${call.ieee754Compatible ?? false} ${fields?.join() ?? '*'}`;
    let compiled = deps.statements.gets.get(shape);
    if (!compiled) {
      const plan = planGet(NO_ID, fields, object.object, queryView(view), {
        ieee754Compatible: call.ieee754Compatible ?? false,
      });
      compiled = compileGet(constrain(plan, view.access), tenantSchema(request.tenantId));
      deps.statements.gets.set(shape, compiled);
    }
    if (!isUuid(id)) throw recordNotFound();
    const values = compiled.values.map((value) => (value === NO_ID ? id : value));
    const found = await deps.database.tenant(request.tenantId, (tx) => fetchRecord(tx, { ...compiled, values }));
    assertFresh(view, found.metadataVersion, found.accessVersion);
    if (found.record === null) throw recordNotFound();
    return { record: found.record, etag: etagOf(found.recordVersion!) };
  });
}

/** Stands for the id in a compiled statement; no record has it. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

/** Lists of records and single ones: from a request to the bytes of its answer. Source: docs/reference/records.md. */

import type { DataActions } from '../../../contracts/data.ts';
import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import { type Asker, type RequestContext, tenantSchema } from '../../../lib/context.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { constrain } from '../../../lib/query/constrain.ts';
import { continuePlan, sealCursor } from '../../../lib/query/cursor.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { planGet, planList } from '../../../lib/query/plan.ts';
import { compileGet, compileList } from '../../../lib/query/sql.ts';
import type { ListRequest, QueryView } from '../../../lib/query/types.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { matchesEtag } from '../../../lib/values/etags.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { recordNotFound, visibleObject } from '../object-access.ts';
import { etagOf } from '../sql.ts';
import { assertFresh } from '../tenants.ts';
import { timezoneOf, type View } from '../view.ts';
import { fetchPage, fetchRecord } from './fetch.ts';
import type { PreparedGet } from './prepared.ts';
import { notModified, type ReadDeps } from './read.ts';

/** What a query of this moment is planned with. */
export const queryView = (view: View): QueryView => ({
  access: view.access,
  snapshot: view.snapshot,
  now: platformTime(),
  timezone: timezoneOf(view),
});

export const listRecords: Handler<'data.records.list', ReadDeps> = (deps, request, call) =>
  page(deps, request, call, 'query', call.query);

export const queryRecords: Handler<'data.records.query', ReadDeps> = (deps, request, call) =>
  page(deps, request, call, 'body', call.body);

/** The records of a query for a service that reads them for `asker`. */
export const readRows = async (
  deps: ReadDeps,
  asker: Asker,
  { objectApiName, query }: Pick<DataActions['data.rows.read']['params'], 'objectApiName' | 'query'>,
): Promise<DataActions['data.rows.read']['result']> => {
  const { body } = await page(deps, asker, { path: { objectApiName }, ieee754Compatible: true }, 'body', { ...query });
  if (!Buffer.isBuffer(body)) throw new Error('Assertion failed: a page is bytes');
  return { page: body };
};

async function page(
  deps: ReadDeps,
  request: Asker,
  call: Pick<OperationInput<'data.records.list' | 'data.records.query'>, 'path' | 'ieee754Compatible'>,
  source: 'query' | 'body',
  raw: Record<string, unknown>,
): Promise<OperationReply> {
  const { tenantId, userId } = request;
  const asked = `${source} ${call.ieee754Compatible ?? false} ${call.path.objectApiName} ${JSON.stringify(raw)}`;
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const at = queryView(view);
    const seal = sealFor(request, deps.sealingKeys, at.now);
    const known = raw['cursor'] === undefined && !RELATIVE.test(asked);
    const key = `${view.key} ${asked}`;
    let prepared = known ? deps.statements.lists.get(key) : undefined;
    if (!prepared) {
      const parsed = parseListQuery(raw, source);
      const object = visibleObject(view, call.path.objectApiName);
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

/** A value that may be a date relative to now: its plan is valid only for this moment. */
const RELATIVE = /TODAY|YESTERDAY|TOMORROW|THIS_|LAST_|NEXT_/;

export const getRecord: Handler<'data.records.get', ReadDeps> = (deps, request, call) => {
  const id = call.path.id.toLowerCase();
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const { compiled, expands } = preparedGet(deps, request, call, view);
    if (!isUuid(id)) throw recordNotFound();
    const values = compiled.values.map((value) => (value === NO_ID ? id : value));
    const found = await deps.database.tenant(request.tenantId, (tx) => fetchRecord(tx, { ...compiled, values }));
    assertFresh(view, found.metadataVersion, found.accessVersion);
    if (found.record === null || found.recordVersion === null) throw recordNotFound();
    const etag = etagOf(found.recordVersion);
    // The tag is that of the record alone: what is expanded may have changed all the same.
    if (!expands && matchesEtag(call.headers.ifNoneMatch, etag)) return notModified(etag);
    return { headers: { ETag: etag }, body: found.record };
  });
};

/** The statement of a get, compiled once for each view and selection of fields. */
function preparedGet(
  { statements }: ReadDeps,
  { tenantId }: RequestContext,
  { path, query, ieee754Compatible = false }: OperationInput<'data.records.get'>,
  view: View,
): PreparedGet {
  const { fields, expand } = query;
  // No value of a request contains the separator, which also stands for an absent one.
  const shape = [view.key, ieee754Compatible, path.objectApiName, fields ?? '\0', expand ?? '\0'].join('\0');
  const known = statements.gets.get(shape);
  if (known) return known;
  const asked = fields === undefined && expand === undefined ? EVERYTHING : parseListQuery(query, 'query');
  const { object } = visibleObject(view, path.objectApiName);
  const plan = planGet(NO_ID, asked.fields, object, queryView(view), { ieee754Compatible, expand: asked.expand });
  const compiled = compileGet(constrain(plan, view.access), tenantSchema(tenantId));
  const prepared = { compiled, expands: asked.expand.length > 0 };
  statements.gets.set(shape, prepared);
  return prepared;
}

/** Fields shown of a record. */
const EVERYTHING: Pick<ListRequest, 'fields' | 'expand'> = { fields: null, expand: [] };

/** Stands for the id in a compiled statement; no record has it. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

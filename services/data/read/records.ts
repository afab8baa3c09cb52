/** Lists of records and single ones: from a request to the bytes of its answer. Source: docs/reference/records.md. */

import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import { type RequestContext, tenantSchema } from '../../../lib/context.ts';
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
import { notModified, type ReadDeps } from './read.ts';

const queryView = (view: View): QueryView => ({
  access: view.access,
  snapshot: view.snapshot,
  now: platformTime(),
  timezone: timezoneOf(view),
});

export const listRecords: Handler<'data.records.list', ReadDeps> = (deps, request, call) =>
  page(deps, request, call, 'query', call.query);

export const queryRecords: Handler<'data.records.query', ReadDeps> = (deps, request, call) =>
  page(deps, request, call, 'body', call.body);

async function page(
  deps: ReadDeps,
  request: RequestContext,
  call: OperationInput<'data.records.list' | 'data.records.query'>,
  source: 'query' | 'body',
  raw: Record<string, unknown>,
): Promise<OperationReply> {
  const { tenantId, userId } = request;
  const parsed = parseListQuery(raw, source);
  const asked = `${source} ${call.ieee754Compatible ?? false} ${call.path.objectApiName} ${JSON.stringify(raw)}`;
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const at = queryView(view);
    const seal = sealFor(request, deps.sealingKeys, at.now);
    const known = raw['cursor'] === undefined && !RELATIVE.test(asked);
    const key = `${view.key} ${asked}`;
    let prepared = known ? deps.statements.lists.get(key) : undefined;
    if (!prepared) {
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

export const getRecord: Handler<'data.records.get', ReadDeps> = async (deps, request, call) => {
  const asked = shownOf(call);
  const { record, etag } = await readOne(deps, request, call, asked);
  // The tag is that of the record alone: what is expanded may have changed all the same.
  if (asked.expand.length === 0 && matchesEtag(call.headers.ifNoneMatch, etag)) return notModified(etag);
  return { headers: { ETag: etag }, body: record };
};

/** Fields shown of a record. */
type Shown = Pick<ListRequest, 'fields' | 'expand'>;

const EVERYTHING: Shown = { fields: null, expand: [] };

const shownOf = ({ query }: OperationInput<'data.records.get'>): Shown =>
  query.fields === undefined && query.expand === undefined ? EVERYTHING : parseListQuery(query, 'query');

function readOne(
  deps: ReadDeps,
  request: RequestContext,
  call: OperationInput<'data.records.get'>,
  { fields, expand }: Shown,
): Promise<{ record: Buffer; etag: string }> {
  const id = call.path.id.toLowerCase();
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const object = visibleObject(view, call.path.objectApiName);
    const shown = `${JSON.stringify(fields)} ${call.query.expand ?? ''}`;
    const shape = `${view.key} ${object.object.apiName} ${call.ieee754Compatible ?? false} ${shown}`;
    let compiled = deps.statements.gets.get(shape);
    if (!compiled) {
      const plan = planGet(NO_ID, fields, object.object, queryView(view), {
        ieee754Compatible: call.ieee754Compatible ?? false,
        expand,
      });
      compiled = compileGet(constrain(plan, view.access), tenantSchema(request.tenantId));
      deps.statements.gets.set(shape, compiled);
    }
    if (!isUuid(id)) throw recordNotFound();
    const values = compiled.values.map((value) => (value === NO_ID ? id : value));
    const found = await deps.database.tenant(request.tenantId, (tx) => fetchRecord(tx, { ...compiled, values }));
    assertFresh(view, found.metadataVersion, found.accessVersion);
    if (found.record === null || found.recordVersion === null) throw recordNotFound();
    return { record: found.record, etag: etagOf(found.recordVersion) };
  });
}

/** Stands for the id in a compiled statement; no record has it. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

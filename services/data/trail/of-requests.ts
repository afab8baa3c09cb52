/**
 * Changes by the requests of an agent run, from the entries that they left in the audit trail, as far as a user may
 * know of the records. Source: docs/reference/agents.md.
 */
import type { DataActions, RecordName } from '../../../contracts/data.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { recordKey } from '../../../lib/schema/record-key.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { checkedRow } from '../read/versions.ts';
import type { Tenants } from '../tenants.ts';
import type { View } from '../view.ts';
import { type ChangedRow, changedStatement, type SeenRow, seenStatement } from './of-requests.sql.ts';

type OfRequests = DataActions['data.trail.ofRequests'];

export async function recordsOfRequests(
  database: Database,
  tenants: Tenants,
  { tenantId, userId, agentRunId, requestIds }: OfRequests['params'],
): Promise<OfRequests['result']> {
  if (requestIds.length === 0) return {};
  const changed = await database.tenant(tenantId, (tx) =>
    tx.all<ChangedRow>(changedStatement(tx.schema, agentRunId, requestIds)),
  );
  if (changed.length === 0) return {};
  return tenants.withView(tenantId, userId, async (view) => {
    const seen = new Set((await visibleRecords(database, view, changed)).map(recordKey));
    const shown = changed.filter((record) => seen.has(recordKey(record)));
    return Object.fromEntries(
      [...Map.groupBy(shown, ({ requestId }) => requestId)].map(([requestId, rows]) => [
        requestId,
        rows.map(({ objectApiName, id }) => ({ objectApiName, id })),
      ]),
    );
  });
}

export async function seenRecords(
  database: Database,
  tenants: Tenants,
  { tenantId, userId, records }: DataActions['data.records.seen']['params'],
): Promise<RecordName[]> {
  const named = records.filter(({ id }) => isUuid(id));
  if (named.length === 0) return [];
  return tenants.withView(tenantId, userId, (view) => visibleRecords(database, view, named));
}

/** Those of the records that the user can see, or could when they were deleted. */
export async function visibleRecords(
  database: Database,
  view: View,
  records: readonly RecordName[],
): Promise<RecordName[]> {
  const named = [...Map.groupBy(records, ({ objectApiName }) => objectApiName)].flatMap(([apiName, ofObject]) => {
    const access = ownEntry(view.access.objects, apiName);
    return access ? [{ object: access.object, ids: [...new Set(ofObject.map(({ id }) => id))] }] : [];
  });
  if (named.length === 0) return [];
  const rows = await database.tenant(view.tenantId, (tx) => tx.all<SeenRow>(seenStatement(view, named)));
  checkedRow(view, rows);
  return rows.flatMap(({ objectApiName, id }) => (id === null ? [] : [{ objectApiName, id }]));
}

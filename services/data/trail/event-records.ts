/** Changes that events tell about, as far as a user may know of them now. Source: docs/reference/events.md. */
import type { EventRecords, EventRecordsQuestion } from '../../../contracts/data/event-records.ts';
import type { Asker } from '../../../lib/context.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { usableClient } from '../connections/confirm.ts';
import { requireApi } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import { checkedRow } from '../read/versions.ts';
import { etagOf } from '../sql.ts';
import { type EventRecordRow, eventRecordsStatement, type ReadableObject } from './event-records.sql.ts';

export const readEventRecords = (
  { database, tenants }: ReadDeps,
  { tenantId, userId, clientId, deniedObjects = [] }: Asker,
  { records, full }: EventRecordsQuestion,
): Promise<EventRecords> =>
  tenants.withView(tenantId, userId, async (view) => {
    requireApi(view);
    const named = [...Map.groupBy(records, ({ objectApiName }) => objectApiName)].flatMap(
      ([apiName, ofObject]): ReadableObject[] => {
        const access = deniedObjects.includes(apiName) ? undefined : ownEntry(view.access.objects, apiName);
        return access ? [{ access, records: ofObject }] : [];
      },
    );
    const systemPermissions = [...view.access.system];
    const clientUsable = usableClient(view.snapshot, clientId) !== null;
    if (named.length === 0) return { systemPermissions, clientUsable, changes: [], cutAt: null };
    const { rows, more } = await database.tenant(tenantId, (tx) =>
      tx.allUpTo<EventRecordRow>(eventRecordsStatement(view, named, full), LIMITS.page_max_bytes),
    );
    checkedRow(view, rows);
    const versions = new Map(records.map(({ place, version }) => [place, version]));
    const showsTransition = new Map(
      named.flatMap(({ access, records: ofObject }) => {
        const { stateModel, actions } = access.object;
        const field = stateModel?.field;
        const shows = field ? access.readable.some(({ apiName }) => apiName === field) : actions.length > 0;
        return ofObject.map(({ place }) => [place, shows] as const);
      }),
    );
    const changes = rows.flatMap(({ place, kind, changedFields, before, after }) =>
      place === null
        ? []
        : [
            {
              place,
              etag: etagOf(versions.get(place) ?? 0),
              changedFields,
              before: kind === 'create' ? null : before,
              after: kind === 'delete' ? null : after,
              showsTransition: showsTransition.get(place) === true,
            },
          ],
    );
    const last = changes.at(-1);
    return { systemPermissions, clientUsable, changes, cutAt: more && last ? last.place + 1 : null };
  });

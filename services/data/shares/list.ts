/** The manual shares of a record, for users who may share it. Source: docs/reference/access.md#manual-shares. */

import type { Handler } from '../../../contracts/operations.ts';
import { namedRecord, recordNotFound } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import { checkedRow } from '../read/versions.ts';
import { type SharesRow, sharesStatement } from './list.sql.ts';
import { sharingDenied } from './shares.ts';

export const listShares: Handler<'data.shares.list', ReadDeps> = async (deps, request, call) => {
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const { access, id } = namedRecord(view, call);
    const statement = sharesStatement(view, access.object.apiName, id);
    const rows = await deps.database.tenant(request.tenantId, (tx) => tx.all<SharesRow>(statement));
    const { mayShare, shares } = checkedRow(view, rows);
    if (mayShare === null) throw recordNotFound();
    if (!mayShare) throw sharingDenied();
    return { body: Buffer.from(`{"records":${shares},"nextCursor":null}`) };
  });
};

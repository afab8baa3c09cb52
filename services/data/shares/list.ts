/** The manual shares of a record, for those who may share it. Source: docs/reference/access.md#manual-shares. */
import type { Handler } from '../../../contracts/operations.ts';
import { NEEDS } from '../../../lib/access/decide.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { ReadDeps } from '../read/read.ts';
import { reachSql, table } from '../sql.ts';
import { assertFresh, namedRecord, recordNotFound } from '../tenants.ts';
import { SHARE_COLUMNS, sharingDenied } from './shares.ts';

export const listShares: Handler<'data.shares.list', ReadDeps> = async (deps, request, call) => {
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const { access, id } = namedRecord(view, call);
    const { object } = access;
    const { rows } = await deps.database.tenant(request.tenantId, (tx) => {
      const sql = new Sql();
      const record = sql.bind(id, 'uuid');
      const reached = (operation: 'read' | 'share'): string =>
        reachSql(view, sql, object.apiName, NEEDS[operation].level, 't');
      const text = `SELECT s.metadata_version, s.access_version, r.may_share, CASE WHEN r.may_share THEN (
            SELECT coalesce(json_agg(x ORDER BY x."createdAt", x."shareId"), '[]') FROM (
              SELECT ${SHARE_COLUMNS} FROM ${tx.schema}._shares sh WHERE sh.record_id = ${record} AND sh.object = ${sql.bind(object.apiName, 'text')}) x)::text END
        FROM ${tx.schema}._state s LEFT JOIN (
          SELECT ${reached('share')} AS may_share FROM ${table(tx.schema, object.apiName)} t WHERE t."id" = ${record} AND ${reached('read')}) r ON true`;
      return tx.arrays(sql.statement(text));
    });
    const [metadataVersion, accessVersion, mayShare, shares] = rows[0]!;
    assertFresh(view, metadataVersion, accessVersion);
    if (mayShare === null) throw recordNotFound();
    if (mayShare === false) throw sharingDenied();
    return { body: Buffer.from(`{"records":${shares},"nextCursor":null}`) };
  });
};

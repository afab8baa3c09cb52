/** Checks contents before anybody can read them. Doing it twice does no harm. Source: docs/reference/files.md#checks. */
import type { NetConnectOpts } from 'node:net';
import { requestId } from '../../lib/values/ids.ts';
import type { Blobs } from '../../mixins/blobs/blobs.ts';
import type { Database } from '../../mixins/database/database.ts';
import { tenantRole } from '../../mixins/database/roles.ts';
import { Sql } from '../../mixins/database/sql.ts';
import { jobQueue } from '../../mixins/jobs/queue.ts';
import { CallerSql, outboxSql, platformCaller } from '../../mixins/mutation/audit.ts';
import { bytesOf } from './bytes.ts';
import { askClamd } from './clamd.ts';
import { type PartRow, partsSql } from './files.sql.ts';

interface Scan {
  readonly tenantId: string;
  readonly sha256: string;
}

export const SCANS = jobQueue<Scan>('files.scan', {
  attempts: 30,
  retrySeconds: 2,
  retryMaxSeconds: 300,
  pollSeconds: 1,
  concurrency: 4,
  perTenant: 2,
  oneForEachKey: false,
});

/** Files of one content that are told about. */
const EVENTS_MAX = 1_000;

/** `address` null: contents are no longer checked. */
export async function scanContent(
  { database, blobs }: { readonly database: Database; readonly blobs: Blobs },
  address: NetConnectOpts | null,
  { tenantId, sha256 }: Scan,
): Promise<void> {
  const parts = await database.shared('files', tenantId, (tx) => tx.all<PartRow>(partsSql(tenantId, { sha256 })));
  const verdict = address && parts.length > 0 ? await askClamd(address, bytesOf(blobs, parts)) : 'clean';
  const state = verdict === 'clean' ? 'ready' : 'quarantined';
  await database.shared('files', tenantId, async (tx) => {
    const files = await tx.all<{ fileId: string }>(concludeSql({ tenantId, sha256 }, state));
    tx.actAs(tenantRole(tenantId));
    const caller = platformCaller('job', requestId());
    for (const { fileId } of files) {
      const sql = new Sql();
      const event = {
        type: `files.file.${state}`,
        recordId: sql.bind(fileId, 'uuid'),
        data: sql.bind(JSON.stringify({ fileId, sha256 }), 'jsonb'),
      };
      void tx.query(sql.statement(outboxSql(tx.schema, new CallerSql(sql.for(caller)), event)));
    }
  });
}

/** Ids of the files that have the content; none when it was concluded before. */
function concludeSql({ tenantId, sha256 }: Scan, state: 'ready' | 'quarantined') {
  const sql = new Sql();
  return sql.statement(`WITH done AS (UPDATE files.contents SET state = ${sql.bind(state, 'text')}
      WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND sha256 = ${sql.bind(sha256, 'text')} AND state = 'scanning'
      RETURNING tenant_id, sha256)
    SELECT f.file_id AS "fileId" FROM files.files f JOIN done USING (tenant_id, sha256) LIMIT ${EVENTS_MAX}`);
}

/** Scans contents before anybody can read them. Doing it twice does no harm. Source: docs/reference/files.md#scans. */
import { hash } from 'node:crypto';
import type { NetConnectOpts } from 'node:net';
import { requestId } from '../../lib/values/ids.ts';
import type { Blobs } from '../../mixins/blobs/blobs.ts';
import type { Database } from '../../mixins/database/database.ts';
import { tenantRole } from '../../mixins/database/roles.ts';
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';
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

const EMPTY = hash('sha256', '');

/** Events of one scan; further files of the same content change their state without one. */
const EVENTS_MAX = 1_000;

/** Scans a content and stores the verdict. `address` null: scanning was switched off, and every content is clean. */
export async function scanContent(
  { database, blobs }: { readonly database: Database; readonly blobs: Blobs },
  address: NetConnectOpts | null,
  { tenantId, sha256 }: Scan,
): Promise<void> {
  const parts = await database.shared('files', tenantId, (tx) => tx.all<PartRow>(partsSql(tenantId, { sha256 })));
  // The sweep has removed it. Were it stored again meanwhile, nobody would have looked at it.
  if (parts.length === 0 && sha256 !== EMPTY) return;
  const verdict = address && parts.length > 0 ? await askClamd(address, bytesOf(blobs, parts)) : 'clean';
  await database.shared('files', tenantId, async (tx) => {
    const files = await tx.all<Concluded>(
      concludeSql({ tenantId, sha256 }, verdict === 'clean' ? 'ready' : 'quarantined'),
    );
    tx.actAs(tenantRole(tenantId));
    const caller = platformCaller('job', requestId());
    for (const { fileId, state } of files) {
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

interface Concluded {
  readonly fileId: string;
  readonly state: 'ready' | 'quarantined';
}

/**
 * Stores the verdict, and answers the files whose state it changes: those that waited for a scan, or all files when a content
 * that was clean is harmful now. A quarantined content stays quarantined.
 */
function concludeSql({ tenantId, sha256 }: Scan, state: Concluded['state']): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const content = sql.bind(sha256, 'text');
  return sql.statement(`WITH before AS (SELECT state FROM files.contents WHERE tenant_id = ${tenant} AND sha256 = ${content} FOR UPDATE),
    done AS (UPDATE files.contents c
      SET state = CASE WHEN c.state = 'quarantined' THEN c.state ELSE ${sql.bind(state, 'text')} END FROM before
      WHERE c.tenant_id = ${tenant} AND c.sha256 = ${content} RETURNING c.state),
    scanned AS (UPDATE files.files SET scanned = true WHERE tenant_id = ${tenant} AND sha256 = ${content} AND NOT scanned)
    SELECT f.file_id AS "fileId", done.state FROM files.files f, before, done
    WHERE f.tenant_id = ${tenant} AND f.sha256 = ${content} AND (NOT f.scanned OR before.state <> done.state)
    LIMIT ${EVENTS_MAX}`);
}

/** Exports the records of a query in segments, which data writes as the user sees them, and which are committed one by one. */
import { createHash } from 'node:crypto';
import type { CreateBody } from '../../../contracts/bulk.ts';
import { type FileFormat, type ObjectColumns, SEGMENT_BYTES } from '../../../contracts/data/columns.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { type BlobRow, blobsStatement, keepBlobStatement } from '../jobs/job.sql.ts';
import { reserve } from '../parts/upload.ts';
import { ETAG } from '../rows/columns.ts';
import { advance, contextOf, nextTurn, type Work } from './turn.ts';

/** Stored with the job between segments. */
interface Position {
  /** Columns of the file, as the user saw them at its beginning. */
  readonly columns: readonly string[];
  /** Cursor of the next page; null: all are read. */
  readonly next: string | null;
  readonly segments: number;
}

export async function exportRecords(work: Work): Promise<void> {
  const { deps, tenantId, job } = work;
  let position: Position | null = job.cursor === null ? null : JSON.parse(job.cursor);
  let processed = job.processed;
  while (position === null || position.next !== null) {
    const object = await nextTurn(work);
    const at: Position = position ?? { columns: columnsOf(work, object), next: null, segments: 0 };
    const key = deps.blobs.newKey(`bulk/${tenantId}`);
    const announced = { jobId: job.jobId, key, number: at.segments + 1, bytes: SEGMENT_BYTES };
    const owner = { tenantId, userId: job.userId, clientId: job.clientId };
    await deps.database.shared('bulk', tenantId, (tx) => reserve(tx, owner, announced));
    const { nextCursor, ...segment } = await deps.export({
      asker: contextOf(job),
      objectApiName: job.objectApiName,
      query: { ...job.request.query },
      cursor: at.next,
      file: { ...fileOf(job.request), columns: at.columns },
      key,
    });
    if (processed + segment.rows > LIMITS.bulk_job_rows_max)
      throw new PlatformError('TOO_MANY_ITEMS', `An export may have at most ${LIMITS.bulk_job_rows_max} records.`);
    position = { columns: at.columns, next: nextCursor, segments: at.segments + 1 };
    const progress = { from: processed, succeeded: segment.rows, failed: 0, cursor: JSON.stringify(position) };
    const goesOn = await advance(work, progress, async (tx) => {
      const kept = await tx.first(keepBlobStatement(tenantId, { ...announced, ...segment, kind: 'segment' }));
      if (!kept) throw new Error('The segment was swept before it belonged to the job.');
    });
    processed += segment.rows;
    deps.numbers.exported += segment.rows;
    if (!goesOn) return;
  }
  const sha256 = await digestOfAll(work);
  await advance(work, { from: processed, succeeded: 0, failed: 0, ends: { state: 'COMPLETED', sha256 } });
}

/** Names of the columns, in the order of records in answers. */
function columnsOf({ job: { request } }: Work, { columns }: ObjectColumns): string[] {
  const asked: unknown = Object.entries(request.query ?? {}).find(([name]) => name === 'fields')?.[1];
  const names =
    typeof asked === 'string' ? asked.split(',').map((name) => name.trim()) : Array.isArray(asked) ? asked : null;
  const shown = columns.map(({ apiName }) => apiName);
  return [...(names ? shown.filter((name) => name === 'id' || names.includes(name)) : shown), ETAG];
}

const fileOf = ({ format, csv, compression }: CreateBody): Omit<FileFormat, 'columns'> => ({
  format,
  delimiter: csv?.delimiter ?? ',',
  lineEnding: csv?.lineEnding ?? 'LF',
  compression: compression ?? 'none',
});

/** SHA-256 of the segments, one after the other. */
async function digestOfAll({ deps, tenantId, job, signal }: Work): Promise<string> {
  const segments = await deps.database.shared('bulk', tenantId, (tx) =>
    tx.all<BlobRow>(blobsStatement(tenantId, job.jobId, 'segment')),
  );
  const hash = createHash('sha256');
  for (const { key, bytes } of segments) {
    signal.throwIfAborted();
    if (bytes > 0) for await (const chunk of await deps.blobs.read(key, { from: 0, bytes })) hash.update(chunk);
  }
  return hash.digest('hex');
}

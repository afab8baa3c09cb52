/** Imports the rows of a job, a chunk after the other. */
import type { BulkRowResult } from '../../../contracts/bulk.ts';
import type { RowsToWrite, RowsWritten, RowToWrite } from '../../../contracts/data/row-writes.ts';
import { type BlobRow, blobsStatement, insertResultsStatement, type JobRow } from '../jobs/job.sql.ts';
import { chunksOf, columnOf, type FileRow, type ReadRow, rowReader } from '../rows/read.ts';
import { advance, contextOf, nextTurn, type Work } from './turn.ts';

export async function importRows(work: Work): Promise<void> {
  const { deps, tenantId, job } = work;
  const parts = await deps.database.shared('bulk', tenantId, (tx) =>
    tx.all<BlobRow>(blobsStatement(tenantId, job.jobId, 'part')),
  );
  let processed = job.processed;
  for await (const chunk of chunksOf(deps.blobs, job.request, parts, processed)) {
    const rows = chunk.map(rowReader(job.request, await nextTurn(work)));
    const written = await write(work, processed, rows);
    const results = stopped(job, resultsOf(job, chunk, rows, written));
    const failed = results.filter(({ outcome }) => outcome === 'failed').length;
    const succeeded = results.length - failed;
    const from = processed;
    processed += results.length;
    const ends = endOf(job, processed, failed);
    const goesOn = await advance(work, { from, succeeded, failed, ...(ends ? { ends } : {}) }, (tx) =>
      tx.query(
        insertResultsStatement(tenantId, job.jobId, {
          firstRow: from + 1,
          succeeded,
          failed,
          rows: JSON.stringify(results),
        }),
      ),
    );
    deps.numbers.succeeded += succeeded;
    deps.numbers.failed += failed;
    if (!goesOn) return;
  }
  // The file has other rows than were counted when it arrived.
  await advance(work, { from: processed, succeeded: 0, failed: 0, ends: { state: 'COMPLETED' } });
}

/** Writes the rows that could be read. The key is that of the first row: a chunk that begins there is always the same. */
async function write(
  { deps, job }: Work,
  processed: number,
  rows: readonly ReadRow[],
): Promise<RowsWritten['results']> {
  const { objectApiName, operation, externalIdField, allOrNone, checkOnly, duplicatePolicy, conflictPolicy } =
    job.request;
  const readable = rows.flatMap((read): RowToWrite[] => ('row' in read ? [read.row] : []));
  const nothing = readable.length === 0 || (allOrNone === true && readable.length < rows.length);
  if (nothing || operation === 'export') return [];
  const asked: RowsToWrite = {
    objectApiName,
    operation,
    allOrNone: allOrNone ?? false,
    checkOnly: checkOnly ?? false,
    ...(externalIdField === undefined ? {} : { externalIdField }),
    ...(duplicatePolicy === undefined ? {} : { duplicatePolicy }),
    ...(conflictPolicy === undefined ? {} : { conflictPolicy }),
    rows: readable,
  };
  const { results } = await deps.write(contextOf(job), { ...asked, key: `bulk-${job.jobId}-${processed + 1}` });
  return results;
}

function resultsOf(
  job: JobRow,
  chunk: readonly FileRow[],
  rows: readonly ReadRow[],
  written: RowsWritten['results'],
): BulkRowResult[] {
  const byIndex = new Map(written.map((result) => [result.index, result]));
  let index = 0;
  return chunk.map((fileRow, place): BulkRowResult => {
    const { rowNumber } = fileRow;
    const none = { rowNumber, id: null, etag: null, created: false } as const;
    const read = rows[place];
    if (!read || 'errors' in read) return { ...none, outcome: 'failed', errors: [...(read?.errors ?? [])] };
    const result = byIndex.get(index++);
    if (!result) return { ...none, outcome: 'failed', errors: [NOT_WRITTEN] };
    const { id, etag, created, status } = result;
    return {
      rowNumber,
      outcome: status < 400 ? 'succeeded' : 'failed',
      id,
      etag,
      created,
      errors: result.errors.map(({ code, message, pointer }) => {
        const column = columnOf(pointer, fileRow, job.request);
        return column === undefined ? { code, message } : { code, message, column };
      }),
    };
  });
}

const NOT_WRITTEN = {
  code: 'ROLLED_BACK',
  message: 'Another row of the chunk failed, so that this one was not written.',
};

/** Of a job that is all or none, what it has got to: the chunk with a row that fails is its last one. */
function stopped({ request }: JobRow, results: readonly BulkRowResult[]): readonly BulkRowResult[] {
  if (!request.allOrNone || results.every(({ outcome }) => outcome === 'succeeded')) return results;
  // Rows that were valid are failed as well, since none of the chunk was committed.
  return results.map((result) =>
    result.outcome === 'failed'
      ? result
      : { ...result, outcome: 'failed', id: null, etag: null, errors: [NOT_WRITTEN] },
  );
}

function endOf(
  { request, total }: JobRow,
  processed: number,
  failed: number,
): { state: 'COMPLETED' } | { state: 'FAILED'; error: { code: string; message: string } } | null {
  if (request.allOrNone && failed > 0)
    return {
      state: 'FAILED',
      error: { code: 'COMPOSITE_FAILED', message: `A row up to row ${processed} failed; the rest was not processed.` },
    };
  return processed === total ? { state: 'COMPLETED' } : null;
}

/** Imports the rows of a job, chunk by chunk. */
import type { BulkRowResult } from '../../../contracts/bulk.ts';
import type { RowError, RowsWritten, RowToWrite } from '../../../contracts/data/row-writes.ts';
import { type BlobRow, blobsStatement, insertResultsStatement, type JobRow } from '../jobs/job.sql.ts';
import { inLocale } from '../rows/locale.ts';
import { chunksOf, columnOf, type FileRow, rowReader } from '../rows/read.ts';
import { advance, contextOf, nextTurn, type Work } from './turn.ts';

export async function importRows(work: Work): Promise<void> {
  const { job } = work;
  let { processed } = job;
  for await (const chunk of await chunksBehind(work, processed)) {
    const rows = chunk.map(rowReader(job.request, await nextTurn(work)));
    const { results } = await write(work, processed, rows);
    if (!(await commitChunk(work, processed, chunk, results))) return;
    processed += chunk.length;
  }
  // Reached without rows, or when fewer were read than were counted at the upload.
  await advance(work, { from: processed, succeeded: 0, failed: 0, ends: { state: 'COMPLETED' } });
}

/**
 * Called before a job ends after its first `processed` rows: a process that was lost may have written the next chunk without
 * storing its results. Stores them, or makes sure that the chunk is never written. Answers how many rows are processed then.
 */
export async function settleChunk(work: Work, processed: number): Promise<number> {
  const { deps, job } = work;
  const written = await deps.settle(contextOf(job), keyOf(job, processed));
  if (!written) return processed;
  for await (const chunk of await chunksBehind(work, processed)) {
    await commitChunk(work, processed, chunk, written.results);
    return processed + chunk.length;
  }
  return processed;
}

async function chunksBehind(
  { deps, tenantId, job }: Work,
  processed: number,
): Promise<AsyncGenerator<readonly FileRow[]>> {
  const parts = await deps.database.shared('bulk', tenantId, (tx) =>
    tx.all<BlobRow>(blobsStatement(tenantId, job.jobId, 'part')),
  );
  return chunksOf(deps.blobs, job.request, parts, processed);
}

/** The key of a write: the chunk after `processed` rows is always the same. */
const keyOf = ({ jobId }: JobRow, processed: number): string => `bulk-${jobId}-${processed + 1}`;

async function write({ deps, job }: Work, processed: number, rows: readonly RowToWrite[]): Promise<RowsWritten> {
  const { objectApiName, operation, externalIdField, allOrNone, checkOnly, duplicatePolicy, conflictPolicy } =
    job.request;
  if (operation === 'export') throw new Error('Assertion failed: an export writes no rows');
  // A person must have seen a duplicate that an agent confirms, and of the rows of a job nobody has.
  const confirms = job.context?.agentRunId === null;
  return deps.write(contextOf(job), {
    objectApiName,
    operation,
    allOrNone: allOrNone ?? false,
    checkOnly: checkOnly ?? false,
    ...(externalIdField === undefined ? {} : { externalIdField }),
    ...(duplicatePolicy === undefined || !confirms ? {} : { duplicatePolicy }),
    ...(conflictPolicy === undefined ? {} : { conflictPolicy }),
    rows: confirms ? rows : rows.map(({ duplicateConfirmation: _, ...row }) => row),
    key: keyOf(job, processed),
  });
}

/** Stores the results of a chunk. Answers false when this process must leave the job. */
async function commitChunk(
  work: Work,
  processed: number,
  chunk: readonly FileRow[],
  written: RowsWritten['results'],
): Promise<boolean> {
  const { deps, tenantId, job } = work;
  const results = chunk.map((row, index) => resultOf(job, row, written[index]));
  const failed = results.filter(({ outcome }) => outcome === 'failed').length;
  const succeeded = results.length - failed;
  const ends = endOf(job, processed + results.length, failed);
  const goesOn = await advance(work, { from: processed, succeeded, failed, ...(ends ? { ends } : {}) }, (tx) =>
    tx.query(
      insertResultsStatement(tenantId, job.jobId, {
        firstRow: processed + 1,
        succeeded,
        failed,
        rows: JSON.stringify(results),
      }),
    ),
  );
  deps.numbers.succeeded += succeeded;
  deps.numbers.failed += failed;
  return goesOn;
}

function resultOf(job: JobRow, row: FileRow, written: RowsWritten['results'][number] | undefined): BulkRowResult {
  if (!written) throw new Error('Assertion failed: each row of a chunk has a result');
  const { id, etag, created, status } = written;
  return {
    rowNumber: row.rowNumber,
    outcome: status < 400 ? 'succeeded' : 'failed',
    id,
    etag,
    created,
    errors: written.errors.map((error) => {
      const { code } = error;
      const message = messageOf(error, job.request.csv?.locale);
      const column = columnOf(error.pointer, row, job.request);
      return column === undefined ? { code, message } : { code, message, column };
    }),
  };
}

/** The cell is read by the locale, so a number is described as the locale writes it, not as JSON does. */
function messageOf({ code, message, pointer, field, params }: RowError, locale: string | undefined): string {
  // Cells of places and addresses are JSON whatever the locale: pointers go deeper into them.
  if (locale === undefined || code !== 'FIELD_TYPE_INVALID' || pointer !== `/fields/${field}`) return message;
  if (params?.['expected'] === 'number')
    return `${field} must be a number as written in ${locale}, such as ${inLocale(1_234.5, locale)}.`;
  if (params?.['expected'] === 'integer')
    return `${field} must be an integer as written in ${locale}, such as ${inLocale(1_234, locale)}.`;
  return message;
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

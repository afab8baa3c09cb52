/** Results: the outcome of every row of an import, and the file of an export. Source: docs/reference/bulk.md#results. */

import Negotiator from 'negotiator';
import { type BULK_OUTCOMES, BULK_TYPES, type BulkRowResult } from '../../../contracts/bulk.ts';
import { addressOf, type Handler, type OperationInput } from '../../../contracts/operations.ts';
import { csvLine, disarmed } from '../../../lib/cells/cells.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { listPage } from '../../../lib/query/list-page.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import type { BulkDeps } from '../deps.ts';
import { requireState } from '../jobs/change.ts';
import { type BlobRow, blobsStatement, type JobRow, resultsStatement } from '../jobs/job.sql.ts';
import { permitted, requireScope } from '../jobs/permission.ts';
import { findJob } from '../jobs/read.ts';

type Outcome = (typeof BULK_OUTCOMES)[number];

export const listResults: Handler<'bulk.results.list', BulkDeps> = async (deps, request, call) => {
  const job = await findJob(deps, request, call.path.jobId);
  requireScope(request, job);
  // Results tell about records, so the user must still be allowed to read those.
  await permitted(deps, request, { operation: 'export', objectApiName: job.objectApiName });
  if (job.operation === 'export') return exported(deps, request.tenantId, job);
  const { outcome = null, take = LIMITS.bulk_results_take, cursor = null } = call.query;
  const list = { name: 'bulk.results', parameters: { jobId: job.jobId, outcome, take } };
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  const page = await listPage<BulkRowResult, BulkRowResult>(list, { take, takeClamped: false, cursor }, seal, {
    rows: ([after = '0'], rows) => outcomes(deps, request.tenantId, job, outcome, Number(after), rows),
    keys: ({ rowNumber }) => [String(rowNumber)],
    present: (found) => found,
  });
  return inForm(call, page.body);
};

/** Outcomes of rows after row `after`: those that were processed, then those that were not. */
async function outcomes(
  { database }: BulkDeps,
  tenantId: string,
  { jobId, processed, total }: JobRow,
  outcome: Outcome | null,
  after: number,
  take: number,
): Promise<readonly BulkRowResult[]> {
  const done =
    outcome === 'unprocessed'
      ? []
      : (
          await database.shared('bulk', tenantId, (tx) =>
            tx.all<{ result: BulkRowResult }>(resultsStatement(tenantId, jobId, { outcome, after, take })),
          )
        ).map(({ result }) => result);
  if (outcome !== null && outcome !== 'unprocessed') return done;
  const first = Math.max(after, processed) + 1;
  const rest = Math.max(0, Math.min(take - done.length, (total ?? 0) - first + 1));
  return [...done, ...Array.from({ length: rest }, (_, i) => unprocessed(first + i))];
}

const unprocessed = (rowNumber: number): BulkRowResult => ({
  rowNumber,
  outcome: 'unprocessed',
  id: null,
  etag: null,
  created: false,
  errors: [],
});

const JSON_TYPE = 'application/json';
const HEADER = ['rowNumber', 'outcome', 'id', 'etag', 'created', 'code', 'column', 'message'];

function inForm(
  { headers, path, query }: OperationInput<'bulk.results.list'>,
  page: { readonly records: readonly BulkRowResult[]; readonly nextCursor: string | null },
): OperationReply {
  const accepted = { headers: { accept: headers.accept } };
  const type =
    headers.accept === undefined
      ? JSON_TYPE
      : new Negotiator(accepted).mediaType([JSON_TYPE, ...Object.values(BULK_TYPES)]);
  if (type !== BULK_TYPES.csv && type !== BULK_TYPES.ndjson) return { body: page };
  const lines =
    type === BULK_TYPES.csv
      ? [csvLine(HEADER), ...page.records.map((row) => csvLine(cellsOf(row)))]
      : page.records.map((row) => JSON.stringify(row));
  const next = new URLSearchParams({
    ...(query.outcome === undefined ? {} : { outcome: query.outcome }),
    ...(query.take === undefined ? {} : { take: String(query.take) }),
    cursor: page.nextCursor ?? '',
  });
  return {
    headers: {
      'Content-Type': `${type}; charset=utf-8`,
      ...(page.nextCursor === null ? {} : { Link: `<${addressOf('bulk.results.list', path)}?${next}>; rel="next"` }),
    },
    body: Buffer.from(lines.map((line) => `${line}\n`).join('')),
  };
}

function cellsOf({ rowNumber, outcome, id, etag, created, errors }: BulkRowResult): string[] {
  const all = (read: (error: BulkRowResult['errors'][number]) => string): string =>
    disarmed(errors.map(read).join('; '));
  return [
    String(rowNumber),
    outcome,
    id ?? '',
    etag ?? '',
    String(created),
    all(({ code }) => code),
    all(({ column }) => column ?? ''),
    all(({ message }) => message),
  ];
}

async function exported(deps: BulkDeps, tenantId: string, job: JobRow): Promise<OperationReply> {
  requireState(job.state, ['COMPLETED'], 'The file is there when the export is complete.');
  const segments = await deps.database.shared('bulk', tenantId, (tx) =>
    tx.all<BlobRow>(blobsStatement(tenantId, job.jobId, 'segment')),
  );
  const { format, compression } = job.request;
  const isCompressed = compression === 'gzip';
  const name = `${job.objectApiName}-${job.jobId}.${format}${isCompressed ? '.gz' : ''}`;
  return {
    headers: { 'Content-Disposition': `attachment; filename="${name}"` },
    body: null,
    file: {
      parts: segments.filter(({ bytes }) => bytes > 0).map(({ key, bytes }) => ({ key, bytes })),
      sha256: job.sha256 ?? '',
      contentType: isCompressed ? 'application/gzip' : `${BULK_TYPES[format]}; charset=utf-8`,
    },
  };
}

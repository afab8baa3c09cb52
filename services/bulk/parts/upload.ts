/**
 * Receives the parts of an import. The gateway moves the bytes: it calls uploadPart before, and again when they have arrived,
 * to count their rows and conclude. Source: docs/reference/bulk.md#parts.
 */
import { BULK_STATES, BULK_TYPES } from '../../../contracts/bulk.ts';
import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { tooLarge } from '../../../lib/errors/too-large.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { digestHeader } from '../../../lib/values/digests.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { earlierReply } from '../../../mixins/mutation/earlier.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import type { BulkDeps } from '../deps.ts';
import { requireState } from '../jobs/change.ts';
import {
  announceBlobStatement,
  type BlobRow,
  blobsStatement,
  dropBlobStatement,
  type JobRow,
  jobStatement,
  keepBlobStatement,
  lockTenantStatement,
  replaceBlobStatement,
  type Stored,
  setStateStatement,
  storedStatement,
} from '../jobs/job.sql.ts';
import { permitted, requireScope } from '../jobs/permission.ts';
import { findJob, jobNotFound } from '../jobs/read.ts';
import { planColumns } from '../rows/columns.ts';
import { readHeader } from '../rows/csv.ts';
import { scanRows } from '../rows/scan.ts';

type Input = OperationInput<'bulk.parts.upload'>;

const NO_MORE = 'Parts can be uploaded until the job starts.';

export const uploadPart: Handler<'bulk.parts.upload', BulkDeps> = (deps, request, call) => {
  const { received } = call.body;
  if (!received) return announce(deps, request, call);
  return 'failed' in received ? giveUp(deps, request, received.key) : conclude(deps, request, call, received);
};

/** Names the key for the bytes, or answers the outcome of an earlier execution of the request. */
async function announce(deps: BulkDeps, request: RequestContext, call: Input): Promise<OperationReply> {
  const { tenantId } = request;
  const earlier = await earlierReply(deps, request, call);
  if (earlier) return earlier;
  const job = await findJob(deps, request, call.path.jobId);
  requireScope(request, job);
  await permitted(deps, request, job.request);
  requireState(job.state, BULK_STATES.takesParts, NO_MORE);
  const type = BULK_TYPES[job.request.format];
  if (call.body.contentType?.split(';', 1)[0]?.trim().toLowerCase() !== type)
    throw new PlatformError('MEDIA_TYPE_UNSUPPORTED', `Content-Type must be ${type}, the format of the job.`, {
      details: { accepted: [type] },
    });
  const number = numberOf(call);
  const blob = {
    jobId: job.jobId,
    key: deps.blobs.newKey(`bulk/${tenantId}`),
    number,
    bytes: Math.min(call.body.bytes ?? LIMITS.bulk_part_max_bytes, LIMITS.bulk_part_max_bytes),
  };
  await deps.database.shared('bulk', tenantId, (tx) => reserve(tx, request, blob));
  return { body: null, receive: { key: blob.key, maxBytes: blob.bytes } };
}

/** Notes a blob. Throws REQUEST_TOO_LARGE when job, user or tenant has no room for it. */
export async function reserve(
  tx: Tx,
  owner: Pick<RequestContext, 'tenantId' | 'userId' | 'clientId'>,
  blob: { readonly jobId: string; readonly key: string; readonly number: number; readonly bytes: number },
): Promise<void> {
  await tx.query(lockTenantStatement(owner.tenantId));
  const { ofUser, ofTenant, ofJob } = await tx.one<Stored>(storedStatement(owner, blob.jobId));
  for (const [stored, max, whose] of [
    [ofJob, LIMITS.bulk_job_max_bytes, 'this job'],
    [ofUser, LIMITS.bulk_user_max_bytes, 'this user'],
    [ofTenant, LIMITS.bulk_tenant_max_bytes, 'the tenant'],
  ] as const)
    if (stored + blob.bytes > max)
      throw new PlatformError('REQUEST_TOO_LARGE', `The bulk data of ${whose} would exceed ${max} bytes.`, {
        details: { maxBytes: max },
      });
  await tx.query(announceBlobStatement(owner, blob));
}

async function giveUp({ database }: BulkDeps, { tenantId }: RequestContext, key: string): Promise<OperationReply> {
  await database.shared('bulk', tenantId, (tx) => tx.query(dropBlobStatement(tenantId, key)));
  return { body: null };
}

async function conclude(
  deps: BulkDeps,
  request: RequestContext,
  call: Input,
  received: { readonly key: string; readonly bytes: number; readonly sha256: string },
): Promise<OperationReply> {
  const { tenantId } = request;
  const { key, bytes, sha256 } = received;
  try {
    const job = await findJob(deps, request, call.path.jobId);
    const rows = await rowsOf(deps, request, job, received);
    return await mutate(deps.database, request, call, {
      role: { service: 'bulk' },
      work: async (unit) => {
        const { tx } = unit;
        const locked = await tx.first<JobRow>(jobStatement(request, job.jobId, true));
        if (!locked) throw jobNotFound();
        requireState(locked.state, BULK_STATES.takesParts, NO_MORE);
        const number = numberOf(call);
        await tx.query(replaceBlobStatement(tenantId, job.jobId, number));
        const part = { jobId: job.jobId, key, number, bytes, rows, sha256, kind: 'part' as const };
        if (!(await tx.first(keepBlobStatement(tenantId, part))))
          throw new PlatformError('SERVICE_UNAVAILABLE', 'The upload took too long. Send the part again.', {
            retryAfterSeconds: 1,
          });
        const parts = await tx.all<BlobRow>(blobsStatement(tenantId, job.jobId, 'part'));
        refuseExcess(parts);
        if (locked.state === 'OPEN') await tx.query(setStateStatement(tenantId, job.jobId, 'UPLOADED'));
        const digest = digestHeader(sha256);
        unit.audit({
          changes: {
            jobId: { from: job.jobId, to: job.jobId },
            part: { from: null, to: number },
            digest: { from: null, to: digest },
          },
        });
        unit.tally.records = 0;
        return { status: 201, body: { partNumber: number, bytes, rows, digest } };
      },
    });
  } finally {
    // Has no effect on a blob that was kept.
    await giveUp(deps, request, key).catch(() => {});
  }
}

function refuseExcess(parts: readonly BlobRow[]): void {
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  if (rows > LIMITS.bulk_job_rows_max)
    throw new PlatformError('TOO_MANY_ITEMS', `A job may have at most ${LIMITS.bulk_job_rows_max} rows.`, {
      details: { max: LIMITS.bulk_job_rows_max },
    });
  if (parts.reduce((sum, part) => sum + part.bytes, 0) > LIMITS.bulk_job_max_bytes)
    throw tooLarge(LIMITS.bulk_job_max_bytes);
}

/** The number of rows. Throws BULK_DATA_INVALID for a file or columns that this job cannot import. */
async function rowsOf(
  deps: BulkDeps,
  request: RequestContext,
  { request: body }: JobRow,
  { key, bytes }: { readonly key: string; readonly bytes: number },
): Promise<number> {
  const source = bytes === 0 ? [] : await deps.blobs.read(key, { from: 0, bytes });
  const { rows, first } = await scanRows(source, body.format);
  if (body.format === 'ndjson') return rows;
  planColumns(readHeader(first, body.csv), body, await permitted(deps, request, body));
  return rows - 1;
}

function numberOf({ path }: Input): number {
  const number = Number(path.partNumber);
  if (number <= LIMITS.bulk_parts_max) return number;
  const message = `A job may have at most ${LIMITS.bulk_parts_max} parts.`;
  throw new PlatformError('PARAMETER_INVALID', message, {
    errors: [violation('path:partNumber', 'PARAMETER_INVALID', message)],
  });
}

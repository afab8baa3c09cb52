/** Statements on jobs and on the blobs that belong to them. */
import {
  BULK_STATES,
  type BulkFailure,
  type BulkOperation,
  type BulkState,
  type CreateBody,
} from '../../../contracts/bulk.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { namedLockStatement } from '../../../mixins/database/named-lock.sql.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export interface JobRow {
  readonly jobId: string;
  readonly userId: string;
  readonly clientId: string;
  readonly state: BulkState;
  readonly operation: BulkOperation;
  readonly objectApiName: string;
  readonly request: CreateBody;
  readonly context: RequestContext | null;
  readonly total: number | null;
  readonly processed: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cursor: string | null;
  readonly sha256: string | null;
  readonly attempts: number;
  readonly error: BulkFailure | null;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly expiresAt: string;
}

export interface BlobRow {
  readonly key: string;
  readonly number: number;
  readonly bytes: number;
  readonly rows: number;
  readonly sha256: string;
}

/** The user and client whose jobs these are. */
type Owner = Pick<RequestContext, 'tenantId' | 'userId' | 'clientId'>;

/** The jobs that a caller can read: their own, of `clientId` or, where it is null, of every client. */
export interface JobReader extends Omit<Owner, 'clientId'> {
  readonly clientId: string | null;
  /** Jobs on these objects look like unknown ones. */
  readonly deniedObjects?: readonly string[];
}

const readableBy = ({ tenantId, userId, clientId, deniedObjects = [] }: JobReader, { bind }: Sql): string =>
  [
    `j.tenant_id = ${bind(tenantId, 'uuid')}`,
    `j.user_id = ${bind(userId, 'uuid')}`,
    ...(clientId === null ? [] : [`j.client_id = ${bind(clientId, 'text')}`]),
    ...(deniedObjects.length === 0 ? [] : [`j.object_api_name <> ALL (${bind(deniedObjects, 'text[]')})`]),
  ].join(' AND ');

const moment = (column: string): string => `to_json(j.${column}) #>> '{}'`;

const JOB = `j.job_id AS "jobId", j.user_id AS "userId", j.client_id AS "clientId", j.state, j.operation,
  j.object_api_name AS "objectApiName", j.request, j.context, j.total, j.processed, j.succeeded, j.failed, j.cursor, j.sha256,
  j.attempts, j.error, ${moment('created_at')} AS "createdAt", ${moment('started_at')} AS "startedAt",
  ${moment('finished_at')} AS "finishedAt", ${moment('expires_at')} AS "expiresAt"`;

/** A list of states for IN. */
export const statesSql = (...lists: readonly (readonly BulkState[])[]): string =>
  `(${lists
    .flat()
    .map((state) => `'${state}'`)
    .join(', ')})`;

/** States of jobs that a process has taken up. */
const AT_WORK = statesSql(BULK_STATES.works);

const EXPIRES = `now() + make_interval(days => ${LIMITS.bulk_retention_days})`;
const BLOB = 'b.blob_key AS key, b.number, b.bytes, b.rows, b.sha256';

/** Serializes transactions that count jobs or stored bytes of a tenant. */
export const lockTenantStatement = (tenantId: string): Statement => namedLockStatement(`bulk ${tenantId}`);

export function countJobsStatement({ tenantId, userId }: Owner): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT count(*) FILTER (WHERE finished_at IS NULL AND user_id = ${sql.bind(userId, 'uuid')})::int AS "openOfUser",
      count(*) FILTER (WHERE finished_at IS NULL)::int AS "openOfTenant", count(*)::int AS "ofTenant"
    FROM bulk.jobs WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}`,
  );
}

export function insertJobStatement(
  { tenantId, userId, clientId }: Owner,
  jobId: string,
  request: CreateBody,
  context: RequestContext | null,
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`INSERT INTO bulk.jobs AS j (tenant_id, job_id, user_id, client_id, state, operation, object_api_name, request, context, queued_at, expires_at)
    VALUES (${bind(tenantId, 'uuid')}, ${bind(jobId, 'uuid')}, ${bind(userId, 'uuid')}, ${bind(clientId, 'text')},
      ${bind(context ? 'QUEUED' : 'OPEN', 'text')}, ${bind(request.operation, 'text')}, ${bind(request.objectApiName, 'text')},
      ${bind(JSON.stringify(request), 'jsonb')}, ${bind(context && JSON.stringify(context), 'jsonb')}, ${context ? 'now()' : 'NULL'}, ${EXPIRES})
    RETURNING ${JOB}`);
}

/** A job that the caller can read. `locked`: held until the transaction ends. */
export function jobStatement(reader: JobReader, jobId: string, locked = false): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${JOB} FROM bulk.jobs j
    WHERE ${readableBy(reader, sql)} AND j.job_id = ${sql.bind(jobId, 'uuid')} ${locked ? 'FOR NO KEY UPDATE' : ''}`);
}

/** Newest first. */
export function jobsStatement(
  reader: JobReader,
  { state, before, take }: { readonly state: BulkState | null; readonly before: string | null; readonly take: number },
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`SELECT ${JOB} FROM bulk.jobs j
    WHERE ${readableBy(reader, sql)}
      ${state === null ? '' : `AND j.state = ${bind(state, 'text')}`}
      ${before === null ? '' : `AND j.job_id < ${bind(before, 'uuid')}`}
    ORDER BY j.job_id DESC LIMIT ${bind(take, 'int')}`);
}

/** Changes the state of a job. `started`: the rows of its parts, and the context in which it will run. */
export function setStateStatement(
  tenantId: string,
  jobId: string,
  state: BulkState,
  started: { readonly total: number; readonly context: RequestContext } | null = null,
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  const start = started
    ? `, total = ${bind(started.total, 'bigint')}, context = ${bind(JSON.stringify(started.context), 'jsonb')}, queued_at = now()`
    : '';
  const end = state === 'CANCELED' ? `, finished_at = now(), expires_at = ${EXPIRES}` : '';
  return sql.statement(`UPDATE bulk.jobs j SET state = ${bind(state, 'text')} ${start} ${end}
    WHERE j.tenant_id = ${bind(tenantId, 'uuid')} AND j.job_id = ${bind(jobId, 'uuid')} RETURNING ${JOB}`);
}

/** Deletes a job with its results, and leaves its blobs to the sweep. */
export function deleteJobStatement(tenantId: string, jobId: string): Statement {
  const sql = new Sql();
  const where = `tenant_id = ${sql.bind(tenantId, 'uuid')} AND job_id = ${sql.bind(jobId, 'uuid')}`;
  return sql.statement(`WITH unused AS (UPDATE bulk.blobs SET kind = 'garbage' WHERE ${where} AND kind <> 'receiving')
    DELETE FROM bulk.jobs WHERE ${where}`);
}

/** Takes a job up. Answers no row when it has ended or bulk_processing_max jobs of the tenant are at work. Needs lockTenantStatement. */
export function takeUpStatement(tenantId: string, jobId: string): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(`UPDATE bulk.jobs j SET state = CASE j.state WHEN 'QUEUED' THEN 'PROCESSING' ELSE j.state END,
      attempts = j.attempts + 1, started_at = coalesce(j.started_at, now())
    WHERE j.tenant_id = ${tenant} AND j.job_id = ${sql.bind(jobId, 'uuid')}
      AND (j.state IN ${AT_WORK} OR j.state = 'QUEUED' AND (SELECT count(*) FROM bulk.jobs o
        WHERE o.tenant_id = ${tenant} AND o.state IN ${AT_WORK} AND o.finished_at IS NULL) < ${LIMITS.bulk_processing_max})
    RETURNING ${JOB}`);
}

export function stateStatement(tenantId: string, jobId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT state FROM bulk.jobs
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND job_id = ${sql.bind(jobId, 'uuid')}`);
}

/** Progress of a job by one chunk. */
export interface Progress {
  /** Rows processed before it. If the job has another number by now, another process has taken it over. */
  readonly from: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cursor?: string | null;
  /** The job ends with this chunk. */
  readonly ends?: {
    readonly state: 'COMPLETED' | 'FAILED' | 'CANCELED';
    readonly error?: BulkFailure;
    readonly sha256?: string;
  };
}

/** Stores the progress. Answers no row when another process got further or the job is gone. */
export function progressStatement(tenantId: string, jobId: string, progress: Progress): Statement {
  const { from, succeeded, failed, cursor, ends } = progress;
  const sql = new Sql();
  const { bind } = sql;
  const done = `j.processed + ${bind(succeeded + failed, 'bigint')}`;
  const next = `CASE WHEN j.state = 'CANCELING' THEN 'CANCELED' ELSE ${bind(ends?.state ?? 'PROCESSING', 'text')} END`;
  return sql.statement(`UPDATE bulk.jobs j SET processed = ${done}, succeeded = j.succeeded + ${bind(succeeded, 'bigint')},
      failed = j.failed + ${bind(failed, 'bigint')}, state = ${next},
      attempts = CASE WHEN ${bind(succeeded + failed > 0, 'boolean')} THEN 0 ELSE j.attempts END,
      total = CASE WHEN ${next} = 'COMPLETED' THEN coalesce(j.total, ${done}) ELSE j.total END,
      error = CASE WHEN ${next} = 'FAILED' THEN ${bind(ends?.error ? JSON.stringify(ends.error) : null, 'jsonb')} END,
      ${cursor === undefined ? '' : `cursor = ${bind(cursor, 'text')},`}
      sha256 = ${bind(ends?.sha256 ?? null, 'text')},
      finished_at = CASE WHEN ${next} <> 'PROCESSING' THEN now() END,
      expires_at = CASE WHEN ${next} <> 'PROCESSING' THEN ${EXPIRES} ELSE j.expires_at END
    WHERE j.tenant_id = ${bind(tenantId, 'uuid')} AND j.job_id = ${bind(jobId, 'uuid')}
      AND j.state IN ${AT_WORK} AND j.processed = ${bind(from, 'bigint')} RETURNING ${JOB}`);
}

export function blobsStatement(tenantId: string, jobId: string, kind: 'part' | 'segment'): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${BLOB} FROM bulk.blobs b
    WHERE b.tenant_id = ${sql.bind(tenantId, 'uuid')} AND b.job_id = ${sql.bind(jobId, 'uuid')} AND b.kind = ${sql.bind(kind, 'text')}
    ORDER BY b.number`);
}

export interface Stored {
  readonly ofUser: number;
  readonly ofTenant: number;
  readonly ofJob: number;
}

export function storedStatement({ tenantId, userId }: Owner, jobId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT coalesce(sum(bytes) FILTER (WHERE user_id = ${sql.bind(userId, 'uuid')}), 0)::bigint AS "ofUser",
      coalesce(sum(bytes), 0)::bigint AS "ofTenant",
      coalesce(sum(bytes) FILTER (WHERE job_id = ${sql.bind(jobId, 'uuid')} AND kind IN ('part', 'segment')), 0)::bigint AS "ofJob"
    FROM bulk.blobs WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}`);
}

/** Notes a blob before its key is handed out. */
export function announceBlobStatement(
  { tenantId, userId }: Owner,
  {
    jobId,
    key,
    number,
    bytes,
  }: { readonly jobId: string; readonly key: string; readonly number: number; readonly bytes: number },
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`INSERT INTO bulk.blobs (tenant_id, blob_key, job_id, user_id, kind, number, bytes)
    VALUES (${bind(tenantId, 'uuid')}, ${bind(key, 'text')}, ${bind(jobId, 'uuid')}, ${bind(userId, 'uuid')}, 'receiving',
      ${bind(number, 'int')}, ${bind(bytes, 'bigint')})`);
}

/** Makes an announced blob a part or segment. Answers no row when it was dropped meanwhile. */
export function keepBlobStatement(
  tenantId: string,
  {
    jobId,
    key,
    number,
    bytes,
    rows,
    sha256,
    kind,
  }: BlobRow & { readonly jobId: string; readonly kind: 'part' | 'segment' },
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`UPDATE bulk.blobs SET kind = ${bind(kind, 'text')}, bytes = ${bind(bytes, 'bigint')}, rows = ${bind(rows, 'bigint')},
      sha256 = ${bind(sha256, 'text')}
    WHERE tenant_id = ${bind(tenantId, 'uuid')} AND blob_key = ${bind(key, 'text')} AND job_id = ${bind(jobId, 'uuid')}
      AND number = ${bind(number, 'int')} AND kind = 'receiving' RETURNING blob_key`);
}

export function replaceBlobStatement(tenantId: string, jobId: string, number: number): Statement {
  const sql = new Sql();
  return sql.statement(`UPDATE bulk.blobs SET kind = 'garbage' WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND job_id = ${sql.bind(jobId, 'uuid')} AND number = ${sql.bind(number, 'int')} AND kind IN ('part', 'segment')`);
}

/** Leaves a blob that did not arrive, or is not needed, to the sweep. */
export function dropBlobStatement(tenantId: string, key: string): Statement {
  const sql = new Sql();
  return sql.statement(`UPDATE bulk.blobs SET kind = 'garbage' WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND blob_key = ${sql.bind(key, 'text')} AND kind = 'receiving'`);
}

export function insertResultsStatement(
  tenantId: string,
  jobId: string,
  chunk: { readonly firstRow: number; readonly succeeded: number; readonly failed: number; readonly rows: string },
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`INSERT INTO bulk.results (tenant_id, job_id, first_row, succeeded, failed, rows)
    VALUES (${bind(tenantId, 'uuid')}, ${bind(jobId, 'uuid')}, ${bind(chunk.firstRow, 'bigint')}, ${bind(chunk.succeeded, 'int')},
      ${bind(chunk.failed, 'int')}, ${bind(chunk.rows, 'json')})`);
}

/** Outcomes of processed rows behind `after`, in the order of the rows. */
export function resultsStatement(
  tenantId: string,
  jobId: string,
  {
    outcome,
    after,
    take,
  }: { readonly outcome: 'succeeded' | 'failed' | null; readonly after: number; readonly take: number },
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`SELECT r.value AS result
    FROM bulk.results c, json_array_elements(c.rows) WITH ORDINALITY r (value, place)
    WHERE c.tenant_id = ${bind(tenantId, 'uuid')} AND c.job_id = ${bind(jobId, 'uuid')}
      AND c.first_row > ${bind(after, 'bigint')} - ${LIMITS.rows_max} AND (r.value ->> 'rowNumber')::bigint > ${bind(after, 'bigint')}
      ${outcome === null ? '' : `AND c.${outcome} > 0 AND r.value ->> 'outcome' = ${bind(outcome, 'text')}`}
    ORDER BY c.first_row, r.place LIMIT ${bind(take, 'int')}`);
}

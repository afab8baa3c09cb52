/** Jobs as they are now: a user and client see those that they have created, an assistant all those of its user. */
import { type BulkActions, CARRIED_OUT } from '../../../contracts/bulk.ts';
import type { Handler } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { listPage } from '../../../lib/query/list-page.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import type { BulkDeps } from '../deps.ts';
import { type JobReader, type JobRow, jobStatement, jobsStatement } from './job.sql.ts';
import { presentJob } from './present.ts';

export const getJob: Handler<'bulk.jobs.get', BulkDeps> = async (deps, request, call) => ({
  body: presentJob(await findJob(deps, readerOf(request), call.path.jobId)),
});

export const listJobs: Handler<'bulk.jobs.list', BulkDeps> = (deps, request, { query }) => {
  const { state = null, ...paging } = query;
  const list = { name: 'bulk.jobs', parameters: { state } };
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  return listPage(list, parseListQuery(paging, 'query'), seal, {
    rows: ([before = null], take) =>
      deps.database.shared('bulk', request.tenantId, (tx) =>
        tx.all<JobRow>(jobsStatement(readerOf(request), { state, before, take })),
      ),
    keys: ({ jobId }) => [jobId],
    present: (page) => page.map(presentJob),
  });
};

/** No job is begun through the endpoint for assistants: a job there is one of another client. */
const readerOf = ({ tenantId, userId, clientId, channel, deniedObjects = [] }: RequestContext): JobReader =>
  channel === 'mcp' ? { tenantId, userId, clientId: null, deniedObjects } : { tenantId, userId, clientId };

/** For agent, whose policies judge calls about a job as what it carries out. */
export async function carriedOut(
  deps: BulkDeps,
  { jobId, ...owner }: BulkActions['bulk.jobs.carried']['params'],
): Promise<BulkActions['bulk.jobs.carried']['result']> {
  const row = await readJob(deps, owner, jobId);
  return row && { operationId: CARRIED_OUT[row.operation].operationId, objectApiName: row.objectApiName };
}

/** The job, or 404. */
export async function findJob(deps: BulkDeps, owner: JobReader, jobId: string): Promise<JobRow> {
  const row = await readJob(deps, owner, jobId);
  if (!row) throw jobNotFound();
  return row;
}

const readJob = async ({ database }: BulkDeps, owner: JobReader, jobId: string): Promise<JobRow | null> =>
  isUuid(jobId) ? database.shared('bulk', owner.tenantId, (tx) => tx.first<JobRow>(jobStatement(owner, jobId))) : null;

export const jobNotFound = (): PlatformError =>
  new PlatformError('JOB_NOT_FOUND', 'The job does not exist, or was created by another user or client.');

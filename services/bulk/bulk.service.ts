import type { ServiceSchema } from 'moleculer';
import type { BulkActions } from '../../contracts/bulk.ts';
import { type ActionHandlers, answering, call, emit } from '../../contracts/call.ts';
import { suspensionOf } from '../../contracts/tenants.ts';
import { LIMITS } from '../../lib/limits.ts';
import { orEarlier } from '../../mixins/mutation/earlier.ts';
import { NOTICES, requestNotice } from '../../mixins/notices.ts';
import type { Platform } from '../../mixins/platform.ts';
import { sealingKeys } from '../../mixins/sealing-keys.ts';
import type { BulkDeps } from './deps.ts';
import { cancelJob, deleteJob, startJob } from './jobs/change.ts';
import { createJob } from './jobs/create.ts';
import { carriedOut, getJob, listJobs } from './jobs/read.ts';
import { newNumbers, registerNumbers } from './numbers.ts';
import { uploadPart } from './parts/upload.ts';
import { BULK_JOBS } from './queue.ts';
import { listResults } from './results/results.ts';
import { eraseContents, sweepPeriodically } from './sweep.ts';
import { workOn } from './work/work.ts';

/** The Moleculer schema of bulk: it declares and delegates. */
export default async function bulkService(platform: Platform): Promise<ServiceSchema> {
  const { database, blobs, broker, jobs } = platform;
  const eventsWritten = ({ tenantId }: { readonly tenantId: string }): void =>
    emit(broker, 'events.log.written', { tenantIds: [tenantId] });
  const deps: BulkDeps = {
    database,
    blobs,
    sealingKeys: await sealingKeys(platform, 'cursors of bulk lists'),
    numbers: newNumbers(),
    notify: (tx, context, notice) => requestNotice(tx, jobs, context, notice),
    enqueue: async (tx, job) => void (await jobs.enqueue(BULK_JOBS, job, { tx, key: job.jobId })),
    describe: (asker, objectApiName) => call(broker, 'data.rows.describe', { asker, objectApiName }),
    read: async (asker, objectApiName, query) =>
      (await call(broker, 'data.rows.read', { asker, objectApiName, query: { ...query } })).page,
    export: (segment) => call(broker, 'data.rows.export', segment, { timeout: LIMITS.bulk_chunk_ms }),
    write: async (request, rows) => {
      const written = await call(broker, 'data.rows.write', rows, { meta: { request }, timeout: LIMITS.bulk_chunk_ms });
      eventsWritten(request);
      return written;
    },
    settle: (request, key) =>
      call(broker, 'data.rows.settle', { key }, { meta: { request }, timeout: LIMITS.bulk_chunk_ms }),
    isLiving: async ({ tenantId, grantId, clientId, userId }) =>
      (await call(broker, 'data.grants.confirm', { grants: [{ tenantId, grantId, clientId, userId }] })).length > 0,
    isRunOver: async (tenantId, runId) => {
      const status = (await call(broker, 'agent.runs.state', { tenantId, runId }))?.status ?? 'EXPIRED';
      return status === 'CANCELED' || status === 'EXPIRED';
    },
    isSuspended: suspensionOf(broker),
  };
  const answer = answering(deps);

  return {
    name: 'bulk',
    actions: {
      'jobs.create': answer(orEarlier(createJob)),
      'jobs.list': answer(listJobs),
      'jobs.get': answer(getJob),
      'parts.upload': answer(uploadPart),
      'jobs.start': answer(orEarlier(startJob)),
      'jobs.cancel': answer(cancelJob),
      'results.list': answer(listResults),
      'jobs.delete': answer(deleteJob),
      'jobs.carried': (ctx) => carriedOut(deps, ctx.params),
      'tenants.erase': ({ params: { tenantId } }) => eraseContents(deps, tenantId),
    } satisfies ActionHandlers<'bulk', BulkActions>,
    created() {
      registerNumbers(platform.metrics, database, deps.numbers);
    },
    async started() {
      await jobs.declare(NOTICES);
      await jobs.work(BULK_JOBS, async ({ payload, signal }) => {
        await workOn(deps, payload, signal);
        eventsWritten(payload);
      });
      await sweepPeriodically(platform, deps);
    },
  };
}

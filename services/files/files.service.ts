import type { ServiceSchema } from 'moleculer';
import { type ActionHandlers, answering, call } from '../../contracts/call.ts';
import type { FilesActions } from '../../contracts/files.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { LIMITS } from '../../lib/limits.ts';
import { FairQueue } from '../../mixins/fair-queue.ts';
import { orEarlier } from '../../mixins/mutation/earlier.ts';
import type { Platform } from '../../mixins/platform.ts';
import { sealingKeys } from '../../mixins/sealing-keys.ts';
import type { FilesDeps } from './deps.ts';
import { usageSql } from './files.sql.ts';
import { createFile, deleteFile, getContent, getFile, listFiles, updateFile } from './items.ts';
import { registerNumbers } from './numbers.ts';
import { SCANS, scanContent } from './scan.ts';
import { eraseContents, sweepPeriodically } from './sweep.ts';
import { appendChunk, completeUpload, createUpload, deleteUpload, headUpload } from './uploads.ts';

/** Complete uploads that a process reads at the same time, and that wait for their turn. */
const READING = { places: 2, waitingPerHolder: LIMITS.file_uploads_of_tenant_max, waiting: 2_000 };

const stillWaiting = (): PlatformError =>
  new PlatformError('SERVICE_UNAVAILABLE', 'Too many uploads are being read. Send the same request again.', {
    retryAfterSeconds: 5,
  });

/** The Moleculer schema of files: it declares and delegates. */
export default async function filesService(platform: Platform): Promise<ServiceSchema> {
  const { database, blobs, jobs, broker, config } = platform;
  const deps: FilesDeps = {
    database,
    blobs,
    jobs,
    scans: config.clamd !== null,
    sealingKeys: await sealingKeys(platform, 'cursors of file lists'),
    digests: new Map(),
    reading: new FairQueue(READING, () => stillWaiting()),
    seen: (question) => call(broker, 'data.files.seen', question),
    ofRecord: (question) => call(broker, 'data.files.ofRecord', question),
    referenced: (question) => call(broker, 'data.files.referenced', question),
    checkAccess: (question) => call(broker, 'data.access.check', question),
    describe: (question) => call(broker, 'data.rows.describe', question),
    readRows: (question) => call(broker, 'data.rows.read', question),
    writeRows: (request, rows) => call(broker, 'data.rows.write', rows, { meta: { request } }),
  };
  const answer = answering(deps);

  return {
    name: 'files',
    actions: {
      'items.create': answer(createFile),
      'items.list': answer(listFiles),
      'items.get': answer(getFile),
      'items.update': answer(orEarlier(updateFile)),
      'items.delete': answer(orEarlier(deleteFile)),
      'content.get': answer(getContent),
      'uploads.create': answer(orEarlier(createUpload)),
      'uploads.head': answer(headUpload),
      'uploads.append': answer(appendChunk),
      'uploads.complete': answer(completeUpload),
      'uploads.delete': answer(deleteUpload),
      'usage.get': async ({ params: { tenantId } }) => {
        const used = await database.shared('files', tenantId, (tx) => tx.first<{ bytes: number }>(usageSql(tenantId)));
        return { usedBytes: used?.bytes ?? 0, limitBytes: LIMITS.files_of_tenant_max_bytes };
      },
      'tenants.erase': ({ params: { tenantId } }) => eraseContents(deps, tenantId),
    } satisfies ActionHandlers<'files', FilesActions>,
    created() {
      registerNumbers(platform.metrics, database);
    },
    async started() {
      await jobs.work(SCANS, ({ payload }) => scanContent(deps, config.clamd, payload));
      await sweepPeriodically(platform, deps);
    },
  };
}

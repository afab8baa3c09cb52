/** Dependencies of this service's operations. */
import type { RowsToWrite, RowsWritten } from '../../contracts/data/row-writes.ts';
import type { DataActions } from '../../contracts/data.ts';
import type { RequestContext } from '../../lib/context.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Blobs } from '../../mixins/blobs/blobs.ts';
import type { Database } from '../../mixins/database/database.ts';
import type { FairQueue } from '../../mixins/fair-queue.ts';
import type { Jobs } from '../../mixins/jobs/jobs.ts';

type Asked<K extends keyof DataActions> = (question: DataActions[K]['params']) => Promise<DataActions[K]['result']>;

export interface FilesDeps {
  readonly database: Database;
  readonly blobs: Blobs;
  readonly jobs: Jobs;
  /** Contents are scanned before anybody can read them. */
  readonly scans: boolean;
  readonly sealingKeys: SealingKeys;
  /** SHA-256 of complete uploads, by id, while they are read for it. */
  readonly digests: Map<string, Promise<string>>;
  /** Places for reading them: one content of gigabytes costs more than anything else that a request can ask for. */
  readonly reading: FairQueue;
  readonly seen: Asked<'data.files.seen'>;
  readonly ofRecord: Asked<'data.files.ofRecord'>;
  readonly referenced: Asked<'data.files.referenced'>;
  readonly checkAccess: Asked<'data.access.check'>;
  readonly describe: Asked<'data.rows.describe'>;
  readonly readRows: Asked<'data.rows.read'>;
  /** Writes rows as the user of the request, once for each key. */
  readonly writeRows: (request: RequestContext, rows: RowsToWrite & { readonly key: string }) => Promise<RowsWritten>;
}

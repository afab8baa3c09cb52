/** Dependencies of this service's operations and jobs. */
import type { ObjectColumns, SegmentToWrite, SegmentWritten } from '../../contracts/data/columns.ts';
import type { RowsToWrite, RowsWritten } from '../../contracts/data/row-writes.ts';
import type { Asker, RequestContext } from '../../lib/context.ts';
import type { Notice } from '../../lib/notice.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Blobs } from '../../mixins/blobs/blobs.ts';
import type { Database, Tx } from '../../mixins/database/database.ts';
import type { Numbers } from './numbers.ts';

/** Names a job in the queue. */
export interface JobName {
  readonly tenantId: string;
  readonly jobId: string;
}

export interface BulkDeps {
  readonly database: Database;
  readonly blobs: Blobs;
  readonly sealingKeys: SealingKeys;
  readonly numbers: Numbers;
  /** Queues the job with the transaction. */
  readonly enqueue: (tx: Tx, job: JobName) => Promise<void>;
  /** Asks for a notification with the transaction, which acts as the tenant's role. */
  readonly notify: (tx: Tx, context: RequestContext, notice: Notice) => Promise<void>;
  /** The object as the user of the request sees it at this moment. */
  readonly describe: (asker: Asker, objectApiName: string) => Promise<ObjectColumns>;
  /** A page of the records that the user sees. */
  readonly read: (asker: Asker, objectApiName: string, query: object) => Promise<Buffer>;
  /** Stores a segment of a file with records that the user sees. */
  readonly export: (segment: SegmentToWrite) => Promise<SegmentWritten>;
  /** Writes rows as the user of the context. */
  readonly write: (context: RequestContext, rows: RowsToWrite & { readonly key: string }) => Promise<RowsWritten>;
  /** The outcome of a write under a key; null: nothing was written, and nothing will be. */
  readonly settle: (context: RequestContext, key: string) => Promise<RowsWritten | null>;
  /** The connection of the user lives, and its client may be used. */
  readonly isLiving: (context: RequestContext) => Promise<boolean>;
  /** The run of an agent was canceled, has expired, or is not known any more. */
  readonly isRunOver: (tenantId: string, runId: string) => Promise<boolean>;
  readonly isSuspended: (tenantId: string) => Promise<boolean>;
}

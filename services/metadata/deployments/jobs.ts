/** The queue that wakes workers: pg-boss, fed in the transaction that inserts a deployment. */
import { PgBoss } from 'pg-boss';
import type { Database, Tx } from '../../../mixins/database/database.ts';

const QUEUE = 'metadata.deployments';
/** Seconds without a sign of life after which a job goes to another worker. */
const HEARTBEAT_SECONDS = 60;

interface Wake {
  readonly tenantId: string;
}

/** What a service may do with the queue in its own transactions: add a job. Processes that start together take turns. */
const GRANT_ENQUEUE = `SELECT pg_advisory_xact_lock(7164005);
  GRANT USAGE ON SCHEMA pgboss TO svc_metadata;
  GRANT SELECT ON pgboss.queue TO svc_metadata;
  GRANT SELECT, INSERT ON pgboss.job, pgboss.job_common TO svc_metadata`;

export class Jobs {
  readonly #database: Database;
  readonly #boss: PgBoss;
  #worker: string | undefined;

  constructor(database: Database, onError: (error: Error) => void) {
    this.#database = database;
    this.#boss = new PgBoss({
      connectionString: database.url,
      application_name: 'erp metadata jobs',
      max: 2,
      schema: 'pgboss',
      schedule: false,
      superviseIntervalSeconds: 30,
      monitorIntervalSeconds: 30,
    });
    this.#boss.on('error', onError);
  }

  /** `work` runs the open deployments of one tenant; when it throws, the job is tried again. */
  async start(work: (tenantId: string) => Promise<void>): Promise<void> {
    await this.#boss.start();
    await this.#boss.createQueue(QUEUE, {
      retryLimit: 20,
      retryDelay: 1,
      retryBackoff: true,
      retryDelayMax: 60,
      heartbeatSeconds: HEARTBEAT_SECONDS,
      expireInSeconds: 3_600,
      deleteAfterSeconds: 3_600,
    });
    await this.#database.transaction((tx) => tx.query(GRANT_ENQUEUE));
    this.#worker = await this.#boss.work<Wake>(
      QUEUE,
      { pollingIntervalSeconds: 2, localConcurrency: 2, batchSize: 1 },
      async ([job]) => {
        if (!job) return;
        // More may wait behind it; without this the next one waits for the poll.
        this.wake();
        await work(job.data.tenantId);
      },
    );
  }

  /** Enqueues in the transaction `tx`: there is a job exactly when there is a deployment. */
  async enqueue(tx: Tx, tenantId: string): Promise<void> {
    await this.#boss.send(
      QUEUE,
      { tenantId },
      { db: { executeSql: (text, values) => tx.query<never>(text, values ?? []) } },
    );
  }

  /** Another look at a tenant whose first deployment somebody else has. */
  async enqueueLater(tenantId: string, at: Date): Promise<void> {
    await this.#boss.send(QUEUE, { tenantId }, { startAfter: at, singletonKey: tenantId });
  }

  /** After the commit: this process looks at once instead of at its next poll. */
  wake(): void {
    if (this.#worker) this.#boss.notifyWorker(this.#worker);
  }

  async stop(): Promise<void> {
    await this.#boss.stop({ graceful: true, timeout: 8_000, close: true });
  }
}

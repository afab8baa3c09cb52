/** The statements about the epoch of a tenant. */
import type { Statement } from '../database/statement.ts';

export interface EpochRow {
  readonly epoch: string;
  /** The database that the epoch was made for. */
  readonly place: string;
  /** The database that answers; null: it is a replica. */
  readonly here: string | null;
  /** Offset added to a transaction's number in the columns `tx`. */
  readonly txOffset: string;
  /** The snapshot of the statement, in numbers of the server. */
  readonly serverSnapshot: string;
  /** The highest `tx` in the audit trail. */
  readonly lastTx: string;
}

/**
 * Columns of EpochRow, of `_epoch epoch`. The timeline is that of the log that is being written: the one of the last
 * checkpoint stays the same for minutes after a replica has taken over.
 */
export const epochColumns = (schema: string): string => `epoch.epoch, epoch.place,
      CASE WHEN NOT pg_is_in_recovery() THEN concat_ws('/',
        (SELECT system_identifier FROM pg_control_system()),
        (SELECT oid FROM pg_database WHERE datname = current_database()),
        epoch.tableoid, left(pg_walfile_name(pg_current_wal_lsn()), 8)) END AS here,
      epoch.tx_offset::text AS "txOffset", pg_current_snapshot()::text AS "serverSnapshot",
      coalesce((SELECT audit.tx::text FROM ${schema}._audit audit ORDER BY audit.tx DESC LIMIT 1), '2') AS "lastTx"`;

export const epochStatement = (schema: string): Statement => ({
  text: `SELECT ${epochColumns(schema)} FROM ${schema}._epoch epoch`,
});

/** Writers are not kept waiting for long behind one that takes its time. */
export const RENEWAL_LIMITS = "SET LOCAL lock_timeout = '500ms'";

export const renewEpochStatement = (schema: string, seen: string, place: string): Statement => ({
  text: `SELECT ${schema}._renew_epoch($1, $2) AS renewed`,
  values: [seen, place],
});

export interface RestoredRow extends EpochRow {
  /** The epoch was begun after the server was started. */
  readonly begunSinceStart: boolean;
  readonly lacksIndexes: boolean;
}

/** Every tenant has indexes for the search of its users. */
export const restoredStatement = (schema: string): Statement => ({
  text: `SELECT ${epochColumns(schema)}, epoch.begun_at > pg_postmaster_start_time() AS "begunSinceStart",
      NOT EXISTS (SELECT FROM pg_index WHERE indrelid = '${schema}."User"'::regclass AND indisvalid AND indexprs IS NOT NULL
        AND NOT indisunique) AS "lacksIndexes"
    FROM ${schema}._epoch epoch`,
});

/** The statements that check a tenant's audit rows and the history of its records against their chain. */
import type { Statement } from '../../../mixins/database/statement.ts';
import { type EpochRow, epochColumns } from '../../../mixins/epoch/epoch.sql.ts';
import { LINKED, LINKED_DIGEST, linkedSql } from './chain.sql.ts';

/** Links and rows that one statement reads. */
export const LINKS_PER_QUERY = 5_000;
export const ROWS_PER_QUERY = 20_000;

export interface HeadRow extends EpochRow {
  readonly position: number;
  readonly hash: string;
  readonly anchor: number;
  readonly anchorHash: string;
  /** All that this snapshot sees is sealed. */
  readonly sealedSnapshot: string | null;
  /** A link outside of the chain: before the first or after the last one that the head names. */
  readonly strayPosition: number | null;
  readonly strayAuditId: string | null;
}

export const headStatement = (schema: string): Statement => ({
  text: `SELECT head.position, encode(head.hash, 'hex') AS hash,
      head.anchor_position AS anchor, encode(head.anchor_hash, 'hex') AS "anchorHash",
      head.snapshot::text AS "sealedSnapshot", ${epochColumns(schema)},
      stray.position AS "strayPosition", stray.audit_id AS "strayAuditId"
    FROM ${schema}._audit_head head CROSS JOIN ${schema}._epoch epoch
    LEFT JOIN LATERAL (
      (SELECT position, audit_id FROM ${schema}._audit_chain WHERE position <= head.anchor_position
        ORDER BY position LIMIT 1)
      UNION ALL
      (SELECT position, audit_id FROM ${schema}._audit_chain WHERE position > head.position ORDER BY position LIMIT 1)
      LIMIT 1) stray ON true`,
});

interface ChainLink {
  readonly position: number;
  readonly auditId: string;
  readonly previousHash: string;
  readonly hash: string;
}

/** A link with the digest of its audit row and the time of it, in milliseconds since 1970; null: the row is missing. */
export type LinkRow = ChainLink &
  ({ readonly digest: Buffer; readonly at: number } | { readonly digest: null; readonly at: null });

export const linksStatement = (schema: string, after: number, upTo: number): Statement => ({
  text: `WITH ${linkedSql(schema, `position > $1 AND position <= $2 ORDER BY position LIMIT ${LINKS_PER_QUERY}`)}
    SELECT link.position, link.audit_id AS "auditId", encode(link.prev_hash, 'hex') AS "previousHash",
      encode(link.hash, 'hex') AS hash, ${LINKED_DIGEST} AS digest,
      (extract(epoch FROM audit.at) * 1000)::bigint AS at
    ${LINKED} ORDER BY link.position`,
  values: [after, upTo],
});

export interface RowsRow {
  readonly count: number;
  readonly lastId: string | null;
  /** Rows that are not in the chain. */
  readonly unsealed: number;
  /** The first of those that should be in the chain, because they were there when it was last extended. */
  readonly insertedId: string | null;
}

/** The audit rows after an id against the chain. `snapshot`: the chain was last extended with what this one sees. */
export const rowsStatement = (schema: string, afterId: string | null, snapshot: string | null): Statement => ({
  text: `SELECT count(*)::int AS count, max(audit.audit_id::text) AS "lastId",
      (count(*) FILTER (WHERE link.audit_id IS NULL))::int AS unsealed,
      min(audit.audit_id::text) FILTER (
        WHERE link.audit_id IS NULL AND pg_visible_in_snapshot(audit.tx, $2::pg_snapshot)) AS "insertedId"
    FROM (SELECT audit_id, tx FROM ${schema}._audit WHERE audit_id > $1 ORDER BY audit_id LIMIT ${ROWS_PER_QUERY}) audit
    LEFT JOIN LATERAL (
      SELECT chain.audit_id FROM ${schema}._audit_chain chain
      WHERE chain.audit_id = audit.audit_id OFFSET 0) link ON true`,
  values: [afterId, snapshot],
});

export interface HistoryRow {
  readonly count: number;
  readonly lastRecordId: string | null;
  readonly lastChangeId: string | null;
  /** The record of the first row without an audit row of the same change. */
  readonly insertedOf: string | null;
}

/** The history rows after one against the audit rows of the same records. */
export const historyStatement = (schema: string, after: { recordId: string; changeId: string }): Statement => ({
  text: `WITH history AS MATERIALIZED (
      SELECT record_id, change_id, record_version, request_id FROM ${schema}._history
      WHERE (record_id, change_id) > ($1, $2) ORDER BY record_id, change_id LIMIT ${ROWS_PER_QUERY}),
    audit AS MATERIALIZED (
      SELECT audit.record_id, audit.record_version, audit.request_id
      FROM (SELECT DISTINCT record_id FROM history) changed CROSS JOIN LATERAL (
        SELECT * FROM ${schema}._audit audit
        WHERE audit.record_id = changed.record_id AND audit.record_version IS NOT NULL OFFSET 0) audit),
    last AS (SELECT record_id, change_id FROM history ORDER BY record_id DESC, change_id DESC LIMIT 1)
    SELECT (SELECT count(*)::int FROM history) AS count, last.record_id AS "lastRecordId",
      last.change_id AS "lastChangeId", (
        SELECT history.record_id FROM history
        WHERE (record_id, record_version, request_id) NOT IN (SELECT record_id, record_version, request_id FROM audit)
        LIMIT 1) AS "insertedOf"
    FROM (VALUES (1)) one LEFT JOIN last ON true`,
  values: [after.recordId, after.changeId],
});

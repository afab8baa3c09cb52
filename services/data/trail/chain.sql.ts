/** The statements that extend a tenant's chain of audit rows, and those that remove its expired beginning. */
import { LIMITS } from '../../../lib/limits.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { type EpochRow, epochColumns } from '../../../mixins/epoch/epoch.sql.ts';

/** Rows sealed or removed in one transaction. */
export const BATCH_ROWS = 2_000;

const DIGESTED_COLUMNS = [
  'user_id',
  'client_id',
  'agent_run_id',
  'channel',
  'operation_id',
  'outcome',
  'code',
  'request_id',
  'idempotency_key',
  'object',
  'record_id',
  'kind',
  'record_version',
  'changes',
  'ip',
];

/** Names the text that a link seals, so that a later version can seal another one. */
const FORM = 1;

const timeSql = (column: string): string => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/**
 * SQL of the digest of the row `audit`: SHA-256 over its canonical text, a JSON array as PostgreSQL prints jsonb. The
 * first element names the form.
 */
const digestSql = (form: string): string =>
  `sha256(convert_to(jsonb_build_array('audit-' || ${form}, audit.audit_id, ${timeSql('audit.at')},
    ${DIGESTED_COLUMNS.map((column) => `audit.${column}`).join(', ')}, coalesce(history.sealed, '[]'))::text, 'UTF8'))`;

/**
 * SQL: the history rows of the changes that the audit rows of the relation `audited` are about, one row for each change.
 * Rows of a record are read once for all of its changes.
 */
const sealedHistorySql = (schema: string, audited: string): string =>
  `SELECT history.record_id, history.record_version, history.request_id,
      jsonb_agg(jsonb_build_array(history.change_id, ${timeSql('history.at')}, history.object, history.operation,
        history.user_id, history.client_id, history.agent_run_id, history.changes) ORDER BY history.change_id) AS sealed
    FROM (SELECT record_id, min(record_version) AS first, max(record_version) AS last FROM ${audited}
      WHERE record_version IS NOT NULL GROUP BY record_id) changed
    CROSS JOIN LATERAL (
      SELECT * FROM ${schema}._history history
      WHERE history.record_id = changed.record_id AND history.record_version BETWEEN changed.first AND changed.last
      OFFSET 0) history
    GROUP BY history.record_id, history.record_version, history.request_id`;

/** SQL: an audit row and history rows are of the same change. */
const SAME_CHANGE = `history.record_id = audit.record_id AND history.record_version = audit.record_version
  AND history.request_id = audit.request_id`;

/**
 * SQL of CTEs: some links, their audit rows and the history of the same changes; `LINKED` joins them. Each row is looked
 * up by its id: the tables are never read whole, whatever the planner assumes about them.
 */
export const linkedSql = (schema: string, which: string): string =>
  `link AS MATERIALIZED (SELECT * FROM ${schema}._audit_chain WHERE ${which}),
    audit AS MATERIALIZED (
      SELECT audit.* FROM link CROSS JOIN LATERAL (
        SELECT * FROM ${schema}._audit audit WHERE audit.audit_id = link.audit_id OFFSET 0) audit),
    history AS MATERIALIZED (${sealedHistorySql(schema, 'audit')})`;

export const LINKED = `FROM link LEFT JOIN audit ON audit.audit_id = link.audit_id LEFT JOIN history ON ${SAME_CHANGE}`;

/** Digest of the row `audit` in the form of its link; null: the row is missing. */
export const LINKED_DIGEST = `CASE WHEN audit.audit_id IS NOT NULL THEN ${digestSql('link.form')} END`;

export interface SealingStateRow extends EpochRow {
  /** All that this snapshot sees is sealed; null before the first run in a copy of the database. */
  readonly sealedSnapshot: string | null;
  /** The epoch that began with the last such copy. */
  readonly sealedIn: string | null;
}

export const sealingStateStatement = (schema: string): Statement => ({
  text: `SELECT ${epochColumns(schema)}, head.snapshot::text AS "sealedSnapshot", head.server AS "sealedIn"
    FROM ${schema}._audit_head head CROSS JOIN ${schema}._epoch epoch`,
});

/** The end of the chain. */
export interface ChainEnd {
  readonly position: number;
  readonly hash: Buffer;
}

export const lockHeadStatement = (schema: string): Statement => ({
  text: `SELECT position, hash FROM ${schema}._audit_head FOR UPDATE`,
});

export interface UnsealedRow {
  readonly tx: string;
  readonly auditId: string;
  /** Null: the row is in the chain. */
  readonly digest: Buffer | null;
}

/**
 * The next rows, in the order of transactions, which is about that of time. `since`: only those that a snapshot did not
 * see; null: all of them, in the order of their ids, because what was written to a restored database before that was
 * noticed may have numbers of transactions that stand for others. Whatever
 * the planner knows about the tables, only these rows are digested and looked up in the chain.
 */
export function unsealedRowsStatement(
  schema: string,
  since: string | null,
  after: Pick<UnsealedRow, 'tx' | 'auditId'> | null,
): Statement {
  const conditions: string[] = [];
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const order = since === null ? 'audit.audit_id' : 'audit.tx, audit.audit_id';
  if (since !== null) {
    const snapshot = bind(since);
    conditions.push(
      `audit.tx >= pg_snapshot_xmin(${snapshot}::pg_snapshot)`,
      `NOT pg_visible_in_snapshot(audit.tx, ${snapshot}::pg_snapshot)`,
    );
  }
  if (after)
    conditions.push(
      since === null
        ? `audit.audit_id > ${bind(after.auditId)}::uuid`
        : `(audit.tx, audit.audit_id) > (${bind(after.tx)}::xid8, ${bind(after.auditId)}::uuid)`,
    );
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';
  return {
    text: `WITH audited AS MATERIALIZED (
        SELECT audit.*, link.position FROM (
          SELECT * FROM ${schema}._audit audit ${where} ORDER BY ${order} LIMIT ${BATCH_ROWS}) audit
        LEFT JOIN LATERAL (
          SELECT chain.position FROM ${schema}._audit_chain chain
          WHERE chain.audit_id = audit.audit_id OFFSET 0) link ON true),
      unsealed AS (SELECT * FROM audited WHERE position IS NULL),
      history AS MATERIALIZED (${sealedHistorySql(schema, 'unsealed')})
      SELECT audit.tx::text AS tx, audit.audit_id AS "auditId",
        CASE WHEN audit.position IS NULL THEN ${digestSql(String(FORM))} END AS digest
      FROM audited audit LEFT JOIN history ON ${SAME_CHANGE}
      ORDER BY ${order}`,
    values,
  };
}

export interface Link {
  readonly position: number;
  readonly auditId: string;
  readonly previousHash: Buffer;
  readonly hash: Buffer;
}

export const insertLinksStatement = (schema: string, links: readonly Link[]): Statement => ({
  text: `INSERT INTO ${schema}._audit_chain (position, audit_id, prev_hash, hash, form)
    SELECT *, ${FORM} FROM unnest($1::bigint[], $2::uuid[], $3::bytea[], $4::bytea[])`,
  values: [
    links.map((link) => link.position),
    links.map((link) => link.auditId),
    links.map((link) => link.previousHash),
    links.map((link) => link.hash),
  ],
});

/** `sealed`: everything that this snapshot sees is in the chain, unless the database has turned out to be a copy since. */
export const moveHeadStatement = (
  schema: string,
  { position, hash }: ChainEnd,
  sealed: { readonly snapshot: string; readonly sealedIn: string | null } | null,
): Statement =>
  sealed === null
    ? { text: `UPDATE ${schema}._audit_head SET position = $1, hash = $2`, values: [position, hash] }
    : {
        text: `UPDATE ${schema}._audit_head SET position = $1, hash = $2,
          snapshot = CASE WHEN server IS NOT DISTINCT FROM $4 THEN $3::pg_snapshot END`,
        values: [position, hash, sealed.snapshot, sealed.sealedIn],
      };

export const lockAnchorStatement = (schema: string): Statement => ({
  text: `SELECT anchor_position AS position, anchor_hash AS hash FROM ${schema}._audit_head FOR UPDATE`,
});

export interface OldestLinkRow {
  readonly position: number;
  readonly previousHash: Buffer;
  readonly hash: Buffer;
  /** Of its audit row; null: the row is missing. */
  readonly digest: Buffer | null;
  readonly expired: boolean | null;
}

/** SQL: the audit row has been kept for as long as the tenant's settings say. */
const expiredSql = (schema: string, at: string): string =>
  `${at} < now() - make_interval(days => (SELECT greatest(audit_days, ${LIMITS.audit_retention_days}) FROM ${schema}._state))`;

/** True when the oldest row of the chain has expired; no row when the chain is empty. */
export const isDueStatement = (schema: string): Statement => ({
  text: `SELECT ${expiredSql(schema, 'audit.at')} AS "isDue"
    FROM ${schema}._audit_chain link JOIN ${schema}._audit audit ON audit.audit_id = link.audit_id
    WHERE link.position = (SELECT anchor_position + 1 FROM ${schema}._audit_head)`,
});

export const oldestLinksStatement = (schema: string, anchor: number): Statement => ({
  text: `WITH ${linkedSql(schema, `position > $1 ORDER BY position LIMIT ${BATCH_ROWS}`)}
    SELECT link.position, link.prev_hash AS "previousHash", link.hash, ${LINKED_DIGEST} AS digest,
      ${expiredSql(schema, 'audit.at')} AS expired
    ${LINKED}
    ORDER BY link.position`,
  values: [anchor],
});

/** Removes the audit rows up to a position and their links, and makes it the anchor. */
export const removeUpToStatement = (schema: string, { position }: ChainEnd): Statement => ({
  text: `SELECT ${schema}._remove_audit($1)`,
  values: [position],
});

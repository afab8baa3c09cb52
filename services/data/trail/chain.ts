/**
 * The chain over a tenant's audit rows: each link is a hash over the link before it and over one row, so that nobody can
 * change, remove, insert or reorder rows without breaking it. A background job adds links behind the writers, who never
 * wait for it. Source: docs/reference/audit.md.
 */
import { createHash } from 'node:crypto';
import { LIMITS } from '../../../config/limits.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { schemaOf } from '../sql.ts';

/** Rows sealed, checked or removed in one go. */
const BATCH = 2_000;

/**
 * SQL of the digest of an audit row: SHA-256 over its canonical text, a JSON array as PostgreSQL prints jsonb. The first
 * element names the form, should it ever change.
 */
export const digestSql = (row: string): string =>
  `sha256(convert_to(jsonb_build_array('audit-1', ${[
    `${row}.audit_id`,
    `to_char(${row}.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
    ...[
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
    ].map((column) => `${row}.${column}`),
  ].join(', ')})::text, 'UTF8'))`;

/** SHA-256 over the hash before, the position (8 bytes, big endian) and the digest of the row. */
export function linkHash(previous: Uint8Array, position: number, digest: Uint8Array): Buffer {
  const place = Buffer.alloc(8);
  place.writeBigUInt64BE(BigInt(position));
  return createHash('sha256').update(previous).update(place).update(digest).digest();
}

/** Names the database server and its line of history: transaction numbers mean nothing on another one. */
export const SERVER_SQL =
  "(SELECT system_identifier || '/' || timeline_id FROM pg_control_system(), pg_control_checkpoint())";

interface Head {
  position: number;
  hash: Buffer;
}

/**
 * Seals all committed rows that are not in the chain yet and answers how many that were. Two processes at it take turns:
 * the row of the head is locked, and no position is given twice.
 */
export async function sealTenant(database: Database, tenantId: string, stopped = () => false): Promise<number> {
  let sealed = 0;
  const run = await database.tenant(tenantId, openRun);
  for (let after: readonly unknown[] | null = null; !stopped(); ) {
    const last: readonly unknown[] | null = await database.tenantTransaction(tenantId, async (tx) => {
      const head = await lockHead(tx);
      const rows = await nextRows(tx, run, after);
      const unsealed = rows.filter(([, , digest]) => digest !== null);
      const end = await append(tx, head, unsealed);
      sealed += unsealed.length;
      // What this snapshot could see when the run began is in the chain now; the next run starts behind it.
      const done = rows.length < BATCH;
      await tx.arrays({
        text: `UPDATE ${tx.schema}._audit_head SET position = $1, hash = $2${done ? ', snapshot = $3::pg_snapshot, server = $4' : ''}`,
        values: done ? [end.position, end.hash, run.upTo, run.server] : [end.position, end.hash],
      });
      return done ? null : rows.at(-1)!.slice(0, 2);
    });
    if (last === null) break;
    after = last;
  }
  return sealed;
}

interface Run {
  /** What is committed by now. Rows that commit later may be sealed as well, or the next time. */
  readonly upTo: string;
  readonly server: string;
  /** Everything that this snapshot sees is in the chain; null: look at every row. */
  readonly from: string | null;
}

async function openRun(tx: Tx): Promise<Run> {
  const { rows } = await tx.arrays({
    text: `SELECT pg_current_snapshot()::text, ${SERVER_SQL}, h.snapshot::text, h.server FROM ${tx.schema}._audit_head h`,
  });
  const [upTo, server, snapshot, madeOn] = rows[0] as [string, string, string | null, string | null];
  return { upTo, server, from: madeOn === server ? snapshot : null };
}

async function lockHead(tx: Tx): Promise<Head> {
  const { rows } = await tx.arrays({ text: `SELECT position, hash FROM ${tx.schema}._audit_head FOR UPDATE` });
  return { position: rows[0]![0] as number, hash: rows[0]![1] as Buffer };
}

/**
 * `[tx, audit_id, digest]` of the next rows, digest null for those in the chain; in the order of transactions, which is about
 * that of time. Whatever the planner knows about the tables: only these rows are digested and looked up in the chain.
 */
async function nextRows(tx: Tx, run: Run, after: readonly unknown[] | null): Promise<unknown[][]> {
  const conditions: string[] = [];
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  // Behind a restore transaction numbers start anew, and only the chain and the ids tell what is where.
  const order = run.from === null ? ['a.audit_id'] : ['a.tx', 'a.audit_id'];
  if (run.from !== null) {
    const from = bind(run.from);
    conditions.push(
      `a.tx >= pg_snapshot_xmin(${from}::pg_snapshot) AND NOT pg_visible_in_snapshot(a.tx, ${from}::pg_snapshot)`,
    );
  }
  if (after)
    conditions.push(
      run.from === null
        ? `a.audit_id > ${bind(after[1])}::uuid`
        : `(a.tx, a.audit_id) > (${bind(after[0])}::xid8, ${bind(after[1])}::uuid)`,
    );
  const { rows } = await tx.arrays({
    text: `SELECT a.tx::text, a.audit_id, CASE WHEN c.position IS NULL THEN ${digestSql('a')} END
      FROM (SELECT * FROM ${tx.schema}._audit a ${conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''}
        ORDER BY ${order.join(', ')} LIMIT ${BATCH}) a
      LEFT JOIN LATERAL (SELECT c.position FROM ${tx.schema}._audit_chain c WHERE c.audit_id = a.audit_id OFFSET 0) c ON true
      ORDER BY ${order.join(', ')}`,
    values,
  });
  return rows;
}

async function append(tx: Tx, head: Head, rows: readonly unknown[][]): Promise<Head> {
  if (rows.length === 0) return head;
  const [positions, previous, hashes]: [number[], Buffer[], Buffer[]] = [[], [], []];
  let { position, hash } = head;
  for (const [, , digest] of rows) {
    position++;
    positions.push(position);
    previous.push(hash);
    hash = linkHash(hash, position, digest as Buffer);
    hashes.push(hash);
  }
  await tx.arrays({
    text: `INSERT INTO ${tx.schema}._audit_chain (position, audit_id, prev_hash, hash)
      SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bytea[], $4::bytea[])`,
    values: [positions, rows.map((row) => row[1]), previous, hashes],
  });
  return { position, hash };
}

/**
 * Removes rows that are older than they are kept, oldest first and only as far as the chain is whole: what was tampered
 * with stays to be found. The hash of the last one removed remains as the anchor of the rest. Done as the owner of the
 * schema, because the tenant's role can remove nothing.
 */
export async function removeExpired(database: Database, tenantId: string): Promise<number> {
  const schema = schemaOf(tenantId);
  let removed = 0;
  for (;;) {
    const count = await database.transaction(async (tx) => {
      const { rows: anchors } = await tx.arrays({
        text: `SELECT anchor_position, anchor_hash FROM ${schema}._audit_head FOR UPDATE`,
      });
      let [position, hash] = anchors[0] as [number, Buffer];
      const { rows } = await tx.arrays({
        text: `SELECT c.position, c.prev_hash, c.hash, a.digest, a.at < now() - make_interval(days => $2)
          FROM (SELECT * FROM ${schema}._audit_chain WHERE position > $1 ORDER BY position LIMIT ${BATCH}) c
          LEFT JOIN LATERAL (SELECT ${digestSql('a')} AS digest, a.at FROM ${schema}._audit a WHERE a.audit_id = c.audit_id OFFSET 0) a ON true
          ORDER BY c.position`,
        values: [position, LIMITS.audit_retention_days],
      });
      const from = position;
      for (const [at, previous, link, digest, old] of rows as [number, Buffer, Buffer, Buffer | null, boolean][]) {
        if (!old || digest === null || at !== position + 1 || !previous.equals(hash)) break;
        if (!link.equals(linkHash(previous, at, digest))) break;
        [position, hash] = [at, link];
      }
      if (position === from) return 0;
      await tx.arrays({
        text: `DELETE FROM ${schema}._audit a USING ${schema}._audit_chain c WHERE a.audit_id = c.audit_id AND c.position <= $1`,
        values: [position],
      });
      await tx.arrays({ text: `DELETE FROM ${schema}._audit_chain WHERE position <= $1`, values: [position] });
      await tx.arrays({
        text: `UPDATE ${schema}._audit_head SET anchor_position = $1, anchor_hash = $2`,
        values: [position, hash],
      });
      return position - from;
    });
    removed += count;
    if (count < BATCH) return removed;
  }
}

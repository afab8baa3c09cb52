/**
 * Checks a tenant's audit trail against its chain, in parts, so that a long one shows progress. It reports the first
 * thing that is wrong. Source: docs/reference/audit.md.
 */
import type { ChainProblem, Verification, VerifyPlace, VerifyRequest } from '../../../contracts/data/trail.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { digestSql, linkHash, SERVER_SQL } from './chain.ts';

const LINKS_PER_QUERY = 5_000;
const ROWS_PER_QUERY = 20_000;
/** One part takes about so long. */
const PART_MS = 4_000;
/** Positions follow the order of transactions, and no transaction takes so long. */
const BACKDATED_MS = 60 * 60 * 1_000;

interface Head {
  readonly position: number;
  readonly hash: string;
  readonly anchor: number;
  readonly anchorHash: string;
  /** Null when the snapshot belongs to another server. */
  readonly snapshot: string | null;
  /** A link before the first or behind the last one that the head knows: nobody would look at what it is about. */
  readonly stray: { readonly position: number; readonly auditId: string } | null;
}

export function verifyTenant(database: Database, request: VerifyRequest): Promise<Verification> {
  const until = Date.now() + PART_MS;
  return database.tenant(request.tenantId, async (tx) => {
    const head = await readHead(tx);
    if (head === null) return HEADLESS;
    const first: VerifyPlace = { position: head.anchor, hash: head.anchorHash, latest: 0, row: null, unsealed: 0 };
    // The oldest rows may have been removed between two parts.
    const start = request.from && request.from.position >= head.anchor ? request.from : first;
    const walk = new Walk(tx, head, start, request.expect);
    if (!walk.broken && start.row === null) await walk.links(until);
    if (!walk.broken && walk.place.row !== null) await walk.rows(until);
    return walk.result();
  });
}

/** Without the head nobody knows where the chain ends. */
const HEADLESS: Verification = {
  checked: 0,
  total: 0,
  position: 0,
  hash: '',
  unsealed: 0,
  broken: { position: null, auditId: null, problem: 'headMissing' },
  next: null,
};

async function readHead(tx: Tx): Promise<Head | null> {
  const { rows } = await tx.arrays({
    text: `SELECT h.position, encode(h.hash, 'hex'), h.anchor_position, encode(h.anchor_hash, 'hex'),
        CASE WHEN h.server = ${SERVER_SQL} THEN h.snapshot::text END, s.position, s.audit_id FROM ${tx.schema}._audit_head h
      LEFT JOIN LATERAL (
        (SELECT position, audit_id FROM ${tx.schema}._audit_chain WHERE position <= h.anchor_position ORDER BY position LIMIT 1)
        UNION ALL (SELECT position, audit_id FROM ${tx.schema}._audit_chain WHERE position > h.position ORDER BY position LIMIT 1)
        LIMIT 1) s ON true`,
  });
  if (rows.length === 0) return null;
  const [position, hash, anchor, anchorHash, snapshot, at, auditId] = rows[0] as [
    number,
    string,
    number,
    string,
    string | null,
    number | null,
    string,
  ];
  return { position, hash, anchor, anchorHash, snapshot, stray: at === null ? null : { position: at, auditId } };
}

type Broken = NonNullable<Verification['broken']>;

const FIRST_ROW = '00000000-0000-0000-0000-000000000000';

class Walk {
  place: VerifyPlace;
  broken: Broken | null = null;
  readonly #tx: Tx;
  readonly #head: Head;
  readonly #expect: VerifyRequest['expect'];
  #ended = false;

  constructor(tx: Tx, head: Head, place: VerifyPlace, expect: VerifyRequest['expect']) {
    this.#tx = tx;
    this.#head = head;
    this.place = place;
    this.#expect = expect;
    if (head.stray) this.#break('linkInserted', head.stray.position, head.stray.auditId);
    if (place.position === head.anchor) this.#checkExpected();
  }

  #break(problem: ChainProblem, position: number | null, auditId: string | null): void {
    this.broken ??= { position, auditId, problem };
  }

  #checkExpected(): void {
    const { position, hash } = this.place;
    if (this.#expect?.position === position && this.#expect.hash !== hash) this.#break('otherChain', position, null);
  }

  /** Every link against the one before it and against its row, up to where the chain ended when this part began. */
  async links(until: number): Promise<void> {
    while (!this.broken && Date.now() < until) {
      const { position } = this.place;
      const { rows } = await this.#tx.arrays({
        // Each row by its id: whatever is known about the tables, a part must not read them whole.
        text: `SELECT c.position, c.audit_id, encode(c.prev_hash, 'hex'), encode(c.hash, 'hex'), a.digest, a.digest IS NOT NULL, a.at
          FROM (SELECT * FROM ${this.#tx.schema}._audit_chain WHERE position > $1 AND position <= $2 ORDER BY position LIMIT ${LINKS_PER_QUERY}) c
          LEFT JOIN LATERAL (SELECT ${digestSql('a')} AS digest, (extract(epoch FROM a.at) * 1000)::bigint AS at
            FROM ${this.#tx.schema}._audit a WHERE a.audit_id = c.audit_id OFFSET 0) a ON true
          ORDER BY c.position`,
        values: [position, this.#head.position],
      });
      for (const row of rows) {
        this.#link(row);
        if (this.broken) return;
      }
      if (rows.length === LINKS_PER_QUERY) continue;
      this.#endOfChain();
      return;
    }
  }

  #link(row: readonly unknown[]): void {
    const [position, auditId, previous, hash, digest, there, at] = row as [
      number,
      string,
      string,
      string,
      Buffer,
      boolean,
      number,
    ];
    const before = this.place;
    if (position !== before.position + 1) this.#break('linkMissing', before.position + 1, null);
    else if (previous !== before.hash) this.#break('linkAltered', position, auditId);
    else if (!there) this.#break('rowMissing', position, auditId);
    else if (hash !== linkHash(Buffer.from(previous, 'hex'), position, digest).toString('hex'))
      this.#break('rowAltered', position, auditId);
    else if (at < before.latest - BACKDATED_MS) this.#break('rowBackdated', position, auditId);
    else {
      this.place = { ...before, position, hash, latest: Math.max(before.latest, at) };
      this.#checkExpected();
    }
  }

  #endOfChain(): void {
    const { position, hash } = this.place;
    if (position < this.#head.position || hash !== this.#head.hash) this.#break('endMissing', position + 1, null);
    else if (this.#expect && this.#expect.position > position) this.#break('endMissing', position + 1, null);
    else this.place = { ...this.place, row: FIRST_ROW };
  }

  /** Every row against the chain: one that was there when the chain was last extended and is not in it came in later. */
  async rows(until: number): Promise<void> {
    while (!this.broken && Date.now() < until) {
      const { rows } = await this.#tx.query<{
        seen: number;
        last: string | null;
        unsealed: number;
        inserted: string | null;
      }>({
        text: `SELECT count(*)::int AS seen, max(a.audit_id::text) AS last,
            (count(*) FILTER (WHERE c.audit_id IS NULL))::int AS unsealed,
            min(a.audit_id::text) FILTER (WHERE c.audit_id IS NULL AND pg_visible_in_snapshot(a.tx, $2::pg_snapshot)) AS inserted
          FROM (SELECT audit_id, tx FROM ${this.#tx.schema}._audit WHERE audit_id > $1 ORDER BY audit_id LIMIT ${ROWS_PER_QUERY}) a
          LEFT JOIN LATERAL (SELECT c.audit_id FROM ${this.#tx.schema}._audit_chain c WHERE c.audit_id = a.audit_id OFFSET 0) c ON true`,
        values: [this.place.row, this.#head.snapshot],
      });
      const { seen, last, unsealed, inserted } = rows[0]!;
      if (inserted !== null) {
        this.#break('rowInserted', null, inserted);
        return;
      }
      this.place = { ...this.place, row: last ?? this.place.row, unsealed: this.place.unsealed + unsealed };
      if (seen < ROWS_PER_QUERY) {
        this.#ended = true;
        return;
      }
    }
  }

  result(): Verification {
    const { position, hash, unsealed } = this.place;
    return {
      checked: position - this.#head.anchor,
      total: this.#head.position - this.#head.anchor,
      position,
      hash,
      unsealed,
      broken: this.broken,
      next: this.broken || this.#ended ? null : this.place,
    };
  }
}

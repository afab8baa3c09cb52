/**
 * Checks a tenant's audit trail and the history of its records against the chain, in parts, so that a long one shows progress. It reports the first
 * thing that is wrong. Source: docs/reference/audit.md.
 */
import type { ChainProblem, Verification, VerifyPlace, VerifyRequest } from '../../../contracts/data/trail.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { hasPassed } from '../../../mixins/epoch/epoch.ts';
import { linkHash } from './chain.ts';
import {
  type HeadRow,
  type HistoryRow,
  headStatement,
  historyStatement,
  LINKS_PER_QUERY,
  type LinkRow,
  linksStatement,
  ROWS_PER_QUERY,
  type RowsRow,
  rowsStatement,
} from './verify.sql.ts';

/** One part takes about so long. */
const PART_MS = 4_000;
/** Positions follow the order of transactions, and no transaction takes so long. */
const BACKDATED_MS = 60 * 60 * 1_000;

export function verifyTenant(database: Database, request: VerifyRequest): Promise<Verification> {
  const until = performance.now() + PART_MS;
  return database.tenant(request.tenantId, async (tx) => {
    const head = await tx.first<HeadRow>(headStatement(tx.schema));
    if (head === null) return HEAD_MISSING;
    const first: VerifyPlace = {
      position: head.anchor,
      hash: head.anchorHash,
      latest: 0,
      row: null,
      history: null,
      unsealed: 0,
    };
    // The oldest rows may have been removed between two parts.
    const start = request.from && request.from.position >= head.anchor ? request.from : first;
    const check = new ChainCheck(tx, head, start, request.expect);
    if (!check.broken && start.row === null) await check.links(until);
    if (!check.broken && check.place.row !== null && check.place.history === null) await check.rows(until);
    if (!check.broken && check.place.history !== null) await check.history(until);
    return check.result();
  });
}

/** Without the head the end of the chain is unknown. */
const HEAD_MISSING: Verification = {
  checked: 0,
  total: 0,
  position: 0,
  hash: '',
  unsealed: 0,
  broken: { position: null, auditId: null, recordId: null, problem: 'headMissing' },
  next: null,
};

type Broken = NonNullable<Verification['broken']>;

const FIRST_ROW = '00000000-0000-0000-0000-000000000000';

class ChainCheck {
  place: VerifyPlace;
  broken: Broken | null = null;
  readonly #tx: Tx;
  readonly #head: HeadRow;
  /** Null where it means nothing yet: in a copy in which nothing has been sealed. */
  readonly #sealed: string | null;
  readonly #expect: VerifyRequest['expect'];
  #ended = false;

  constructor(tx: Tx, head: HeadRow, place: VerifyPlace, expect: VerifyRequest['expect']) {
    this.#tx = tx;
    this.#head = head;
    this.#sealed = hasPassed(head, head.sealedSnapshot) ? null : head.sealedSnapshot;
    this.place = place;
    this.#expect = expect;
    if (head.strayPosition !== null) this.#break('linkInserted', head.strayPosition, head.strayAuditId);
    if (place.position === head.anchor) this.#checkExpected();
  }

  #break(problem: ChainProblem, position: number | null, auditId: string | null, recordId: string | null = null): void {
    this.broken ??= { position, auditId, recordId, problem };
  }

  #checkExpected(): void {
    const { position, hash } = this.place;
    if (this.#expect?.position === position && this.#expect.hash !== hash) this.#break('otherChain', position, null);
  }

  /** Every link against the previous one and against its row, up to where the chain ended when this part began. */
  async links(until: number): Promise<void> {
    while (!this.broken && performance.now() < until) {
      const statement = linksStatement(this.#tx.schema, this.place.position, this.#head.position);
      const rows = await this.#tx.all<LinkRow>(statement);
      for (const row of rows) {
        this.#link(row);
        if (this.broken) return;
      }
      if (rows.length === LINKS_PER_QUERY) continue;
      this.#endOfChain();
      return;
    }
  }

  #link({ position, auditId, previousHash, hash, digest, at }: LinkRow): void {
    const before = this.place;
    if (position !== before.position + 1) this.#break('linkMissing', before.position + 1, null);
    else if (previousHash !== before.hash) this.#break('linkAltered', position, auditId);
    else if (digest === null) this.#break('rowMissing', position, auditId);
    else if (hash !== linkHash(Buffer.from(previousHash, 'hex'), position, digest).toString('hex'))
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

  /** Every row against the chain: a row that was inserted later is older than the end of the chain and not in it. */
  async rows(until: number): Promise<void> {
    while (!this.broken && performance.now() < until) {
      const statement = rowsStatement(this.#tx.schema, this.place.row, this.#sealed);
      const { count, lastId, unsealed, insertedId } = await this.#tx.one<RowsRow>(statement);
      if (insertedId !== null) {
        this.#break('rowInserted', null, insertedId);
        return;
      }
      this.place = { ...this.place, row: lastId ?? this.place.row, unsealed: this.place.unsealed + unsealed };
      if (count < ROWS_PER_QUERY) {
        this.place = { ...this.place, history: { recordId: FIRST_ROW, changeId: FIRST_ROW } };
        return;
      }
    }
  }

  /** Every history row belongs to an audit row: those that were altered or are missing break the link of theirs. */
  async history(until: number): Promise<void> {
    for (let after = this.place.history; after !== null && performance.now() < until; ) {
      const statement = historyStatement(this.#tx.schema, after);
      const { count, lastRecordId, lastChangeId, insertedOf } = await this.#tx.one<HistoryRow>(statement);
      if (insertedOf !== null) {
        this.#break('historyInserted', null, null, insertedOf);
        return;
      }
      if (count < ROWS_PER_QUERY || lastRecordId === null || lastChangeId === null) {
        this.#ended = true;
        return;
      }
      after = { recordId: lastRecordId, changeId: lastChangeId };
      this.place = { ...this.place, history: after };
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

/**
 * The chain over a tenant's audit rows: each link is a hash over the previous link and over one row, so that no one can
 * change, remove, insert or reorder rows without breaking it. A background job extends it, so that no write waits for
 * it. Source: docs/reference/audit.md.
 */
import { createHash } from 'node:crypto';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { epochOf, inEpoch } from '../../../mixins/epoch/epoch.ts';
import {
  BATCH_ROWS,
  type ChainEnd,
  insertLinksStatement,
  isDueStatement,
  type Link,
  lockAnchorStatement,
  lockHeadStatement,
  moveHeadStatement,
  type OldestLinkRow,
  oldestLinksStatement,
  removeUpToStatement,
  type SealingStateRow,
  sealingStateStatement,
  type UnsealedRow,
  unsealedRowsStatement,
} from './chain.sql.ts';

/** SHA-256 over the previous hash, the position (8 bytes, big endian) and the digest of the row. */
export function linkHash(previous: Uint8Array, position: number, digest: Uint8Array): Buffer {
  const place = Buffer.alloc(8);
  place.writeBigUInt64BE(BigInt(position));
  return createHash('sha256').update(previous).update(place).update(digest).digest();
}

/**
 * Seals all committed rows that are not in the chain yet and returns how many there were. Two processes that do it at
 * the same time take turns: the row of the head is locked, and no position is given twice.
 */
export async function sealTenant(database: Database, tenantId: string, stopped = () => false): Promise<number> {
  let sealed = 0;
  const { current, since, sealedIn } = await inEpoch(database, tenantId, () =>
    database.tenant(tenantId, async (tx) => {
      const state = await tx.one<SealingStateRow>(sealingStateStatement(tx.schema));
      const { sealedSnapshot, sealedIn } = state;
      return { current: epochOf(state, sealedSnapshot).snapshot, since: sealedSnapshot, sealedIn };
    }),
  );
  for (let after: UnsealedRow | null = null; !stopped(); ) {
    const last: UnsealedRow | null = await database.tenantTransaction(tenantId, async (tx) => {
      const end = await tx.one<ChainEnd>(lockHeadStatement(tx.schema));
      const rows = await tx.all<UnsealedRow>(unsealedRowsStatement(tx.schema, since, after));
      const links = linksAfter(end, rows);
      if (links.length > 0) await tx.query(insertLinksStatement(tx.schema, links));
      sealed += links.length;
      // Rows visible to the run's first snapshot are in the chain now; rows committed later may be as well.
      const done = rows.length < BATCH_ROWS;
      const state = done ? { snapshot: current, sealedIn } : null;
      await tx.query(moveHeadStatement(tx.schema, links.at(-1) ?? end, state));
      return done ? null : (rows.at(-1) ?? null);
    });
    if (last === null) break;
    after = last;
  }
  return sealed;
}

/** The links of the rows that are not in the chain yet. */
function linksAfter(end: ChainEnd, rows: readonly UnsealedRow[]): Link[] {
  const links: Link[] = [];
  let { position, hash } = end;
  for (const { auditId, digest } of rows) {
    if (digest === null) continue;
    const previousHash = hash;
    position++;
    hash = linkHash(previousHash, position, digest);
    links.push({ position, auditId, previousHash, hash });
  }
  return links;
}

/**
 * Removes some audit rows after their retention, with the history of the same changes, oldest first and only as far as
 * the chain is intact: rows that were tampered with remain as evidence. The hash of the last removed row becomes the
 * anchor of the rest. The tenant's role cannot remove rows: a function of the schema's owner does, and looks at their
 * age itself. `more`: there may be others to remove.
 */
export async function removeExpired(
  database: Database,
  tenantId: string,
): Promise<{ readonly count: number; readonly more: boolean }> {
  const isDue = await database.tenant(tenantId, (tx) => tx.first<{ isDue: boolean }>(isDueStatement(tx.schema)));
  if (!isDue?.isDue) return { count: 0, more: false };
  const count = await database.tenantTransaction(tenantId, removeBatch);
  return { count, more: count === BATCH_ROWS };
}

async function removeBatch(tx: Tx): Promise<number> {
  const { schema } = tx;
  const anchor = await tx.one<ChainEnd>(lockAnchorStatement(schema));
  const links = await tx.all<OldestLinkRow>(oldestLinksStatement(schema, anchor.position));
  let last: ChainEnd = anchor;
  for (const link of links) {
    if (!link.expired || link.digest === null || !follows(link, last, link.digest)) break;
    last = link;
  }
  if (last === anchor) return 0;
  await tx.query(removeUpToStatement(schema, last));
  return last.position - anchor.position;
}

const follows = (link: OldestLinkRow, before: ChainEnd, digest: Buffer): boolean =>
  link.position === before.position + 1 &&
  link.previousHash.equals(before.hash) &&
  link.hash.equals(linkHash(link.previousHash, link.position, digest));

/**
 * Hashes of contents that arrive in pieces, as far as this process has had all of them: Node's hashes have no state that another
 * process could go on from. What is missing here, the service finds out by reading the pieces once more.
 */
import { createHash, type Hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { PieceOf } from '../../../lib/streams.ts';
import { entryBound } from '../../../lib/values/entry-bound.ts';

/** Some hundred bytes each. */
const CONTENTS_MAX = 5_000;

export class PieceHashes {
  readonly #known = new LRUCache<string, { readonly from: number; readonly hash: Hash }>(entryBound(CONTENTS_MAX));

  /** A hash for a piece to go on, which fails with it; null: what came before is not known here. */
  take({ id, from }: PieceOf): Hash | null {
    if (from === 0) return createHash('sha256');
    const known = this.#known.get(id);
    return known?.from === from ? known.hash.copy() : null;
  }

  /** Goes on with the next piece, which begins at `from`. */
  keep({ id, from }: PieceOf, hash: Hash): void {
    this.#known.set(id, { from, hash });
  }
}

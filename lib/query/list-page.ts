/** Pages of lists of other things than records. Source: docs/reference/querying.md. */
import type { Seal } from '../values/sealed.ts';
import { type ListIdentity, openListCursor, sealListCursor } from './list-cursor.ts';
import type { ListRequest } from './types.ts';

/** Result of a search that may stop before it has looked at everything. */
interface Search<Row> {
  readonly found: readonly Row[];
  /** Keys of the entry at which the search stopped; null: it has found enough, or there is no more. */
  readonly stoppedAt: readonly string[] | null;
}

interface Entries<Row, Entry> {
  /** The entries behind the one with these keys; without keys: from the first one. */
  readonly rows: (after: readonly string[], take: number) => Promise<readonly Row[] | Search<Row>>;
  /** Sort keys of the rows. */
  readonly keys: (row: Row) => readonly string[];
  readonly present: (page: readonly Row[]) => readonly Entry[] | Promise<readonly Entry[]>;
}

/** A page as operations answer it. */
interface ListPage<Entry> {
  readonly headers?: Record<string, string>;
  readonly body: { readonly records: readonly Entry[]; readonly nextCursor: string | null };
}

/**
 * The page that is asked for.
 * @throws PlatformError 400 CURSOR_INVALID, CURSOR_EXPIRED, CURSOR_QUERY_MISMATCH.
 */
export async function listPage<Row, Entry>(
  list: ListIdentity,
  { take, takeClamped, cursor }: Pick<ListRequest, 'take' | 'takeClamped' | 'cursor'>,
  seal: Seal,
  { rows, keys, present }: Entries<Row, Entry>,
): Promise<ListPage<Entry>> {
  const answer = await rows(cursor === null ? [] : openListCursor(list, cursor, seal), take + 1);
  const { found, stoppedAt } = 'found' in answer ? answer : { found: answer, stoppedAt: null };
  const page = found.slice(0, take);
  const last = found.length > take ? page.at(-1) : undefined;
  const next = last === undefined ? stoppedAt : keys(last);
  return {
    ...(takeClamped ? { headers: { 'X-Effective-Take': String(take) } } : {}),
    body: {
      records: await present(page),
      nextCursor: next === null ? null : sealListCursor(list, next, seal),
    },
  };
}

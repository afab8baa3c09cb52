/** Pages of lists whose entries are ordered by one id. */
import { LIMITS } from '../../config/limits.ts';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../lib/operation.ts';
import { CURSOR_MESSAGES, cursorError } from '../../lib/query/cursor.ts';
import { type ListIdentity, openListCursor, sealListCursor } from '../../lib/query/list-cursor.ts';
import { isUuid } from '../../lib/values/ids.ts';
import { sealFor } from '../../lib/values/sealed.ts';
import type { AgentDeps } from './deps.ts';

interface Entries<Row> {
  /** The entries behind the one with this id; null: from the first one. */
  readonly rows: (after: string | null, take: number) => Promise<readonly Row[]>;
  readonly key: (row: Row) => string;
  readonly present: (row: Row) => object;
}

/** The page that is asked for. Throws PARAMETER_INVALID, CURSOR_INVALID, CURSOR_EXPIRED, CURSOR_QUERY_MISMATCH. */
export async function pageOf<Row>(
  { sealingKeys }: AgentDeps,
  request: RequestContext,
  query: { readonly take?: number; readonly cursor?: string },
  list: ListIdentity,
  { rows, key, present }: Entries<Row>,
): Promise<OperationReply> {
  const asked = query.take ?? LIMITS.take_default;
  if (asked < 1)
    throw new PlatformError('PARAMETER_INVALID', 'take is at least 1.', {
      errors: [violation('query:take', 'PARAMETER_INVALID', 'take is at least 1.')],
    });
  const take = Math.min(asked, LIMITS.take_max);
  const seal = sealFor(request, sealingKeys, Date.now());
  const [after = null] = query.cursor === undefined ? [] : openListCursor(list, query.cursor, seal);
  if (query.cursor !== undefined && !isUuid(after))
    throw cursorError('CURSOR_INVALID', CURSOR_MESSAGES.invalid, 'query:cursor');
  const found = await rows(after, take + 1);
  const page = found.slice(0, take);
  const last = page.at(-1);
  return {
    ...(asked > take ? { headers: { 'X-Effective-Take': String(take) } } : {}),
    body: {
      records: page.map(present),
      nextCursor: last !== undefined && found.length > take ? sealListCursor(list, [key(last)], seal) : null,
    },
  };
}

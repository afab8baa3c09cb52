/** Pages of the lists of the trail. */
import type { OperationReply } from '../../../lib/operation.ts';
import type { ListRequest } from '../../../lib/query/types.ts';

/** The reply with a page of entries, each already JSON; `properties` are added to `records`. */
export const pageReply = (
  { take, takeClamped }: Pick<ListRequest, 'take' | 'takeClamped'>,
  entries: readonly string[],
  nextCursor: string | null,
  properties: Readonly<Record<string, string>> = {},
): OperationReply => ({
  ...(takeClamped ? { headers: { 'X-Effective-Take': String(take) } } : {}),
  body: Buffer.from(`{"records":[${entries.join()}],${JSON.stringify({ nextCursor, ...properties }).slice(1)}`),
});

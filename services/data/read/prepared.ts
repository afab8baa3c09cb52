/** Cache of compiled reads. */
import type { CompiledList } from '../../../lib/query/sql.ts';
import type { CompiledQuery, ListRequest, Plan } from '../../../lib/query/types.ts';
import { CountedCache } from '../../../mixins/metrics/counted-cache.ts';

interface PreparedList {
  readonly list: ListRequest;
  readonly plan: Plan;
  readonly compiled: CompiledList;
}

export interface PreparedGet {
  readonly compiled: CompiledQuery;
  /** The answer shows other records as well. */
  readonly expands: boolean;
}

/**
 * Compiled reads of one data service by view. Not shared between databases, where the same versions can mean another
 * configuration.
 */
export class PreparedReads {
  /** Clients repeat the same lists: each is compiled once per user and view. */
  readonly lists = new CountedCache<string, PreparedList>({
    maxSize: 32 * 1024 * 1024,
    sizeCalculation: ({ compiled }, key) => compiled.text.length + key.length * 3 + 2_048,
  });
  /** Statements of gets, by view and shape. */
  readonly gets = new CountedCache<string, PreparedGet>({
    maxSize: 32 * 1024 * 1024,
    sizeCalculation: ({ compiled }, shape) => compiled.text.length + shape.length,
  });
}

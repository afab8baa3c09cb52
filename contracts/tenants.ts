/** What services ask metadata about tenants. */
import { type Caller, call } from './call.ts';

const PER_PAGE = 500;

/** All tenants, page by page, for the rounds of periodic work (mixins/jobs). `after`: the last id of the page before. */
export const allTenants = (caller: Caller) => (after: string | undefined) =>
  call(caller, 'metadata.tenants.list', { take: PER_PAGE, ...(after === undefined ? {} : { after }) });

/** Nothing is done for a suspended tenant, nor for one that is gone. */
export const suspensionOf =
  (caller: Caller) =>
  async (tenantId: string): Promise<boolean> =>
    (await call(caller, 'metadata.tenants.get', { tenantId }))?.suspended !== false;

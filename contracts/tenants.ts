/** All tenants that metadata knows, page by page: for the rounds of periodic work (mixins/jobs). */
import { type Caller, call } from './call.ts';

const PER_PAGE = 500;

/** `after`: the last id of the page before. */
export const allTenants = (caller: Caller) => (after: string | undefined) =>
  call(caller, 'metadata.tenants.list', { take: PER_PAGE, ...(after === undefined ? {} : { after }) });

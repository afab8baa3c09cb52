/** What happens to the factors of a user, for the audit trail of the tenant. */
import type { AuthEvents } from '../../../contracts/auth.ts';

export type FactorChange = AuthEvents['auth.user.factorChanged'];
export type FactorEvent = FactorChange['event'];

/** Dependencies of this service's operations. */
import type { AuthActions } from '../../contracts/auth.ts';
import type { DataActions } from '../../contracts/data.ts';
import type { RequestContext } from '../../lib/context.ts';
import type { Notice } from '../../lib/notice.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Database, Tx } from '../../mixins/database/database.ts';

type Actions = AuthActions & DataActions;
type Asked<K extends keyof Actions> = (question: Actions[K]['params']) => Promise<Actions[K]['result']>;

export interface CalendarDeps {
  readonly database: Database;
  readonly sealingKeys: SealingKeys;
  readonly epoch: Asked<'data.epochs.get'>;
  readonly unknownPrincipals: Asked<'data.principals.check'>;
  readonly readable: Asked<'data.records.readable'>;
  readonly access: Asked<'data.users.access'>;
  /** Name and address of a user for mails about their events; null: none leave. */
  readonly organizer: Asked<'auth.mails.organizer'>;
  /** Asks for a notification with the transaction, which acts as the tenant's role. */
  readonly notify: (tx: Tx, request: RequestContext, notice: Notice) => Promise<void>;
}

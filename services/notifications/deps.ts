/** Dependencies of this service's operations and jobs. */
import type { AuthActions } from '../../contracts/auth.ts';
import type { DataActions } from '../../contracts/data.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Database } from '../../mixins/database/database.ts';
import type { Platform } from '../../mixins/platform.ts';

type Actions = AuthActions & DataActions;
type Asked<K extends keyof Actions> = (question: Actions[K]['params']) => Promise<Actions[K]['result']>;

export interface NotificationsDeps {
  readonly database: Database;
  readonly log: Platform['log'];
  readonly sealingKeys: SealingKeys;
  /** Puts a mail into the outbox of auth. */
  readonly queueMail: Asked<'auth.mails.notify'>;
  readonly mailStates: Asked<'auth.mails.states'>;
  readonly listUsers: Asked<'data.users.list'>;
  readonly readableRecords: Asked<'data.records.readable'>;
  readonly fillTemplate: Asked<'data.templates.fill'>;
}

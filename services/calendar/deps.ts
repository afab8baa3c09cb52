/** Dependencies of this service's operations. */
import type { DataActions } from '../../contracts/data.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { Database } from '../../mixins/database/database.ts';

type Asked<K extends keyof DataActions> = (question: DataActions[K]['params']) => Promise<DataActions[K]['result']>;

export interface CalendarDeps {
  readonly database: Database;
  readonly sealingKeys: SealingKeys;
  readonly epoch: Asked<'data.epochs.get'>;
  readonly unknownPrincipals: Asked<'data.principals.check'>;
  readonly readable: Asked<'data.records.readable'>;
  readonly access: Asked<'data.users.access'>;
}

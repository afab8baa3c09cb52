/** What the operations of this service work with. */

import type { DataActions } from '../../contracts/data.ts';
import type { Database } from '../../mixins/database/database.ts';
import type { FindAccess } from './viewer.ts';

export interface AnalyticsDeps {
  readonly database: Database;
  readonly findAccess: FindAccess;
  /** Places of the principals with whom the caller cannot share. */
  readonly unknownPrincipals: (asked: DataActions['data.principals.check']['params']) => Promise<number[]>;
}

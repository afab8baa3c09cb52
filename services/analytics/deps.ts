/** What the operations of this service work with. */
import type { DataActions, UserAccess } from '../../contracts/data.ts';
import type { Database } from '../../mixins/database/database.ts';

export interface AnalyticsDeps {
  readonly database: Database;
  readonly findAccess: (tenantId: string, userId: string) => Promise<UserAccess>;
  /** Places of the principals with whom the caller cannot share. */
  readonly unknownPrincipals: (asked: DataActions['data.principals.check']['params']) => Promise<number[]>;
  /** Takes over the dashboards that deployments up to this version have brought. */
  readonly takeDeployed: (tenantId: string, metadataVersion: number) => Promise<void>;
}

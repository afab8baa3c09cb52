/** What the operations of this service work with. */
import type { AggregateQuery, AggregateResult, ObjectCatalog } from '../../contracts/data/aggregate.ts';
import type { DataActions, UserAccess } from '../../contracts/data.ts';
import type { Database } from '../../mixins/database/database.ts';
import type { WidgetResults } from './widgets/results.ts';

export interface AnalyticsDeps {
  readonly database: Database;
  readonly findAccess: (tenantId: string, userId: string) => Promise<UserAccess>;
  /** Places of the principals with whom the caller cannot share. */
  readonly unknownPrincipals: (asked: DataActions['data.principals.check']['params']) => Promise<number[]>;
  /** Takes over the dashboards that deployments up to this version have brought. */
  readonly takeDeployed: (tenantId: string, metadataVersion: number) => Promise<void>;
  /** What the caller can ask of an object, with labels in the language that is accepted. */
  readonly catalogOf: (objectApiName: string, acceptLanguage?: string) => Promise<ObjectCatalog>;
  /** Groups of the records that the caller can see. */
  readonly aggregate: (query: AggregateQuery) => Promise<AggregateResult>;
  readonly results: WidgetResults;
}

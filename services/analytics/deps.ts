/** Dependencies of this service's operations. */
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
  /** Aggregations that an object offers the caller, with labels in the accepted language. */
  readonly catalogOf: (objectApiName: string, acceptLanguage?: string) => Promise<ObjectCatalog>;
  /** Groups of the records that the caller can see. */
  readonly aggregate: (query: AggregateQuery) => Promise<AggregateResult>;
  readonly results: WidgetResults;
}

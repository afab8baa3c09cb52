/** What processes, probes and manifests agree on, beside what contracts/services.ts declares of each service. */
import type { ServiceDeclaration } from '../contracts/declaration.ts';
import { SERVICES as DECLARED, type ServiceName } from '../contracts/services.ts';

export { ALL_SERVICES, isServiceName, OPERATOR, type ServiceName } from '../contracts/services.ts';

export const SERVICES: Readonly<Record<ServiceName, ServiceDeclaration>> = DECLARED;

/** Port of the gateway, unless PORT says otherwise. */
export const PUBLIC_PORT = 3000;
/** Port for probes and metrics of every service on a cluster; elsewhere only when HEALTH_PORT is set. */
export const HEALTH_PORT = 9090;

/** What the manifests ask of PostgreSQL (max_connections), with what its superusers, backups and commands need. */
export const CONNECTIONS_MAX = 400;
/** Those with which a metadata process keeps the leases of its deployments, besides its pool. */
export const LEASE_CONNECTIONS = 3;

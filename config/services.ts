/** What processes, probes and manifests agree on, beside what contracts/services.ts declares of each service. */
import type { ServiceDeclaration } from '../contracts/declaration.ts';
import { ALL_SERVICES, SERVICES as DECLARED, type ServiceName } from '../contracts/services.ts';

export { ALL_SERVICES, isServiceName, OPERATOR, type ServiceName } from '../contracts/services.ts';

export const SERVICES: Readonly<Record<ServiceName, ServiceDeclaration>> = DECLARED;

/** The services whose keys of contexts a process has: its own, and those that it calls for users. */
export const keysOf = (services: readonly ServiceName[]): readonly ServiceName[] =>
  ALL_SERVICES.filter(
    (name) =>
      name !== 'gateway' &&
      services.some(
        (own) =>
          own === 'gateway' ||
          own === name ||
          Object.keys(SERVICES[own].actsForUsers ?? {}).some((action) => action.startsWith(`${name}.`)),
      ),
  );

/** Port of the gateway, unless PORT says otherwise. */
export const PUBLIC_PORT = 3000;
/** Port for probes and metrics of every service on a cluster; elsewhere only when HEALTH_PORT is set. */
export const HEALTH_PORT = 9090;

/** What the manifests ask of PostgreSQL (max_connections), with what its superusers, backups and commands need. */
export const CONNECTIONS_MAX = 400;
/** Those with which a metadata process keeps the leases of its deployments, besides its pool. */
export const LEASE_CONNECTIONS = 3;

/**
 * The one list of services. What starts, probes, tests, measures or deploys them follows it: SERVICES, the gateway's
 * readiness, test and benchmark clusters, docker-compose.yml and the Kubernetes manifests (`npm run manifests`).
 */

/** Where callers reach the gateway, unless PORT says otherwise. */
export const PUBLIC_PORT = 3000;
/** Where probes and metrics of every service are answered on a cluster; elsewhere only when HEALTH_PORT is set. */
export const HEALTH_PORT = 9090;

export interface ServiceDescription {
  /** What it is for, in a sentence or two. */
  readonly purpose: string;
  /** `public`: callers reach it, on PORT. Probes reach every service on HEALTH_PORT. */
  readonly listens: 'public' | 'health';
  /**
   * The gateway is not ready before it has seen the service once: one without which nearly no call succeeds. Without
   * the others their own operations answer 503.
   */
  readonly awaitedByGateway: boolean;
  readonly kubernetes: {
    readonly replicas: { readonly min: number; readonly max: number };
    /** Of a pod to the database (DATABASE_POOL_SIZE). All pods at their maximum fit into CONNECTIONS_MAX. */
    readonly connections: number;
    readonly requests: { readonly cpu: string; readonly memory: string };
    readonly limits: { readonly cpu: string; readonly memory: string };
  };
}

export const SERVICES = {
  gateway: {
    purpose: 'The HTTP edge: the only service that listens for callers.',
    listens: 'public',
    awaitedByGateway: false,
    kubernetes: {
      replicas: { min: 2, max: 10 },
      connections: 2,
      requests: { cpu: '500m', memory: '256Mi' },
      limits: { cpu: '2', memory: '768Mi' },
    },
  },
  auth: {
    purpose: 'Sign-in and tokens. It needs its processors for password hashing.',
    listens: 'health',
    awaitedByGateway: true,
    kubernetes: {
      replicas: { min: 2, max: 6 },
      connections: 6,
      requests: { cpu: '250m', memory: '256Mi' },
      limits: { cpu: '1', memory: '512Mi' },
    },
  },
  data: {
    purpose: 'Records of tenants. Snapshots of the tenants it serves stay in memory.',
    listens: 'health',
    awaitedByGateway: true,
    kubernetes: {
      replicas: { min: 2, max: 10 },
      connections: 10,
      requests: { cpu: '500m', memory: '384Mi' },
      limits: { cpu: '2', memory: '1Gi' },
    },
  },
  metadata: {
    purpose: 'Tenants, their shape, and deployments.',
    listens: 'health',
    awaitedByGateway: true,
    kubernetes: {
      replicas: { min: 2, max: 4 },
      connections: 4,
      requests: { cpu: '250m', memory: '256Mi' },
      limits: { cpu: '1', memory: '1Gi' },
    },
  },
  analytics: {
    purpose: 'Dashboards. Results of their widgets stay in memory for a while.',
    listens: 'health',
    awaitedByGateway: false,
    kubernetes: {
      replicas: { min: 2, max: 4 },
      connections: 4,
      requests: { cpu: '100m', memory: '192Mi' },
      limits: { cpu: '1', memory: '512Mi' },
    },
  },
  ratelimit: {
    purpose: 'Counters of all gateways: every counter lives in one process, chosen by its key.',
    listens: 'health',
    awaitedByGateway: false,
    kubernetes: {
      replicas: { min: 2, max: 3 },
      connections: 2,
      requests: { cpu: '100m', memory: '192Mi' },
      limits: { cpu: '1', memory: '256Mi' },
    },
  },
  agent: {
    purpose: 'Runs of agents: what they may do, what waits for a person, and what they did.',
    listens: 'health',
    awaitedByGateway: false,
    kubernetes: {
      replicas: { min: 2, max: 4 },
      connections: 5,
      requests: { cpu: '100m', memory: '256Mi' },
      limits: { cpu: '1', memory: '512Mi' },
    },
  },
  mcp: {
    purpose: 'Tools for assistants (MCP): reads alone, through the operations of the API.',
    listens: 'health',
    awaitedByGateway: false,
    kubernetes: {
      replicas: { min: 2, max: 4 },
      connections: 2,
      requests: { cpu: '100m', memory: '256Mi' },
      limits: { cpu: '1', memory: '512Mi' },
    },
  },
} as const satisfies Record<string, ServiceDescription>;

/** What the manifests ask of PostgreSQL (max_connections), with what its superusers, backups and commands need. */
export const CONNECTIONS_MAX = 300;
/** Those with which a metadata process keeps the leases of its deployments, besides its pool. */
export const LEASE_CONNECTIONS = 3;

export type ServiceName = keyof typeof SERVICES;

export const isServiceName = (name: string): name is ServiceName => Object.hasOwn(SERVICES, name);

export const ALL_SERVICES: readonly ServiceName[] = Object.keys(SERVICES).filter(isServiceName);

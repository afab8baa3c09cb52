/**
 * Permissions on the bus: the callers of every internal action, and sender and receivers of every event. Public
 * operations are called by the gateway alone, for users. An action or event that is not listed does not compile.
 * Source: docs/reference/operations-cluster.md, "Trust on the bus".
 */
import { OPERATOR } from '../config/bus.ts';
import { ALL_SERVICES, type ServiceName } from '../config/services.ts';
import type { OperationCall } from '../lib/operation.ts';
import type { ActionMap, EventMap } from './call.ts';
import { OPERATIONS, type PublicAction } from './operations.ts';
import type { ProcessActions } from './process.ts';

type Caller = ServiceName | typeof OPERATOR;

const CALLERS = {
  'agent.runs.admit': ['gateway'],
  'agent.steps.settle': ['gateway'],
  'agent.approvals.request': ['gateway'],
  'agent.runs.state': ['data'],
  'agent.transitions.judge': ['data'],
  'agent.tenants.listRuns': [OPERATOR],
  'agent.tenants.cancelRuns': [OPERATOR],
  'analytics.access.check': ['agent'],
  'auth.http.handle': ['gateway'],
  'auth.keys.list': ['gateway'],
  'auth.keys.rotate': [OPERATOR],
  'auth.grants.check': ['agent', 'gateway', 'ratelimit'],
  'auth.grants.noteEnded': ['data'],
  'auth.origins.check': ['gateway'],
  'auth.clients.rotateSecret': [OPERATOR],
  'auth.users.sync': ['data'],
  'auth.users.createLink': [OPERATOR],
  'auth.users.prepareLink': ['data'],
  'auth.users.mayInvite': ['data'],
  'auth.mails.askApprovers': ['agent'],
  // The demo tenants are made by the process that has metadata.
  'auth.domains.add': ['metadata', OPERATOR],
  'auth.domains.check': [OPERATOR],
  'auth.domains.remove': [OPERATOR],
  'auth.domains.list': ['metadata', OPERATOR],
  'auth.identities.remove': [OPERATOR],
  'auth.identityProviders.check': [OPERATOR],
  'auth.identityProviders.setSecret': [OPERATOR],
  'auth.deprecatedUses.add': ['gateway'],
  'auth.deprecatedUses.list': ['gateway'],
  'auth.users.revoke': [OPERATOR],
  'auth.factors.reset': [OPERATOR],
  'auth.secrets.reseal': [OPERATOR],
  'data.grants.confirm': ['gateway'],
  'data.users.get': ['agent', 'auth', 'gateway', 'metadata', OPERATOR],
  'data.users.holding': ['agent'],
  'data.users.find': ['auth', OPERATOR],
  'data.users.access': ['analytics'],
  'data.users.mayLetIn': ['auth'],
  'data.access.check': ['agent'],
  'data.principals.check': ['analytics'],
  // The demo tenants are made by the process that has metadata.
  'data.users.provision': ['auth', 'metadata', OPERATOR],
  'data.records.aggregate': ['analytics'],
  'data.objects.catalog': ['analytics'],
  'data.records.seen': ['agent'],
  'data.samples.load': ['metadata'],
  'data.scim.handle': ['gateway'],
  'data.audit.deny': ['gateway'],
  'data.audit.denySignIn': ['auth'],
  'data.audit.note': ['auth'],
  'data.audit.suppress': ['gateway', 'auth'],
  'data.audit.seal': [OPERATOR],
  'data.audit.verify': [OPERATOR],
  'data.trail.ofRequests': ['agent'],
  'gateway.operations.run': ['mcp'],
  'mcp.http.handle': ['gateway'],
  'metadata.snapshots.get': ['agent', 'auth', 'data'],
  'metadata.tenants.get': ['auth', OPERATOR],
  'metadata.tenants.list': ['analytics', 'auth', 'data', OPERATOR],
  'metadata.tenants.create': [OPERATOR],
  'metadata.tenants.describe': [OPERATOR],
  'metadata.tenants.suspend': [OPERATOR],
  'metadata.tenants.resume': [OPERATOR],
  'metadata.tenants.rename': [OPERATOR],
  'metadata.tenants.delete': [OPERATOR],
  'metadata.tenants.undelete': [OPERATOR],
  'metadata.tenants.listDeletions': [OPERATOR],
  'metadata.tenants.findTraces': [OPERATOR],
  'metadata.tenants.setLimits': [OPERATOR],
  'metadata.tenants.listLimits': [OPERATOR],
  'metadata.tenants.listDeployments': [OPERATOR],
  'metadata.tenants.cancelDeployment': [OPERATOR],
  'metadata.dashboards.list': ['analytics'],
  'metadata.templates.deploy': [OPERATOR],
  'ratelimit.leases.read': ['ratelimit'],
  'ratelimit.leases.take': ['gateway'],
  'agent.process.describe': [OPERATOR],
  'analytics.process.describe': [OPERATOR],
  'auth.process.describe': [OPERATOR],
  'data.process.describe': [OPERATOR],
  'gateway.process.describe': [OPERATOR],
  'mcp.process.describe': [OPERATOR],
  'metadata.process.describe': [OPERATOR],
  'ratelimit.process.describe': [OPERATOR],
} as const satisfies Readonly<Record<Exclude<keyof ActionMap, PublicAction>, readonly Caller[]>>;

/** Actions that an operator may call from the console. */
export type OperatorAction = Exclude<
  {
    [A in keyof typeof CALLERS]: typeof OPERATOR extends (typeof CALLERS)[A][number] ? A : never;
  }[keyof typeof CALLERS],
  keyof ProcessActions
>;

/** Internal actions that only read, or change something under the key of the request: whose call may be repeated on another process, whatever became of it. */
const READING: ReadonlySet<string> = new Set<keyof typeof CALLERS>([
  'agent.runs.state',
  'agent.tenants.listRuns',
  'agent.transitions.judge',
  'analytics.access.check',
  'auth.deprecatedUses.list',
  'auth.domains.check',
  'auth.domains.list',
  'auth.grants.check',
  'auth.identityProviders.check',
  'auth.keys.list',
  'auth.mails.askApprovers',
  'auth.users.mayInvite',
  'auth.origins.check',
  'data.access.check',
  'data.audit.verify',
  'data.grants.confirm',
  'data.objects.catalog',
  'data.principals.check',
  'data.records.aggregate',
  'data.records.seen',
  'data.scim.handle',
  'data.trail.ofRequests',
  'data.users.access',
  'data.users.find',
  'data.users.get',
  'data.users.holding',
  'data.users.mayLetIn',
  'mcp.http.handle',
  'metadata.dashboards.list',
  'metadata.snapshots.get',
  'metadata.tenants.describe',
  'metadata.tenants.findTraces',
  'metadata.tenants.get',
  'metadata.tenants.list',
  'metadata.tenants.listDeletions',
  'metadata.tenants.listLimits',
  'ratelimit.leases.read',
]);

const EVENTS: Readonly<
  Record<keyof EventMap, { readonly from: readonly Caller[]; readonly to: readonly ServiceName[] }>
> = {
  'auth.grants.revoked': { from: ['auth'], to: ['agent', 'gateway'] },
  'auth.keys.rotated': { from: ['auth'], to: ['auth', 'gateway'] },
  'auth.user.signedIn': { from: ['auth'], to: ['data'] },
  'metadata.schema.changed': { from: ['metadata'], to: ['auth'] },
  'metadata.tenant.changed': { from: ['metadata'], to: ['auth', 'gateway'] },
};

/** The callers of an action by its name; undefined: there is no such action. */
export const callersOf = (action: string): readonly string[] | undefined => callers.get(action);

const callers = new Map<string, readonly string[]>([
  ...OPERATIONS.map(({ action }): [string, readonly string[]] => [action, ['gateway']]),
  ...Object.entries(CALLERS),
]);
const events = new Map(Object.entries(EVENTS));

const meet = (one: readonly string[], others: readonly string[] | undefined): boolean =>
  others?.some((name) => one.includes(name)) ?? false;

/** The rules of the platform, for mixins/bus. An identity is the services that a process hosts, or `operator`. */
export const BUS_POLICY = {
  mayCall: (caller: readonly string[], action: string): boolean => meet(caller, callers.get(action)),
  maySend: (sender: readonly string[], event: string): boolean => meet(sender, events.get(event)?.from),
  mayHear: (receiver: readonly string[], event: string): boolean => meet(receiver, events.get(event)?.to),
  mayActForUsers: (caller: readonly string[]): boolean => caller.includes('gateway'),
};

/** The services that those of a process call, without its own: what they cannot do without. */
export function calledBy(services: readonly ServiceName[]): ServiceName[] {
  const called = [...callers].filter(([, by]) => meet(services, by)).map(([action]) => action.split('.', 1)[0]);
  return ALL_SERVICES.filter((service) => called.includes(service) && !services.includes(service));
}

const mutations = new Map(OPERATIONS.map(({ action, mutation }) => [action, mutation]));

/**
 * The call may be carried out again when its first fate is unknown: it reads, or it changes something under an
 * idempotency key, which the database lets it do once.
 */
export function isRepeatable(action: string, params: unknown): boolean {
  const mutation = mutations.get(action);
  if (mutation === undefined) return READING.has(action);
  const { headers } = (params ?? {}) as Partial<OperationCall>;
  return !mutation || headers?.idempotencyKey !== undefined;
}

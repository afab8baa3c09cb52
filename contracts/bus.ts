/**
 * Permissions on the bus, as the services declare them (contracts/declaration.ts): the callers of every internal action,
 * and senders and receivers of every event. Public operations are called by the gateway alone, for users. A name that is
 * no action or event does not compile, and neither does an action without callers.
 * Source: docs/reference/operations-cluster.md, "Trust on the bus".
 */
import { membersOf } from '../lib/json/objects.ts';
import type { ActionMap, EventMap } from './call.ts';
import { OPERATIONS, type PublicAction } from './operations.ts';
import type { ProcessActions } from './process.ts';
import { ALL_SERVICES, isServiceName, OPERATOR, SERVICES, type ServiceName } from './services.ts';
import { DEFAULT_TIME_LIMITS, timeLimitsOf } from './time-limits.ts';

type InternalAction = Exclude<keyof ActionMap, PublicAction | keyof ProcessActions>;
type EventName = keyof EventMap;

interface BusRights {
  readonly calls: readonly InternalAction[];
  readonly actsForUsers?: Readonly<Partial<Record<InternalAction, number>>>;
  readonly forOperators?: readonly InternalAction[];
  readonly repeatable?: readonly InternalAction[];
  readonly emits?: readonly EventName[];
  readonly hears?: readonly EventName[];
}

type NamesIn<List extends keyof BusRights> = {
  [Name in ServiceName]: (typeof SERVICES)[Name] extends Readonly<Record<List, readonly (infer Item)[]>> ? Item : never;
}[ServiceName];

/** Actions that an operator may call from the console. */
export type OperatorAction = NamesIn<'forOperators'>;

/** Actions that no service and no operator calls. There are none, or the next line does not compile. */
type WithoutCallers = Exclude<InternalAction, NamesIn<'calls'> | OperatorAction>;
const RIGHTS: [WithoutCallers] extends [never] ? Readonly<Record<ServiceName, BusRights>> : WithoutCallers = SERVICES;

/** The services by each name that they have in a list. */
const byName = (list: Exclude<keyof BusRights, 'actsForUsers'>): Map<string, string[]> => {
  const found = new Map<string, string[]>();
  for (const [service, rights] of Object.entries(RIGHTS))
    for (const name of rights[list] ?? []) found.set(name, [...(found.get(name) ?? []), service]);
  return found;
};

const SENDERS = byName('emits');
const RECEIVERS = byName('hears');
/** Milliseconds for which the context of a call is valid, by its action. */
const VALID_MS = new Map<string, number>([
  ...OPERATIONS.map((row): [string, number] => [row.action, timeLimitsOf(row).callMs]),
  ...Object.values(RIGHTS).flatMap(({ actsForUsers = {} }) => Object.entries(actsForUsers)),
]);

const REPEATABLE: ReadonlySet<string> = new Set(byName('repeatable').keys());

const CALLERS = byName('calls');
for (const name of byName('forOperators').keys()) CALLERS.set(name, [...(CALLERS.get(name) ?? []), OPERATOR]);
for (const service of ALL_SERVICES) CALLERS.set(`${service}.process.describe`, [OPERATOR]);
for (const { action } of OPERATIONS) CALLERS.set(action, ['gateway']);

/** The callers of an action by its name; undefined: there is no such action. */
export const callersOf = (action: string): readonly string[] | undefined => CALLERS.get(action);

const meet = (one: readonly string[], others: readonly string[] | undefined): boolean =>
  others?.some((name) => one.includes(name)) ?? false;

/** The rules of the platform, for mixins/bus. An identity is the services that a process hosts, or `operator`. */
export const BUS_POLICY = {
  mayCall: (caller: readonly string[], action: string): boolean => meet(caller, CALLERS.get(action)),
  maySend: (sender: readonly string[], event: string): boolean => meet(sender, SENDERS.get(event)),
  mayHear: (receiver: readonly string[], event: string): boolean => meet(receiver, RECEIVERS.get(event)),
  mayActForUsers: (caller: readonly string[], action: string): boolean =>
    caller.some(
      (name) => name === 'gateway' || (isServiceName(name) && Object.hasOwn(RIGHTS[name].actsForUsers ?? {}, action)),
    ),
  validMs: (action: string): number => VALID_MS.get(action) ?? DEFAULT_TIME_LIMITS.callMs,
  longestCallMs: Math.max(...VALID_MS.values()),
};

/** The services that those of a process call, without its own: what they cannot do without. */
export function calledBy(services: readonly ServiceName[]): ServiceName[] {
  const called = [...CALLERS].filter(([, by]) => meet(services, by)).map(([action]) => action.split('.', 1)[0]);
  return ALL_SERVICES.filter((service) => called.includes(service) && !services.includes(service));
}

const mutations = new Map(OPERATIONS.map(({ action, mutation }) => [action, mutation]));

/**
 * The call may be carried out again when its first fate is unknown: it reads, or it changes something under an
 * idempotency key, which the database lets it do once.
 */
export function isRepeatable(action: string, params: unknown): boolean {
  const mutation = mutations.get(action);
  if (mutation === undefined) return REPEATABLE.has(action);
  return !mutation || membersOf(membersOf(params)['headers'])['idempotencyKey'] !== undefined;
}

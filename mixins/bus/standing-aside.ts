/**
 * A process whose link to the database is silent stands aside: the others send the actions of the services concerned to
 * another process that offers them, and what was under way here is reported as lost, so that callers repeat what may be
 * repeated (takeover.ts). Where no other process offers a service it stays, and answers 503 at once.
 */
import { type Context, Errors, type Middleware, type ServiceBroker } from 'moleculer';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Database } from '../database/database.ts';

interface ServiceInfo {
  readonly name: string;
  readonly actions: Record<string, object>;
}

interface Registry {
  regenerateLocalRawInfo(nextVersion: boolean): { services: ServiceInfo[] };
  services: {
    getLocalNodeServices(): ServiceInfo[];
    services: readonly (ServiceInfo & { readonly local: boolean; readonly node: { readonly available: boolean } })[];
  };
  discoverer: { sendLocalNodeInfo(): PromiseLike<void> };
}

/** Interval at which a process that stands aside checks that others still offer its services. */
const CHECK_MS = 1_000;

/** Offered by every process of a service, for operators. */
const isForOperators = (action: string): boolean => action.endsWith('.process.describe');

export function standingAside(databases: ReadonlyMap<string, Pick<Database, 'onSilence'>>): Middleware {
  const aside = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  const registryOf = (broker: ServiceBroker): Registry => broker.registry as unknown as Registry;

  const isOfferedElsewhere = (broker: ServiceBroker, service: string): boolean =>
    registryOf(broker).services.services.some(
      ({ name, local, node, actions }) =>
        name === service && !local && node.available && Object.keys(actions).some((action) => !isForOperators(action)),
    );

  /** Events still arrive, so that what the process remembers is not outdated when it is back. */
  async function announce(broker: ServiceBroker): Promise<void> {
    const registry = registryOf(broker);
    const info = registry.regenerateLocalRawInfo(true);
    info.services = registry.services.getLocalNodeServices().map((service) => {
      if (!aside.has(service.name)) return service;
      const kept = Object.entries(service.actions).filter(([action]) => isForOperators(action));
      return { ...service, actions: Object.fromEntries(kept) };
    });
    await registry.discoverer.sendLocalNodeInfo();
  }

  async function change(broker: ServiceBroker, service: string, silent: boolean): Promise<void> {
    if (silent && !isOfferedElsewhere(broker, service)) return;
    if (silent) aside.add(service);
    else if (!aside.delete(service)) return;
    broker.logger.warn(
      silent
        ? `The database does not answer: other processes take over the calls of ${service}.`
        : `The database answers again: this process takes calls of ${service}.`,
    );
    await announce(broker);
  }

  /** The last ones that offered a service elsewhere may be gone, or stand aside too. */
  function check(broker: ServiceBroker): void {
    const needed = [...aside].filter((service) => !isOfferedElsewhere(broker, service));
    if (needed.length === 0) return;
    for (const service of needed) aside.delete(service);
    Promise.resolve(announce(broker)).catch(() => {});
  }

  let nodeID = '';
  return {
    name: 'StandingAside',
    started(broker: ServiceBroker) {
      if (!broker.transit) return;
      ({ nodeID } = broker);
      for (const [service, database] of databases) database.onSilence((silent) => change(broker, service, silent));
      timer = setInterval(check, CHECK_MS, broker).unref();
    },
    stopped() {
      clearInterval(timer);
    },
    localAction(next: (ctx: Context) => Promise<unknown>, action: { service: { name: string } }) {
      return (ctx: Context) =>
        next(ctx).catch((error: unknown) => {
          const isRemote = ctx.nodeID !== nodeID;
          if (!isRemote || !aside.has(action.service.name)) throw error;
          if (!(error instanceof PlatformError) || error.code !== 'SERVICE_UNAVAILABLE') throw error;
          // The same error that a caller gets whose process was lost.
          throw new Errors.RequestRejectedError({ action: ctx.action!.name!, nodeID });
        });
    },
  } as unknown as Middleware;
}

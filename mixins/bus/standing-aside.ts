/**
 * A process whose link to the database is silent stands aside: the others send the actions of the services concerned to
 * another process that offers them, and what was under way here is reported as lost, so that callers repeat what may be
 * repeated (takeover.ts). Where no process with a working link offers a service it stays, and answers 503 at once.
 */
import { type Context, Errors, type Middleware, type ServiceBroker } from 'moleculer';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Database } from '../database/database.ts';
import { middleware } from '../moleculer.ts';

interface ServiceInfo {
  readonly name: string;
  readonly actions?: Record<string, object>;
  readonly metadata: Record<string, unknown>;
}

/** Interval at which a process with a silent link checks what the others offer. */
const CHECK_MS = 1_000;

/** In the metadata of a service that a process offers although its link is silent. */
const SILENT = 'databaseSilent';

/** Offered by every process of a service, for operators. */
const isForOperators = (action: string): boolean => action.endsWith('.process.describe');

export function standingAside(databases: ReadonlyMap<string, Pick<Database, 'onSilence'>>): Middleware {
  const silent = new Set<string>();
  /** Of these, those whose calls other processes take over. */
  const aside = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  const worksElsewhere = (broker: ServiceBroker, service: string): boolean =>
    broker.registry.services.services.some(
      ({ name, local, node, actions, metadata }) =>
        name === service &&
        !local &&
        node.available &&
        metadata[SILENT] !== true &&
        Object.keys(actions).some((action) => !isForOperators(action)),
    );

  /** Events still arrive, so that what the process remembers is not outdated when it is back. */
  function announced(service: ServiceInfo): ServiceInfo {
    if (!silent.has(service.name)) return service;
    const metadata = { ...service.metadata, [SILENT]: true };
    if (!aside.has(service.name)) return { ...service, metadata };
    const kept = Object.entries(service.actions ?? {}).filter(([action]) => isForOperators(action));
    return { ...service, metadata, actions: Object.fromEntries(kept) };
  }

  async function announce(broker: ServiceBroker): Promise<void> {
    const { registry } = broker;
    const info = registry.regenerateLocalRawInfo(true);
    Object.assign(info, { services: registry.services.getLocalNodeServices().map(announced) });
    await registry.discoverer.sendLocalNodeInfo();
  }

  async function change(broker: ServiceBroker, service: string, isSilent: boolean): Promise<void> {
    if (isSilent) silent.add(service);
    else silent.delete(service);
    broker.logger.warn(
      isSilent
        ? `The database does not answer ${service}: other processes with a working link take over its calls.`
        : `The database answers ${service} again: this process takes its calls.`,
    );
    decide(broker);
    await announce(broker);
  }

  /** Returns whether something changed. */
  function decide(broker: ServiceBroker): boolean {
    const before = [...aside].join();
    aside.clear();
    for (const service of silent) if (worksElsewhere(broker, service)) aside.add(service);
    return before !== [...aside].join();
  }

  /** The others may be gone, silent too, or back. */
  function check(broker: ServiceBroker): void {
    if (silent.size > 0 && decide(broker)) announce(broker).catch(() => {});
  }

  let nodeID = '';
  return middleware({
    name: 'StandingAside',
    started(broker: ServiceBroker) {
      if (!broker.transit) return;
      ({ nodeID } = broker);
      for (const [service, database] of databases) database.onSilence((isSilent) => change(broker, service, isSilent));
      timer = setInterval(check, CHECK_MS, broker).unref();
    },
    stopped() {
      clearInterval(timer);
    },
    localAction(next: (ctx: Context) => Promise<unknown>, action: { name: string; service: { name: string } }) {
      return (ctx: Context) =>
        next(ctx).catch((error: unknown) => {
          const isRemote = ctx.nodeID !== nodeID;
          if (!isRemote || !aside.has(action.service.name)) throw error;
          if (!(error instanceof PlatformError) || error.code !== 'SERVICE_UNAVAILABLE') throw error;
          // The same error that a caller gets whose process was lost.
          throw new Errors.RequestRejectedError({ action: action.name, nodeID });
        });
    },
  });
}

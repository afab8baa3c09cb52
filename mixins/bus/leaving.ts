/** A process tells the others that it leaves, while it still answers what they have sent or are about to send. */
import type { ServiceBroker } from 'moleculer';

interface Registry {
  regenerateLocalRawInfo(nextVersion: boolean, stopping: boolean): { services: unknown[] };
  services: { getLocalNodeServices(): { name: string }[] };
  discoverer: { sendLocalNodeInfo(): PromiseLike<void> };
}

/** Nobody calls it, and while it answers its callers it must hear of grants that end. */
const STAYS = 'gateway';

/** The others send no more calls to this process. Calls within it go on. */
export async function announceLeaving(broker: ServiceBroker): Promise<void> {
  if (!broker.transit) return;
  const registry = broker.registry as unknown as Registry;
  const info = registry.regenerateLocalRawInfo(true, true);
  info.services = registry.services.getLocalNodeServices().filter(({ name }) => name === STAYS);
  await registry.discoverer.sendLocalNodeInfo();
}

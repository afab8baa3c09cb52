/** A process tells the others that it leaves, while it still answers what they have sent or are about to send. */
import type { ServiceBroker } from 'moleculer';

/** No service calls it, and while it answers its callers it must hear of grants that end. */
const STAYS = 'gateway';

/** The others send no more calls to this process. Calls within it go on. */
export async function announceLeaving(broker: ServiceBroker): Promise<void> {
  if (!broker.transit) return;
  const { registry } = broker;
  const info = registry.regenerateLocalRawInfo(true, true);
  const services = registry.services.getLocalNodeServices().filter(({ name }) => name === STAYS);
  Object.assign(info, { services });
  await registry.discoverer.sendLocalNodeInfo();
}

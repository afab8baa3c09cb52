/** Processes that are gone without having said so: taken off the list at once, and counted by how that was noticed. */
import type { ServiceBroker } from 'moleculer';

/**
 * `unsubscribed`: NATS has no subscriber on its subject any more, because its connection ended. `silent`: it is connected and
 * does not answer. `heartbeat`: nothing was asked of it, and its heartbeats stopped.
 */
type Detection = 'unsubscribed' | 'silent' | 'heartbeat';

const counts = new WeakMap<ServiceBroker, Record<Detection, number>>();

/** Processes that this one has lost, since its start. */
export function lostNodes(broker: ServiceBroker): Record<Detection, number> {
  let count = counts.get(broker);
  if (!count) counts.set(broker, (count = { unsubscribed: 0, silent: 0, heartbeat: 0 }));
  return count;
}

/** Nothing more is sent to the node until it announces itself again, and what waits for it fails now. */
export function loseNode(broker: ServiceBroker, nodeId: string, detection: Detection): void {
  if (!isAvailable(broker, nodeId)) return;
  lostNodes(broker)[detection]++;
  broker.registry.nodes.disconnected(nodeId, true);
}

export const isAvailable = (broker: ServiceBroker, nodeId: string): boolean =>
  broker.registry.nodes.get(nodeId)?.available === true;

export const availableNodes = (broker: ServiceBroker): number =>
  broker.registry.nodes.toArray().filter(({ available }) => available).length;

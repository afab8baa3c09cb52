/** True while this process is connected to the bus. */
import type { ServiceBroker } from 'moleculer';

/** The bus has this process: without NATS always. */
export function busConnected(broker: ServiceBroker): boolean {
  const { transit } = broker;
  return !transit || (transit.connected && !('linked' in transit.tx && transit.tx.linked === false));
}

/** True while this process is connected to the bus. */
import type { ServiceBroker } from 'moleculer';

/** The bus has this process: without NATS always. */
export function busConnected(broker: ServiceBroker): boolean {
  const transit = broker.transit as unknown as { connected: boolean; tx: { linked?: boolean } } | null | undefined;
  return !transit || (transit.connected && transit.tx.linked !== false);
}

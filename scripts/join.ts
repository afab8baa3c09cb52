/**
 * How a command joins a running platform as one more node: over NATS when NATS_URL is set, otherwise over the control
 * socket in DATA_DIR, which only the owner of that folder can use. When it cannot join, it prints the reason on stderr and
 * exits with code 1.
 */
import { hostname } from 'node:os';
import { type BrokerOptions, ServiceBroker } from 'moleculer';
import { brokerOptions } from '../config/broker.ts';
import { busAddress } from '../config/bus.ts';
import { readConfig } from '../config/env.ts';
import type { ServiceName } from '../config/services.ts';
import { BUS_POLICY } from '../contracts/bus.ts';
import { natsBus } from '../mixins/bus/nats-bus.ts';
import { type ControlSocket, connectToPlatform } from '../mixins/control-socket.ts';

/** After which a command gives up. */
const JOIN_MS = 10_000;
const SILENT = 'the platform does not answer. It may be waiting for its database, as its log says.';

/**
 * A started broker; `leave` ends it. `onJoin` is called with the address that it joins; `commands` are those of a console
 * in addition to Moleculer's own.
 */
export async function joinPlatform(
  name: string,
  options: { exitCode?: number; onJoin?: (text: string) => void; commands?: object[] } = {},
): Promise<{ broker: ServiceBroker; leave: () => Promise<void> }> {
  const fail = (message: unknown): never => {
    console.error(message);
    process.exit(options.exitCode ?? 1);
  };
  let config: ReturnType<typeof readConfig>;
  try {
    config = readConfig(process.env, { operator: `${name}-${hostname()}-${process.pid}` });
  } catch (error) {
    return fail(error instanceof Error ? error.message : error);
  }
  let control: ControlSocket | null = null;
  let leaving = false;
  if (config.bus) {
    options.onJoin?.(`Joining the cluster on ${busAddress(config.bus)} …`);
  } else {
    control = await connectToPlatform(config.dataDir, () => {
      if (leaving) return;
      console.log('\nThe platform has stopped.');
      process.exit(options.exitCode ?? 0);
    });
    if (!control)
      return fail(
        `No platform is running on ${config.dataDir}: start one with npm start, set DATA_DIR to its folder, or set NATS_URL to join a cluster.`,
      );
  }
  const bus = control ? null : natsBus(config, BUS_POLICY);
  const broker = new ServiceBroker({
    ...brokerOptions(config),
    internalServices: true, // the console asks its own node for what it lists
    transporter: control?.transporter ?? bus,
    logger: { type: 'Console', options: { formatter: 'short', level: 'warn' } },
    logLevel: 'warn',
    replOptions: { delimiter: 'erp $', customCommands: options.commands ?? [] },
  } as BrokerOptions);
  const late = setTimeout(() => {
    fail(`No process could be joined within ${JOIN_MS / 1_000} s: ${bus?.trouble ?? SILENT}`);
  }, JOIN_MS);
  await broker.start();
  clearTimeout(late);
  return {
    broker,
    leave: async () => {
      leaving = true;
      await broker.stop();
      await control?.close();
    },
  };
}

/** Waits for services that a command calls; its failure names the unavailable ones. */
export async function requireServices(broker: ServiceBroker, ...services: ServiceName[]): Promise<void> {
  const absent = await Promise.all(
    services.map((name) =>
      broker.waitForServices(name, JOIN_MS, 100).then(
        () => [],
        () => [name],
      ),
    ),
  );
  const missing = absent.flat().join(' and ');
  if (missing)
    throw new Error(
      `No process offers ${missing} within ${JOIN_MS / 1_000} s: its process does not run, or waits for its database or for ` +
        'NATS, as its log and /readyz on its HEALTH_PORT say. Run this again when it is ready.',
    );
}

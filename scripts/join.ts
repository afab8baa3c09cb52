/**
 * How a command joins a running platform as one more node: over NATS when NATS_URL is set, otherwise over the control
 * socket in DATA_DIR, which only the owner of that folder can enter. What stands in the way is one sentence on stderr and
 * exit code 1.
 */
import { hostname } from 'node:os';
import { type BrokerOptions, ServiceBroker } from 'moleculer';
import { brokerOptions } from '../config/broker.ts';
import { readConfig } from '../config/env.ts';
import { type ControlSocket, connectToPlatform } from '../mixins/control-socket.ts';
import { natsBus } from '../mixins/nats-bus.ts';

/** A started broker; `leave` ends it. `onJoin` says where it goes. */
export async function joinPlatform(
  name: string,
  options: { exitCode?: number; onJoin?: (text: string) => void } = {},
): Promise<{ broker: ServiceBroker; leave: () => Promise<void> }> {
  const fail = (message: unknown): never => {
    console.error(message);
    process.exit(options.exitCode ?? 1);
  };
  let config: ReturnType<typeof readConfig>;
  try {
    config = readConfig();
  } catch (error) {
    return fail(error instanceof Error ? error.message : error);
  }
  let control: ControlSocket | null = null;
  let leaving = false;
  if (config.natsUrl) {
    options.onJoin?.(`Joining the cluster on ${config.natsUrl} …`);
  } else {
    control = await connectToPlatform(config.dataDir, () => {
      if (leaving) return;
      console.log('\nThe platform has stopped.');
      process.exit(options.exitCode ?? 0);
    });
    if (!control)
      return fail(
        `No platform runs on ${config.dataDir}: start it with npm start, name its folder in DATA_DIR, or set NATS_URL for a cluster.`,
      );
  }
  const broker = new ServiceBroker({
    ...brokerOptions({ ...config, nodeId: `${name}-${hostname()}-${process.pid}` }),
    transporter: control?.transporter ?? natsBus(config),
    logger: { type: 'Console', options: { formatter: 'short', level: 'warn' } },
    logLevel: 'warn',
    replOptions: { delimiter: 'erp $' },
  } as BrokerOptions);
  await broker.start();
  return {
    broker,
    leave: async () => {
      leaving = true;
      await broker.stop();
      await control?.close();
    },
  };
}

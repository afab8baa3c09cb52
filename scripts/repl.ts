/**
 * `npm run repl`: an operator's console on a running platform. It joins as one more node: over NATS when NATS_URL is
 * set, otherwise over the control socket in DATA_DIR, which only the owner of that folder can enter.
 */
import { hostname } from 'node:os';
import { type BrokerOptions, ServiceBroker } from 'moleculer';
import { brokerOptions } from '../config/broker.ts';
import { readConfig } from '../config/env.ts';
import { type ControlSocket, connectToPlatform } from '../mixins/control-socket.ts';
import { natsBus } from '../mixins/nats-bus.ts';

let config: ReturnType<typeof readConfig>;
try {
  config = readConfig();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

let control: ControlSocket | null = null;
if (config.natsUrl) {
  console.log(`Joining the cluster on ${config.natsUrl} …`);
} else {
  control = await connectToPlatform(config.dataDir, () => {
    console.log('\nThe platform has stopped.');
    process.exit(0);
  });
  if (!control) {
    console.error(
      `No platform runs on ${config.dataDir}: start it with npm start, name its folder in DATA_DIR, or set NATS_URL for a cluster.`,
    );
    process.exit(1);
  }
}

const broker = new ServiceBroker({
  ...brokerOptions({ ...config, nodeId: `repl-${hostname()}-${process.pid}` }),
  transporter: control?.transporter ?? natsBus(config),
  logger: { type: 'Console', options: { formatter: 'short', level: 'warn' } },
  logLevel: 'warn',
  replOptions: { delimiter: 'erp $' },
} as BrokerOptions);
await broker.start();
await broker.waitForServices('metadata', 5_000, 100).catch(() => {
  console.log('No metadata service answers yet; `nodes` shows who is there.');
});
console.log('Try: nodes, services, actions, call metadata.tenants.list, help. Leave with Ctrl-D.');
broker.repl();

/** A node of its own process with one service, for tests that kill it. `node remote-node.ts <nats url>` */
import { setTimeout as pause } from 'node:timers/promises';
import { ServiceBroker } from 'moleculer';
import { brokerOptions } from '../../../config/broker.ts';
import { readConfig } from '../../../config/env.ts';
import type { OperationCall } from '../../../lib/operation.ts';
import { natsBus } from '../../../mixins/bus/nats-bus.ts';
import { OPEN_POLICY } from '../../support/nats.ts';

/** Its response. */
export interface RemoteAnswer {
  pid: number;
}

const config = readConfig({ NATS_URL: process.argv[2], LOG_LEVEL: 'silent', NODE_ID: `remote-${process.pid}` });
const broker = new ServiceBroker({
  ...brokerOptions(config),
  transporter: natsBus(config, OPEN_POLICY),
  logger: false,
});
broker.createService({
  name: 'metadata',
  actions: {
    async answer(ctx: { params: OperationCall }) {
      await pause(Number(ctx.params.query['delay'] ?? 0));
      return { body: Buffer.from(JSON.stringify({ pid: process.pid } satisfies RemoteAnswer)) };
    },
  },
});
await broker.start();
process.send?.('ready');

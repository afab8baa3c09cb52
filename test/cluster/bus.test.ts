/** The bus itself on a real NATS: large packets, an outage, and who notices. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ServiceBroker } from 'moleculer';
import type { NatsConnection } from 'nats';
import { brokerOptions } from '../../config/broker.ts';
import { readConfig } from '../../config/env.ts';
import { busConnected } from '../../mixins/bus/connected.ts';
import { lostNodes } from '../../mixins/bus/lost-nodes.ts';
import { natsBus } from '../../mixins/bus/nats-bus.ts';
import { peerCheck } from '../../mixins/peer-check.ts';
import { type NatsServer, OPEN_POLICY, startNats } from '../support/nats.ts';

/** Keeps this thread, and with it every broker of this process, from doing anything else. */
function block(milliseconds: number): void {
  for (const end = Date.now() + milliseconds; Date.now() < end; );
}

describe('the bus', () => {
  let nats: NatsServer;
  let caller: ServiceBroker;
  let answerer: ServiceBroker;

  const broker = (name: string, heartbeatInterval = 1): ServiceBroker => {
    const config = readConfig({ NATS_URL: nats.url, NODE_ID: name, LOG_LEVEL: 'silent' });
    return new ServiceBroker({
      ...brokerOptions(config),
      heartbeatInterval,
      transporter: natsBus(config, OPEN_POLICY),
      middlewares: [peerCheck()],
    });
  };
  const until = async (what: string, condition: () => boolean, milliseconds: number): Promise<void> => {
    for (const end = Date.now() + milliseconds; !condition(); await pause(50))
      if (Date.now() > end) throw new Error(`Not within ${milliseconds} ms: ${what}`);
  };

  before(async () => {
    nats = await startNats();
    caller = broker('caller');
    answerer = broker('answerer');
    answerer.createService({
      name: 'data',
      actions: {
        bytes: (ctx: { params: { bytes: Buffer } }) => ({ bytes: ctx.params.bytes }),
        slow: () => pause(20_000),
        busy: async (ctx: { params: { milliseconds: number } }) => {
          await pause(450); // by then the caller has asked whether this process is still there
          block(ctx.params.milliseconds);
          await pause(100);
          return { done: true };
        },
      },
    });
    await Promise.all([caller.start(), answerer.start()]);
    await caller.waitForServices('data', 5_000);
  });
  after(async () => {
    await Promise.all([caller?.stop(), answerer?.stop()]);
    await nats?.stop();
  });

  it('discovers a process as soon as it is ready, not with its next heartbeat', async () => {
    const late = broker('late', 3_600);
    late.createService({ name: 'agent', actions: { here: () => true } });
    await late.start();
    try {
      await caller.waitForServices('agent', 10_000, 20);
      assert.equal(await caller.call('agent.here'), true);
    } finally {
      await late.stop();
    }
  });

  it('carries bytes as bytes, also above the message size of NATS', async () => {
    for (const size of [0, 1, 1_000_000, 1_048_576, 5_000_000]) {
      const bytes = randomBytes(size);
      const answer = (await caller.call('data.bytes', { bytes })) as { bytes: Buffer };
      assert.ok(Buffer.isBuffer(answer.bytes));
      assert.ok(answer.bytes.equals(bytes), `${size} bytes`);
    }
  });

  it('counts refused packets, but not failures in handling admitted ones', async () => {
    const { tx } = answerer.transit as unknown as {
      tx: { refused: number; messageHandler(command: string, packet: unknown): unknown };
    };
    const { messageHandler } = tx;
    let handled = 0;
    tx.messageHandler = (command, packet) => {
      if (command !== 'PING') return messageHandler(command, packet);
      handled++;
      throw new Error('a mistake of the handler');
    };
    void caller.ping(answerer.nodeID, 500);
    await until('the ping has failed', () => handled > 0, 2_000);
    tx.messageHandler = messageHandler;
    assert.equal(tx.refused, 0);
    const { client } = (caller.transit as unknown as { tx: { client: NatsConnection } }).tx;
    const [identity] = answerer.nodeID.split('/');
    client.publish(`MOL-erp.nobody.PING.${identity}.${answerer.nodeID}`);
    await until('the packet is refused', () => tx.refused === 1, 2_000);
  });

  it('logs the number of refused packets, those of a burst after it', async () => {
    const transporter = answerer.transit!.tx as unknown as { logger: { warn(line: string): void } };
    const { logger } = transporter;
    const lines: string[] = [];
    transporter.logger = { ...logger, warn: (line) => void lines.push(line) };
    const wire = (caller.transit!.tx as unknown as { client: NatsConnection }).client;
    await pause(1_100); // behind the line of another test
    for (let i = 0; i < 20; i++) wire.publish('MOL-erp.nobody.HEARTBEAT.all', Buffer.from('x'));
    await until('the second line', () => lines.length === 2, 3_000);
    transporter.logger = logger;
    const counts = lines.map((line) => Number(/^Refused packets from the bus: (\d+); last: /.exec(line)?.[1]));
    assert.deepEqual(counts, [1, 19]);
  });

  it('does not treat others as lost because it was too busy to receive heartbeats', async () => {
    // Caller and answerer share a thread here: longer than an answer to a ping is waited for, and longer than heartbeats are.
    for (const milliseconds of [1_500, 7_000])
      assert.deepEqual(await caller.call('data.busy', { milliseconds }), { done: true }, `busy for ${milliseconds} ms`);
  });

  it('does not treat others as lost either when it is busy each time it looks', async () => {
    const lost = { ...lostNodes(caller) };
    block(600);
    caller.registry.discoverer.checkRemoteNodes(); // looks again in two seconds, and then once more
    await pause(1_500);
    block(600);
    await pause(100);
    block(7_000);
    await pause(1_000);
    assert.deepEqual(lostNodes(caller), lost);
  });

  it('detects the loss of NATS at once, and recovers when it is back', async () => {
    assert.equal(busConnected(caller), true);
    const transporter = caller.transit!.tx as unknown as { logger: object };
    const { logger } = transporter;
    const lines: string[] = [];
    const note = (...parts: unknown[]): void => void lines.push(String(parts.at(-1)));
    transporter.logger = { ...logger, info: note, warn: note };
    const lost = assert.rejects(Promise.resolve(caller.call('data.slow')), { name: 'RequestRejectedError' });
    await nats.stop();
    await lost; // pending calls to the other side fail at once
    await until('the outage is noticed', () => !busConnected(caller) && !busConnected(answerer), 3_000);
    await pause(6_000); // longer than heartbeats are waited for
    await nats.start();
    await until('both are connected', () => busConnected(caller) && busConnected(answerer), 10_000);
    const began = Date.now();
    await caller.waitForServices('data', 10_000, 50);
    const answer = (await caller.call('data.bytes', { bytes: Buffer.from('back') })) as { bytes: Buffer };
    assert.equal(answer.bytes.toString(), 'back');
    assert.ok(Date.now() - began < 10_000);
    transporter.logger = logger;
    assert.deepEqual(
      lines.filter((line) => /(the connection|Reconnected) to NATS/.test(line)),
      ['Lost the connection to NATS; reconnecting.', 'Reconnected to NATS.'],
    );
  });

  it('leaves no reconnecting connection when a process ends without NATS', async () => {
    const one = broker('one');
    await one.start();
    const { client } = (one.transit as unknown as { tx: { client: { isClosed(): boolean } } }).tx;
    await nats.stop();
    await until('the outage is noticed', () => !busConnected(one), 10_000);
    await one.stop();
    assert.equal(client.isClosed(), true);
    await nats.start();
  });
});

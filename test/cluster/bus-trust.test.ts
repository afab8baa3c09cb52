/**
 * A compromised data process with all that data has on the bus: its certificate authority, its NATS user,
 * its keys. It cannot call operator actions, forge users, read others' messages, or impersonate another service.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { encode } from 'cbor-x';
import { ServiceBroker } from 'moleculer';
import { connect, type NatsConnection, nkeyAuthenticator } from 'nats';
import { brokerOptions } from '../../config/broker.ts';
import { readConfig } from '../../config/env.ts';
import { ALL_SERVICES, OPERATOR } from '../../config/services.ts';
import { BUS_POLICY } from '../../contracts/bus.ts';
import { call } from '../../contracts/call.ts';
import { natsBus } from '../../mixins/bus/nats-bus.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { OPEN_POLICY, startSecureNats } from '../support/nats.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform } from '../support/platform.ts';

const OTHERS = 'auth+metadata+ratelimit';
/** Longer than a packet, and an answer to it, are under way. */
const SETTLED_MS = 400;

describe("a process with data's credentials", function () {
  this.timeout(90_000);
  let nats: Awaited<ReturnType<typeof startSecureNats>>;
  let database: TestDatabase;
  let gateway: TestPlatform;
  let others: TestPlatform;
  let data: TestPlatform;
  let sam: Api;
  /** On the wire, with nothing of ours between it and NATS. */
  let wire: NatsConnection;
  const denied: string[] = [];
  const brokers: ServiceBroker[] = [];

  before(async () => {
    [nats, database] = await Promise.all([startSecureNats([OTHERS]), createPlatformDatabase()]);
    const start = (identity: string): Promise<TestPlatform> =>
      startPlatform({
        services: identity.split('+') as never,
        database,
        seed: false,
        env: { ...nats.environment(identity), NODE_ID: 'one' },
      });
    [others, data] = await Promise.all([start(OTHERS), start('data')]);
    gateway = await start('gateway');
    sam = api(gateway.baseUrl, await tokenFor(gateway.baseUrl, 'sam'));
    wire = await connectAs('data');
    void (async () => {
      for await (const { type, data: what } of wire.status()) if (type === 'error') denied.push(String(what));
    })();
  });
  afterEach(async () => {
    for (const broker of brokers.splice(0)) await broker.stop();
  });
  after(async () => {
    await wire?.close();
    for (const platform of [gateway, data, others]) await platform?.stop();
    await nats?.stop();
    await database?.drop();
  });

  const connectAs = (identity: string): Promise<NatsConnection> =>
    connect({
      servers: nats.url.slice('tls://'.length),
      tls: { caFile: join(nats.folder, identity, 'ca.pem'), checkServerIdentity: () => undefined } as never,
      authenticator: nkeyAuthenticator(readFileSync(join(nats.folder, identity, 'user.nk'))),
    });

  /** A broker with the credentials of an identity that checks nothing itself and offers these services. */
  async function brokerAs(identity: string, env: Record<string, string> = {}): Promise<ServiceBroker> {
    const settings = { ...nats.environment(identity), LOG_LEVEL: 'silent', ...env };
    const config = readConfig(
      identity === OPERATOR ? settings : { SERVICES: identity.replaceAll('+', ','), NODE_ID: 'evil', ...settings },
      identity === OPERATOR ? { operator: 'console' } : {},
    );
    const policy = { ...OPEN_POLICY, mayHear: BUS_POLICY.mayHear };
    const broker = new ServiceBroker({ ...brokerOptions(config), transporter: natsBus(config, policy) });
    brokers.push(broker);
    await broker.start();
    await broker.waitForServices(['auth', 'metadata', 'data', 'gateway'], 5_000, 50);
    return broker;
  }

  const node = (platform: TestPlatform): string => platform.config.nodeId;
  /** Sends a packet with its own words on a subject of its choice, and lets it have its effect. */
  async function send(subject: string, payload: Record<string, unknown>): Promise<void> {
    wire.publish(subject, encode({ ver: '5', sender: 'data/evil', ...payload }));
    await wire.flush();
    await pause(SETTLED_MS);
  }
  const request = (action: string, more: object = {}): Record<string, unknown> => ({
    id: randomUUID(),
    action,
    params: {},
    meta: {},
    level: 1,
    ...more,
  });
  const ADA = {
    requestId: 'req_01JD9Z8Q4M7T2V5K6N8P0R3S1W',
    clientRequestId: null,
    clientId: 'erp-cli',
    grantId: 'x',
    scopes: ['metadata:deploy', 'metadata:read', 'data:read', 'data:write'],
    agent: false,
    person: true,
    agentRunId: null,
    tokenExpiresAt: null,
    ip: null,
    channel: 'api',
  };
  const ada = async (): Promise<object> => {
    const identity = await api(gateway.baseUrl, await tokenFor(gateway.baseUrl, 'ada')).get('/identity');
    const { user, tenant } = identity.body;
    return { ...ADA, userId: user.id, tenantId: tenant.id, deadline: Date.now() + 20_000 };
  };

  it("cannot call an operator's action under any name", async () => {
    const broker = await brokerAs('data');
    for (const [action, params] of [
      ['auth.users.createLink', { username: 'ada@demo.example' }],
      ['auth.keys.rotate', {}],
      ['metadata.tenants.create', { key: 'evil', name: 'Evil' }],
    ] as const)
      await assert.rejects(Promise.resolve(broker.call(action, params)), /may not call/, action);

    const keys = (): Promise<unknown> => call(gateway.broker, 'auth.keys.list', {});
    const before = await keys();
    const rotate = request('auth.keys.rotate', { sender: 'operator/console' });
    await send(`MOL-erp.data.REQ.${OTHERS}.${node(others)}`, rotate);
    denied.length = 0;
    await send(`MOL-erp.operator.REQ.${OTHERS}.${node(others)}`, rotate);
    assert.match(denied.join(), /permissions.violation/i);
    assert.deepEqual(await keys(), before);
  });

  it('while an operator does', async () => {
    const broker = await brokerAs(OPERATOR);
    const { url } = await call(broker, 'auth.users.createLink', { username: 'ada@demo.example' });
    assert.match(url, /^http/);
  });

  it('cannot run an operation for MCP callers', async () => {
    const params = { ticket: 'x'.repeat(32), operationId: 'metadata.types.list', path: {}, body: null };
    for (const identity of ['data', OTHERS, OPERATOR]) {
      const broker = await brokerAs(identity);
      await assert.rejects(
        Promise.resolve(broker.call('gateway.operations.run', params, { nodeID: node(gateway) })),
        /may not call/,
        identity,
      );
    }
  });

  it('cannot act for a user', async () => {
    const broker = await brokerAs('data', { BUS_KEYS_FILE: '' });
    const meta = { request: await ada() };
    for (const action of ['metadata.deployments.list', 'auth.identity.get', 'data.records.list', 'data.audit.deny'])
      await assert.rejects(
        Promise.resolve(broker.call(action, {}, { meta, nodeID: node(action.startsWith('data') ? data : others) })),
        /may not call/,
        action,
      );
  });

  it('receives nothing from the gateway that is valid elsewhere', async () => {
    const sealed: Buffer[] = [];
    const inbox = wire.subscribe('MOL-erp.*.*.data.>', {
      callback: (_, message) => {
        if (message.subject.includes('.REQ.')) sealed.push(Buffer.from(message.data));
      },
    });
    await wire.flush();
    assert.equal((await sam.get('/data/Account?take=1')).status, 200);
    inbox.unsubscribe();
    assert.ok(sealed.length > 0, 'as any process of data it gets the packets of data');
    denied.length = 0;
    for (const packet of sealed) wire.publish(`MOL-erp.gateway.REQ.${OTHERS}.${node(others)}`, packet);
    for (const packet of sealed) wire.publish(`MOL-erp.gateway.REQ.data.${node(data)}`, packet);
    await wire.flush();
    await pause(SETTLED_MS);
    assert.match(denied.join(), /permissions.violation/i);
  });

  it('receives no messages addressed to others', async () => {
    denied.length = 0;
    let heard = 0;
    const subjects = ['>', 'MOL-erp.>', `MOL-erp.*.REQ.${OTHERS}.>`, 'MOL-erp.*.RES.gateway.>', 'MOL-erp.*.*.*.>'];
    for (const subject of subjects) wire.subscribe(subject, { callback: (error) => void (error ? null : heard++) });
    await wire.flush();
    await pause(SETTLED_MS);
    await tokenFor(gateway.baseUrl, 'mia');
    assert.equal((await sam.get('/identity')).status, 200);
    assert.equal(heard, 0);
  });

  it('cannot impersonate auth by an announcement', async () => {
    const service = { name: 'auth', fullName: 'auth', actions: { 'auth.http.handle': { name: 'auth.http.handle' } } };
    const info = { instanceID: 'x', seq: 9, services: [service], config: {}, client: {}, ipList: [], hostname: 'x' };
    await send('MOL-erp.data.INFO.all', info);
    await send('MOL-erp.data.INFO.all', { ...info, sender: 'auth/evil' });
    await send('MOL-erp.data.INFO.all', { ...info, sender: node(others), seq: 99 });
    denied.length = 0;
    await send('MOL-erp.auth.INFO.all', { ...info, sender: 'auth/evil' });
    assert.match(denied.join(), /permissions.violation/i);
    const offering = gateway.broker.registry
      .getServiceList({ onlyAvailable: true })
      .flatMap(({ name, nodeID }) => (name === 'auth' ? [nodeID] : []));
    assert.deepEqual(offering, [node(others)]);
  });

  it('cannot disconnect other processes or end sessions', async () => {
    await send('MOL-erp.data.DISCONNECT.all', { sender: node(others) });
    const { grantId } = (await sam.get('/identity')).body.connection;
    const revoked = { id: randomUUID(), event: 'auth.grants.revoked', data: { grantIds: [grantId] }, broadcast: true };
    await send(`MOL-erp.data.EVENT.gateway.${node(gateway)}`, { ...revoked, groups: ['gateway'], level: 1 });
    assert.equal((await sam.get('/data/Account?take=1')).status, 200);
    assert.equal((await sam.get('/identity')).status, 200);
  });

  it("could not forge a user with the gateway's NATS user either, without its keys", async () => {
    const broker = await brokerAs('gateway', { BUS_KEYS_FILE: '' });
    const context = await ada();
    const list = (meta: object): Promise<unknown> =>
      Promise.resolve(broker.call('metadata.deployments.list', { query: {}, headers: {}, path: {} }, { meta }));
    await assert.rejects(list({ request: context }), /not sealed/);
    const [, own] = readFileSync(join(nats.folder, 'data', 'context.keys'), 'utf8').split(/\s/);
    const keys = join(nats.folder, 'forged.keys');
    writeFileSync(keys, ALL_SERVICES.map((service) => `${service} ${own}\n`).join(''));
    const withDatas = await brokerAs('gateway', { BUS_KEYS_FILE: keys, NODE_ID: 'evil2' });
    await assert.rejects(
      Promise.resolve(withDatas.call('metadata.deployments.list', {}, { meta: { request: context } })),
      /unknown key/,
    );
  });
});

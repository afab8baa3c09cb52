/** Admission of packets from the bus: the subject proves the sender, and everything is checked against it. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { BusConfig } from '../../../config/bus.ts';
import { BUS_POLICY } from '../../../contracts/bus.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { Admission, type BusPacket, Refused } from '../../../mixins/bus/admission.ts';

const KEYS = new Map([
  ['data', [randomBytes(32)]],
  ['metadata', [randomBytes(32)]],
]);
const ADA: RequestContext = {
  requestId: 'req_01JD9Z8Q4M7T2V5K6N8P0R3S1W',
  clientRequestId: null,
  tenantId: '0193d3a7-0c5e-7d10-a5b1-8f0f2f1c9e11',
  userId: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
  clientId: 'erp-cli',
  grantId: 'grant',
  scopes: ['data:read'],
  agent: false,
  person: true,
  agentRunId: null,
  tokenExpiresAt: null,
  ip: '192.0.2.1',
  channel: 'api',
  deadline: 0,
};
const METADATA = 'metadata/one';
const ACTION = 'metadata.deployments.list';

type Keys = BusConfig['contextKeys'];

const admission = (identity: string, contextKeys: Keys = KEYS): Admission =>
  new Admission({ servers: [], tls: null, login: null, identity, contextKeys }, BUS_POLICY);

/** A call as a process of `identity` sends it. */
function callFrom(
  identity: string,
  { keys = KEYS as Keys, context = fresh(), action = ACTION, meta = {} } = {},
): BusPacket {
  const payload = {
    id: randomUUID(),
    action,
    params: {},
    meta: { request: context, ...meta },
    sender: `${identity}/one`,
  };
  const packet = { type: 'REQ', target: METADATA, payload: payload as BusPacket['payload'] };
  admission(identity, keys).prepare(packet);
  return packet;
}

const fresh = (): RequestContext => ({ ...ADA, deadline: Date.now() + 30_000 });

function receive(packet: BusPacket, sender: string, { by = admission('metadata'), receiver = METADATA } = {}): void {
  if (!by.knows(sender)) throw new Refused('unknown identity');
  by.admit({
    command: packet.type,
    sender,
    packet,
    receiver,
    asked: (id) => (id === 'asked' ? 'auth/one' : undefined),
  });
}

const contextIn = ({ payload }: BusPacket): unknown => (payload['meta'] as { request?: unknown }).request;
const refusedWith = (pattern: RegExp) => (error: unknown) => error instanceof Refused && pattern.test(error.message);

describe('the context of a call on the bus', () => {
  it('arrives unchanged', () => {
    const context = fresh();
    const packet = callFrom('gateway', { context, meta: { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` } });
    assert.ok(Buffer.isBuffer(contextIn(packet)));
    receive(packet, 'gateway');
    assert.deepEqual(contextIn(packet), context);
    assert.ok((packet.payload['meta'] as { traceparent?: string }).traceparent);
  });

  it('is accepted from the gateway only, without other meta', () => {
    assert.equal(contextIn(callFrom('data', { action: 'metadata.snapshots.get' })), undefined);
    const packet = callFrom('gateway');
    Object.assign(packet.payload['meta'] as object, { user: 'ada', traceparent: 'x' });
    receive(packet, 'gateway');
    assert.deepEqual(Object.keys(packet.payload['meta'] as object), ['request']);
  });

  const forged: [what: string, packet: () => BusPacket, refusal: RegExp][] = [
    ['unsealed', () => callFrom('gateway', { keys: null }), /not sealed/],
    [
      'sealed with a key of another service',
      () => callFrom('gateway', { keys: new Map([['metadata', KEYS.get('data')!]]) }),
      /unknown key/,
    ],
    [
      'altered',
      () => {
        const packet = callFrom('gateway');
        const sealed = contextIn(packet) as Buffer;
        sealed[sealed.length - 10]! ^= 1;
        return packet;
      },
      /not made for this call/,
    ],
    ['cut short', () => withContext(callFrom('gateway'), (sealed) => sealed.subarray(0, 20)), /unknown key/],
    ['expired', () => callFrom('gateway', { context: { ...ADA, deadline: Date.now() - 11_000 } }), /expired/],
    [
      'valid for too long',
      () => callFrom('gateway', { context: { ...ADA, deadline: Date.now() + 90_000 } }),
      /expired/,
    ],
    ['of another call', () => withContext(callFrom('gateway'), () => contextIn(callFrom('gateway'))), /not made for/],
    [
      'of another action',
      () => {
        const packet = callFrom('gateway', { action: 'metadata.types.list' });
        packet.payload['action'] = ACTION;
        return packet;
      },
      /not made for this call/,
    ],
  ];
  const withContext = (packet: BusPacket, change: (sealed: Buffer) => unknown): BusPacket => {
    packet.payload['meta'] = { request: change(contextIn(packet) as Buffer) };
    return packet;
  };
  for (const [what, packet, refusal] of forged)
    it(`is refused, with an error to the caller, when it is ${what}`, () => {
      assert.throws(
        () => receive(packet(), 'gateway'),
        (error) => refusedWith(refusal)(error) && (error as Refused).answer?.node === 'gateway/one',
      );
    });

  it('distinguishes clock skew from forgery', () => {
    const typeOf = (packet: BusPacket): string => {
      try {
        receive(packet, 'gateway');
      } catch (error) {
        return (error as Refused).type;
      }
      return 'admitted';
    };
    for (const seconds of [-40, 100]) {
      const context = { ...ADA, deadline: Date.now() + seconds * 1_000 };
      assert.equal(typeOf(callFrom('gateway', { context })), 'CLOCKS_DIFFER');
    }
    assert.equal(typeOf(callFrom('gateway', { keys: new Map([['metadata', KEYS.get('data')!]]) })), 'CALL_REFUSED');
  });

  it('is refused at another node and when replayed', () => {
    const packet = callFrom('gateway');
    const again = structuredClone(packet);
    (again.payload['meta'] as { request: Buffer }).request = Buffer.from(contextIn(packet) as Buffer);
    const by = admission('metadata');
    assert.throws(
      () => receive(structuredCopy(packet), 'gateway', { receiver: 'metadata/two' }),
      refusedWith(/not made/),
    );
    receive(packet, 'gateway', { by });
    assert.throws(() => receive(again, 'gateway', { by }), refusedWith(/already used/));
  });
  const structuredCopy = (packet: BusPacket): BusPacket => ({
    ...packet,
    payload: { ...packet.payload, meta: { ...(packet.payload['meta'] as object) } },
  });

  it('is accepted under two keys while they are being replaced', () => {
    const next = randomBytes(32);
    const both = new Map([['metadata', [next, KEYS.get('metadata')![0]!]]]);
    for (const keys of [KEYS, both, new Map([['metadata', [next]]])])
      receive(callFrom('gateway', { keys }), 'gateway', { by: admission('metadata', both) });
  });
});

describe('a packet from the bus', () => {
  const data = (payload: Record<string, unknown>, type: string): BusPacket => ({
    type,
    payload: { sender: 'data/evil', ...payload },
  });

  it('of an unknown identity is refused', () => {
    for (const token of ['', 'mail', 'data+auth', 'data+data', 'operator+data', '*', 'data+'])
      assert.equal(admission('auth').knows(token), false, token);
    for (const token of ['data', 'auth+data', 'operator']) assert.equal(admission('auth').knows(token), true, token);
  });

  for (const sender of [
    'operator/evil',
    'auth/one',
    'data',
    'data/',
    'data+gateway/one',
    'data/a.b',
    'data/x\r\nPUB MOL-erp.auth.INFO.all 0\r\n',
    'data/>',
    '',
    7,
    undefined,
  ])
    it(`in the name of ${JSON.stringify(sender)} is refused when data sends it`, () => {
      for (const type of ['REQ', 'RES', 'EVENT', 'INFO', 'DISCONNECT', 'HEARTBEAT', 'PING', 'PONG', 'DISCOVER'])
        assert.throws(
          () => receive(data({ sender, id: '1', action: ACTION }, type), 'data'),
          refusedWith(/in the name/),
        );
    });

  it('calls only actions allowed for its identity', () => {
    const call = (sender: string, action: string) => () =>
      receive({ type: 'REQ', payload: { id: '1', action, sender: `${sender}/one` } }, sender, {
        by: admission('auth'),
      });
    for (const action of [
      'auth.users.createLink',
      'auth.keys.rotate',
      'auth.http.handle',
      '$node.options',
      'auth.none',
    ])
      assert.throws(call('data', action), refusedWith(/may not call/), action);
    for (const [sender, action] of [
      ['data', 'auth.users.sync'],
      ['operator', 'auth.users.createLink'],
      ['data+gateway', 'auth.identity.get'],
    ] as const)
      assert.doesNotThrow(call(sender, action), action);
    assert.throws(
      call('operator', 'auth.identity.get'),
      refusedWith(/may not call/),
      'public operations are for users',
    );
  });

  it('responds only to requests to its node, without extra fields', () => {
    const answer = (sender: string) => ({ type: 'RES', payload: { id: 'asked', sender, meta: { request: ADA } } });
    assert.throws(() => receive(answer('data/evil'), 'data'), refusedWith(/asked of auth\/one/));
    assert.throws(() => receive(answer('auth/two'), 'auth'), refusedWith(/asked of auth\/one/));
    const right: BusPacket = answer('auth/one');
    receive(right, 'auth');
    assert.deepEqual(right.payload['meta'], {});
  });

  it('announces only its own services, with their own actions', () => {
    const service = (name: string, actions: string[], events: string[] = []) => ({
      name,
      fullName: `v2.${name}`,
      actions: Object.fromEntries(actions.map((action) => [action, { name: action }])),
      events: Object.fromEntries(events.map((event) => [event, { name: event }])),
    });
    const hidden = { ...service('data', []), actions: { 'data.users.get': { name: 'auth.http.handle' } } };
    const packet = data(
      {
        services: [
          service('auth', ['auth.http.handle']),
          service('data', ['data.users.get', 'auth.http.handle'], ['auth.user.signedIn', 'auth.grants.revoked', '**']),
          hidden,
          service('$node', ['$node.list']),
          null,
        ],
      },
      'INFO',
    );
    receive(packet, 'data');
    const services = packet.payload['services'] as ReturnType<typeof service>[];
    assert.deepEqual(
      services.map(({ name, fullName, actions, events }) => [
        name,
        fullName,
        Object.keys(actions),
        Object.keys(events),
      ]),
      [
        ['data', 'data', ['data.users.get'], ['auth.user.signedIn']],
        ['data', 'data', [], []],
      ],
    );
  });

  it('emits only events of its own services', () => {
    for (const event of ['auth.grants.revoked', 'metadata.schema.changed', '$services.changed', 'data.anything', 7])
      assert.throws(() => receive(data({ event }, 'EVENT'), 'data'), refusedWith(/to send/), String(event));
    receive({ type: 'EVENT', payload: { event: 'auth.keys.rotated', sender: 'auth/one' } }, 'auth');
  });
});

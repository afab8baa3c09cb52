/** Answers 429 to clients that do not wait: who is delayed, for how long, and who is not. */
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { mock } from 'node:test';
import { type CallerRefusals, RefusalDelays, type Refused } from '../../../services/gateway/edge/refusal-delays.ts';
import { stateOf } from '../../../services/gateway/edge/unsent-responses.ts';

describe('delayed refusals', () => {
  let delays: RefusalDelays;
  let now: number;
  let cut: number;
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    // The time of new connections is that of the process.
    now = Math.ceil(performance.now()) + 1_000;
    cut = 0;
    delays = new RefusalDelays({ ofCaller: 3, all: 4, cut: () => cut++ }, () => now);
  });
  afterEach(() => mock.timers.reset());

  const caller = (shared = false): CallerRefusals => ({ ignored: 0, retryAt: 0, refusedSince: 0, shared });
  const request = (socket: Socket): Refused => ({
    req: { socket } as IncomingMessage,
    res: { shouldKeepAlive: true } as ServerResponse,
    started: now,
  });
  const pass = (milliseconds: number): void => {
    now += milliseconds;
    mock.timers.tick(milliseconds);
  };
  /** Milliseconds until the refusal is sent. */
  const refuse = (who: CallerRefusals, socket: Socket, retryAfterSeconds = 10): number => {
    let sent = false;
    delays.send(request(socket), who, retryAfterSeconds, () => {
      sent = true;
    });
    const from = now;
    while (!sent && now - from < 20_000) pause();
    return now - from;
  };
  const pause = (): void => pass(100);

  it('grow for a client that ignores Retry-After, up to a few seconds', () => {
    const [who, socket] = [caller(), new Socket()];
    assert.deepEqual(
      Array.from({ length: 12 }, () => refuse(who, socket)),
      [0, 0, 0, 0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000],
    );
  });

  it('end when it waits as requested', () => {
    const [who, socket] = [caller(), new Socket()];
    for (let i = 0; i < 7; i++) refuse(who, socket);
    pass(10_000);
    assert.equal(refuse(who, socket), 0);
    assert.equal(refuse(who, socket), 0);
  });

  it('end after a minute even when the limit lasts longer', () => {
    const [who, socket] = [caller(), new Socket()];
    for (let i = 0; i < 7; i++) refuse(who, socket, 80_000);
    pass(60_000);
    assert.equal(refuse(who, socket, 80_000), 0);
  });

  it('do not affect earlier connections of the caller, nor other callers', () => {
    const [who, impatient, patient] = [caller(), new Socket(), new Socket()];
    stateOf(patient);
    for (let i = 0; i < 8; i++) refuse(who, impatient);
    assert.equal(refuse(who, patient), 0);
    assert.equal(refuse(caller(), new Socket()), 0);
  });

  it('affect a connection that alternates between callers', () => {
    const [one, other, socket] = [caller(), caller(), new Socket()];
    const waits = Array.from({ length: 8 }, (_, i) => refuse(i % 2 ? other : one, socket));
    assert.deepEqual(waits, [0, 0, 0, 0, 100, 200, 400, 800]);
  });

  const opened = (): Socket => {
    const socket = new Socket();
    Object.assign(stateOf(socket), { openedAt: now });
    return socket;
  };

  it('of others at the same address delay a new connection’s first refusal by less than 0.5 s', () => {
    const [address, impatient] = [caller(true), opened()];
    for (let i = 0; i < 15; i++) refuse(address, impatient);
    pass(10);
    const neighbour = opened();
    assert.equal(refuse(address, neighbour), 400);
    assert.equal(refuse(address, neighbour), 800, 'the neighbour has not waited either');
    pass(10_000);
    assert.equal(refuse(address, neighbour), 0);
  });

  it('reach at most 0.4 s for an address that always reconnects or is behind a proxy', () => {
    const waits = (refused: (address: CallerRefusals) => number): number[] => {
      const address = caller(true);
      return Array.from({ length: 9 }, () => {
        pass(10);
        return refused(address);
      });
    };
    const expected = [0, 0, 0, 0, 100, 200, 400, 400, 400];
    assert.deepEqual(
      waits((address) => refuse(address, opened())),
      expected,
    );
    delays = new RefusalDelays({ proxied: true }, () => now);
    const pool = new Socket();
    assert.deepEqual(
      waits((address) => refuse(address, pool)),
      expected,
    );
  });

  it('affect replacement connections of the caller', () => {
    const who = caller();
    const waits = Array.from({ length: 8 }, () => {
      pass(10);
      return refuse(who, opened());
    });
    assert.deepEqual(waits, [0, 0, 0, 0, 100, 200, 400, 800]);
    pass(10_000);
    assert.equal(refuse(who, opened()), 0);
  });

  it('behind proxies follow the caller, not the connection', () => {
    delays = new RefusalDelays({ proxied: true }, () => now);
    const [impatient, patient] = [caller(), caller()];
    const pool = [new Socket(), new Socket()];
    for (const socket of pool) stateOf(socket);
    const waits = Array.from({ length: 8 }, (_, i) => [refuse(impatient, pool[i % 2]!), refuse(caller(), pool[0]!)]);
    assert.deepEqual(
      waits.flat(),
      [0, 0, 0, 0, 100, 200, 400, 800].flatMap((wait) => [wait, 0]),
    );
    assert.equal(refuse(patient, pool[0]!), 0);
    assert.equal(refuse(patient, pool[1]!), 0);
  });

  it('close the connection of a persistent client', () => {
    const [who, socket] = [caller(), new Socket()];
    for (let i = 0; i < 20; i++) refuse(who, socket);
    const last = request(socket);
    delays.send(last, who, 10, () => {});
    assert.equal(last.res.shouldKeepAlive, false);
  });

  it('are limited per caller and in total, beyond which connections are closed', () => {
    const impatient = (): [CallerRefusals, Socket] => {
      const [who, socket] = [caller(), new Socket()];
      for (let i = 0; i < 4; i++) refuse(who, socket);
      return [who, socket];
    };
    const [one, other] = [impatient(), impatient()];
    const send = ([who, socket]: [CallerRefusals, Socket]): void => delays.send(request(socket), who, 10, () => {});
    for (let i = 0; i < 3; i++) send(one);
    assert.deepEqual([delays.waiting, one[1].destroyed], [3, false]);
    send(one);
    assert.deepEqual([delays.waiting, one[1].destroyed, cut], [3, true, 1]);
    send(other);
    assert.deepEqual([delays.waiting, other[1].destroyed], [4, false]);
    send(other);
    assert.deepEqual([delays.waiting, other[1].destroyed, cut, delays.total], [4, true, 2, 4]);
    pass(20_000);
    assert.equal(delays.waiting, 0);
  });

  it('are dropped on disconnect, and sent at once before a stop', () => {
    const [who, socket] = [caller(), new Socket()];
    for (let i = 0; i < 4; i++) refuse(who, socket);
    const gone = request(socket);
    let sent = 0;
    delays.send(gone, who, 10, () => sent++);
    delays.end(gone);
    delays.end(gone);
    delays.send(request(socket), who, 10, () => sent++);
    assert.equal(delays.waiting, 1);
    delays.release();
    assert.deepEqual([delays.waiting, sent], [0, 1]);
    pass(20_000);
    assert.equal(sent, 1);
  });
});

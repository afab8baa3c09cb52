import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { ConnectionQueue, PLATFORM, WAITING_MAX } from '../../../mixins/database/connection-queue.ts';

const refused = (code: string) => (error: unknown) => error instanceof PlatformError && error.code === code;

describe('The connections of a pool', () => {
  it('are given to one tenant up to its cap, and to another without waiting', () => {
    const queues = new ConnectionQueue({ size: 10, perTenant: 5 });
    const [flood, other] = [queues.tenant('flood'), queues.tenant('other')];
    for (let n = 0; n < 5; n++) assert.equal(queues.enter(flood), undefined);
    const sixth = queues.enter(flood);
    assert.ok(sixth instanceof Promise);
    sixth.catch(() => {});
    assert.equal(queues.enter(other), undefined);
    queues.leave(flood);
    assert.equal(queues.waiting, 0, 'its place went to the one that waited');
    assert.equal(queues.held, 6);
  });

  it('include a reserve for platform work', () => {
    const queues = new ConnectionQueue({ size: 10, perTenant: 5 });
    const taken = Array.from({ length: 20 }, (_, n) => queues.enter(queues.tenant(`tenant ${n}`)));
    assert.equal(taken.filter((waiting) => waiting === undefined).length, 8);
    for (const waiting of taken) waiting?.catch(() => {});
    assert.equal(queues.enter(PLATFORM), undefined);
    assert.equal(queues.enter(queues.shared('svc_auth tenant 1')), undefined);
  });

  it('are given to waiting tenants in turn, regardless of their number of requests', async () => {
    const queues = new ConnectionQueue({ size: 2, perTenant: 1 });
    const [flood, other, third] = ['flood', 'other', 'third'].map((key) => queues.tenant(key));
    const served: string[] = [];
    const wait = (holder = flood!): void => {
      const waiting = queues.enter(holder);
      assert.ok(waiting);
      void waiting.then(() => {
        served.push(holder.key);
        queues.leave(holder);
      });
    };
    queues.enter(flood!);
    for (let n = 0; n < 50; n++) wait();
    wait(other);
    wait(third);
    wait(other);
    queues.leave(flood!);
    await pause(5);
    assert.deepEqual(served.slice(0, 5), ['other', 'third', 'flood', 'other', 'flood']);
    assert.equal(served.length, 53);
    assert.equal(queues.held, 0);
    assert.equal(queues.waiting, 0);
  });

  it('have a bounded wait: a tenant over its cap is refused and leaves no state', async () => {
    const queues = new ConnectionQueue({ size: 4, perTenant: 1 });
    const flood = queues.tenant('flood');
    queues.enter(flood);
    const waiting = Array.from({ length: WAITING_MAX }, () => queues.enter(flood, 20));
    await assert.rejects(async () => queues.enter(flood), refused('CONCURRENCY_LIMIT_EXCEEDED'));
    for (const one of waiting) await assert.rejects(async () => one, refused('CONCURRENCY_LIMIT_EXCEEDED'));
    assert.equal(queues.waiting, 0);
    queues.leave(flood);
    assert.equal(queues.held, 0);
    assert.equal(queues.enter(flood), undefined);
  });

  it('all in use answer 503 to tenants within their cap', async () => {
    const queues = new ConnectionQueue({ size: 1, perTenant: 1 });
    queues.enter(PLATFORM);
    await assert.rejects(async () => queues.enter(queues.tenant('other'), 5), refused('SERVICE_UNAVAILABLE'));
  });

  it('are all used by a pool of one', () => {
    const queues = new ConnectionQueue({ size: 1, perTenant: 1 });
    assert.equal(queues.enter(queues.tenant('one')), undefined);
    queues.leave(queues.tenant('one'));
    assert.equal(queues.enter(PLATFORM), undefined);
  });
});

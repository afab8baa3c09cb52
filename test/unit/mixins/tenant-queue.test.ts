import assert from 'node:assert/strict';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { TenantQueue } from '../../../mixins/tenant-queue.ts';

describe('The queue of tenants', () => {
  /** Work that lasts until it is let go, and says when it began. */
  const stage = (limits: { places: number; waitingPerTenant?: number; waiting?: number; waitMs?: number }) => {
    const queue = new TenantQueue({ waitingPerTenant: 10, waiting: 100, waitMs: 60_000, ...limits });
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const take = (tenant: string, name: string, options = {}): Promise<string> =>
      queue.run(
        tenant,
        () => {
          begun.push(name);
          return new Promise((resolve) => ends.set(name, () => resolve(name)));
        },
        options,
      );
    const end = async (name: string): Promise<void> => {
      ends.get(name)?.();
      await new Promise((resolve) => setImmediate(resolve));
    };
    return { queue, take, begun, end };
  };
  const codeOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'done',
      (error: unknown) => (error instanceof PlatformError ? error.code : String(error)),
    );
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('refuses work whose wait exceeds its limit, and continues', async () => {
    const { queue, take, begun, end } = stage({ places: 1, waitMs: 30 });
    const first = take('a', 'a1');
    assert.deepEqual(await Promise.all([codeOf(take('a', 'a2')), codeOf(take('b', 'b1'))]), [
      'CONCURRENCY_LIMIT_EXCEEDED',
      'SERVICE_UNAVAILABLE',
    ]);
    assert.equal(queue.size, 1);
    const last = take('a', 'a3', { first: true });
    await end('a1');
    await first;
    await end('a3');
    await last;
    assert.deepEqual(begun, ['a1', 'a3']);
    assert.equal(queue.size, 0);
  });

  it('gives a tenant one place at a time, even when more are free', async () => {
    const { take, begun, end } = stage({ places: 3 });
    void take('a', 'a1');
    void take('a', 'a2');
    void take('b', 'b1');
    await settled();
    assert.deepEqual(begun, ['a1', 'b1']);
    await end('a1');
    assert.deepEqual(begun, ['a1', 'b1', 'a2']);
  });

  it('alternates between tenants, so that a long queue of one delays no other', async () => {
    const { take, begun, end } = stage({ places: 1 });
    for (const name of ['a1', 'a2', 'a3']) void take('a', name);
    void take('b', 'b1');
    void take('c', 'c1');
    await settled();
    for (const name of ['a1', 'b1', 'c1', 'a2']) await end(name);
    assert.deepEqual(begun, ['a1', 'b1', 'c1', 'a2', 'a3']);
  });

  it('keeps no state of a refused tenant', async () => {
    const { queue, take, end } = stage({ places: 1, waiting: 0 });
    const first = take('a', 'a1');
    for (let i = 0; i < 100; i++) assert.equal(await codeOf(take(`t${i}`, 'x')), 'SERVICE_UNAVAILABLE');
    assert.equal(queue.size, 1);
    await end('a1');
    await first;
    assert.equal(queue.size, 0);
  });

  it('refuses work beyond the queue limit of a tenant and of all', async () => {
    const { take } = stage({ places: 1, waitingPerTenant: 2, waiting: 3 });
    for (const name of ['a1', 'a2', 'a3']) void take('a', name);
    assert.equal(await codeOf(take('a', 'a4')), 'CONCURRENCY_LIMIT_EXCEEDED');
    void take('b', 'b1');
    assert.equal(await codeOf(take('c', 'c1')), 'SERVICE_UNAVAILABLE');
  });

  it('runs work that holds locks first, and never refuses it', async () => {
    const { take, begun, end } = stage({ places: 1, waitingPerTenant: 1 });
    void take('a', 'a1');
    void take('a', 'a2');
    void take('a', 'locked', { first: true });
    await settled();
    await end('a1');
    assert.deepEqual(begun, ['a1', 'locked']);
  });

  it('continues after failed work', async () => {
    const queue = new TenantQueue({ places: 1, waitingPerTenant: 1, waiting: 1, waitMs: 60_000 });
    await assert.rejects(queue.run('a', () => Promise.reject(new Error('no'))));
    assert.equal(await queue.run('a', async () => 'yes'), 'yes');
  });
});

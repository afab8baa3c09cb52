import assert from 'node:assert/strict';
import { FairQueue, type Holder } from '../../../mixins/fair-queue.ts';
import { placeOf, QueueFull } from '../../../services/auth/hash-queue.ts';

const stranger = (name: string): Holder => placeOf(name, false);
const known = (name: string): Holder => placeOf(name, true);
const queueOf = (limits: { places: number; waitingPerHolder?: number; waiting?: number }): FairQueue =>
  new FairQueue({ waitingPerHolder: 40, waiting: 120, ...limits }, () => new QueueFull());

/** Work that ends on demand. */
function gate() {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const work = (name: string) => (): Promise<string> => {
    begun.push(name);
    return new Promise((resolve) => ends.push(() => resolve(name)));
  };
  const endOne = async (): Promise<void> => {
    ends.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { begun, work, endOne };
}

describe('the queue of password hashes', () => {
  it('limits concurrent hashes', async () => {
    const { begun, work, endOne } = gate();
    const queue = queueOf({ places: 2 });
    const all = ['a', 'b', 'c', 'd'].map((name) => queue.run(stranger(name), work(name)));
    assert.deepEqual(begun, ['a', 'b']);
    for (let i = 0; i < 4; i++) await endOne();
    assert.deepEqual(await Promise.all(all), ['a', 'b', 'c', 'd']);
  });

  it('serves networks in turn, known ones first', async () => {
    const { begun, work, endOne } = gate();
    const queue = queueOf({ places: 1 });
    const order: [Holder, string][] = [
      [stranger('flood'), '1'],
      [stranger('flood'), '2'],
      [stranger('flood'), '3'],
      [stranger('flood'), '4'],
      [stranger('one'), 'one'],
      [known('home'), 'home'],
    ];
    const all = order.map(([place, name]) => queue.run(place, work(name)));
    for (let i = 0; i < order.length; i++) await endOne();
    await Promise.all(all);
    assert.deepEqual(begun, ['1', 'home', 'one', '2', '3', '4']);
  });

  it('refuses work beyond the limit per network and in total, except from known ones', async () => {
    const { work, endOne } = gate();
    const queue = queueOf({ places: 1, waitingPerHolder: 2, waiting: 3 });
    const all = ['1', '2', '3'].map((name) => queue.run(stranger('flood'), work(name)));
    await assert.rejects(queue.run(stranger('flood'), work('4')), QueueFull);
    all.push(queue.run(stranger('other'), work('5')));
    await assert.rejects(queue.run(stranger('third'), work('6')), QueueFull);
    assert.equal(queue.hasRoom(stranger('third')), false);
    all.push(queue.run(known('home'), work('7')));
    for (let i = 0; i < 5; i++) await endOne();
    await Promise.all(all);
    assert.equal(queue.hasRoom(stranger('third')), true);
  });

  it('continues after a failed hash', async () => {
    const queue = queueOf({ places: 1 });
    const failing = queue.run(stranger('a'), () => Promise.reject(new Error('no')));
    const next = queue.run(stranger('b'), () => Promise.resolve('done'));
    await assert.rejects(failing, /no/);
    assert.equal(await next, 'done');
  });
});

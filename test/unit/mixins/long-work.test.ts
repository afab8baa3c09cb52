import assert from 'node:assert/strict';
import { LongWork } from '../../../mixins/long-work.ts';

const busy = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end; );
};

describe('long work in pieces', () => {
  it('runs one piece at a time, alternating between tasks, and yields more time than it uses', async () => {
    const PIECES = 5;
    const order: string[] = [];
    const turns: number[] = [];
    let ticked = performance.now();
    const ticks = setInterval(() => {
      turns.push(performance.now() - ticked);
      ticked = performance.now();
    }, 1);
    const work = async (name: string): Promise<void> => {
      const pieces = new LongWork();
      for (let piece = 0; piece < PIECES; piece++) {
        await pieces.turn();
        order.push(name);
        busy(10);
      }
    };
    const began = performance.now();
    await Promise.all([work('a'), work('b'), work('c'), work('d')]);
    const took = performance.now() - began;
    clearInterval(ticks);
    assert.equal(order.slice(0, 8).join(''), 'abcdabcd');
    const seen = turns.filter((ms) => ms >= 9).length;
    assert.ok(seen >= 4 * PIECES - 2, `${seen} pieces apart from one another`);
    assert.ok(took >= 2 * 10 * 4 * PIECES, `${took} ms`);
  });

  it('yields only after some milliseconds of work', async () => {
    const work = new LongWork();
    busy(8);
    assert.equal(work.isLong, true);
    // A machine that does other things in between makes it long; it does not do so each time.
    for (let attempt = 0; work.isLong; attempt++) {
      assert.ok(attempt < 50);
      await work.turn();
    }
  });
});

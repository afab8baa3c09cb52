/** The loop over a table that is its own queue: what it begins, leaves alone, and ends with. */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { WorkLoop } from '../../mixins/jobs/work-loop.ts';
import { until } from '../support/until.ts';

type Result = 'done' | 'busy' | 'unavailable';

describe('the work loop', function () {
  this.timeout(30_000);
  const loops: WorkLoop<string>[] = [];
  afterEach(async () => {
    for (const loop of loops.splice(0)) await loop.stop(1_000);
  });
  /** A loop over what is in `waiting`. */
  const loopOver = (
    waiting: Set<string>,
    run: (piece: string) => Promise<Result>,
    { due, failed = [] }: { due?: () => void; failed?: string[] } = {},
  ): WorkLoop<string> => {
    const loop = new WorkLoop<string>({
      label: 'test.pieces',
      lookMs: 50,
      concurrency: 2,
      due: async (take, left) => {
        due?.();
        return [...waiting].filter((piece) => !left.includes(piece)).slice(0, take);
      },
      keyOf: (piece) => piece,
      run,
      failed: (error, piece) => failed.push(`${piece}: ${(error as Error).message}`),
    });
    loops.push(loop);
    loop.wake();
    return loop;
  };

  it('works off everything, so many pieces at a time and none twice at once', async () => {
    const waiting = new Set(['a', 'b', 'c', 'd', 'e']);
    let active = 0;
    const done: string[] = [];
    loopOver(waiting, async (piece) => {
      assert.ok(++active <= 2);
      await pause(10);
      active--;
      waiting.delete(piece);
      done.push(piece);
      return 'done';
    });
    await until(() => waiting.size === 0);
    assert.deepEqual(done.sort(), ['a', 'b', 'c', 'd', 'e']);
  });

  it('finds what nothing woke it for', async () => {
    const waiting = new Set<string>();
    loopOver(waiting, async (piece) => {
      waiting.delete(piece);
      return 'done';
    });
    await pause(20);
    waiting.add('late');
    await until(() => waiting.size === 0);
  });

  it('is no part of the request that wakes it', async () => {
    const request = new AsyncLocalStorage<string>();
    const waiting = new Set<string>();
    const seen: (string | undefined)[] = [];
    const loop = loopOver(waiting, async (piece) => {
      seen.push(request.getStore());
      waiting.delete(piece);
      return 'done';
    });
    await pause(20);
    waiting.add('a');
    request.run('a request', () => loop.wake());
    await until(() => seen.length === 1);
    assert.deepEqual(seen, [undefined]);
  });

  it('skips pieces that fail or are busy, and goes on with the rest', async () => {
    const waiting = new Set(['bad', 'busy', 'good']);
    const attempts: { piece: string; at: number }[] = [];
    const failed: string[] = [];
    loopOver(
      waiting,
      async (piece) => {
        attempts.push({ piece, at: performance.now() });
        if (piece === 'bad') throw new Error('broken');
        if (piece === 'busy') return 'busy';
        waiting.delete(piece);
        return 'done';
      },
      { failed },
    );
    await until(() => attempts.length >= 5);
    assert.deepEqual(failed.slice(0, 1), ['bad: broken']);
    for (const name of ['bad', 'busy']) {
      const [first, second] = attempts.filter(({ piece }) => piece === name).map(({ at }) => at);
      assert.ok(second! - first! >= 990, `${name} again after ${second! - first!} ms`);
    }
    assert.equal(attempts.filter(({ piece }) => piece === 'good').length, 1);
  });

  it('begins nothing for a while when nothing can be done, however often it is woken', async () => {
    const attempts: number[] = [];
    const loop = loopOver(new Set(['mail']), async () => {
      attempts.push(performance.now());
      return 'unavailable';
    });
    await until(() => {
      if (attempts.length > 0) loop.wake();
      return attempts.length >= 2;
    });
    assert.ok(attempts[1]! - attempts[0]! >= 1_990, `again after ${attempts[1]! - attempts[0]!} ms`);
  });

  it('reports looks that fail once, and goes on', async () => {
    const failed: string[] = [];
    let looks = 0;
    const due = (): void => {
      if (++looks < 4) throw new Error('away');
    };
    const waiting = new Set(['a']);
    const run = async (piece: string): Promise<Result> => {
      waiting.delete(piece);
      return 'done';
    };
    loopOver(waiting, run, { due, failed });
    await until(() => waiting.size === 0);
    assert.deepEqual(failed, ['null: away']);
  });

  it('ends with what is under way, also with what a look was about to claim', async () => {
    const claimed = Promise.withResolvers<void>();
    const done: string[] = [];
    let isLooking = false;
    const loop = new WorkLoop<string>({
      label: 'test.pieces',
      lookMs: 50,
      concurrency: 1,
      due: async () => {
        isLooking = true;
        await claimed.promise;
        return ['claimed'];
      },
      keyOf: (piece) => piece,
      run: async (piece) => {
        await pause(20);
        done.push(piece);
        return 'done';
      },
      failed: (error) => assert.fail(String(error)),
    });
    loop.wake();
    await until(() => isLooking);
    const stopped = loop.stop(1_000);
    claimed.resolve();
    await stopped;
    assert.deepEqual(done, ['claimed']);
    await pause(100);
    assert.equal(done.length, 1);
  });
});

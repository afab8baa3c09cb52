/** The time of the platform follows the clock of the database, as far as a measurement can tell. */
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { correctPlatformTime, platformTime } from '../../../lib/values/clock.ts';
import { Timekeeper } from '../../../mixins/database/timekeeper.ts';

const HOUR = 3_600_000;

describe('the time of the platform', () => {
  afterEach(() => correctPlatformTime(Date.now(), Date.now()));

  it('stays within the measured interval, and else moves to its nearer end', () => {
    const offset = fc.integer({ min: -HOUR, max: HOUR });
    fc.assert(
      fc.property(offset, fc.integer({ min: 0, max: 10_000 }), (from, width) => {
        const before = platformTime();
        correctPlatformTime(before + from, before + from + width);
        const moved = platformTime() - before;
        const wanted = from > 0 ? from : Math.min(from + width, 0);
        assert.ok(moved >= wanted - 1 && moved <= wanted + 1_000, `moved by ${moved} instead of ${wanted}`);
        correctPlatformTime(before, before);
      }),
    );
  });

  it('does not follow the clock of the machine', () => {
    const { now } = Date;
    const before = platformTime();
    Date.now = () => now() + HOUR;
    try {
      assert.ok(platformTime() - before < 1_000);
    } finally {
      Date.now = now;
    }
  });
});

describe('the timekeeper of a process', () => {
  const database = { asked: 0, away: false };
  const source = {
    readTime: async (): Promise<void> => {
      database.asked++;
      if (database.away) throw new Error('away');
    },
  };

  it('reads the database time before stamping, and again when a call is refused for its time', async () => {
    const keeper = await Timekeeper.start(source);
    try {
      assert.deepEqual([database.asked, keeper.agrees], [1, true]);
      assert.equal(keeper.differs(), true);
      assert.deepEqual([database.asked, keeper.agrees], [2, false]);
      await turn();
      assert.equal(keeper.agrees, true);
      for (let i = 0; i < 100; i++) assert.equal(keeper.differs(), false);
      assert.deepEqual([database.asked, keeper.agrees], [2, true], 'calls that were sent before');
    } finally {
      keeper.stop();
    }
  });

  it('is not synchronized while the database does not answer', async () => {
    const keeper = await Timekeeper.start(source);
    try {
      database.away = true;
      keeper.differs();
      await turn();
      assert.equal(keeper.agrees, false);
    } finally {
      keeper.stop();
    }
  });
});

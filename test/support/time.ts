/** The time of the platform as a test needs it. */
import { correctPlatformTime, platformTime } from '../../lib/values/clock.ts';

/** Does `work` when the platform's time is `time`, in milliseconds since 1970; it goes on from there. */
export function atTime<T>(time: number, work: () => T): T {
  const ahead = time - platformTime();
  correctPlatformTime(time, time);
  try {
    return work();
  } finally {
    const now = platformTime() - ahead;
    correctPlatformTime(now, now);
  }
}

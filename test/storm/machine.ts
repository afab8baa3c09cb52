/** Checks that this machine can run the storm. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** A timer of the storm itself that is so late says that the processors had others to serve. */
const LATE_MS = 250;
const WINDOW_MS = 5_000;

const delays = monitorEventLoopDelay({ resolution: 20 });
let before = 0;

/** Begins to measure; returns what ends it. */
export function watchMachine(): () => void {
  delays.enable();
  const windows = setInterval(() => {
    before = delays.max / 1e6;
    delays.reset();
  }, WINDOW_MS);
  windows.unref();
  return () => {
    clearInterval(windows);
    delays.disable();
  };
}

/** It had far more to do than it can in these seconds: what was late says nothing about the platform. */
export const isOverloaded = (): boolean => Math.max(before, delays.max / 1e6) > LATE_MS;

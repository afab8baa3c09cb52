import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';

/** Resolves when `check` holds; fails after `seconds`, which are no expectation but the end of a hanging test. */
export async function until(check: () => boolean | Promise<boolean>, seconds = 20): Promise<void> {
  for (const end = performance.now() + seconds * 1_000; !(await check()); await pause(10))
    assert.ok(performance.now() < end, `not within ${seconds} s: ${check}`);
}

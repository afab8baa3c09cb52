/** How long pure code keeps its thread, whatever else the machine is doing. */
import assert from 'node:assert/strict';

/** No request may keep the event loop for longer; a step of one takes far less. */
export const STALL_MS = 250;

/** Runs `work` and fails when it keeps the thread busy for more than `mostMs` of its own time. */
export function assertPrompt<T>(about: string, work: () => T, mostMs = STALL_MS): T {
  const before = process.threadCpuUsage();
  const result = work();
  const { user, system } = process.threadCpuUsage(before);
  const took = (user + system) / 1_000;
  assert.ok(took < mostMs, `${about} took ${took.toFixed(0)} ms of processor time, and ${mostMs} are the most.`);
  return result;
}

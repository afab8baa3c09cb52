/** How much work something is, whatever else the machine does. */
import assert from 'node:assert/strict';

/** Milliseconds of processor time that this process spends on `work`. */
export function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** No request may keep the event loop for longer; a step of one takes far less. */
const STALL_MS = 250;

/** Runs `work`, and fails when it keeps its thread busy for longer. */
export function assertPrompt<T>(about: string, work: () => T, mostMs = STALL_MS): T {
  const before = process.threadCpuUsage();
  const result = work();
  const { user, system } = process.threadCpuUsage(before);
  const took = (user + system) / 1_000;
  assert.ok(took < mostMs, `${about} took ${took.toFixed(0)} ms of processor time, and ${mostMs} are the most.`);
  return result;
}

/** The longest processor time between two turns of the event loop that others had meanwhile. */
export async function longestTurnDuring(work: Promise<unknown>): Promise<number> {
  let [longestMs, isOver] = [0, false];
  let before = process.threadCpuUsage();
  const turn = (): void => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    longestMs = Math.max(longestMs, (user + system) / 1_000);
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work;
  isOver = true;
  turn();
  return longestMs;
}

/** How much work something is, whatever else the machine does. */

/** Milliseconds of processor time that this process spends on `work`. */
export function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

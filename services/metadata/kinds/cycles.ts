import { required } from '../../../lib/values/required.ts';
/**
 * Names that lead back to themselves, with a number that those of one cycle (or of cycles that touch) have in common.
 * Takes a time in proportion to names and ways (Tarjan's strongly connected components), for any deployment.
 * Pure.
 */
export function cyclesOf(names: Iterable<string>, next: (name: string) => readonly string[]): Map<string, number> {
  const found = new Map<string, number>();
  const entered = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const stacked = new Set<string>();
  let cycles = 0;
  const enter = (name: string) => {
    entered.set(name, entered.size);
    lowest.set(name, required(entered, name));
    stack.push(name);
    stacked.add(name);
    return { name, ways: next(name), at: 0 };
  };
  const leave = (name: string): void => {
    if (lowest.get(name) !== entered.get(name)) return;
    const members = stack.splice(stack.lastIndexOf(name));
    for (const member of members) stacked.delete(member);
    if (members.length === 1 && !next(name).includes(name)) return;
    for (const member of members) found.set(member, cycles);
    cycles++;
  };
  for (const start of names) {
    if (entered.has(start)) continue;
    const path = [enter(start)];
    for (let step = path.at(-1); step; step = path.at(-1)) {
      const to = step.ways[step.at++];
      if (to === undefined) {
        path.pop();
        leave(step.name);
        const above = path.at(-1)?.name;
        if (above !== undefined) lowest.set(above, Math.min(required(lowest, above), required(lowest, step.name)));
      } else if (!entered.has(to)) path.push(enter(to));
      else if (stacked.has(to)) lowest.set(step.name, Math.min(required(lowest, step.name), required(entered, to)));
    }
  }
  return found;
}

/** The entry of a map that is known to have it: its absence is a mistake of the program. */
export function required<K, V>(map: ReadonlyMap<K, V>, key: K): V {
  const found = map.get(key);
  if (found === undefined) throw new Error(`Assertion failed: the map has no ${String(key)}`);
  return found;
}

/**
 * Options of an `LRUCache` that holds at most `count` entries and grows with them: its `max` allocates room for all of them
 * at once, 24 bytes each.
 */
export const entryBound = (count: number): { maxSize: number; sizeCalculation: () => number } => ({
  maxSize: count,
  sizeCalculation: () => 1,
});

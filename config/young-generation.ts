/**
 * Keeps V8's young generation at its initial size while the program is loaded. Nearly everything that modules allocate
 * survives, so that V8 would grow the young generation to its maximum, some 60 MB, and keep it. Importing this module sets
 * the flag: a module is evaluated before those that are imported after it.
 */
import { setFlagsFromString } from 'node:v8';

setFlagsFromString('--semi-space-growth-factor=1');

/** Lets the young generation grow with the load, by V8's default factor; called at the end of a start. */
export function releaseYoungGeneration(): void {
  setFlagsFromString('--semi-space-growth-factor=2');
}

/**
 * Large programs that a few tests run, such as generators of clients. They have a package.json of their own
 * (test/package.json), so that who only wants to start the platform does not download them; scripts/test.ts installs them
 * for the files that import this one.
 */
import { join } from 'node:path';

/** Path of a file of these packages. */
export const tool = (...path: readonly string[]): string => join(import.meta.dirname, '../node_modules', ...path);

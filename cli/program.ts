/** The commands of `erp`. */

import { createProgram, type Program } from './command.ts';
import { addIdentity } from './commands/identity.ts';

/** The whole program. */
export function buildProgram(): Program {
  const program = createProgram();
  addIdentity(program);
  return program;
}

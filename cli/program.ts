/** The commands of `erp`. */

import { createProgram, type Program } from './command.ts';
import { addIdentity } from './commands/identity.ts';
import { addLogin } from './commands/login.ts';
import { addMetadata } from './commands/metadata.ts';

/** The whole program. */
export function buildProgram(): Program {
  const program = createProgram();
  addLogin(program);
  addIdentity(program);
  addMetadata(program);
  return program;
}

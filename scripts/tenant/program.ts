/**
 * The commands of `tenant`, for the command line and for the console. A command is a module with a function that adds it
 * to the program, and a line here.
 */
import { Command } from '@commander-js/extra-typings';
import { addCopy } from './copy.ts';
import { addCreate } from './create.ts';
import { addDelete, addDeletions, addUndelete } from './delete.ts';
import { addExport } from './export.ts';
import { addImport } from './import.ts';
import { addLimits } from './limits.ts';
import { addList } from './list.ts';
import { addRename } from './rename.ts';
import type { Session } from './session.ts';
import { addShow } from './show.ts';
import { addResume, addSuspend } from './suspend.ts';

const createProgram = (name: string): Command =>
  new Command(name)
    .description('The life of tenants, for operators. Exit code 0: done; 1: refused or failed; 2: not understood.')
    .helpCommand('help [command]', 'show the parameters of a command')
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'tenant: ')) })
    .showHelpAfterError('Add --help for its parameters.')
    .exitOverride();

/** `name`: what is typed in front of the commands. */
export function tenantProgram(name: string, session: Session): Command {
  const program = createProgram(name);
  addList(program, session);
  addShow(program, session);
  addCreate(program, session);
  addRename(program, session);
  addLimits(program, session);
  addSuspend(program, session);
  addResume(program, session);
  addDelete(program, session);
  addUndelete(program, session);
  addDeletions(program, session);
  addExport(program, session);
  addImport(program, session);
  addCopy(program, session);
  return program;
}

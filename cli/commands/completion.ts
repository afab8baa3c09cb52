/** `completion`: scripts that complete commands and options in bash, zsh and fish. */
import tab from '@bomb.sh/tab/commander';
import type { Program } from '../command.ts';

/** Call it when all commands are there: they are what is completed. */
export function addCompletion(program: Program): void {
  // The same class at run time; only its declared types differ, which @commander-js/extra-typings refines.
  tab(program as unknown as Parameters<typeof tab>[0], { completionCommandName: 'completion' });
  program.commands
    .find((command) => command.name() === 'completion')
    ?.description('print a script that completes commands and options in a shell');
}

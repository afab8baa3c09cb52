/**
 * `npm run --silent tenant -- create --key lakeside …`: what an operator does for tenants of a running platform. Exit code
 * 0: done; 1: refused or failed, and the reason stands on stderr; 2: not understood.
 * Source: docs/reference/tenants.md.
 */
import { CommanderError } from '@commander-js/extra-typings';
import { joinPlatform } from './join.ts';
import { tenantProgram } from './tenant/program.ts';
import { Session, sentences } from './tenant/session.ts';

let leave = async (): Promise<void> => {};
const session = new Session(
  async () => {
    const joined = await joinPlatform('tenant');
    leave = joined.leave;
    return joined.broker;
  },
  (line) => console.log(line),
);

let exitCode = 0;
try {
  await tenantProgram('npm run tenant --', session).parseAsync();
} catch (error) {
  // Of what was typed wrongly, commander has said what.
  if (error instanceof CommanderError) exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    console.error(`tenant: ${sentences(error).join('\n  ')}`);
    exitCode = 1;
  }
}
await leave();
process.exit(exitCode);

/**
 * `npm run repl`: an operator's console on a running platform. It joins as one more node: over NATS when NATS_URL is
 * set, otherwise over the control socket in DATA_DIR, which only the owner of that folder can enter.
 */
import { CommanderError } from '@commander-js/extra-typings';
import { readArguments } from './arguments.ts';
import { allDone, command, PLATFORM_COMMANDS, replaceCommands } from './console/commands.ts';
import { joinPlatform } from './join.ts';
import { tenantProgram } from './tenant/program.ts';
import { Session, sentences } from './tenant/session.ts';
import { LIMITS_HELP, tenantLimits } from './tenant-limits.ts';

const sentencesOf = (error: unknown): string => sentences(error).join('\n  ');

/** `help limits` shows the arguments. */
const LIMITS_COMMAND = command('limits [tenant] [limits...]', LIMITS_HELP, (broker, [tenant, ...assignments]) =>
  tenantLimits(broker, tenant, assignments).catch(sentencesOf),
);

function commandsOfTenant(): string {
  const nowhere = (): never => {
    throw new Error('Nothing is done for the help.');
  };
  return tenantProgram('tenant', new Session(nowhere, () => {})).helpInformation();
}

/** The commands of `npm run tenant`: `help tenant` shows them, `tenant help create` the parameters of one. */
const TENANT_COMMAND = command(
  'tenant [words...]',
  `Tenants. The parameters of a command: tenant help create\n\n${commandsOfTenant()}`,
  async (broker, args) => {
    const session = new Session(
      async () => broker,
      (line) => console.log(line),
    );
    try {
      await tenantProgram('tenant', session).parseAsync(args, { from: 'user' });
      return '';
    } catch (error) {
      // commander has said what it did not understand.
      return error instanceof CommanderError ? '' : sentencesOf(error);
    }
  },
);

readArguments(
  {
    name: 'repl',
    usage: 'npm run --silent repl\n\nJoins the platform over NATS_URL, or through the folder DATA_DIR, as a console.',
  },
  {},
);
try {
  import.meta.resolve('moleculer-repl');
} catch {
  console.error(
    'The console is not installed here (the package moleculer-repl): run it from the image of the Dockerfile target `console`, ' +
      'or from a checkout after `npm ci` without --omit=dev.',
  );
  process.exit(1);
}
const COMMANDS = [...PLATFORM_COMMANDS, LIMITS_COMMAND, TENANT_COMMAND];
replaceCommands(COMMANDS.map(({ command }) => command.replace(/ .*/s, '')));
const { broker } = await joinPlatform('repl', {
  onJoin: (text) => console.log(text),
  commands: COMMANDS,
});
await broker.waitForServices('metadata', 5_000, 100).catch(() => {
  console.log('No metadata service answers yet; `nodes` shows who is there.');
});
console.log(
  'Try: health, metrics, actions, tenant list, tenant help, limits, nodes, services, help. Leave with Ctrl-D.',
);
// At the end of what is piped in, the console leaves at once.
const stop = broker.stop.bind(broker);
broker.stop = () => allDone().then(stop);
broker.repl();

/**
 * `npm run repl`: an operator's console on a running platform. It joins as one more node: over NATS when NATS_URL is
 * set, otherwise over the control socket in DATA_DIR, which only the owner of that folder can enter.
 */
import { CommanderError } from '@commander-js/extra-typings';
import type { ServiceBroker } from 'moleculer';
import { readArguments } from './arguments.ts';
import { PLATFORM_COMMANDS, type ReplCommand, replaceCommands } from './console/commands.ts';
import { joinPlatform } from './join.ts';
import { tenantProgram } from './tenant/program.ts';
import { Session, sentences } from './tenant/session.ts';
import { LIMITS_HELP, tenantLimits } from './tenant-limits.ts';

/** `help limits` shows the arguments. */
const LIMITS_COMMAND = {
  command: 'limits [tenant] [limits...]',
  description: LIMITS_HELP,
  parse(command: ReplCommand) {
    command.params = { args: command.args };
  },
  async action(broker: ServiceBroker, { args: [tenant, ...assignments] }: ReplCommand['params']) {
    const text = await tenantLimits(broker, tenant, assignments).catch((error) => String(error.message ?? error));
    console.log(text);
  },
};

const tenants = (broker: ServiceBroker) =>
  tenantProgram(
    'tenant',
    new Session(
      async () => broker,
      (line) => console.log(line),
    ),
  );

function commandsOfTenant(): string {
  const nowhere = (): never => {
    throw new Error('Nothing is done for the help.');
  };
  return tenantProgram('tenant', new Session(nowhere, () => {})).helpInformation();
}

/** The commands of `npm run tenant`: `help tenant` shows them, `tenant help create` the parameters of one. */
const TENANT_COMMAND = {
  command: 'tenant [words...]',
  description: `Tenants. The parameters of a command: tenant help create\n\n${commandsOfTenant()}`,
  allowUnknownOptions: true,
  parse(command: ReplCommand) {
    command.params = { args: command.args };
  },
  async action(broker: ServiceBroker, { args }: ReplCommand['params']) {
    try {
      await tenants(broker).parseAsync(args, { from: 'user' });
    } catch (error) {
      // commander has said what it did not understand.
      if (!(error instanceof CommanderError)) console.log(sentences(error).join('\n  '));
    }
  },
};

readArguments(
  {
    name: 'repl',
    usage: 'npm run --silent repl\n\nJoins the platform over NATS_URL, or through the folder DATA_DIR, as a console.',
  },
  {},
);
const COMMANDS = [...PLATFORM_COMMANDS, LIMITS_COMMAND, TENANT_COMMAND];
replaceCommands(COMMANDS.map(({ command }) => command.split(' ', 1)[0]!));
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
broker.repl();

/**
 * `npm run repl`: an operator's console on a running platform. It joins as one more node: over NATS when NATS_URL is
 * set, otherwise over the control socket in DATA_DIR, which only the owner of that folder can enter.
 */
import type { ServiceBroker } from 'moleculer';
import { joinPlatform } from './join.ts';
import { LIMITS_HELP, tenantLimits } from './tenant-limits.ts';

/** What Moleculer's REPL takes for a command: commander's own command, of which it reads the arguments. */
interface ReplCommand {
  args: string[];
  params: { args: string[] };
}

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

const { broker } = await joinPlatform('repl', {
  onJoin: (text) => console.log(text),
  commands: [LIMITS_COMMAND],
});
await broker.waitForServices('metadata', 5_000, 100).catch(() => {
  console.log('No metadata service answers yet; `nodes` shows who is there.');
});
console.log('Try: nodes, services, actions, call metadata.tenants.list, limits, help. Leave with Ctrl-D.');
broker.repl();

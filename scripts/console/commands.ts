/** The commands of the console for the platform, and which of Moleculer's own stay. */
import { createRequire } from 'node:module';
import type { ServiceBroker } from 'moleculer';
import { similarName } from '../../lib/values/similar.ts';
import { callAction, describeActions, reasonOf } from './call.ts';
import { health, numbers } from './processes.ts';

/** A command of Moleculer's REPL: a commander command whose arguments it reads. */
interface ReplCommand {
  args: string[];
  params: { args: string[] };
}

/** The command before: lines that are piped in are worked off one after the other. */
let last: Promise<void> = Promise.resolve();

/** Resolves when everything that was typed is done. */
export const allDone = (): Promise<void> => last;

/** A command that prints what `work` answers, if anything, or the reason why not. */
export const command = (
  usage: string,
  description: string,
  work: (broker: ServiceBroker, args: string[]) => string | Promise<string>,
) => ({
  command: usage,
  description,
  allowUnknownOptions: true,
  parse(parsed: ReplCommand) {
    parsed.params = { args: parsed.args };
  },
  action(broker: ServiceBroker, { args }: ReplCommand['params']): Promise<void> {
    last = last.then(async () => {
      try {
        const text = await work(broker, args);
        if (text !== '') console.log(text);
      } catch (error) {
        console.log(reasonOf(error));
      }
    });
    return last;
  },
});

export const PLATFORM_COMMANDS = [
  command(
    'call <action> [params...]',
    'Calls an action: call metadata.tenants.get \'{"key":"lakeside"}\'. `actions` lists what may be called.',
    (broker, [action = '', ...words]) => callAction(broker, action, words),
  ),
  command(
    'actions [name]',
    'What operators may call; with a name, or its beginning, the parameters and an example.',
    (_broker, [name]) => describeActions(name),
  ),
  command('health [process]', 'How all processes are, or one, or those of a service: health data.', (broker, [name]) =>
    health(broker, name),
  ),
  command(
    'metrics [process] [pattern]',
    'Numbers of all processes at a glance, of one, or of a service: metrics data. With a part of a name, those metrics: metrics data cache.',
    (broker, [name, pattern]) => numbers(broker, name, pattern),
  ),
];

/** Moleculer's own that help an operator; the others are for its developers, and some end or load services. */
const KEPT: ReadonlySet<string> = new Set(['nodes', 'services', 'info', 'cls', 'exit', 'quit', 'q', 'help']);

interface Program {
  readonly parent: Program | null;
  readonly commands: { name(): string }[];
  command(usage: string, ...rest: unknown[]): Program;
  showHelpAfterError(display: boolean): Program;
  configureOutput(output: { outputError(text: string, write: (text: string) => void): void }): Program;
}

/** An unknown command is answered with a sentence, and not with all of the help. */
function answerShortly(program: Program): void {
  program.showHelpAfterError(false).configureOutput({
    outputError(text, write) {
      const [, name] = /^error: unknown command '(.*?)'/s.exec(text) ?? [];
      if (name === undefined) return write(text);
      const meant = similarName(
        name,
        program.commands.map((known) => known.name()),
      );
      write(`There is no command ${name}${meant === null ? '.' : `; did you mean ${meant}?`} \`help\` lists all.\n`);
    },
  });
}

/**
 * Lets commands of the platform replace those of Moleculer's REPL with the same name, which it has no option for, and
 * takes out those that are not KEPT; `ours`: names of the platform's commands.
 */
export function replaceCommands(ours: readonly string[]): void {
  const require = createRequire(createRequire(import.meta.url).resolve('moleculer-repl'));
  const { Command } = require('commander') as { Command: { prototype: Program } };
  const { prototype } = Command;
  const register = prototype.command;
  prototype.command = function (this: Program, usage: string, ...rest: unknown[]) {
    const isOurs = (name: string): boolean => ours.includes(name);
    const [name = ''] = usage.split(' ');
    for (let i = this.commands.length - 1; i >= 0; i--) {
      const known = this.commands[i]!.name();
      if (known === name || (isOurs(name) && !isOurs(known) && !KEPT.has(known))) this.commands.splice(i, 1);
    }
    if (this.parent !== null) return register.call(this, usage, ...rest);
    answerShortly(this);
    return register.call(this, usage, ...rest).showHelpAfterError(true);
  };
}

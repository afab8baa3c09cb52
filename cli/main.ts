/** Runs one command and ends with its exit code. */
import { CommanderError } from '@commander-js/extra-typings';
import { EXIT, type ExitCode, Failure } from './failure.ts';
import { changeUnderWay } from './http/intentions.ts';
import { Output } from './output/output.ts';
import { openTerminal } from './output/terminal.ts';
import { buildProgram } from './program.ts';

/** `argv` without node and script; `version` is that of the package. */
export async function main(argv: readonly string[], version: string): Promise<void> {
  // A reader that has seen enough, such as `head`, is no failure.
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.error);
    });
  process.once('SIGINT', () => {
    const change = changeUnderWay()
      ? ' A change was under way and may have been made: the same command takes it up.'
      : '';
    process.stderr.write(`\nInterrupted.${change}\n`);
    process.exit(EXIT.interrupted);
  });
  const code = await run(argv, version);
  // A command that has done its work may have chosen a code of its own, as `diff --exit-code` does.
  if (code !== EXIT.ok) process.exitCode = code;
}

async function run(argv: readonly string[], version: string): Promise<ExitCode> {
  const json = argv.includes('--json');
  const program = buildProgram(version);
  settle(program, json);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    const color = !argv.includes('--no-color');
    const output = new Output({ json, verbose: false, terminal: openTerminal({ color, json }) });
    if (!(error instanceof CommanderError)) return output.failure(error);
    // Help that was asked for has been printed, and so was what is wrong with the command.
    if (error.exitCode === 0) return EXIT.ok;
    if (json) return output.failure(new Failure('CLIENT_USAGE', EXIT.usage, error.message.replace(/^error: /, '')));
    return EXIT.usage;
  }
}

interface Settable {
  readonly commands: readonly Settable[];
  exitOverride(): unknown;
  configureHelp(help: { showGlobalOptions: boolean; subcommandTerm: (command: { name(): string }) => string }): unknown;
  configureOutput(output: { outputError?: (text: string, write: (text: string) => void) => void }): unknown;
  showHelpAfterError(text: string): unknown;
}

/** Commands inherit none of these once they are made. */
function settle(command: Settable, json: boolean): void {
  command.exitOverride();
  // Arguments stand in the help of the command itself; here they would leave no room for what it does.
  command.configureHelp({ showGlobalOptions: true, subcommandTerm: (inner) => inner.name() });
  command.showHelpAfterError('(--help shows what there is)');
  if (json) command.configureOutput({ outputError: () => undefined });
  for (const inner of command.commands) settle(inner, json);
}

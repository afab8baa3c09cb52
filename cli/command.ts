/**
 * Structure of a command. A group of commands is a function that adds them to the program:
 *
 *     export function addLimits(program: Program): void {
 *       program.command('limits').description('…').action(act(async (run) => { … }));
 *     }
 *
 * `act` gives the work a `Run` before the arguments and options of its command; it is made from the global options.
 * An error of the work ends the program: a `Failure` with its sentence and exit code.
 */
import { Command } from '@commander-js/extra-typings';
import { IDEMPOTENCY_KEY_RULE, isIdempotencyKey } from '../lib/values/idempotency-key.ts';
import { withNames } from './data/advice.ts';
import { environment } from './environment.ts';
import { usage } from './failure.ts';
import { Api } from './http/api.ts';
import { Intentions } from './http/intentions.ts';
import { Output } from './output/output.ts';
import { openTerminal } from './output/terminal.ts';
import { openSession, type Session } from './profiles/session.ts';
import { Store } from './profiles/store.ts';

/** The options that every command takes, before or after its name. */
export interface GlobalOptions {
  json?: true;
  baseUrl?: string;
  profile?: string;
  dryRun?: true;
  agentRun?: string;
  idempotencyKey?: string;
  resume: boolean;
  wait?: true;
  timeout: number;
  verbose?: true;
  color: boolean;
}

const TIMEOUT_SECONDS = 60;

function seconds(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0 || value > 3_600) throw usage('--timeout takes seconds, up to 3600.');
  return value;
}

/** Checked before anything is sent: the command may read first, and the platform would refuse the change alone. */
function idempotencyKey(text: string): string {
  if (!isIdempotencyKey(text)) throw usage(`--idempotency-key: ${IDEMPOTENCY_KEY_RULE}`);
  return text;
}

/** The program without its commands. */
export function createProgram(version: string) {
  return new Command('erp')
    .description('Works with an ERP platform from the command line.')
    .version(version, '--version', 'print the version of erp')
    .option('--json', 'print exactly the JSON of the API; failures as JSON on standard error')
    .option('--base-url <url>', 'address of the platform, without /api/v1 (ERP_BASE_URL)')
    .option('--profile <name>', 'sign-in to work with (ERP_PROFILE)')
    .option('--dry-run', 'check everything and change nothing')
    .option('--agent-run <id>', 'call under this run of an agent')
    .option(
      '--idempotency-key <key>',
      'key of this change; by default one is made and kept until the outcome is known',
      idempotencyKey,
    )
    .option('--no-resume', 'do not take up an unfinished request that was the same; do it anew')
    .option('--wait', 'wait until the job that the command starts has ended')
    .option('--timeout <seconds>', 'how long to wait for one answer', seconds, TIMEOUT_SECONDS)
    .option('--verbose', 'say on standard error what is sent and answered, without secrets')
    .option('--no-color', 'no colours (NO_COLOR)');
}

/** The program, or a group of commands in it. */
export type Program = ReturnType<typeof createProgram>;

/** A command that holds others, such as `data`. */
export const addGroup = (program: Program, name: string, description: string) =>
  program.command(name).description(description);

export type Group = ReturnType<typeof addGroup>;

/** Parameters of a command's work. */
export interface Run {
  readonly options: GlobalOptions;
  readonly output: Output;
  readonly store: Store;
  /** The API as the person who is signed in. Made when it is used first, so that commands without one need no sign-in. */
  api(): Promise<Api>;
  session(): Promise<Session>;
}

/** A command's context, from its global options. */
export function openRun(options: GlobalOptions): Run {
  const json = options.json === true;
  const verbose = options.verbose === true;
  const output = new Output({ json, verbose, terminal: openTerminal({ color: options.color, json }) });
  const store = new Store(environment.folder(), (text) => output.warn(text));
  let session: Promise<Session> | undefined;
  let api: Promise<Api> | undefined;
  const run: Run = {
    options,
    output,
    store,
    session: () => (session ??= openSession(options, store)),
    api: () => (api ??= connect()),
  };
  const connect = async (): Promise<Api> => {
    const tokens = await run.session();
    return new Api({
      baseUrl: tokens.baseUrl,
      tokens,
      intentions: new Intentions(store, { person: () => tokens.person(), resume: options.resume }),
      timeoutMs: options.timeout * 1000,
      idempotencyKey: options.idempotencyKey,
      dryRun: options.dryRun === true,
      agentRun: options.agentRun,
      note: (text) => output.note(text),
      trace: (text) => output.trace(text),
    });
  };
  return run;
}

/** Turns work into the action of a command: `(argument…, options, command)` become `(run, argument…, options)`. */
export function act<Args extends unknown[]>(
  work: (run: Run, ...args: Args) => Promise<void>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    const command = args.findLast((argument) => argument instanceof Command);
    if (!command) throw new Error('commander gives the command last.');
    // The global options are declared in createProgram, whose types a command of any depth no longer shows.
    const run = openRun(command.optsWithGlobals() as GlobalOptions);
    await work(run, ...args).catch(async (error: unknown) => {
      // Readers of --json want the answer alone.
      throw run.output.json ? error : await withNames(run.api, error, args[0]);
    });
  };
}

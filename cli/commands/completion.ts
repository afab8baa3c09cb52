/** `completion`: scripts that complete commands, options and values in bash, zsh, fish and PowerShell. */
import { parseArgs } from 'node:util';
import tab from '@bomb.sh/tab/commander';
import { EVENT_TYPE_NAMES } from '../../contracts/event-types.ts';
import { DEPLOYMENT_STATUSES } from '../../contracts/metadata.ts';
import { type OperationOutput, operationRow } from '../../contracts/operations.ts';
import { COMPONENT_TYPES } from '../../lib/schema/snapshot.ts';
import type { Program } from '../command.ts';
import { environment } from '../environment.ts';
import { exchange } from '../http/transport.ts';
import { openSession, type SessionOptions } from '../profiles/session.ts';
import { Store } from '../profiles/store.ts';

type Completed = ReturnType<typeof tab>;

/** Short: a person waits at the prompt. */
const TIMEOUT_MS = 2_000;

/** Values that are known only when they are asked for. */
interface Known {
  profiles: readonly string[];
  objects: readonly string[];
}

/** Call it when all commands are there: they are what is completed. */
export function addCompletion(program: Program): void {
  // The same class at run time; only its declared types differ, which @commander-js/extra-typings refines.
  const completed = tab(program as Parameters<typeof tab>[0], { completionCommandName: 'completion' });
  const known: Known = { profiles: [], objects: [] };
  const command = (name: string) => program.commands.find((one) => one.name() === name);
  command('completion')?.description('print a script that completes commands, options and values in a shell');
  command('complete')?.hook('preAction', async (_, { args }) => {
    // Failures give no completions: an error would appear in the middle of a command line.
    Object.assign(known, await find(completed, args).catch(() => ({})));
  });
  addGlobalOptions(completed);
  addValues(completed, known);
}

/** They may stand behind every command. */
function addGlobalOptions({ options, commands }: Completed): void {
  for (const command of commands.values())
    for (const [name, option] of options) if (!command.options.has(name)) command.options.set(name, option);
}

function addValues({ options, commands }: Completed, known: Known): void {
  const offer = (values: () => readonly string[]) => (complete: (value: string, description: string) => void) => {
    for (const value of values()) complete(value, '');
  };
  const option = (command: string, name: string, values: () => readonly string[]): void => {
    const found = (commands.get(command)?.options ?? options).get(name);
    if (found) found.handler = offer(values);
  };
  const argument = (command: string, name: string, values: () => readonly string[]): void => {
    const found = commands.get(command)?.arguments.get(name);
    if (found) found.handler = offer(values);
  };
  const profiles = (): readonly string[] => known.profiles;
  const types = (): readonly string[] => COMPONENT_TYPES;
  option('', 'profile', profiles);
  argument('profiles use', 'name', profiles);
  argument('profiles remove', 'name', profiles);
  option('metadata list', 'status', () => DEPLOYMENT_STATUSES);
  option('metadata retrieve', 'type', types);
  for (const name of ['events tail', 'events listen', 'webhooks create']) option(name, 'types', () => EVENT_TYPE_NAMES);
  argument('metadata types', 'type', types);
  argument('metadata delete', 'type:members', types);
  for (const name of commands.keys()) argument(name, 'object', () => known.objects);
}

/** Profiles of this machine and, where an object is asked for, the objects that the person can read. */
async function find(completed: Completed, words: readonly string[]): Promise<Partial<Known>> {
  const store = new Store(environment.folder(), () => undefined);
  const profiles = Object.keys((await store.config()).profiles);
  const { session, object } = read(completed, words);
  return { profiles, ...(object ? { objects: await objectsOf(session, store).catch(() => []) } : {}) };
}

/** The sign-in that the words before the last one choose, and whether the last one is an object. */
function read(
  { options, commands }: Completed,
  words: readonly string[],
): { session: SessionOptions; object: boolean } {
  const all = [options, ...[...commands.values()].map((command) => command.options)].flatMap((some) => [...some]);
  const { values, positionals } = parseArgs({
    args: words.slice(0, -1),
    options: Object.fromEntries(all.map(([name, { isBoolean }]) => [name, { type: isBoolean ? 'boolean' : 'string' }])),
    allowPositionals: true,
    strict: false,
  });
  const { profile, 'base-url': baseUrl } = values;
  const [first] = commands.get(positionals.join(' '))?.arguments.keys() ?? [];
  return {
    session: {
      ...(typeof profile === 'string' ? { profile } : {}),
      ...(typeof baseUrl === 'string' ? { baseUrl } : {}),
    },
    object: first === 'object' && !words.at(-1)?.startsWith('-'),
  };
}

/** Asked once and not again: the person at the prompt presses the key again. */
async function objectsOf(options: SessionOptions, store: Store): Promise<string[]> {
  const session = await openSession(options, store);
  const { method, path } = operationRow('schema.objects.list');
  const { status, text } = await exchange({
    method,
    url: new URL(`${session.baseUrl}/api/v1${path}`),
    headers: { accept: 'application/json', authorization: `Bearer ${await session.token()}` },
    timeoutMs: TIMEOUT_MS,
  });
  if (status !== 200) return [];
  const { records }: OperationOutput<'schema.objects.list'> = JSON.parse(text);
  return records.map(({ apiName }) => apiName);
}

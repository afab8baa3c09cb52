/** `call ACTION '{…}'` of the console: checked against what operators may call before anything is sent. */
import { inspect } from 'node:util';
import { closest, distance } from 'fastest-levenshtein';
import { Errors, type ServiceBroker } from 'moleculer';
import { OPERATOR } from '../../config/services.ts';
import { callersOf } from '../../contracts/bus.ts';
import { call } from '../../contracts/call.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { messageOf } from '../../lib/errors/thrown.ts';
import { isObject } from '../../lib/json/objects.ts';
import { isUuid } from '../../lib/values/ids.ts';
import { isServiceUnavailable } from '../../mixins/service-unavailable.ts';
import { type Kind, OPERATOR_HELP, type OperatorActionHelp } from './operator-actions.ts';

/** How long the longest action of an operator may take. */
const CALL_MS = 300_000;

/** The input cannot be called; the message says why, and what to type. */
export class NotCalled extends Error {}

/** `call …` as it is typed. */
const typed = (action: string, params: object): string =>
  Object.keys(params).length === 0 ? `call ${action}` : `call ${action} '${JSON.stringify(params)}'`;

/** All actions, one a line; with a name, or the beginning of one, what it takes and an example. */
export function describeActions(name?: string): string {
  if (name === undefined) {
    const width = Math.max(...[...OPERATOR_HELP.keys()].map((action) => action.length));
    const lines = [...OPERATOR_HELP].map(([action, { does }]) => `  ${action.padEnd(width)}  ${does}`);
    return ['What operators may call; `actions NAME` shows the parameters and an example.', ...lines].join('\n');
  }
  const found = [...OPERATOR_HELP].filter(([action]) => action === name || action.startsWith(name));
  if (found.length === 0) throw new NotCalled(whyNot(name));
  return found.map(([action, help]) => describeAction(action, help)).join('\n\n');
}

function describeAction(action: string, { does, parameters, example }: OperatorActionHelp): string {
  const all = Object.entries(parameters);
  const width = Math.max(0, ...all.map(([name]) => name.length));
  const lines = all.map(
    ([name, { kind, required, what }]) => `  ${name.padEnd(width)}  ${kind}${required ? '' : ', optional'}: ${what}`,
  );
  return [
    `${action}: ${does}`,
    ...(all.length === 0 ? ['  no parameters'] : lines),
    `  ${typed(action, example)}`,
  ].join('\n');
}

/** Why an action is not there for operators. */
function whyNot(action: string): string {
  const known = callersOf(action);
  if (known) {
    const isPublic = known.length === 1 && known[0] === 'gateway';
    return isPublic
      ? `${action} is not for operators: it works for a user, who calls it through the API (npm run token gets a token).`
      : `${action} is not for operators: only ${known.join(' and ')} may call it.`;
  }
  const nearest = closest(action, [...OPERATOR_HELP.keys()]);
  const isNear = distance(action, nearest) <= Math.max(3, action.length / 3);
  return `There is no action ${action}${isNear ? `; did you mean ${nearest}?` : '.'} \`actions\` lists all.`;
}

const KINDS: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  text: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  'text[]': (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
  object: isObject,
  'object[]': (value) => Array.isArray(value) && value.every(KINDS.object),
};

/** Everything that is wrong with the parameters of an action, as sentences. */
export function problemsOf({ parameters }: OperatorActionHelp, params: Readonly<Record<string, unknown>>): string[] {
  const names = Object.keys(parameters);
  const expected = names.length === 0 ? 'it takes none' : `it takes ${names.join(', ')}`;
  return [
    ...Object.keys(params)
      .filter((name) => !Object.hasOwn(parameters, name))
      .map((name) => `There is no parameter ${name}: ${expected}.`),
    ...Object.entries(parameters).flatMap(([name, { kind, required, what }]) => {
      const value = params[name];
      if (value === undefined) return required ? [`${name} is missing: ${what}.`] : [];
      return KINDS[kind](value) ? [] : [`${name} must be ${kind === 'object' ? 'an' : 'a'} ${kind}: ${what}.`];
    }),
  ];
}

/** The parameters out of the words behind the action: one JSON object, or `--name value`. */
function readParams(action: string, words: readonly string[], help: OperatorActionHelp): Record<string, unknown> {
  if (words.length === 0) return {};
  const [first = ''] = words;
  if (first.startsWith('--')) return readOptions(words, help);
  const example = typed(action, help.example);
  let read: unknown;
  try {
    if (words.length > 1) throw new Error('it has blanks outside of the quotes');
    read = JSON.parse(first);
  } catch (error) {
    throw new NotCalled(
      `The parameters are not JSON (${messageOf(error)}). Write one object in single quotes: ${example}`,
    );
  }
  if (!isObject(read)) throw new NotCalled(`The parameters must be one JSON object in single quotes: ${example}`);
  return read;
}

function readOptions(words: readonly string[], { parameters }: OperatorActionHelp): Record<string, unknown> {
  const params: Record<string, unknown> = {};
  for (let i = 0; i < words.length; i++) {
    const [, name, given] = /^--([^=]+)(?:=(.*))?$/s.exec(words[i] ?? '') ?? [];
    if (name === undefined) throw new NotCalled(`${words[i]} stands where --name should.`);
    const value = given ?? words[++i];
    if (value === undefined) throw new NotCalled(`--${name} has no value.`);
    params[name] = parameters[name]?.kind === 'text' ? value : parsedOr(value);
  }
  return params;
}

function parsedOr(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** People know a tenant by its key, and actions by its id. */
async function withTenantId(
  broker: ServiceBroker,
  params: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>>> {
  const { tenantId: key } = params;
  if (typeof key !== 'string' || isUuid(key)) return params;
  const tenant = await call(broker, 'metadata.tenants.get', { key });
  if (!tenant) throw new NotCalled(`There is no tenant ${key}: \`tenant list\` shows the keys and ids of all.`);
  return { ...params, tenantId: tenant.id };
}

/** Calls the action and answers what to print. Throws NotCalled, or what came back. */
export async function callAction(broker: ServiceBroker, action: string, words: readonly string[]): Promise<string> {
  const help = OPERATOR_HELP.get(action);
  if (!help) throw new NotCalled(whyNot(action));
  const params = readParams(action, words, help);
  const problems = problemsOf(help, params);
  if (problems.length > 0) throw new NotCalled(`${problems.join('\n')}\n${describeAction(action, help)}`);
  const answer = await broker.call<unknown, object>(action, await withTenantId(broker, params), { timeout: CALL_MS });
  return inspect(answer ?? null, {
    depth: null,
    maxArrayLength: null,
    maxStringLength: null,
    colors: process.stdout.isTTY,
  });
}

/** Readable form of an error: its reason and all problems, without a stack. */
export function reasonOf(error: unknown): string {
  if (error instanceof NotCalled) return error.message;
  if (error instanceof PlatformError) {
    const violations = (error.errors ?? []).map(
      ({ pointer, message }) => `\n  ${pointer ? `${pointer}: ` : ''}${message}`,
    );
    return `${error.code}: ${error.message}${violations.join('')}`;
  }
  if (isServiceUnavailable(error)) return `${messageOf(error)} \`health\` shows which services are away.`;
  if (error instanceof Errors.MoleculerError && error.code === 403)
    return `${error.message} This console has joined as ${OPERATOR}; the process may be of another version.`;
  return error instanceof Error ? `The call failed: ${error.message}` : String(error);
}

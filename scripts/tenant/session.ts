/** Context of a `tenant` command: the platform that it joins, and its output. */
import { text } from 'node:stream/consumers';
import type { ServiceBroker } from 'moleculer';
import type { ServiceName } from '../../config/services.ts';
import { type ActionMap, call } from '../../contracts/call.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { membersOf } from '../../lib/json/objects.ts';
import { requireServices } from '../join.ts';

/** How long the longest action of an operator may take: a template is deployed, a schema removed. */
const CALL_MS = 300_000;

export class Session {
  readonly #join: () => Promise<ServiceBroker>;
  readonly #print: (line: string) => void;
  #broker: Promise<ServiceBroker> | null = null;

  constructor(join: () => Promise<ServiceBroker>, print: (line: string) => void) {
    this.#join = join;
    this.#print = print;
  }

  /** Joins the platform when it is called first, and waits for the services. */
  async require(...services: ServiceName[]): Promise<void> {
    await requireServices(await this.broker(), ...services);
  }

  broker(): Promise<ServiceBroker> {
    this.#broker ??= this.#join();
    return this.#broker;
  }

  async call<K extends keyof ActionMap>(action: K, params: ActionMap[K]['params']): Promise<ActionMap[K]['result']> {
    return call(await this.broker(), action, params, { timeout: CALL_MS });
  }

  /** Prints what came of it: lines for people, or one JSON value for programs. */
  show(outcome: unknown, { json }: { readonly json?: true | undefined }, lines: readonly string[]): void {
    this.#print(json ? JSON.stringify(outcome, null, 2) : lines.join('\n'));
  }

  /** Says on standard error what goes on meanwhile. */
  note(line: string): void {
    process.stderr.write(`${line}\n`);
  }

  /** Piped input of the command. */
  input(): Promise<string> {
    return text(process.stdin);
  }
}

/** The sentences of an error: its message, and every violation that the message leaves out. */
export function sentences(error: unknown): string[] {
  if (!(error instanceof Error)) return [String(error)];
  if (!(error instanceof PlatformError)) return [error.message];
  const violations = (error.errors ?? []).map(({ message }) => message);
  return [error.message, ...violations.filter((one) => !error.message.includes(one)), ...blocked(error.details)];
}

/** Problems of a configuration; the list may be long. */
const BLOCKED_SHOWN = 20;

function blocked(details: PlatformError['details']): string[] {
  const problems = details?.['blocked'];
  if (!Array.isArray(problems)) return [];
  const lines = problems.map(membersOf).map(({ type, fullName, message }) => `${type} ${fullName}: ${message}`);
  const more = lines.length - BLOCKED_SHOWN;
  return more > 0 ? [...lines.slice(0, BLOCKED_SHOWN), `and ${more} more`] : lines;
}

import { membersOf } from '../lib/json/objects.ts';

/** The log for a person at a terminal: lines of JSON in, readable ones out. */

const LEVELS: Readonly<Record<number, string>> = {
  10: 'TRACE',
  20: 'DEBUG',
  30: 'INFO',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL',
};
/** In front of the fields, or without a meaning for a process of one's own. */
const LEFT_OUT = new Set(['level', 'time', 'node', 'nodeID', 'ns', 'msg', 'mod', 'svc', 'ver', 'err']);

/** Several lines of JSON, each with its line break; other text stays as it is. */
export const readableLines = (lines: string): string =>
  lines
    .split('\n')
    .map((line) => (line.startsWith('{') ? readable(line) : line))
    .join('\n');

function readable(line: string): string {
  const entry: Record<string, unknown> = JSON.parse(line);
  const fields = Object.entries(entry)
    .filter(([name]) => !LEFT_OUT.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const head = [clock(Number(entry['time'])), LEVELS[Number(entry['level'])] ?? '', String(entry['msg'] ?? '')];
  return printable([...head, ...fields].join(' ')) + stackOf(entry['err']);
}

/** Of errors: the stack with its causes, indented. */
function stackOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { stack, name, message, cause } = membersOf(error);
  const text = String(stack ?? `${name}: ${message}`).split('\n');
  return text.map((line) => `\n    ${printable(line.trim())}`).join('') + stackOf(cause);
}

/** Terminals execute control characters, and requests bring some. */
const printable = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

const clock = (time: number): string => new Date(time).toTimeString().slice(0, 8);

/** Prints the steps of a start: each with the seconds since the one before ended. */
export class StartSteps {
  readonly #write: (line: string) => void;
  #since = performance.now();

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  ended(name: string): void {
    const now = performance.now();
    const seconds = ((now - this.#since) / 1_000).toFixed(1);
    this.#since = now;
    this.#write(`  ${name.padEnd(20)}${seconds.padStart(6)} s`);
  }
}

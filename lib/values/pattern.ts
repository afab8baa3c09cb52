/**
 * Patterns of text fields, matched in time proportional to text times pattern. They are written by tenants, and the
 * pattern of one tenant must never block a process that serves others, as JavaScript's backtracking engine could.
 * Grammar: literals, `.`, `[…]`, `\d \w \s \D \W \S`, escaped punctuation, `( )`, `(?: )`, `|`, `? * + {n} {n,} {n,m}`;
 * the whole text must match; `^` at the start and `$` at the end are allowed and have no effect. Source:
 * docs/reference/field-types.md.
 */

import { firstCodePoint } from './code-points.ts';
import { memoize } from './memoize.ts';

/** Code points from the first to the last, inclusive. */
type Range = readonly [from: number, to: number];

/**
 * A state goes on to all of `next` at once, having consumed a character of `ranges` where it has some. Ranges are flat,
 * first and last of each in turn, and in order. The last state goes nowhere.
 */
interface State {
  readonly index: number;
  readonly ranges: Int32Array | null;
  readonly next: State[];
}

interface Machine {
  readonly first: State;
  readonly last: State;
  /** Number of states. */
  readonly size: number;
}

const STATES_MAX = 2_000;
const CACHE_MAX = 500;
const cache = new Map<string, Machine>();

/**
 * Steps that all patterns together may take, of one request or of whatever else shares it: each pattern is bounded by
 * itself, but an object may have five hundred. A step takes some 10 ns.
 */
export interface PatternBudget {
  /** Steps left. */
  steps: number;
  readonly stepsMax: number;
}

/**
 * Well above what any record of business needs: five hundred values of 100 characters, each with a pattern of 40
 * states.
 */
const PATTERN_STEPS_MAX = 2_000_000;

export const newPatternBudget = (stepsMax = PATTERN_STEPS_MAX): PatternBudget => ({ steps: stepsMax, stepsMax });

/** The budget does not suffice to tell whether a text matches. */
export class PatternBudgetError extends Error {
  override readonly name = 'PatternBudgetError';
}

export class PatternError extends Error {
  override readonly name = 'PatternError';
}

/** Throws PatternError with an English sentence when the pattern is outside the grammar or too large. */
export function checkPattern(pattern: string): void {
  compile(pattern);
}

/** True when the whole text matches. Throws PatternBudgetError when the budget is used up. */
export function matchesPattern(pattern: string, text: string, budget: PatternBudget = newPatternBudget()): boolean {
  return run(compiled(pattern), text, budget);
}

/** Matching a text takes at most so many steps per character. Throws PatternError like checkPattern. */
export function patternSize(pattern: string): number {
  return compiled(pattern).size;
}

/** The same pattern as a regular expression of PostgreSQL, for the operator `~`. */
export function patternSql(pattern: string): string {
  return `^${nodeSql(new Reader(pattern).read())}$`;
}

/** PostgreSQL repeats so often at most. */
const SQL_REPEAT_MAX = 255;

function nodeSql(node: Node): string {
  if (node.kind === 'char') return rangesSql(node.ranges);
  if (node.kind === 'sequence') return `(?:${node.nodes.map(nodeSql).join('')})`;
  if (node.kind === 'choice') return `(?:${node.nodes.map(nodeSql).join('|')})`;
  const one = nodeSql(node.node);
  const times = (count: number): string => {
    const whole = `${one}{${SQL_REPEAT_MAX}}`.repeat(Math.floor(count / SQL_REPEAT_MAX));
    return `${whole}${one}{${count % SQL_REPEAT_MAX}}`;
  };
  if (node.max === Number.POSITIVE_INFINITY) return node.min === 0 ? `${one}*` : `(?:${times(node.min)}${one}*)`;
  if (node.max <= SQL_REPEAT_MAX) return `${one}{${node.min},${node.max}}`;
  let optional = '';
  for (let left = node.max - node.min; left > 0; left -= SQL_REPEAT_MAX)
    optional = `${one}{0,${Math.min(left, SQL_REPEAT_MAX)}}${optional}`;
  return `(?:${times(node.min)}${optional})`;
}

function rangesSql(ranges: readonly Range[]): string {
  const code = (point: number): string => `\\U${Math.max(point, 1).toString(16).padStart(8, '0')}`;
  const [first] = ranges;
  if (first && ranges.length === 1 && first[0] === first[1]) return code(first[0]);
  if (ranges.length === 0) return `[^${code(1)}-${code(LAST_CODE)}]`;
  return `[${ranges.map(([from, to]) => (from === to ? code(from) : `${code(from)}-${code(to)}`)).join('')}]`;
}

function compiled(pattern: string): Machine {
  let machine = cache.get(pattern);
  if (!machine) {
    machine = compile(pattern);
    const [oldest] = cache.keys();
    if (oldest !== undefined && cache.size >= CACHE_MAX) cache.delete(oldest);
    cache.set(pattern, machine);
  }
  return machine;
}

/**
 * The states that a text leads to, as a set: in `list` in the order found, in `marks` by the turn they were found in.
 */
class Front {
  readonly #marks: Uint32Array;
  readonly #stack: State[] = [];
  #turn = 0;

  constructor(size: number) {
    this.#marks = new Uint32Array(size);
  }

  begin(): void {
    this.#turn++;
  }

  /** Adds the states, or those that they go on to without a character. Gives the steps that it took. */
  add(list: State[], states: readonly State[]): number {
    const marks = this.#marks;
    const stack = this.#stack;
    const turn = this.#turn;
    let steps = 0;
    for (const state of states) stack.push(state);
    for (let state = stack.pop(); state; state = stack.pop()) {
      steps++;
      if (marks[state.index] === turn) continue;
      marks[state.index] = turn;
      if (state.ranges !== null || state.next.length === 0) list.push(state);
      else for (const following of state.next) stack.push(following);
    }
    return steps;
  }
}

function run({ first, last, size }: Machine, text: string, budget: PatternBudget): boolean {
  const front = new Front(size);
  let current: State[] = [];
  let next: State[] = [];
  front.begin();
  budget.steps -= front.add(current, [first]);
  let at = 0;
  for (let code = text.codePointAt(0); code !== undefined; code = text.codePointAt(at)) {
    at += code > 0xffff ? 2 : 1;
    front.begin();
    next.length = 0;
    let steps = current.length;
    for (const state of current)
      if (state.ranges !== null && isIn(state.ranges, code)) steps += front.add(next, state.next);
    budget.steps -= steps;
    if (budget.steps < 0)
      throw new PatternBudgetError(`all patterns together take more than ${budget.stepsMax} steps.`);
    if (next.length === 0) return false;
    [current, next] = [next, current];
  }
  return current.includes(last);
}

/** Halves the ranges, which are in order and apart, until one is left. */
function isIn(ranges: Int32Array, code: number): boolean {
  let [low, high] = [0, ranges.length / 2];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (code > ranges[2 * middle + 1]!) low = middle + 1;
    else if (code < ranges[2 * middle]!) high = middle;
    else return true;
  }
  return false;
}

type Node =
  | { kind: 'char'; ranges: readonly Range[] }
  | { kind: 'sequence'; nodes: Node[] }
  | { kind: 'choice'; nodes: Node[] }
  | { kind: 'repeat'; node: Node; min: number; max: number };

function compile(pattern: string): Machine {
  let size = 0;
  // A class that is repeated a thousand times is put in order once.
  const flat = memoize((ranges: readonly Range[]) => Int32Array.from(outside(outside(ranges)).flat()));
  const state = (ranges: Int32Array | null, ...next: State[]): State => {
    if (size >= STATES_MAX) throw new PatternError('The pattern is too complex. Use smaller repetitions.');
    return { index: size++, ranges, next };
  };
  // From the end to the beginning: each node is laid before the state that follows it, and gives its own first one.
  let work = 0;
  const lay = (node: Node, after: State): State => {
    if (++work > 10 * STATES_MAX) throw new PatternError('The pattern is too complex. Use smaller repetitions.');
    if (node.kind === 'char') return state(flat(node.ranges), after);
    if (node.kind === 'sequence') return node.nodes.reduceRight((following, part) => lay(part, following), after);
    if (node.kind === 'choice') return state(null, ...node.nodes.map((part) => lay(part, state(null, after))));
    let first = after;
    if (node.max === Number.POSITIVE_INFINITY) {
      first = state(null);
      first.next.push(lay(node.node, state(null, first)), after);
    } else for (let i = node.min; i < node.max; i++) first = state(null, lay(node.node, first), after);
    for (let i = 0; i < node.min; i++) first = lay(node.node, first);
    return first;
  };
  const last = state(null);
  const first = lay(new Reader(pattern).read(), last);
  return { first, last, size };
}

const LAST_CODE = 0x10ffff;

/** All code points that are in none of the ranges. */
function outside(ranges: readonly Range[]): readonly Range[] {
  const found: Range[] = [];
  let next = 0;
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (from > next) found.push([next, from - 1]);
    next = Math.max(next, to + 1);
  }
  if (next <= LAST_CODE) found.push([next, LAST_CODE]);
  return found;
}

const one = (code: number): Range => [code, code];

const DIGIT: readonly Range[] = [[48, 57]];
const WORD: readonly Range[] = [...DIGIT, [65, 90], [97, 122], one(95)];
/** As `\s` of JavaScript. */
const SPACE: readonly Range[] = [
  [0x09, 0x0d],
  one(0x20),
  one(0xa0),
  one(0x1680),
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  one(0x202f),
  one(0x205f),
  one(0x3000),
  one(0xfeff),
];
const CLASSES: Record<string, readonly Range[]> = {
  d: DIGIT,
  D: outside(DIGIT),
  w: WORD,
  W: outside(WORD),
  s: SPACE,
  S: outside(SPACE),
};
const CONTROLS: Record<string, number> = { n: 10, r: 13, t: 9 };

class Reader {
  readonly #chars: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(pattern: string) {
    if (pattern.length > 1_000) throw new PatternError('The pattern is longer than 1,000 characters.');
    this.#chars = [...pattern];
  }

  read(): Node {
    if (this.#peek() === '^') this.#at++;
    const node = this.#choice();
    if (this.#at < this.#chars.length)
      throw new PatternError(`Unexpected ${this.#peek()} at position ${this.#at + 1}.`);
    return node;
  }

  #peek(): string | undefined {
    return this.#chars[this.#at];
  }

  #choice(): Node {
    const first = this.#sequence();
    if (this.#peek() !== '|') return first;
    const nodes = [first];
    while (this.#peek() === '|') {
      this.#at++;
      nodes.push(this.#sequence());
    }
    return { kind: 'choice', nodes };
  }

  #sequence(): Node {
    const nodes: Node[] = [];
    for (;;) {
      const char = this.#peek();
      if (char === undefined || char === '|' || char === ')') break;
      if (char === '$' && this.#at === this.#chars.length - 1) {
        this.#at++;
        break;
      }
      this.#at++;
      nodes.push(this.#repeat(this.#atom(char)));
    }
    return { kind: 'sequence', nodes };
  }

  #repeat(node: Node): Node {
    const char = this.#peek();
    if (char === '*' || char === '+' || char === '?') {
      this.#at++;
      return { kind: 'repeat', node, min: char === '+' ? 1 : 0, max: char === '?' ? 1 : Number.POSITIVE_INFINITY };
    }
    if (char !== '{') return node;
    const match = /^\{(\d{1,3})(?:(,)(\d{1,3})?)?\}/.exec(this.#chars.slice(this.#at, this.#at + 10).join(''));
    if (!match) throw new PatternError(`Invalid repetition at position ${this.#at + 1}. Write {n}, {n,} or {n,m}.`);
    this.#at += match[0].length;
    const min = Number(match[1]);
    const max = match[2] === undefined ? min : match[3] === undefined ? Number.POSITIVE_INFINITY : Number(match[3]);
    if (max < min) throw new PatternError('The minimum of a repetition exceeds its maximum.');
    return { kind: 'repeat', node, min, max };
  }

  #atom(char: string): Node {
    if (char === '(') {
      if (++this.#depth > 20) throw new PatternError('The groups of the pattern are nested deeper than 20 levels.');
      if (this.#peek() === '?') {
        if (this.#chars[this.#at + 1] !== ':')
          throw new PatternError('Only non-capturing groups (?: ) are supported after (?.');
        this.#at += 2;
      }
      const node = this.#choice();
      if (this.#peek() !== ')') throw new PatternError('A group is not closed.');
      this.#at++;
      this.#depth--;
      return node;
    }
    if (char === '[') return { kind: 'char', ranges: this.#set() };
    if (char === '.') return { kind: 'char', ranges: outside([one(10), one(13)]) };
    if (char === '\\') return { kind: 'char', ranges: this.#escape() };
    if ('*+?{}])^$'.includes(char))
      throw new PatternError(`Unexpected ${char} at position ${this.#at}. Write \\${char} for the character itself.`);
    return { kind: 'char', ranges: [one(firstCodePoint(char))] };
  }

  #escape(): readonly Range[] {
    const char = this.#chars[this.#at++];
    if (char === undefined) throw new PatternError('The pattern ends with a backslash.');
    if (CLASSES[char]) return CLASSES[char];
    const code = CONTROLS[char] ?? (/[\p{L}\p{N}]/u.test(char) ? null : firstCodePoint(char));
    if (code === null) throw new PatternError(`\\${char} is not supported.`);
    return [one(code)];
  }

  #set(): readonly Range[] {
    const ranges: Range[] = [];
    const negated = this.#peek() === '^';
    if (negated) this.#at++;
    for (;;) {
      const char = this.#chars[this.#at++];
      if (char === undefined) throw new PatternError('A character class is not closed.');
      if (char === ']') break;
      if (char === '\\') {
        ranges.push(...this.#escape());
        continue;
      }
      const from = firstCodePoint(char);
      const end = this.#chars[this.#at + 1];
      if (this.#peek() === '-' && end !== undefined && end !== ']') {
        const to = (end === '\\' ? this.#chars[this.#at + 2] : end)?.codePointAt(0);
        this.#at += end === '\\' ? 3 : 2;
        if (to === undefined || to < from)
          throw new PatternError('The end of a range in a character class precedes its start.');
        ranges.push([from, to]);
      } else {
        ranges.push(one(from));
      }
    }
    return negated ? outside(ranges) : ranges;
  }
}

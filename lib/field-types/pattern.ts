/**
 * Patterns of text fields, matched in time proportional to text times pattern. They come from tenants, and a tenant's
 * pattern must never stop a process that serves the others, as JavaScript's backtracking engine would let it.
 * Grammar: literals, `.`, `[…]`, `\d \w \s \D \W \S`, escaped punctuation, `( )`, `(?: )`, `|`, `? * + {n} {n,} {n,m}`;
 * the whole text must match; `^` at the start and `$` at the end are allowed and change nothing.
 * Source: docs/reference/field-types.md.
 */

type Test = (code: number) => boolean;

/** A state either consumes a character that passes `test` and goes on to `next`, or goes on to all of `jumps` at once. */
interface State {
  test: Test | null;
  next: number;
  jumps: number[];
}

const STATES_MAX = 2_000;
const CACHE_MAX = 500;
const cache = new Map<string, State[]>();

export class PatternError extends Error {
  override readonly name = 'PatternError';
}

/** Throws PatternError with an English sentence when the pattern is outside the grammar or too large. */
export function checkPattern(pattern: string): void {
  compile(pattern);
}

export function matchesPattern(pattern: string, text: string): boolean {
  return run(compiled(pattern), text);
}

/** Matching a text takes at most so many steps per character. Throws PatternError like checkPattern. */
export function patternSize(pattern: string): number {
  return compiled(pattern).length;
}

function compiled(pattern: string): State[] {
  let states = cache.get(pattern);
  if (!states) {
    states = compile(pattern);
    if (cache.size >= CACHE_MAX) cache.delete(cache.keys().next().value as string);
    cache.set(pattern, states);
  }
  return states;
}

function run(states: readonly State[], text: string): boolean {
  const accept = states.length - 1;
  let current: number[] = [];
  const marks = new Uint32Array(states.length);
  let step = 1;
  const add = (list: number[], first: number): void => {
    const stack = [first];
    for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
      if (marks[index] === step) continue;
      marks[index] = step;
      const state = states[index]!;
      if (state.test || index === accept) list.push(index);
      else for (const jump of state.jumps) stack.push(jump);
    }
  };
  add(current, 0);
  for (const char of text) {
    const code = char.codePointAt(0)!;
    const next: number[] = [];
    step++;
    for (const index of current) {
      const state = states[index]!;
      if (state.test?.(code)) add(next, state.next);
    }
    if (next.length === 0) return false;
    current = next;
  }
  return current.includes(accept);
}

type Node =
  | { kind: 'char'; test: Test }
  | { kind: 'sequence'; nodes: Node[] }
  | { kind: 'choice'; nodes: Node[] }
  | { kind: 'repeat'; node: Node; min: number; max: number };

function compile(pattern: string): State[] {
  const states: State[] = [];
  const emit = (test: Test | null): number => {
    if (states.length >= STATES_MAX) throw new PatternError('The pattern is too large.');
    states.push({ test, next: 0, jumps: [] });
    return states.length - 1;
  };
  // Every node is laid out so that it begins at the state created first and leaves through an empty state at its end.
  let work = 0;
  const lay = (node: Node): void => {
    if (++work > 10 * STATES_MAX) throw new PatternError('The pattern is too large.');
    if (node.kind === 'char') {
      const at = emit(node.test);
      states[at]!.next = at + 1;
    } else if (node.kind === 'sequence') {
      for (const part of node.nodes) lay(part);
    } else if (node.kind === 'choice') {
      const fork = emit(null);
      const exits: number[] = [];
      for (const part of node.nodes) {
        states[fork]!.jumps.push(states.length);
        lay(part);
        exits.push(emit(null));
      }
      for (const exit of exits) states[exit]!.jumps.push(states.length);
    } else {
      for (let i = 0; i < node.min; i++) lay(node.node);
      if (node.max === Number.POSITIVE_INFINITY) {
        const fork = emit(null);
        states[fork]!.jumps.push(states.length);
        lay(node.node);
        const back = emit(null);
        states[back]!.jumps.push(fork);
        states[fork]!.jumps.push(states.length);
      } else {
        const forks: number[] = [];
        for (let i = node.min; i < node.max; i++) {
          const fork = emit(null);
          forks.push(fork);
          states[fork]!.jumps.push(states.length);
          lay(node.node);
        }
        for (const fork of forks) states[fork]!.jumps.push(states.length);
      }
    }
  };
  lay(new Reader(pattern).read());
  emit(null);
  return states;
}

const inRange =
  (from: number, to: number): Test =>
  (code) =>
    code >= from && code <= to;
const either =
  (...tests: Test[]): Test =>
  (code) =>
    tests.some((test) => test(code));
const not =
  (test: Test): Test =>
  (code) =>
    !test(code);

const DIGIT = inRange(48, 57);
const WORD = either(DIGIT, inRange(65, 90), inRange(97, 122), inRange(95, 95));
const SPACE: Test = (code) => /\s/.test(String.fromCodePoint(code));
const CLASSES: Record<string, Test> = { d: DIGIT, D: not(DIGIT), w: WORD, W: not(WORD), s: SPACE, S: not(SPACE) };
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
    if (this.#at < this.#chars.length) throw new PatternError(`Unexpected ${this.#peek()} at ${this.#at + 1}.`);
    return node;
  }

  #peek(): string | undefined {
    return this.#chars[this.#at];
  }

  #choice(): Node {
    const nodes = [this.#sequence()];
    while (this.#peek() === '|') {
      this.#at++;
      nodes.push(this.#sequence());
    }
    return nodes.length === 1 ? nodes[0]! : { kind: 'choice', nodes };
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
      nodes.push(this.#repeat(this.#atom()));
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
    if (!match) throw new PatternError(`Write a repetition as {n}, {n,} or {n,m} at ${this.#at + 1}.`);
    this.#at += match[0].length;
    const min = Number(match[1]);
    const max = match[2] === undefined ? min : match[3] === undefined ? Number.POSITIVE_INFINITY : Number(match[3]);
    if (max < min) throw new PatternError('A repetition has its larger number first.');
    return { kind: 'repeat', node, min, max };
  }

  #atom(): Node {
    const char = this.#chars[this.#at++]!;
    if (char === '(') {
      if (++this.#depth > 20) throw new PatternError('The pattern is nested too deeply.');
      if (this.#peek() === '?') {
        if (this.#chars[this.#at + 1] !== ':')
          throw new PatternError('Groups with (? are not supported, except (?: ).');
        this.#at += 2;
      }
      const node = this.#choice();
      if (this.#peek() !== ')') throw new PatternError('A group is not closed.');
      this.#at++;
      this.#depth--;
      return node;
    }
    if (char === '[') return { kind: 'char', test: this.#set() };
    if (char === '.') return { kind: 'char', test: (code) => code !== 10 && code !== 13 };
    if (char === '\\') return { kind: 'char', test: this.#escape() };
    if ('*+?{}])^$'.includes(char)) throw new PatternError(`Unexpected ${char} at ${this.#at}; write \\${char}.`);
    const code = char.codePointAt(0)!;
    return { kind: 'char', test: inRange(code, code) };
  }

  #escape(): Test {
    const char = this.#chars[this.#at++];
    if (char === undefined) throw new PatternError('The pattern ends with a backslash.');
    if (CLASSES[char]) return CLASSES[char];
    const code = CONTROLS[char] ?? (/[\p{L}\p{N}]/u.test(char) ? null : char.codePointAt(0)!);
    if (code === null) throw new PatternError(`\\${char} is not supported.`);
    return inRange(code, code);
  }

  #set(): Test {
    const tests: Test[] = [];
    const negated = this.#peek() === '^';
    if (negated) this.#at++;
    for (;;) {
      const char = this.#chars[this.#at++];
      if (char === undefined) throw new PatternError('A character class is not closed.');
      if (char === ']') break;
      if (char === '\\') {
        tests.push(this.#escape());
        continue;
      }
      const from = char.codePointAt(0)!;
      if (this.#peek() === '-' && this.#chars[this.#at + 1] !== ']' && this.#chars[this.#at + 1] !== undefined) {
        const end = this.#chars[this.#at + 1]!;
        const to = (end === '\\' ? this.#chars[this.#at + 2] : end)?.codePointAt(0);
        this.#at += end === '\\' ? 3 : 2;
        if (to === undefined || to < from) throw new PatternError('A range in a character class is upside down.');
        tests.push(inRange(from, to));
      } else {
        tests.push(inRange(from, from));
      }
    }
    const test = either(...tests);
    return negated ? not(test) : test;
  }
}

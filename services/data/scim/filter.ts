/** Filters of RFC 7644 section 3.4.2.2: bounded, parsed, and as a small tree that users and groups compile on their own. */
import { type Filter, parse } from 'scim2-parse-filter';
import { LIMITS } from '../../../lib/limits.ts';
import { scimError } from './errors.ts';
import { ENTERPRISE_SCHEMA, GROUP_SCHEMA, USER_SCHEMA } from './schema.ts';

export type CompareOperator = 'eq' | 'ne' | 'co' | 'sw' | 'ew' | 'gt' | 'ge' | 'lt' | 'le' | 'pr';
export type Value = boolean | number | string | null;

/** One comparison. `path` is in lower case and without the schema: `emails.value`, `manager.value`. */
export interface Leaf {
  readonly kind: 'leaf';
  readonly path: string;
  readonly operator: CompareOperator;
  /** null with `pr`. */
  readonly value: Value;
}

export type FilterNode =
  | Leaf
  | { readonly kind: 'and' | 'or'; readonly nodes: readonly FilterNode[] }
  | { readonly kind: 'not'; readonly node: FilterNode };

/** Throws FILTER_INVALID (invalidFilter). */
export function readFilter(text: string): FilterNode {
  if (text.length > LIMITS.scim_filter_max_chars)
    throw scimError('invalidFilter', `A filter may have at most ${LIMITS.scim_filter_max_chars} characters.`);
  if (nestingOf(text) > LIMITS.scim_filter_depth_max) throw tooDeep();
  let parsed: Filter;
  try {
    parsed = parse(text);
  } catch {
    throw scimError(
      'invalidFilter',
      'The filter cannot be read. It has the form of RFC 7644, section 3.4.2.2, as in: userName eq "ada@example.com" and active eq true',
    );
  }
  let leaves = 0;
  const convert = (filter: Filter, prefix: string, depth: number): FilterNode => {
    if (depth > LIMITS.scim_filter_depth_max) throw tooDeep();
    switch (filter.op) {
      case 'and':
      case 'or':
        return { kind: filter.op, nodes: filter.filters.map((one) => convert(one, prefix, depth + 1)) };
      case 'not':
        return { kind: 'not', node: convert(filter.filter, prefix, depth + 1) };
      case '[]':
        return convert(filter.valFilter, `${prefix}${localPath(filter.attrPath)}.`, depth + 1);
      default:
        if (++leaves > LIMITS.scim_filter_conditions_max)
          throw scimError(
            'invalidFilter',
            `A filter may have at most ${LIMITS.scim_filter_conditions_max} conditions.`,
          );
        return {
          kind: 'leaf',
          path: prefix + localPath(filter.attrPath),
          operator: filter.op,
          value: filter.op === 'pr' ? null : filter.compValue,
        };
    }
  };
  return convert(parsed, '', 1);
}

const tooDeep = (): Error =>
  scimError('invalidFilter', `A filter may be nested at most ${LIMITS.scim_filter_depth_max} levels deep.`);

/** Parentheses, brackets and `not` outside of texts: the parser goes down one level for each that is open. */
function nestingOf(text: string): number {
  let [depth, deepest, nots] = [0, 0, 0];
  let inText = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (inText && character === '\\') at++;
    else if (character === '"') inText = !inText;
    else if (inText) continue;
    else if (character === '(' || character === '[') deepest = Math.max(deepest, ++depth);
    else if (character === ')' || character === ']') depth--;
    else if (/^not\b/i.test(text.slice(at, at + 4))) nots++;
  }
  return Math.max(deepest, nots);
}

const SCHEMAS = [USER_SCHEMA, ENTERPRISE_SCHEMA, GROUP_SCHEMA].map((urn) => urn.toLowerCase());

/** The path without the URN of its schema, in lower case: names of attributes are the same in either case. */
export function localPath(path: string): string {
  const lower = path.toLowerCase();
  const urn = SCHEMAS.find((one) => lower.startsWith(`${one}:`));
  return urn === undefined ? lower : lower.slice(urn.length + 1);
}

/** Evaluates a filter by the results of its comparisons. */
export function passes(node: FilterNode, answer: (leaf: Leaf) => boolean): boolean {
  switch (node.kind) {
    case 'leaf':
      return answer(node);
    case 'not':
      return !passes(node.node, answer);
    case 'and':
      return node.nodes.every((one) => passes(one, answer));
    default:
      return node.nodes.some((one) => passes(one, answer));
  }
}

export function* leavesOf(node: FilterNode): Generator<Leaf, undefined> {
  if (node.kind === 'leaf') yield node;
  else if (node.kind === 'not') yield* leavesOf(node.node);
  else for (const one of node.nodes) yield* leavesOf(one);
}

/** A comparison of two values that are there; texts without regard to case unless `caseExact`. */
export function compares({ operator, value }: Leaf, actual: string, caseExact: boolean): boolean {
  if (operator === 'pr') return true;
  if (typeof value !== 'string') return operator === 'ne';
  const [a, b] = caseExact ? [actual, value] : [actual.toLowerCase(), value.toLowerCase()];
  switch (operator) {
    case 'eq':
      return a === b;
    case 'ne':
      return a !== b;
    case 'co':
      return a.includes(b);
    case 'sw':
      return a.startsWith(b);
    case 'ew':
      return a.endsWith(b);
    case 'gt':
      return a > b;
    case 'ge':
      return a >= b;
    case 'lt':
      return a < b;
    default:
      return a <= b;
  }
}

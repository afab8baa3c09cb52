/**
 * The routes of the public API, compiled once from the operation rows. Literal segments win over parameters; there is
 * no catch-all. Pure.
 */
import { type TimeLimits, timeLimitsOf } from '../../../contracts/time-limits.ts';
import type { HeaderParameter, Operation, Parameter } from '../../../lib/operation.ts';
import { isPastSunset } from './deprecation.ts';

export interface Route {
  readonly operation: Operation;
  readonly timeLimits: TimeLimits;
  /** Parameter names in the order of their segments. */
  readonly parameterNames: readonly string[];
  /** The same as their row declares them. */
  readonly pathParameters: readonly (Parameter | undefined)[];
  /** Headers with a rule of their own that the operation reads. */
  readonly reads: { readonly ifMatch: boolean; readonly expectedRevision: boolean };
  /** The operations that this one tries out, by their names in its body; null: it tries out none. */
  readonly checks: ReadonlyMap<string, Operation> | null;
  /** The operation that tries this one out; null: none does. */
  readonly checkedBy: Operation | null;
}

interface Match {
  /** Routes of this path by method. */
  readonly methods: ReadonlyMap<string, Route>;
  /** Methods that had an operation at this path until its sunset. */
  readonly ended: ReadonlySet<string>;
  /** Raw (still percent-encoded) values of the parameters, in order. */
  readonly values: readonly string[];
}

interface Node {
  readonly literals: Map<string, Node>;
  parameter: Node | undefined;
  readonly methods: Map<string, Route>;
}

const node = (): Node => ({ literals: new Map(), parameter: undefined, methods: new Map() });

export class Router {
  readonly #root = node();
  /** Some operation has a day on which it ends. */
  readonly #ends: boolean;
  readonly routes: readonly Route[];

  constructor(operations: readonly Operation[]) {
    this.routes = operations.map((operation) => this.#add(operation, checksOf(operation, operations)));
    this.#ends = operations.some(({ deprecated }) => deprecated !== undefined);
  }

  #add(operation: Operation, checks: Pick<Route, 'checks' | 'checkedBy'>): Route {
    const parameterNames: string[] = [];
    let at = this.#root;
    for (const segment of operation.path.slice(1).split('/')) {
      if (segment.startsWith('{')) {
        parameterNames.push(segment.slice(1, -1));
        at = at.parameter ??= node();
      } else {
        let next = at.literals.get(segment);
        if (!next) at.literals.set(segment, (next = node()));
        at = next;
      }
    }
    if (at.methods.has(operation.method))
      throw new Error(`Two operations share ${operation.method} ${operation.path}: ${operation.operationId}`);
    const route = {
      operation,
      timeLimits: timeLimitsOf(operation),
      parameterNames,
      ...formOf(operation, parameterNames),
      ...checks,
    };
    at.methods.set(operation.method, route);
    return route;
  }

  /**
   * Finds the routes of `path` (below /api/v1, without the query); null when no operation has it at this time, in
   * milliseconds since 1970.
   */
  match(path: string, now: number): Match | null {
    if (path.charCodeAt(0) !== 0x2f) return null;
    const values: string[] = [];
    const found = walk(this.#root, path.slice(1).split('/'), 0, values);
    if (!found) return null;
    if (!this.#ends) return { methods: found.methods, ended: NONE, values };
    const [methods, ended] = methodsAt(found.methods, now);
    return methods.size > 0 ? { methods, ended, values } : null;
  }
}

/** What reading the form of a request needs of the row, looked up once. */
function formOf(operation: Operation, names: readonly string[]): Pick<Route, 'pathParameters' | 'reads'> {
  const { precondition, headerParameters = [] } = operation;
  const declares = (name: HeaderParameter['name']): boolean => headerParameters.some((one) => one.name === name);
  return {
    pathParameters: names.map((name) => operation.pathParameters?.find((one) => one.name === name)),
    reads: {
      ifMatch: precondition !== 'none' || declares('If-Match'),
      expectedRevision: precondition === 'expectedRevision' || declares('X-Expected-Revision'),
    },
  };
}

function checksOf(operation: Operation, all: readonly Operation[]): Pick<Route, 'checks' | 'checkedBy'> {
  const checks = all.flatMap((one) =>
    one.checkedBy?.operationId === operation.operationId ? [[one.checkedBy.as, one] as const] : [],
  );
  const checkedBy = all.find(({ operationId }) => operationId === operation.checkedBy?.operationId) ?? null;
  return { checks: checks.length > 0 ? new Map(checks) : null, checkedBy };
}

const NONE: ReadonlySet<string> = new Set();

/** The routes that there are at this time, and the methods of those that there are not any more. */
function methodsAt(routes: ReadonlyMap<string, Route>, now: number): [ReadonlyMap<string, Route>, ReadonlySet<string>] {
  const methods = new Map([...routes].filter(([, { operation }]) => !isPastSunset(operation, now)));
  return [methods, new Set([...routes.keys()].filter((method) => !methods.has(method)))];
}

function walk(at: Node, segments: readonly string[], index: number, values: string[]): Node | null {
  if (index === segments.length) return at.methods.size ? at : null;
  const segment = segments[index] ?? '';
  const literal = at.literals.get(segment);
  if (literal) {
    const found = walk(literal, segments, index + 1, values);
    if (found) return found;
  }
  if (!at.parameter || segment === '') return null;
  values.push(segment);
  const found = walk(at.parameter, segments, index + 1, values);
  if (!found) values.pop();
  return found;
}

/** Value of the Allow header. */
export function allowed(methods: ReadonlyMap<string, Route>): string {
  const names = [...methods.keys()];
  if (methods.has('GET')) names.push('HEAD');
  return [...names, 'OPTIONS'].join(', ');
}

/** Statements of SQL as spans: what they do to which table, and never their text or values, which may be a caller's. */
import { currentWork } from '../watchdog/work.ts';
import { beginPart, failureName, isKept, type Span, tracing } from './tracing.ts';

/** So much of a text is looked at. */
const LOOKED_AT_CHARS = 8_000;
const OPERATION = /^[\s(]*([A-Za-z]{1,20})/;
/** Nothing in a literal is taken for a name, nor in one that is cut off. */
const LITERAL = /'[^']*(?:'|$)/g;
/** FROM that no table stands behind. */
const NO_SOURCE = /\b(?:extract|substring|trim|overlay) ?\([^()]*/gi;
const DISTINCT_FROM = /\bDISTINCT\s+FROM\b/gi;
const TABLE = /\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:ONLY\s+)?([a-z_"][\w".]*)/gi;

interface Described {
  readonly operation: string;
  readonly table: string | null;
}

/** A part of a statement that has a name, by which the others ask for its rows. */
const PART = /\b([a-z_]\w*)\s+AS\s+(?:NOT )?(?:MATERIALIZED )?\(/gi;
/** Words after UPDATE that are not a table. */
const NO_TABLE: ReadonlySet<string> = new Set(['SET', 'OF', 'SKIP', 'NOWAIT', 'SELECT', 'LATERAL']);
/** Tables beside the records, such as the version of the configuration, which nearly every statement looks at. */
const ASIDE = /(?:^|\.)_[^.]*$/;

/** A statement's verb and its first table; tables of records take precedence. */
export function describeStatement(text: string): Described {
  const head = text.slice(0, LOOKED_AT_CHARS).replace(LITERAL, "''").replace(NO_SOURCE, '').replace(DISTINCT_FROM, '');
  const operation = OPERATION.exec(head)?.[1]?.toUpperCase() ?? 'SQL';
  const parts = new Set([...head.matchAll(PART)].map(([, part]) => part));
  let table: string | null = null;
  for (const [, found = ''] of head.matchAll(TABLE)) {
    if (parts.has(found) || NO_TABLE.has(found.toUpperCase())) continue;
    const name = found.replaceAll('"', '');
    table ??= name;
    if (ASIDE.test(name)) continue;
    table = name;
    break;
  }
  return { operation, table };
}

/** The span of a statement that is sent now; null: nothing is traced. */
function beginStatement(text: string): Span | null {
  const parent = currentWork()?.traceparent;
  if (parent === undefined || !isKept(parent)) return null;
  const { operation, table } = describeStatement(text);
  return beginPart({
    name: table === null ? operation : `${operation} ${table}`,
    kind: 'client',
    parent,
    attributes: {
      'db.system.name': 'postgresql',
      'db.operation.name': operation,
      ...(table === null ? {} : { 'db.collection.name': table }),
    },
  });
}

/** Runs a statement, in a span where its request is traced. */
export function traceStatement<T>(text: string, run: () => Promise<T>): Promise<T> {
  if (tracing() === null) return run();
  const span = beginStatement(text);
  const answered = run();
  if (span)
    answered.then(
      () => span.end(),
      (error) => span.end(failureName(error)),
    );
  return answered;
}

/** The wait for a connection, where it took long enough to be seen; `since` on the clock of `performance.now()`. */
export function traceWait(since: number): void {
  if (tracing() === null || performance.now() - since < 1) return;
  const span = beginPart({
    name: 'wait for a connection',
    kind: 'internal',
    parent: currentWork()?.traceparent,
    startedAt: since,
    attributes: { 'db.system.name': 'postgresql' },
  });
  span?.end();
}

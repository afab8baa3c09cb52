import type { Operation } from '../../../lib/operation.ts';

/** The table of docs/reference/operations.md, as it must stand there. */
export function operationsTable(operations: readonly Operation[]): string {
  const scopes = (operation: Operation): string =>
    operation.oneOfScopes?.map((scope) => `\`${scope}\``).join(' or ') ??
    (typeof operation.scopes === 'string'
      ? operation.scopes
      : operation.scopes.map((scope) => `\`${scope}\``).join(', '));
  const rows = operations.map((operation) =>
    [
      operation.method,
      `\`${operation.path}\``,
      `\`${operation.operationId}\``,
      scopes(operation),
      operation.risk,
      operation.cost,
      operation.mutation ? 'yes' : '',
      operation.precondition === 'none' ? '' : `\`${operation.precondition}\``,
    ].join(' | '),
  );
  return [
    '| method | path | operationId | scope | risk | cost | mutation | precondition |',
    '|---|---|---|---|---|---|---|---|',
    ...rows.map((row) => `| ${row} |`),
  ].join('\n');
}

/** The rows of all public operations: routes, documents, checks and the types of handlers are made from these. */

import { API_PREFIX, pathOf } from '../lib/addresses.ts';
import type { RequestContext } from '../lib/context.ts';
import { LIMITS } from '../lib/limits.ts';
import type { InputOf, Operation, OperationReply, OutputOf } from '../lib/operation.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { SERVICES, type ServiceName } from './services.ts';

type Row = (typeof SERVICES)[ServiceName]['operations'][number];

/** The rows of all public operations, in the order of the documents. */
export const OPERATIONS: readonly Operation[] = Object.values<ServiceDeclaration>(SERVICES).flatMap(
  ({ operations }) => operations,
);

const BY_ID: ReadonlyMap<string, Operation> = new Map(OPERATIONS.map((row) => [row.operationId, row]));

/** The row of an operation; undefined: there is none. */
export function operationRow(operationId: OperationId): Operation;
export function operationRow(operationId: string): Operation | undefined;
export function operationRow(operationId: string): Operation | undefined {
  return BY_ID.get(operationId);
}

const STATEMENT_TIMEOUTS = new Map<string, number>([
  ...OPERATIONS.map((row): [string, number] => [
    row.action,
    row.statementTimeoutMs ?? (row.mutation ? LIMITS.statement_timeout_ms : LIMITS.read_statement_timeout_ms),
  ]),
  ['data.records.aggregate', LIMITS.read_statement_timeout_ms],
]);

/** Milliseconds that one statement of the action may take; undefined where the limit is that of every statement. */
export const statementTimeoutOf = (action: string): number | undefined => STATEMENT_TIMEOUTS.get(action);

export type OperationId = Row['operationId'];

/** The actions behind public operations. */
export type PublicAction = Row['action'];

/** Parameters of an operation's handler, by its row: path, query, headers and body. */
export type OperationInput<Id extends OperationId> = InputOf<Extract<Row, { operationId: Id }>>;

/** Address of an operation below the host, for these values in its path. */
export const addressOf = <Id extends OperationId>(operationId: Id, path: OperationInput<Id>['path']): string =>
  API_PREFIX + pathOf(operationRow(operationId).path, (name) => path[name as keyof typeof path]);

/** Body of the successful answer of an operation, by its row. */
export type OperationOutput<Id extends OperationId> = OutputOf<Extract<Row, { operationId: Id }>>;

/** The function that answers an operation. */
export type Handler<Id extends OperationId, Deps> = (
  deps: Deps,
  request: RequestContext,
  call: OperationInput<Id>,
) => Promise<OperationReply>;

/** Tools and resources of the endpoint for assistants, by the rows of the operations that they run. */
import type { Operation, Scope } from '../lib/operation.ts';
import { OPERATIONS } from './operations.ts';

/** A tool that runs one operation. */
export interface OperationTool {
  readonly name: string;
  readonly operation: Operation;
}

export const OPERATION_TOOLS: readonly OperationTool[] = OPERATIONS.flatMap((operation) =>
  operation.mcp && 'tool' in operation.mcp ? [{ name: operation.mcp.tool, operation }] : [],
);

/** A resource that is the answer of an operation without parameters. */
export interface OperationResource {
  readonly uri: string;
  readonly name: string;
  readonly operation: Operation;
}

export const OPERATION_RESOURCES: readonly OperationResource[] = OPERATIONS.flatMap((operation) =>
  operation.mcp && 'resource' in operation.mcp
    ? [{ uri: operation.mcp.resource, name: operation.mcp.name, operation }]
    : [],
);

/** Every operation that the endpoint runs; all of them read. */
export const MCP_OPERATIONS: ReadonlyMap<string, Operation> = new Map(
  [...OPERATION_TOOLS, ...OPERATION_RESOURCES].map(({ operation }) => [operation.operationId, operation]),
);

/** The scopes that tokens for the endpoint can have, in the order in which a client comes to need them. */
export const MCP_SCOPES: readonly Scope[] = [
  ...new Set([...MCP_OPERATIONS.values()].flatMap(({ scopes }) => (typeof scopes === 'string' ? [] : [...scopes]))),
];

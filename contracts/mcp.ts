/**
 * The Model Context Protocol for assistants: the tools, by the rows of the operations that they run, and
 * the actions by which gateway and mcp work together. Source: docs/reference/mcp.md.
 */
import type { ErrorBody } from '../lib/errors/error-body.ts';
import type { Operation, Scope } from '../lib/operation.ts';
import { OPERATIONS } from './operations.ts';

/** Path of the endpoint below the public address; its tokens are for this address. */
export const MCP_PATH = '/mcp';

/** Revisions of the protocol, the one that programs should use first. */
export const MCP_VERSIONS = ['2026-07-28', '2025-11-25', '2025-06-18'] as const;

/** A tool that runs one operation. */
export interface OperationTool {
  readonly name: string;
  readonly operation: Operation;
}

export const OPERATION_TOOLS: readonly OperationTool[] = OPERATIONS.flatMap((operation) =>
  operation.mcp && 'tool' in operation.mcp ? [{ name: operation.mcp.tool, operation }] : [],
);

/** Tools over the published documents, which are the same for everyone. */
export const DOCUMENT_TOOLS = {
  docs_search: {
    title: 'Search the documents',
    description: 'Finds sections of the guides and the reference of this platform. Read what it finds with docs_get.',
  },
  docs_get: {
    title: 'Read a document',
    description: 'A page of the guides or the reference as Markdown, such as reference/limits.md or index.md.',
  },
} as const;

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

/** A request to the endpoint, as the gateway hands it over. */
export interface McpRequest {
  readonly requestId: string;
  /** The node that has the request, and what it knows it by until it is answered. */
  readonly gateway: string;
  readonly ticket: string;
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface McpReply {
  readonly status: number;
  readonly contentType: string | null;
  readonly body: Uint8Array;
}

/** Answer of an operation, as its own path would give it. */
export type McpOutcome =
  | { readonly body: Uint8Array; readonly error: null }
  | { readonly body: null; readonly error: ErrorBody };

export interface McpActions {
  'mcp.http.handle': { params: McpRequest; result: McpReply };
}

/** Actions of the gateway for mcp. */
export interface McpDoorActions {
  /**
   * Runs one of MCP_OPERATIONS for the caller whose request has the ticket, with all checks and at their expense. Throws
   * INTERNAL_ERROR when this gateway has no such request, or it has asked too often.
   */
  'gateway.operations.run': {
    params: {
      ticket: string;
      operationId: string;
      path: Record<string, string>;
      body: Uint8Array | null;
    };
    result: McpOutcome;
  };
}

/**
 * The Model Context Protocol for assistants: its endpoint, and the actions by which gateway and mcp work together. Its
 * tools are those of mcp-offers.ts. Source: docs/reference/mcp.md.
 */
import type { ErrorBody } from '../lib/errors/error-body.ts';
import type { ServiceDeclaration } from './declaration.ts';

/** Path of the endpoint below the public address; its tokens are for this address. */
export const MCP_PATH = '/mcp';

/** Revisions of the protocol, the one that programs should use first. */
export const MCP_VERSIONS = ['2026-07-28', '2025-11-25', '2025-06-18'] as const;

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
      query: Record<string, string>;
      body: Uint8Array | null;
    };
    result: McpOutcome;
  };
}

export const SERVICE = {
  purpose: 'Tools for assistants (MCP): reads alone, through the operations of the API.',
  listens: 'health',
  awaitedByGateway: false,
  kubernetes: {
    replicas: { min: 2, max: 4 },
    connections: 2,
    requests: { cpu: '100m', memory: '256Mi' },
    limits: { cpu: '1', memory: '512Mi' },
  },
  operations: [],
  guidance: {},
  calls: ['gateway.operations.run'],
  repeatable: ['mcp.http.handle'],
} as const satisfies ServiceDeclaration<readonly []>;

/** Answers of operations by address. */
import { type McpServer, type ReadResourceResult, ResourceTemplate } from '@modelcontextprotocol/server';
import { OPERATION_RESOURCES, type OperationResource } from '../../../contracts/mcp-offers.ts';
import type { McpCall } from '../mcp-call.ts';
import { answeringErrors, contentsOf, protocolError } from './reading.ts';

const JSON_TYPE = 'application/json';

export function addOperationResources(server: McpServer, call: McpCall): void {
  for (const resource of OPERATION_RESOURCES) {
    const { uri, name, operation } = resource;
    const metadata = { title: operation.summary, description: operation.description, mimeType: JSON_TYPE };
    const answer = (address: URL): Promise<ReadResourceResult> =>
      answeringErrors(call, () => read(resource, call, address));
    server.registerResource(name, uri, metadata, answer);
    server.registerResource(
      `${name} (a piece)`,
      new ResourceTemplate(`${uri}{?cursor}`, { list: undefined }),
      { ...metadata, description: `A piece of ${uri}: the cursor is \`_meta.nextCursor\` of the one before.` },
      answer,
    );
  }
}

async function read({ operation }: OperationResource, call: McpCall, address: URL): Promise<ReadResourceResult> {
  const outcome = await call.run({ operationId: operation.operationId, path: {}, query: {}, body: null });
  if (outcome.error !== null) throw protocolError(outcome.error);
  return contentsOf(Buffer.from(outcome.body), address, JSON_TYPE);
}

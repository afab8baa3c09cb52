/** Pages of the published documents by address. */
import { type McpServer, ResourceNotFoundError, ResourceTemplate } from '@modelcontextprotocol/server';
import type { Documents } from '../documents.ts';
import type { McpCall } from '../mcp-call.ts';
import { answeringErrors, contentsOf } from './reading.ts';

const TEMPLATE = 'erp://docs/{version}/{+path}';

export function addDocumentResources(server: McpServer, call: McpCall, documents: Documents): void {
  server.registerResource(
    'Documents',
    new ResourceTemplate(TEMPLATE, { list: undefined }),
    {
      title: 'A page of the documents',
      description:
        'Markdown; the version is that of the API, or latest. A longer page goes on at ?cursor=<nextCursor>.',
      mimeType: 'text/markdown',
    },
    (address) =>
      answeringErrors(call, async () => {
        // Names of versions and pages have nothing that an address would have to escape.
        const [, name = '', path = ''] = /^\/([^/]+)\/(.+)$/.exec(address.pathname) ?? [];
        const version = documents.version(name);
        const text = version && (await documents.text(version, path));
        if (text === null) throw new ResourceNotFoundError(address.href);
        return contentsOf(text, address, 'text/markdown');
      }),
  );
}

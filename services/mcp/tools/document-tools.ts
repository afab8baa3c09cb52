/** Search and reading of the published documents, which are the same for everyone. */
import type { CallToolResult, McpServer } from '@modelcontextprotocol/server';
import { type TObject, Type } from 'typebox';
import { DOCUMENT_TOOLS } from '../../../contracts/mcp.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Version } from '../../../mixins/documents/archives.ts';
import { pieceOf } from '../cursor.ts';
import type { Documents } from '../documents.ts';
import type { McpCall } from '../mcp-call.ts';
import { type Arguments, answeringErrors, checkArguments, READS } from './calling.ts';
import { sdkOutput, sdkSchema } from './schemas.ts';

const QUERY_MAX_CHARS = 200;
const TAKE_MAX = 20;
const TAKE_DEFAULT = 8;
/** Bytes of a text: a quote takes two within JSON, and four in the JSON within it. */
const TEXT_MAX_BYTES = 40 * 1024;
const CURSOR_MAX_CHARS = 100;

const version = Type.Optional(
  Type.String({ maxLength: 20, description: 'Version of the API, such as 1.0.0; default: the newest.' }),
);

const SEARCH_ARGUMENTS = Type.Object(
  {
    query: Type.String({ minLength: 1, maxLength: QUERY_MAX_CHARS, description: 'Words to look for.' }),
    version,
    take: Type.Optional(Type.Integer({ minimum: 1, maximum: TAKE_MAX, default: TAKE_DEFAULT })),
  },
  { additionalProperties: false },
);

const SEARCH_RESULT = Type.Object({
  version: Type.String(),
  results: Type.Array(
    Type.Object({
      path: Type.String({ description: 'For docs_get.' }),
      page: Type.String(),
      heading: Type.String(),
      excerpt: Type.String(),
    }),
  ),
});

const GET_ARGUMENTS = Type.Object(
  {
    path: Type.String({ minLength: 1, maxLength: 300, description: 'Such as reference/limits.md.' }),
    version,
    cursor: Type.Optional(
      Type.String({ maxLength: CURSOR_MAX_CHARS, description: 'nextCursor of the answer before.' }),
    ),
  },
  { additionalProperties: false },
);

const GET_RESULT = Type.Object({
  version: Type.String(),
  path: Type.String(),
  text: Type.String({ description: 'Markdown, or JSON where the path ends so.' }),
  truncated: Type.Boolean(),
  nextCursor: Type.Union([Type.String(), Type.Null()]),
});

interface DocumentTool {
  readonly name: keyof typeof DOCUMENT_TOOLS;
  readonly input: TObject;
  readonly output: TObject;
  readonly answer: (documents: Documents, version: Version, given: Arguments) => Promise<object>;
}

const TOOLS: readonly DocumentTool[] = [
  {
    name: 'docs_search',
    input: SEARCH_ARGUMENTS,
    output: SEARCH_RESULT,
    answer: async (documents, found, { query, take }) => ({
      version: found.version,
      results: await documents.search(found, String(query), Number(take ?? TAKE_DEFAULT)),
    }),
  },
  { name: 'docs_get', input: GET_ARGUMENTS, output: GET_RESULT, answer: textOf },
];

const PREPARED = TOOLS.map((tool) => ({
  ...tool,
  inputSchema: sdkSchema(tool.input),
  outputSchema: sdkOutput(tool.output),
}));

export function addDocumentTools(server: McpServer, call: McpCall, documents: Documents): void {
  for (const { name, input, answer, inputSchema, outputSchema } of PREPARED) {
    const { title, description } = DOCUMENT_TOOLS[name];
    const config = {
      title,
      description,
      inputSchema,
      outputSchema,
      annotations: { title, ...READS },
    };
    server.registerTool(name, config, (given) =>
      answeringErrors(call, async (): Promise<CallToolResult> => {
        checkArguments(input, given);
        const result = await answer(documents, versionOf(documents, textIn(given, 'version')), given);
        return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: { ...result } };
      }),
    );
  }
}

const textIn = (given: Arguments, name: string): string | undefined => {
  const value = given[name];
  return typeof value === 'string' ? value : undefined;
};

/** Throws DOCS_VERSION_NOT_FOUND. */
function versionOf(documents: Documents, name: string | undefined): Version {
  const found = documents.version(name);
  if (!found) throw new PlatformError('DOCS_VERSION_NOT_FOUND', 'There are no documents of this version.');
  return found;
}

async function textOf(documents: Documents, found: Version, given: Arguments): Promise<object> {
  const path = textIn(given, 'path') ?? '';
  const text = await documents.text(found, path);
  if (text === null) throw new PlatformError('FILE_NOT_FOUND', 'No page at this path; use docs_search.');
  const { text: piece, nextCursor } = pieceOf(text, textIn(given, 'cursor'), TEXT_MAX_BYTES);
  return { version: found.version, path, text: piece, truncated: nextCursor !== null, nextCursor };
}

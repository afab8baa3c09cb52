/** One page for each error code: what lies behind it, what to do, and how it looks. */

import { errorExample } from '../../contracts/examples.ts';
import { CATALOGUE, ERROR_CODES, type ErrorCode, isRetryable, RESERVED_CODES } from '../../lib/errors/catalogue.ts';
import type { Operation } from '../../lib/operation.ts';
import { EXAMPLE_BASE_URL } from './examples.ts';
import { type Page, page } from './page.ts';

export function errorPages(operations: readonly Operation[]): Page[] {
  return ERROR_CODES.map((code) =>
    page(`errors/${code}`, 'errors', markdown(code, operations, errorExample(code, EXAMPLE_BASE_URL))),
  );
}

function markdown(code: ErrorCode, operations: readonly Operation[], body: object): string {
  const { status, title, cause, remedy } = CATALOGUE[code];
  const own = operations.filter(({ errors }) => errors.includes(code));
  const where = own.map(({ operationId, summary }) => `- [${summary}](../operations/${operationId}.md)`);
  return `# ${code}

${title}.${RESERVED_CODES.has(code) ? '\n\n**Reserved:** no operation answers it yet.' : ''}

| HTTP status | retryable |
| ----------- | --------- |
| ${status} | ${isRetryable(code) ? 'yes: the same key and body may be sent again unchanged' : 'no'} |

## Cause

${cause}

## Remedy

${remedy}

## Example

\`\`\`json
${JSON.stringify(body, null, 2)}
\`\`\`

[Errors](../reference/errors.md#${status}) describes the members of the body, and the \`details\` of this code.
${where.length > 0 ? `\n## Operations that name it\n\n${where.join('\n')}\n` : ''}`;
}

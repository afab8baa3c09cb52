/** Recorded examples as Markdown: the request for a shell, the answer as HTTP writes it. */
import { STATUS_CODES } from 'node:http';
import type { Exchange, RecordedExample } from '../../contracts/examples.ts';
import { apiUrl } from '../../lib/addresses.ts';

/** Base address of the examples' platform. */
export const EXAMPLE_BASE_URL = 'https://erp.example';
const API = apiUrl(EXAMPLE_BASE_URL);

/** A key of its own: who copies two examples sends two requests. */
const NEW_KEY = '-H "Idempotency-Key: $(openssl rand -hex 16)"';

/** The sections of an operation's page that show how it looks. */
export function exampleSection({ errors = {}, ...example }: RecordedExample): string {
  const refused = Object.entries(errors).map(
    ([code, exchange]) => `### Refused with ${code}

${shown(exchange)}
[\`${code}\`](../errors/${code}.md)
`,
  );
  return `## Example

${shown(example)}${refused.length > 0 ? `\n${refused.join('\n')}` : ''}`;
}

function shown({ request, response, shortened = [] }: Exchange): string {
  const left = shortened.map(
    ({ pointer, kept, of }) => `${pointer ? `\`${pointer}\`` : 'the whole'} (${kept} of ${of.toLocaleString('en')})`,
  );
  return `\`\`\`sh
${curl(request)}
\`\`\`

\`\`\`http
HTTP/1.1 ${response.status} ${STATUS_CODES[response.status]}
${answer(response)}\`\`\`
${left.length > 0 ? `\nShortened here: ${left.join(', ')}.\n` : ''}`;
}

function answer({ headers = {}, body }: Exchange['response']): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`);
  return lines.join('') + (body === undefined ? '' : `\n${JSON.stringify(body, null, 2)}\n`);
}

function curl({ method, path, query = {}, headers = {}, body }: Exchange['request']): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
  const parameters = Object.entries(query);
  const { Authorization: authorization, ...others } = headers;
  // With -G curl sends a GET, whatever else is asked for, so that the method is named.
  const get = parameters.length > 0 ? ' -G' : '';
  const parts = [
    `curl -s${get}${method === 'GET' ? '' : ` -X ${method}`} ${quoted(`${API}${path}`)}`,
    ...(authorization === undefined ? [] : ['-H "Authorization: Bearer $TOKEN"']),
    ...Object.entries(others).map(([name, value]) =>
      name === 'Idempotency-Key' ? NEW_KEY : `-H ${quoted(`${name}: ${value}`)}`,
    ),
    ...parameters.map(([name, value]) => `--data-urlencode ${quoted(`${name}=${value}`)}`),
    ...(body === undefined ? [] : [`-d ${quoted(JSON.stringify(body, null, 2))}`]),
  ];
  return parts.join(' \\\n  ');
}

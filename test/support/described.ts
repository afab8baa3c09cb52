/** Answers held against /openapi.json: a status or an error code that the description lacks is a fault of one of the two. */
import assert from 'node:assert/strict';
import { OPERATIONS } from '../../services/contracts.ts';
import { openapi } from '../../services/gateway/public/openapi.ts';

interface Described {
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
}

const paths = openapi(OPERATIONS, 'http://localhost')['paths'] as Record<string, Record<string, Described>>;
const TEMPLATES = Object.entries(paths)
  // Fixed segments first, so that `/query` is no record id.
  .sort(([one], [other]) => one.split('{').length - other.split('{').length)
  .map(([path, methods]) => ({
    methods,
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  }));

/** Throws when an operation answers what its description does not know. */
export function assertDescribed(method: string, path: string, status: number, code: unknown): void {
  const name = method === 'HEAD' ? 'get' : method.toLowerCase();
  const where = path.split('?')[0]!;
  const operation = TEMPLATES.find(({ pattern, methods }) => pattern.test(where) && methods[name])?.methods[name];
  if (!operation) return;
  const answer = `${method} ${path}: ${status} ${code ?? ''}`;
  const response = operation.responses[String(status)];
  assert.ok(response, `${answer}: the description has no such status`);
  // A HEAD is answered without a body.
  if (status >= 400 && method !== 'HEAD')
    assert.ok(response.description.includes(`\`${code}\``), `${answer}: the description has no such code`);
}

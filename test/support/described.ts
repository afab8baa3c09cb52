/**
 * Answers held against /openapi.json and docs/reference/errors.md: a status, an error code or a detail of an error that
 * they lack is a fault of the answer or of the description.
 */
import assert from 'node:assert/strict';
import { OPERATIONS } from '../../contracts/operations.ts';
import { openapi } from '../../services/gateway/public/openapi.ts';
import { read } from './sources.ts';

interface Described {
  readonly 'x-erp-dry-run'?: boolean;
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

/** Names of the details of each error code, out of the tables of the reference. */
const DETAILS = new Map(
  [...read('docs/reference/errors.md').matchAll(/^\| *`([A-Z_]+)` *\|[^|]*\|([^|]*)\|$/gm)].map(([, code, cell]) => [
    code,
    new Set([...cell!.matchAll(/`(\w+)/g)].map((match) => match[1])),
  ]),
);

interface Failure {
  readonly code?: unknown;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Throws when an operation answers what its description does not know. */
export function assertDescribed(method: string, path: string, status: number, body: unknown): void {
  const { code, details } = (body ?? {}) as Failure;
  const name = method === 'HEAD' ? 'get' : method.toLowerCase();
  const where = path.split('?')[0]!;
  const operation = TEMPLATES.find(({ pattern, methods }) => pattern.test(where) && methods[name])?.methods[name];
  if (!operation) return;
  const answer = `${method} ${path}: ${status} ${code ?? ''}`;
  const ofDryRun = status === 200 && operation['x-erp-dry-run'] ? { description: '' } : undefined;
  const response = operation.responses[String(status)] ?? ofDryRun;
  assert.ok(response, `${answer}: the description has no such status`);
  // A HEAD is answered without a body.
  if (status >= 400 && method !== 'HEAD')
    assert.ok(response.description.includes(`\`${code}\``), `${answer}: the description has no such code`);
  if (status >= 400)
    for (const name of Object.keys(details ?? {}))
      assert.ok(DETAILS.get(String(code))?.has(name), `${answer}: details.${name} is not in the reference`);
}

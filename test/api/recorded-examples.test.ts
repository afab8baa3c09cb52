/** The examples of the API equal the platform's answers, and match the API description. */
import assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { before, describe, it } from 'mocha';
import { EXAMPLES, type Exchange } from '../../contracts/examples.ts';
import { OPERATIONS, type OperationId } from '../../contracts/operations.ts';
import type { Operation } from '../../lib/operation.ts';
import { type Described, describedOperations } from '../../scripts/documents/described.ts';
import { openapi } from '../../services/gateway/public/openapi.ts';
import { type Recording, record } from '../support/recording/record.ts';

const ADDRESS = 'https://erp.example/openapi.json';

const description = openapi(OPERATIONS, 'https://erp.example');
const described = describedOperations(description);
const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema({ ...description, $id: ADDRESS });

function assertFits(value: unknown, schema: object, what: string): void {
  const absolute = JSON.stringify(schema).replaceAll('"#/components', `"${ADDRESS}#/components`);
  const validate = ajv.compile(JSON.parse(absolute));
  assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)}`);
}

/** Every exchange with its operation: the example, and those of errors. */
const exchangesOf = (operationId: OperationId): [string, Exchange][] => {
  const found = EXAMPLES[operationId];
  if (!found) return [];
  const { errors, ...example } = found;
  return [
    [operationId, example],
    ...Object.entries(errors ?? {}).map(([code, one]): [string, Exchange] => [code, one]),
  ];
};

/** Throws when the request or the response does not match the description of the operation. */
function assertDescribed(row: Operation, exchange: Exchange, what: string): void {
  const one = described.get(row.operationId)!;
  assertRequestDescribed(row, one, exchange, what);
  const { status, body } = exchange.response;
  const answer = one.responses[String(status)];
  assert.ok(answer, `${what}: the description has no status ${status}`);
  if (status >= 400) {
    assertFits(body, { $ref: '#/components/schemas/Error' }, what);
    return;
  }
  const contents = answer.content ?? {};
  const isFile = row.response.kind === 'file';
  const media = isFile ? Object.values(contents)[0] : contents[row.response.contentType ?? 'application/json'];
  assert.equal(body === undefined, media === undefined, `${what}: a body where none is described, or none`);
  if (media && !isFile) assertFits(body, media.schema, `${what}: answer`);
}

function assertRequestDescribed(row: Operation, one: Described, { request, response }: Exchange, what: string): void {
  assert.equal(request.method, row.method, what);
  const names = [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const pattern = row.path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '([^/]+)');
  const values = new RegExp(`^${pattern}$`).exec(request.path);
  assert.ok(values, `${what}: ${request.path}`);
  const given = new Map<string, string>([
    ...names.map((name, i): [string, string] => [`path:${name}`, decodeURIComponent(values[i + 1]!)]),
    ...Object.entries(request.query ?? {}).map(([name, value]): [string, string] => [`query:${name}`, value]),
    ...Object.entries(request.headers ?? {}).map(([name, value]): [string, string] => [`header:${name}`, value]),
  ]);
  for (const standard of ['header:Authorization', 'header:Content-Type']) given.delete(standard);
  for (const { name, in: place, required, schema } of one.parameters) {
    const value = given.get(`${place}:${name}`);
    given.delete(`${place}:${name}`);
    // A refusal may concern a parameter that is missing or malformed.
    if (response.status >= 400) continue;
    assert.ok(value !== undefined || !required, `${what}: ${place}:${name} is missing`);
    if (value === undefined || !schema) continue;
    const isText = schema['type'] === 'string' || !('type' in schema);
    assertFits(isText ? value : JSON.parse(value), schema, `${what}: ${place}:${name}`);
    const content = schema['contentSchema'] as object | undefined;
    if (content) assertFits(JSON.parse(value), content, `${what}: ${place}:${name}`);
  }
  assert.deepEqual([...given.keys()], [], `${what}: parameters that are not described`);
  const contents = one.requestBody?.content ?? {};
  const media = row.requestBody?.kind === 'stream' ? Object.values(contents)[0] : contents['application/json'];
  assert.ok(request.body === undefined || media, `${what}: a body where none is described`);
  assert.ok(request.body !== undefined || !one.requestBody?.required, `${what}: no body`);
  if (request.body !== undefined && media && response.status !== 422) assertFits(request.body, media.schema, what);
}

// Every member with its type, items of a list taken together: `/records/*/name string`.
function shapeOf(value: unknown, pointer = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => shapeOf(one, `${pointer}/*`));
  if (typeof value !== 'object' || value === null) return [`${pointer} ${value === null ? 'null' : typeof value}`];
  return Object.entries(value).flatMap(([key, one]) => shapeOf(one, `${pointer}/${key}`));
}

const shapes = (examples: object): string[] => [...new Set(shapeOf(examples))].sort();

describe('the examples of the API', () => {
  let recording: Recording;
  before(async function () {
    this.timeout(120_000);
    recording = await record();
  });

  it('exist for every operation', () => {
    assert.deepEqual(
      OPERATIONS.filter(({ operationId }) => !(operationId in EXAMPLES)).map(({ operationId }) => operationId),
      [],
      'add a call to test/support/recording/tour.ts, run npm run examples, and see that contracts/examples.ts has the file',
    );
  });

  it('match the description of their operation', () => {
    for (const row of OPERATIONS)
      for (const [what, exchange] of exchangesOf(row.operationId as OperationId))
        assertDescribed(row, exchange, `${row.operationId} ${what}`);
  });

  it('show errors of the operation', () => {
    for (const { operationId } of OPERATIONS)
      for (const code of Object.keys(EXAMPLES[operationId as OperationId]?.errors ?? {}))
        assert.ok(
          described.get(operationId)!['x-erp-errors'].some((one) => one === code),
          `${operationId} ${code}`,
        );
  });

  it("equal today's answers, which match the description as a whole", () => {
    for (const { operationId, exchange } of recording.calls)
      assertDescribed(OPERATIONS.find((one) => one.operationId === operationId)!, exchange, operationId);
    const today = Object.assign({}, ...recording.files.values());
    for (const { operationId } of OPERATIONS)
      assert.deepEqual(
        shapes(today[operationId]),
        shapes(EXAMPLES[operationId as OperationId] ?? {}),
        `${operationId}: run npm run examples, and look at what has changed`,
      );
  });

  it('contain no secret and no detail of one machine', () => {
    const suspicious =
      /"Authorization":"(?!Bearer \{access_token\}")|localhost|127\.0\.0\.1|\beyJ[\w-]{10}|demo-password/;
    assert.equal(suspicious.exec(JSON.stringify(EXAMPLES))?.[0], undefined);
  });
});

/** /openapi.json is written for generators of clients: what they would trip over is not in it. */
import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { PlatformCapabilities } from '../../../contracts/gateway.ts';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { capabilities } from '../../../services/gateway/public/capabilities.ts';
import { openapi } from '../../../services/gateway/public/openapi.ts';

// biome-ignore lint/suspicious/noExplicitAny: a generated document is read freely
type Loose = any;

const document = openapi(OPERATIONS, 'https://erp.example') as Loose;
const { schemas } = document.components;
const named = (part: Loose): Loose =>
  part.$ref
    ? named(
        part.$ref
          .slice(2)
          .split('/')
          .reduce((at: Loose, key: string) => at[key], document),
      )
    : part;

const operations: Loose[] = Object.values(document.paths).flatMap((item) => Object.values(item as Loose));

/** Every media type of every body, with what it is the body of. */
const bodies: { of: string; schema: Loose; example: unknown }[] = operations.flatMap((operation) =>
  [['body', operation.requestBody] as const, ...Object.entries(operation.responses)].flatMap(([name, part]) =>
    Object.values((part as Loose)?.content ?? {}).map((media) => ({
      of: `${operation.operationId} ${name}`,
      schema: (media as Loose).schema,
      example: (media as Loose).example,
    })),
  ),
);

/** Calls `each` with every schema below a part, and where it stands. */
function eachSchema(part: Loose, at: string, each: (schema: Loose, at: string) => void): void {
  if (typeof part !== 'object' || part === null) return;
  if (Array.isArray(part)) part.forEach((one, i) => void eachSchema(one, `${at}/${i}`, each));
  else {
    each(part, at);
    for (const [key, inner] of Object.entries(part))
      if (key !== 'example' && key !== 'examples') eachSchema(inner, `${at}/${key}`, each);
  }
}

/** Names of types that TypeScript, browsers, Java, C#, Python, Go or Swift have already. */
const TAKEN = new Set(
  `Action Any Array ArrayBuffer AsyncIterator Attr Audio Awaited BigInt Blob Body Boolean Buffer Cache Class Client
  Collection Comment Credential Data DataView Date Decimal Dict Dictionary Document Double Element Enum Event EventTarget
  Exception Exclude Extract Field File Float FormData Function Generator Guid Headers History Image Infinity Int Integer
  Iterable Iterator Key List Location Lock Long Map Math Module Never Node NonNullable Notification Number Object Omit
  Option Optional Options Package Parameters Partial Path Pick Plugin Position Process Promise Proxy Query Range Readonly
  Record Reflect RegExp Report Request Required Response ReturnType Screen Selection Sequence Set Storage String Symbol
  Table Task Text Thread Time Tuple Type Union Unknown Url URL Uuid Value View Void WeakMap WeakRef WeakSet Widget Window
  Worker`.split(/\s+/),
);

describe('the API description', () => {
  it('has a name for every body, and for every object or enumeration that occurs twice', () => {
    for (const { of, schema } of bodies)
      for (const one of schema.anyOf ?? [schema]) assert.ok(one.$ref, `${of} has no name: give its schema a title`);
    const places = new Map<string, string[]>();
    eachSchema({ paths: document.paths, components: { schemas } }, '#', (schema, at) => {
      const isType =
        (schema.type === 'object' && Object.keys(schema.properties ?? {}).length > 0) || schema.enum?.length > 2;
      if (!isType || typeof schema.in === 'string') return;
      const text = JSON.stringify(schema);
      places.set(text, [...(places.get(text) ?? []), at]);
    });
    for (const [text, at] of places)
      assert.equal(at.length, 1, `give it a title: ${text.slice(0, 200)}\n${at.join('\n')}`);
  });

  it('uses no names reserved by languages or validators', () => {
    for (const name of Object.keys(schemas)) {
      assert.match(name, /^[A-Z][A-Za-z]+$/);
      assert.ok(!TAKEN.has(name), name);
    }
    eachSchema(document.paths, '#', (schema, at) => {
      assert.ok(typeof schema.$id !== 'string', `${at} has an $id: a schema is named by its title`);
    });
  });

  it('has a component for every parameter and every error that occurs twice', () => {
    const count = new Map<string, number>();
    for (const { parameters, responses } of operations) {
      for (const one of parameters)
        if (!one.$ref) count.set(JSON.stringify(one), (count.get(JSON.stringify(one)) ?? 0) + 1);
      for (const [status, response] of Object.entries(responses) as [string, Loose][])
        if (Number(status) >= 300) assert.ok(response.$ref, status);
    }
    for (const [text, times] of count) assert.equal(times, 1, text);
  });

  it('lists the errors of every operation in text and machine-readably', () => {
    for (const { operationId, responses, 'x-erp-errors': codes } of operations) {
      const words = Object.values(responses).map((one: Loose) => String(one.description ?? ''));
      for (const code of codes)
        assert.ok(
          words.some((text) => text.includes(`\`${code}\``)),
          `${operationId} ${code}`,
        );
      const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400);
      assert.equal(errors.flatMap(([, one]: Loose) => one.description.split(', ')).length, codes.length, operationId);
      for (const [, response] of errors)
        assert.deepEqual(Object.keys(named(response).content), ['application/json', 'application/problem+json']);
    }
  });

  it('describes JSON in a query parameter as a string with a schema', () => {
    const list = operations.find((one) => one.operationId === 'data.records.list');
    for (const name of ['where', 'whereIn', 'filters', 'sort']) {
      const { schema, example, content } = list.parameters.find((one: Loose) => one.name === name);
      assert.deepEqual([schema.type, schema.contentMediaType, content], ['string', 'application/json', undefined]);
      assert.ok(named(schema.contentSchema).type, name);
      assert.equal(typeof example, 'string', name);
    }
  });

  it('omits defaults of optional request properties, which generators would treat as present', () => {
    const seen = new Set<Loose>();
    const visit = (part: Loose, at: string): void =>
      eachSchema(part, at, (schema, here) => {
        if (!here.endsWith('/properties')) assert.ok(!('default' in schema), `${here}: say it in the description`);
        if (typeof schema.$ref !== 'string' || seen.has(schema.$ref)) return;
        seen.add(schema.$ref);
        visit(named(schema), schema.$ref);
      });
    for (const { requestBody, operationId } of operations) visit(requestBody?.content, operationId);
  });

  it('gives every record an id, and cursors one type, for generators that drop null-only properties', () => {
    assert.ok(schemas.DataRecord.required.includes('id'));
    eachSchema(schemas, 'schemas', ({ properties }, at) => {
      if (properties?.nextCursor) assert.deepEqual(properties.nextCursor.type, ['string', 'null'], at);
    });
  });

  it('documents errors of dry runs as violations', () => {
    assert.deepEqual(schemas.CheckResult.properties.errors.items, { $ref: '#/components/schemas/Violation' });
  });

  it('lists the scopes of an operation, also where one of several suffices', () => {
    const { security, 'x-erp-errors': errors } = operations.find((one) => one.operationId === 'agent.approvals.get');
    assert.deepEqual(security, [{ oauth2: ['agent:approve'] }, { oauth2: ['agent:run'] }]);
    assert.ok(errors.includes('SCOPE_INSUFFICIENT'));
    for (const { operationId, security, 'x-erp-errors': codes } of operations) {
      const needsNone = security.every(({ oauth2 }: Loose) => oauth2.length === 0);
      // Which one these need depends on what they are asked.
      if (needsNone && !['data.records.check', 'composite.requests.execute'].includes(operationId))
        assert.ok(!codes.includes('SCOPE_INSUFFICIENT'), operationId);
    }
  });

  it('names every grant', () => {
    const { flows, description } = document.components.securitySchemes.oauth2;
    assert.deepEqual(Object.keys(flows), ['authorizationCode', 'clientCredentials']);
    for (const grant of ['authorization_code', 'client_credentials', 'refresh_token', 'device_code'])
      assert.ok(description.includes(grant), grant);
  });

  it('matches the capabilities', () => {
    const rates = { connection: 1, tenant: 1, anonymous: 1, daily: 1, concurrency: 1, concurrencyCostly: 1 };
    const validate = new Ajv2020({ strict: false, allErrors: true }).compile(PlatformCapabilities);
    const answer = JSON.parse(JSON.stringify(capabilities(OPERATIONS, 'https://erp.example', rates)));
    assert.ok(validate(answer), JSON.stringify(validate.errors));
    const declared = (schema: Loose, value: Loose): void =>
      assert.deepEqual(Object.keys(schema.properties).sort(), Object.keys(value).sort());
    declared(PlatformCapabilities, answer);
    for (const name of ['limits', 'auth', 'events', 'metadata', 'mcp'] as const)
      declared(PlatformCapabilities.properties[name], answer[name]);
    declared(PlatformCapabilities.properties.operations.items, answer.operations[0]);
  });

  it('has examples valid against their schemas', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    formats.default(ajv);
    ajv.addSchema({ ...document, $id: 'https://erp.example/openapi.json' });
    const absolute = (schema: Loose): Loose =>
      JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"https://erp.example/openapi.json#/components'));
    const validators = new Map<string, ValidateFunction>();
    const fits = (of: string, schema: Loose, example: unknown): void => {
      const text = JSON.stringify(schema);
      const validate = validators.get(text) ?? ajv.compile(absolute(schema));
      validators.set(text, validate);
      assert.ok(validate(example), `${of}: ${JSON.stringify(validate.errors?.slice(0, 3))}`);
    };
    for (const { of, schema, example } of bodies) if (example !== undefined) fits(of, schema, example);
    for (const operation of operations)
      for (const one of operation.parameters.map(named)) {
        const of = `${operation.operationId} ${one.name}`;
        if (one.example === undefined) continue;
        fits(of, one.schema, one.example);
        if (one.schema.contentSchema) fits(of, one.schema.contentSchema, JSON.parse(one.example));
      }
    for (const [code, { value }] of Object.entries(document.components.examples) as [string, Loose][])
      fits(code, { $ref: '#/components/schemas/Error' }, value);
  });
});

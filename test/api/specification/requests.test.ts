/**
 * The form of every operation's request: key, body, parameters and preconditions that are missing or malformed are
 * refused with the code that docs/reference/errors.md gives, before anything is looked up. Generated from the rows, so
 * that a new operation is covered at once. (Authorization is tested in test/isolation.)
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import type { TSchema } from 'typebox';
import { OPERATIONS } from '../../../contracts/operations.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import type { Operation, Parameter } from '../../../lib/operation.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { type Answer, type Api, api, type CallOptions, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { isStream, streamHeaders } from '../../support/streams.ts';
import { digest } from '../files/world.ts';

const NAMES: Readonly<Record<string, string>> = {
  objectApiName: 'Invoice__c',
  externalIdField: 'LedgerNumber__c',
  value: 'FORM-1',
  transitionKey: 'send',
  widgetKey: 'note',
  partNumber: '1',
  connectionId: 'q7dhHYldwRX5KJEs_VEKsne-u1Wclg0D8q9zz2YqKzt',
};

/** An address of the operation, whose targets need not exist. */
const pathOf = (row: Operation, values: Readonly<Record<string, string>> = {}): string =>
  row.path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? NAMES[name] ?? uuidv7());

/** Path parameters that are ids: all except names. */
const idsOf = (row: Operation): string[] =>
  [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!).filter((name) => !Object.hasOwn(NAMES, name));

const MALFORMED_IDS = [
  'x',
  'nonsense',
  '1',
  uuidv7().slice(1),
  `${uuidv7()}0`,
  `urn:uuid:${uuidv7()}`,
  uuidv7().replaceAll('-', ''),
];

/** The schema as JSON Schema, of which TypeBox's are a part. */
interface Form {
  type?: string;
  enum?: readonly unknown[];
  const?: unknown;
  anyOf?: readonly Form[];
  properties?: Record<string, Form>;
  required?: readonly string[];
  additionalProperties?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
}

/** Texts of a query parameter that its schema refuses. */
function wrongTexts({ type, anyOf, enum: choices, const: only, ...form }: Form): string[] {
  if (choices !== undefined || only !== undefined || anyOf?.every(({ const: one }) => one !== undefined))
    return ['no-such-choice', ''];
  if (type === 'boolean') return ['maybe', '1', ''];
  if (type === 'integer' || type === 'number')
    return ['many', '', '1.5', '1e1', ...(form.minimum === undefined ? [] : [String(form.minimum - 1)])];
  if (type === 'string') return form.maxLength === undefined ? [] : ['x'.repeat(form.maxLength + 1)];
  return [];
}

describe('specification: requests', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(() => platform?.stop());

  const call = (
    row: Operation,
    more: { query?: string; body?: unknown; path?: string } & CallOptions = {},
  ): Promise<Answer> => {
    const { query = '', path = pathOf(row), body: _, ...options } = more;
    const body = 'body' in more ? more.body : row.requestBody && (row.requestBody.example ?? {});
    const bytes = isStream(row) && body !== undefined ? Buffer.from(String(body)) : null;
    return ada.send(row.method, path + query, bytes ?? body, {
      ...(row.precondition === 'ifMatch' ? { etag: '"1"' } : {}),
      ...options,
      headers: {
        ...(row.precondition === 'expectedRevision' ? { 'x-expected-revision': '1' } : {}),
        ...(isStream(row) ? { ...streamHeaders(row), 'content-digest': digest(bytes ?? Buffer.alloc(0)) } : {}),
        ...options.headers,
      },
    });
  };
  const refused = (answer: Answer, code: ErrorCode | readonly ErrorCode[], about: string): void => {
    const shown = `${about}: ${answer.status} ${answer.text.slice(0, 300)}`;
    assert.ok([code].flat().includes(answer.body?.code), shown);
  };
  const pointsTo = (answer: Answer, part: string, about: string): void => {
    const errors: { pointer?: string; parameter?: string }[] = answer.body.errors ?? [answer.body];
    assert.ok(
      JSON.stringify([...errors, answer.body.details ?? {}]).includes(part),
      `${about} is not named: ${answer.text.slice(0, 300)}`,
    );
  };

  for (const row of OPERATIONS) {
    const { requestBody } = row;
    const form = requestBody?.schema as Form | undefined;
    describe(`${row.operationId}: ${row.method} ${row.path}`, () => {
      if (row.mutation)
        it('refuses a malformed idempotency key', async () => {
          for (const idempotencyKey of ['short', 'x'.repeat(201), 'with spaces in it'])
            refused(await call(row, { idempotencyKey }), 'IDEMPOTENCY_KEY_INVALID', idempotencyKey);
        });

      if (idsOf(row).length > 0) {
        it('refuses a malformed id in its path with a pointer to it', async () => {
          for (const name of idsOf(row))
            for (const malformed of MALFORMED_IDS) {
              const answer = await call(row, { path: pathOf(row, { [name]: encodeURIComponent(malformed) }) });
              refused(answer, 'PARAMETER_INVALID', malformed);
              assert.equal(answer.status, 400);
              pointsTo(answer, `path:${name}`, malformed);
            }
          const all = Object.fromEntries(idsOf(row).map((name) => [name, 'x']));
          const answer = await call(row, { path: pathOf(row, all) });
          for (const name of idsOf(row)) pointsTo(answer, `path:${name}`, 'all');
        });
        it('accepts a well-formed id that names nothing, in either case', async () => {
          for (const id of [uuidv7(), uuidv7().toUpperCase()]) {
            const values = Object.fromEntries(idsOf(row).map((name) => [name, id]));
            const answer = await call(row, { path: pathOf(row, values) });
            assert.ok(!answer.text.includes('"path:'), `${id}: ${answer.status} ${answer.text.slice(0, 300)}`);
          }
        });
      }

      if (row.precondition === 'ifMatch')
        it('refuses a malformed If-Match', async () =>
          refused(await call(row, { etag: 'latest' }), 'IF_MATCH_INVALID', 'latest'));

      if (row.precondition === 'expectedRevision')
        it('refuses a malformed X-Expected-Revision', async () => {
          const headers = { 'x-expected-revision': 'latest' };
          refused(await call(row, { headers }), 'PARAMETER_INVALID', 'latest');
        });

      if (requestBody?.required && requestBody.kind !== 'stream')
        it('refuses a request without its body', async () =>
          refused(await call(row, { body: undefined }), 'BODY_REQUIRED', 'nothing'));

      if (requestBody && requestBody.kind !== 'raw' && requestBody.kind !== 'stream') {
        it('refuses a body that is not an object', async () => {
          for (const body of [[], 'text', 1, null])
            refused(
              await call(row, { body }),
              ['REQUEST_MALFORMED', 'PARAMETER_INVALID', 'VALIDATION_FAILED'],
              `${body}`,
            );
        });
        it('refuses a body that is too large', async () => {
          const body = { text: 'x'.repeat(requestBody.maxBytes) };
          refused(await call(row, { body }), 'REQUEST_TOO_LARGE', `${requestBody.maxBytes} bytes`);
        });
      }

      if (requestBody && requestBody.validate !== false && form?.properties) {
        const { properties, required = [] } = form;
        const example = (requestBody.example ?? {}) as Record<string, unknown>;
        if (form.additionalProperties === false)
          it('refuses unknown properties', async () => {
            const answer = await call(row, { body: { ...example, noSuchProperty: 1 } });
            refused(answer, 'BODY_PROPERTY_UNKNOWN', 'noSuchProperty');
            pointsTo(answer, '/noSuchProperty', 'noSuchProperty');
          });
        if (required.length > 0)
          it('names every missing property', async () => {
            const answer = await call(row, { body: {} });
            refused(answer, 'PARAMETER_REQUIRED', 'all');
            for (const name of required) pointsTo(answer, `/${name}`, name);
          });
        it('names every property with a value of another type', async () => {
          // No schema accepts such a list.
          const wrong = Object.fromEntries(Object.keys(properties).map((name) => [name, [[[]]]]));
          const answer = await call(row, { body: { ...example, ...wrong } });
          refused(answer, 'PARAMETER_INVALID', 'all');
          for (const name of Object.keys(properties)) pointsTo(answer, `/${name}`, name);
        });
      }

      const queried = ((row.queryParameters ?? []) as readonly Parameter[])
        .map(({ name, schema }) => ({ name, texts: wrongTexts(schema as TSchema & Form) }))
        .filter(({ texts }) => texts.length > 0);
      if (queried.length > 0)
        it('refuses invalid values of its parameters', async () => {
          for (const { name, texts } of queried)
            for (const text of texts) {
              const about = `${name}=${text.slice(0, 20)}`;
              const answer = await call(row, { query: `?${name}=${encodeURIComponent(text)}` });
              refused(answer, ['PARAMETER_INVALID', 'CURSOR_INVALID'], about);
              pointsTo(answer, name, about);
            }
        });

      if (row.queryParameters?.some(({ name }) => name === 'cursor'))
        it('refuses a cursor that it did not issue', async () =>
          refused(
            await call(row, { query: '?cursor=abc' }),
            ['CURSOR_INVALID', 'RUN_NOT_FOUND', 'RECORD_NOT_FOUND', 'JOB_NOT_FOUND', 'SUBSCRIPTION_NOT_FOUND'],
            'abc',
          ));
    });
  }
});

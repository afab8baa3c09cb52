/** Bodies that are not JSON, not strict JSON, or JSON of another shape. Generated from the operation rows. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'mocha';
import { OPERATIONS } from '../../../contracts/operations.ts';
import type { Operation } from '../../../lib/operation.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertRefused, assertSound, PROTOTYPE_NAMES, picture } from './support.ts';

/** None of these is strict JSON. */
const MALFORMED = [
  ' ',
  '{',
  '}',
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '[1,]',
  "{'a':1}",
  '{a:1}',
  '{"a":01}',
  '{"a":+1}',
  '{"a":.5}',
  '{"a":1.}',
  '{"a":0x1}',
  '{"a":NaN}',
  '{"a":Infinity}',
  '{"a":-}',
  '{"a":undefined}',
  '{"a":"\n"}',
  '{"a":"\\x41"}',
  '{"a":"\\u12"}',
  '{"a":1}{"b":1}',
  '{"a":1} x',
  '// x\n{}',
  '{/* x */}',
  '\ufeff{}',
  'undefined',
  'a=1&b=2',
  '<a/>',
  '{"a":1,"a":1}',
  '{"a":{"b":1,"\\u0062":2}}',
  '{"a":[{"b":1,"b":1}]}',
  '{"__proto__":{}}',
  '{"a":{"__proto__":null}}',
  '{"a":"\\u0000"}',
  '{"\\u0000":1}',
  '{"a":"\\ud800"}',
  '{"a":"\\udc00\\ud800"}',
  '{"\\ud800":1}',
  '{"a":1e400}',
  '{"a":-1e400}',
  '{"a":1e-400}',
  '{"a":9007199254740993}',
  '{"a":123456789012345678901234567890}',
  `${'['.repeat(33)}${']'.repeat(33)}`,
  `${'{"a":'.repeat(33)}1${'}'.repeat(33)}`,
  '['.repeat(500_000),
  '{"a":'.repeat(150_000),
];

/** JSON, but not an object. */
const NO_OBJECT = ['null', 'true', '0', '-0', '1.5', '"x"', '[]', '[{}]', '[[]]'];

describe('bad input: bodies', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let stored: Record<string, string>;
  let id: string;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    id = (await ada.get('/data/Account?take=1')).body.records[0].id;
    stored = await picture(platform);
  });
  after(() => platform?.stop());
  afterEach(async () => assert.deepEqual(await picture(platform), stored, 'something was written'));

  const call = (row: Operation, body: unknown): Promise<Answer> =>
    ada.send(
      row.method,
      row.path
        .replace('{objectApiName}', 'Account')
        .replace('{id}', id)
        .replace('{externalIdField}', 'accountNumber')
        .replace(/\{\w+\}/g, uuidv7()),
      body,
      row.precondition === 'ifMatch' ? { etag: '"never"' } : {},
    );
  /** Code of a refusal that precedes validation when the ETag never existed. */
  const orStale = (row: Operation): ['ETAG_MISMATCH'] | [] => (row.precondition === 'ifMatch' ? ['ETAG_MISMATCH'] : []);

  for (const row of OPERATIONS.filter(({ requestBody, mutation }) => !requestBody && mutation))
    it(`${row.operationId}: an empty object counts as no body, anything else is refused`, async () => {
      for (const text of ['{}', ' { } \n'])
        assert.notEqual((await call(row, text)).body?.code, 'REQUEST_MALFORMED', JSON.stringify(text));
      for (const text of ['{"a":1}', '[]', 'null', '{', '{}{}'])
        assertRefused(await call(row, text), text, 'REQUEST_MALFORMED');
    });

  for (const row of OPERATIONS.filter(({ requestBody }) => requestBody && requestBody.kind !== 'stream')) {
    const properties = Object.keys((row.requestBody!.schema as { properties?: object }).properties ?? {});

    it(`${row.operationId}: a body that is not strict JSON`, async () => {
      for (const text of MALFORMED)
        assertRefused(
          await call(row, text),
          text.slice(0, 60),
          text.length > row.requestBody!.maxBytes ? 'REQUEST_TOO_LARGE' : 'REQUEST_MALFORMED',
        );
      for (const bytes of [
        [0xff],
        [0x7b, 0xff, 0x7d],
        [0x22, 0xed, 0xa0, 0x80, 0x22],
        [0x22, 0xc0, 0x80, 0x22],
        [0x00],
        [0xff, 0xfe, 0x7b, 0, 0x7d, 0],
      ])
        assertRefused(await call(row, Uint8Array.from(bytes)), bytes.join(), 'REQUEST_MALFORMED');
    });

    it(`${row.operationId}: a body that is not an object, or none at all`, async () => {
      for (const text of NO_OBJECT) assertRefused(await call(row, text), text, 'PARAMETER_INVALID');
      if (row.requestBody!.required) assertRefused(await call(row, ''), 'empty', 'BODY_REQUIRED');
    });

    it(`${row.operationId}: unknown properties`, async () => {
      for (const name of [
        ...PROTOTYPE_NAMES.filter((one) => one !== '__proto__'),
        '',
        ' ',
        'A"b',
        'é',
        'x'.repeat(5_000),
      ])
        assertRefused(await call(row, { [name]: 1 }), name.slice(0, 20), [
          'BODY_PROPERTY_UNKNOWN',
          'PARAMETER_REQUIRED',
          'PARAMETER_CONFLICT',
          'VALIDATION_FAILED',
          ...orStale(row),
        ]);
      const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`p${i}`, i]));
      const answer = await call(row, many);
      assertRefused(answer, 'very many');
      assert.ok(answer.text.length < 100_000, `${answer.text.length} bytes of answer`);
    });

    it(`${row.operationId}: properties of another type`, async () => {
      const values: unknown[] = [
        null,
        true,
        -1,
        1.5,
        1e300,
        '',
        'x',
        [],
        [null],
        [[]],
        {},
        { a: 1 },
        { constructor: 1 },
        'x'.repeat(100_000),
      ];
      for (const name of properties)
        for (const value of values)
          assertSound(
            await call(row, { [name]: value, noSuchProperty: 1 }),
            `${name}: ${JSON.stringify(value)?.slice(0, 40)}`,
          );
    });

    it(`${row.operationId}: a body over its limit`, async () => {
      const { maxBytes } = row.requestBody!;
      const answer = await call(row, new Uint8Array(maxBytes + 1).fill(0x20));
      assertRefused(answer, 'too large', 'REQUEST_TOO_LARGE');
      assert.equal(answer.body.details.maxBytes, maxBytes);
      assertRefused(await call(row, `{"name":"${'x'.repeat(1024 * 1024)}"}`), 'over 1 MiB of text');
    });
  }

  it('refuses a version beyond the storable range, without a database failure', async () => {
    for (const baseMetadataVersion of [-1, 1.5, 2 ** 31, Number.MAX_SAFE_INTEGER])
      for (const path of ['/metadata/validate', '/metadata/deploy']) {
        const answer = await ada.post(path, { files: {}, package: { version: 1, types: [] }, baseMetadataVersion });
        assertRefused(answer, `${path}: ${baseMetadataVersion}`, 'PARAMETER_INVALID');
      }
  });
});

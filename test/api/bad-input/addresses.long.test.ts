/** Addresses: meaningless content of paths and query strings. Generated from the operation rows. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'mocha';
import { OPERATIONS } from '../../../contracts/operations.ts';
import type { Operation, Parameter } from '../../../lib/operation.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertRefused, assertSound, encoded, PROTOTYPE_NAMES, picture, SQL } from './support.ts';

const ODD_NAMES = [
  ...PROTOTYPE_NAMES,
  ...SQL,
  ' ',
  'account',
  'ACCOUNT',
  'Account ',
  'Account"',
  'Account/..',
  '_state',
  '_idempotency',
  'pg_class',
  'User__c',
  'é',
  '\u{1d4b3}',
  '​',
  '-1',
  'null',
  'a'.repeat(300),
];

/** Parameters that accept most texts. */
const FREE = new Set(['search', 'objectApiName', 'agentKey', 'objects', 'type']);
/** A stream begins where its request is sound, and does not end by itself. */
const isStream = ({ response }: Operation): boolean => response.kind === 'events';

/** Bytes that are no valid encoding of text. */
const NO_TEXT = ['%FF', '%C0%AF', '%ED%A0%80', '%F5%80%80%80', '%', '%4', '%zz', '%00', 'a%00b'];

describe('bad input: addresses', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let stored: Record<string, string>;
  const real: Record<string, string> = {
    objectApiName: 'Account',
    id: uuidv7(),
    ...Object.fromEntries(
      [
        'deploymentId',
        'dashboardId',
        'runId',
        'approvalId',
        'shareId',
        'userId',
        'fileId',
        'uploadId',
        'jobId',
        'subscriptionId',
        'notificationId',
        'eventId',
        'calendarId',
      ].map((name) => [name, uuidv7()]),
    ),
    partNumber: '1',
  };
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    real['id'] = (await ada.get('/data/Account?take=1')).body.records[0].id;
    stored = await picture(platform);
  });
  after(() => platform?.stop());
  afterEach(async () => assert.deepEqual(await picture(platform), stored, 'something was written'));

  const pathOf = (row: Operation, values: Record<string, string> = {}): string =>
    row.path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? encodeURIComponent(real[name] ?? 'x'));

  /** Sends a request that is complete except for the part under test; a body is one that cannot be saved. */
  const call = (row: Operation, path: string): Promise<Answer> =>
    ada.send(row.method, path, row.requestBody ? {} : undefined, {
      ...(row.requestBody?.kind === 'stream'
        ? { headers: { 'content-type': row.requestBody.contentTypes?.[0] ?? 'text/csv', 'upload-offset': '0' } }
        : {}),
      ...(row.precondition === 'ifMatch' ? { etag: '"never"' } : {}),
      ...(row.mutation ? {} : { idempotencyKey: null }),
    });

  const withPath = OPERATIONS.filter((row) => row.path.includes('{'));
  for (const row of withPath)
    for (const [, name] of row.path.matchAll(/\{(\w+)\}/g))
      it(`${row.operationId}: ${name} that names nothing`, async () => {
        for (const odd of ODD_NAMES)
          assertRefused(await call(row, pathOf(row, { [name!]: encoded(odd) })), `${name}=${odd}`);
        for (const raw of NO_TEXT)
          assertRefused(await call(row, pathOf(row, { [name!]: raw })), `${name}=${raw}`, [
            'PARAMETER_INVALID',
            'BODY_REQUIRED',
            'REQUEST_MALFORMED',
          ]);
      });

  const reading = OPERATIONS.filter((row) => row.method === 'GET');
  for (const row of reading)
    it(`${row.operationId}: unknown parameters`, async () => {
      const path = pathOf(row);
      for (const name of [
        ...PROTOTYPE_NAMES,
        'Take',
        'take ',
        'take[]',
        'select',
        '$filter',
        'a'.repeat(3_000),
        ...SQL,
      ])
        assertRefused(await call(row, `${path}?${encodeURIComponent(name)}=1`), name, 'PARAMETER_UNKNOWN');
      assertRefused(await call(row, `${path}?=1`), 'no name', 'PARAMETER_UNKNOWN');
      assertRefused(await call(row, `${path}?${'x=1&'.repeat(3_000)}`), 'very many', 'PARAMETER_UNKNOWN');
      for (const raw of NO_TEXT) assertRefused(await call(row, `${path}?${raw}=1`), raw, 'PARAMETER_INVALID');
      if (!isStream(row)) assertSound(await call(row, `${path}?&&&`), 'only ampersands');
    });

  const parameters = reading.flatMap((row) =>
    (row.queryParameters ?? [])
      .filter(({ name }) => !isStream(row) || !FREE.has(name))
      .map((one): [Operation, Parameter] => [row, one]),
  );
  for (const [row, { name, json, schema, example }] of parameters)
    it(`${row.operationId}: ${name} repeated, empty, huge, of another type`, async () => {
      const path = pathOf(row);
      const good = encoded(example ?? 'x');
      const ask = (text: string): Promise<Answer> => call(row, `${path}?${name}=${text}`);
      assertRefused(await call(row, `${path}?${name}=${good}&${name}=${good}`), 'repeated');
      assertRefused(await call(row, `${path}?${name}[]=${good}`), 'as array', 'PARAMETER_UNKNOWN');
      for (const raw of NO_TEXT) assertRefused(await ask(raw), raw, 'PARAMETER_INVALID');
      const { type } = schema as { type?: string };
      const typed = json || type === 'integer' || type === 'boolean';
      const texts = [
        '',
        ' ',
        'x',
        '1.5',
        '1e3',
        '0x10',
        '١',
        'TRUE',
        'yes',
        'NaN',
        '-',
        '99999999999999999999',
        '{',
        '[',
        '"',
        '[[',
      ];
      for (const text of [...texts, '{"a":1,"a":2}', '{"__proto__":1}'])
        if (FREE.has(name)) assertSound(await ask(encoded(text)), text);
        else if (typed && text !== '1.5' && text !== '1e3')
          assertRefused(await ask(encoded(text)), text, 'PARAMETER_INVALID');
        else assertRefused(await ask(encoded(text)), text);
      for (const value of [
        null,
        true,
        1,
        -0,
        1.5,
        'x',
        [],
        [[]],
        {},
        [{}],
        { a: {} },
        { a: [] },
        [null],
        { logic: 'and' },
        { logic: 'and', conditions: {} },
        { id: 'name' },
        [{ id: { toString: 1 } }],
        { name: { $ne: 1 } },
      ])
        assertSound(await ask(encoded(JSON.stringify(value))), JSON.stringify(value));
      for (const huge of [
        '9'.repeat(1_000),
        'a'.repeat(15_000),
        '['.repeat(5_000),
        '{"a":'.repeat(1_000),
        `[${'1,'.repeat(5_000)}1]`,
        'a,'.repeat(7_000),
      ])
        assertRefused(await ask(encodeURI(huge).slice(0, 16_000)), huge.slice(0, 10));
    });

  it('an address over 16 KiB', async () => {
    assertRefused(await ada.get(`/data/Account?search=${'a'.repeat(16_400)}`), 'long', 'URI_TOO_LONG');
  });
});

/**
 * Every odd JSON value for every type of field: refused with a reason, or stored so that it reads back equal. Of the
 * conditions with them a run tries one in three, so that three runs try all: VALUES_ONE_IN=1 tries all at once,
 * VALUES_FIRST replays a run.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, objectFiles } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertRefused, assertSound } from './support.ts';

const FIELDS: Record<string, string> = {
  Text__c: 'fieldType: text\nlength: 80',
  Key__c: 'fieldType: text\nexternalId: true\nunique: true',
  LongText__c: 'fieldType: longText',
  RichText__c: 'fieldType: richText',
  Email__c: 'fieldType: email',
  Phone__c: 'fieldType: phone',
  Url__c: 'fieldType: url',
  Integer__c: 'fieldType: integer',
  Decimal__c: 'fieldType: decimal\nprecision: 20\nscale: 6',
  Whole__c: 'fieldType: decimal\nprecision: 30\nscale: 0',
  Currency__c: 'fieldType: currency',
  Percent__c: 'fieldType: percent',
  Boolean__c: 'fieldType: boolean',
  Date__c: 'fieldType: date',
  DateTime__c: 'fieldType: dateTime',
  Time__c: 'fieldType: time',
  Duration__c: 'fieldType: duration',
  Picklist__c: 'fieldType: picklist\npicklist: {values: [{value: a}]}',
  Many__c: 'fieldType: multiPicklist\npicklist: {values: [{value: x}, {value: y}]}',
  Reference__c: 'fieldType: reference\nreferenceTo: [Account]',
  Place__c: 'fieldType: geolocation',
  Address__c: 'fieldType: address',
  Json__c: 'fieldType: json',
  Number__c: 'fieldType: autoNumber\nformat: "T-{0000}"',
};
const SYSTEM = ['name', 'id', 'ownerId', 'createdAt', 'recordVersion', 'recordTypeApiName', '_etag'];

/** JSON texts, because many of them exceed any JavaScript value. */
const VALUES = [
  ...['null', 'true', '0', '-0', '-0.0', '1E+2', '1e308', '9007199254740991', '-9007199254740991', '0.1', '1e37'],
  ...['1.0000000000000000000000000000000000000001', '0.123456789012345678901234567890', '99999999999999999999.5'],
  ...[
    '"1e5"',
    '"1e999999999"',
    '"1e-999999999"',
    '"NaN"',
    '"Infinity"',
    '"0x10"',
    '" 1 "',
    '"１"',
    '"00012.50"',
    '"-0"',
  ],
  ...['""', '" "', '"\\u200b"', '"😀"', '"é"', '"e\\u0301"', `"${'x'.repeat(200_000)}"`, `"${'😀'.repeat(70_000)}"`],
  ...[
    '[]',
    '[null]',
    '["x"]',
    '["x","x"]',
    '["y","x"]',
    '["zz"]',
    '[["x"]]',
    '{}',
    '{"a":1}',
    '{"constructor":1}',
    '"constructor"',
  ],
  ...[
    '"2026-02-30"',
    '"0000-01-01"',
    '"0001-01-01"',
    '"9999-12-31"',
    '"10000-01-01"',
    '"2026-1-1"',
    '"infinity"',
    '"now"',
  ],
  ...['"2026-01-01T00:00:00Z"', '"2026-01-01T24:00:00Z"', '"2026-01-01T23:59:60Z"', '"9999-12-31T23:59:59.999-23:59"'],
  ...[
    '"0001-01-01T00:00:00+23:59"',
    '"2026-01-01T00:00:00.1234567890123Z"',
    '"2026-01-01T00:00:00"',
    '"2026-01-01T00:00:00+99:99"',
  ],
  ...[
    '"24:00:00"',
    '"23:59:60"',
    '"12:00"',
    '"P1D"',
    '"PT99999999999999S"',
    '"P178000000Y"',
    '"-P1D"',
    '"PT0.0000001S"',
  ],
  ...[
    '"a@b"',
    '"a@b.example\\r\\nBcc: x@y.example"',
    '"javascript:alert(1)"',
    '"http://a b"',
    `"https://${'a'.repeat(3_000)}.example"`,
  ],
  ...['"00000000-0000-0000-0000-000000000000"', '"{00000000-0000-0000-0000-000000000000}"', '{"accountNumber":"none"}'],
  ...['{"accountNumber":{}}', '{"accountNumber":"x","name":"y"}', '{"id":"x"}', '"<script>alert(1)</script>"'],
  ...[
    '{"latitude":91,"longitude":0}',
    '{"latitude":-0,"longitude":180}',
    '{"latitude":0.1234567890123456789,"longitude":1}',
  ],
  ...[
    '{"latitude":"1","longitude":"2"}',
    '{"latitude":null,"longitude":null}',
    '{"street":{"a":1}}',
    '{"city":null}',
    '{"country":"ZZ"}',
  ],
  ...[`${'['.repeat(31)}${']'.repeat(31)}`, '{"n":0.10000000000000000000000000001}', `[${'1,'.repeat(50_000)}1]`],
];

const ONE_IN = Number(process.env['VALUES_ONE_IN'] ?? 3);
const first = Number(process.env['VALUES_FIRST'] ?? Date.now() % ONE_IN);
const OPERATORS = ['eq', 'gt', 'contains', 'starts_with', 'between', 'not_in', 'in_related'];

describe(`bad input: values (VALUES_FIRST=${first})`, function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    await deployOverHttp(ada, objectFiles('Wide__c', FIELDS));
  });
  after(() => platform?.stop());

  const records = async (): Promise<number> => (await ada.get('/data/Wide__c?take=1&includeTotal=true')).body.total;

  for (const field of [...Object.keys(FIELDS), ...SYSTEM])
    it(`${field}: written and read back, or refused`, async () => {
      const before = await records();
      let created = 0;
      for (const value of VALUES) {
        const about = `${field}: ${value.slice(0, 60)}`;
        const answer = await ada.post(
          '/data/Wide__c',
          field === 'name' ? `{"name":${value}}` : `{"name":"n","${field}":${value}}`,
        );
        assertSound(answer, about);
        if (answer.status !== 201) {
          assertRefused(answer, about, ['VALIDATION_FAILED', 'UNIQUE_VALUE_CONFLICT']);
          assert.ok(
            answer.body.errors === undefined || answer.body.errors[0].field === field,
            `${about}: ${answer.text}`,
          );
          continue;
        }
        created++;
        const path = `/data/Wide__c/${answer.body.id}`;
        const read = await ada.get(path);
        assert.deepEqual(read.body, answer.body, about);
        // The stored value equals the sent one: sending it again changes nothing.
        const again = await ada.send('PATCH', path, `{"${field}":${value}}`, { etag: answer.headers.get('etag')! });
        assert.equal(again.status, 200, `${about}: ${again.text}`);
        assert.equal(again.headers.get('etag'), answer.headers.get('etag'), about);
      }
      assert.equal(await records(), before + created, 'a refused record was stored');
    });

  for (const [o, operator] of OPERATORS.entries())
    it(`${operator} with odd values on any field`, async () => {
      const small = VALUES.filter((value) => value.length < 4_000);
      for (const [f, field] of [...Object.keys(FIELDS), ...SYSTEM].entries()) {
        const tried = small.filter((_, v) => (v + f + o + first) % ONE_IN === 0);
        await Promise.all(
          tried.map(async (value) => {
            const operands =
              operator === 'between' ? `${value},"valueTo":${value}` : operator === 'not_in' ? `[${value}]` : value;
            const condition = `{"id":"c","field":"${field}","operator":"${operator}","value":${operands}}`;
            const answer = await ada.post(
              '/data/Wide__c/query',
              `{"take":1,"filters":{"logic":"and","conditions":[${condition}]}}`,
            );
            assertSound(answer, `${field} ${operator} ${value}`);
          }),
        );
      }
    });

  it("numbers outside of JSON's exact range are refused before any field is read", async () => {
    for (const value of [
      '1e400',
      '-1e400',
      '1e-400',
      '9007199254740993',
      '-9007199254740992',
      '123456789012345678901234567890',
    ])
      assertRefused(await ada.post('/data/Wide__c', `{"name":"n","Decimal__c":${value}}`), value, 'REQUEST_MALFORMED');
  });

  it('a decimal keeps every digit, as number and as text', async () => {
    for (const value of ['12345678901234.123456', '-0.000001', '99999999999999.999999', '0.100000']) {
      for (const sent of [value, `"${value}"`]) {
        const { text, status } = await ada.post('/data/Wide__c', `{"name":"n","Decimal__c":${sent}}`);
        assert.equal(status, 201, text);
        const shown = /"Decimal__c":(-?[\d.]+)/.exec(text)![1]!;
        assert.equal(shown.replace(/\.?0+$/, ''), value.replace(/\.?0+$/, ''));
        const found = await ada.post('/data/Wide__c/query', `{"where":{"Decimal__c":${sent}}}`);
        assert.ok(found.body.records.length > 0, found.text);
      }
    }
    for (const value of ['0.1234567', '123456789012345', '"0.1234567"', '"1e15"'])
      assertRefused(await ada.post('/data/Wide__c', `{"name":"n","Decimal__c":${value}}`), value, 'VALIDATION_FAILED');
  });
});

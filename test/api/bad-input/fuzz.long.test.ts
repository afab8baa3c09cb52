/**
 * Arbitrary requests: operations, addresses, parameters, headers and bodies combined at random.
 * Every response is sound. BAD_INPUT_SEED replays one run, BAD_INPUT_RUNS sets how many requests are sent.
 */

import fc from 'fast-check';
import { after, before, describe, it } from 'mocha';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertSound, encoded, PROTOTYPE_NAMES, SQL } from './support.ts';

const seed = Number(process.env['BAD_INPUT_SEED'] ?? Date.now() % 1_000_000_000);
const numRuns = Number(process.env['BAD_INPUT_RUNS'] ?? 600);

const NAMES = [
  'Account',
  'Contact',
  'Invoice__c',
  'User',
  'Product',
  'id',
  'name',
  'city',
  'accountId',
  'createdAt',
  'email',
];
const WORDS = [
  ...NAMES,
  'and',
  'or',
  'asc',
  'true',
  '0',
  '-1',
  'in_related',
  'TODAY',
  'LAST_N_DAYS:9999999999',
  '2026-02-30',
];

const text = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...WORDS) },
  fc.constantFrom(...SQL, ...PROTOTYPE_NAMES),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 10 }),
  fc.uuid(),
);
const scalar = fc.oneof(text, fc.double(), fc.integer(), fc.maxSafeInteger(), fc.boolean(), fc.constant(null));
const operator = fc.oneof(
  fc.constantFrom(
    'eq',
    'neq',
    'contains',
    'starts_with',
    'is_blank',
    'gt',
    'lte',
    'between',
    'in',
    'not_in',
    'in_related',
  ),
  text,
);
const { value, condition } = fc.letrec<{ value: unknown; condition: unknown; filters: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    { weight: 5, arbitrary: scalar },
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(text, tie('value'), { maxKeys: 4 }),
    tie('filters'),
  ),
  condition: fc.record(
    {
      id: fc.oneof(fc.constantFrom('a', 'b', 'c'), scalar),
      field: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...NAMES) }, tie('value')),
      operator,
      value: fc.oneof(
        tie('value'),
        fc.record(
          { objectApiName: text, field: text, logic: text, conditions: fc.array(tie('condition'), { maxLength: 2 }) },
          { requiredKeys: ['objectApiName', 'field'] },
        ),
      ),
      valueTo: tie('value'),
    },
    { requiredKeys: ['id', 'field', 'operator'] },
  ),
  filters: fc.record({
    logic: fc.constantFrom('and', 'or', 'xor'),
    conditions: fc.array(tie('condition'), { maxLength: 4 }),
  }),
}));
const query = fc.record(
  {
    take: fc.oneof(fc.integer({ min: 1, max: 5 }), scalar),
    skip: fc.oneof(fc.nat(50), scalar),
    includeTotal: fc.oneof(fc.boolean(), scalar),
    includeEtag: fc.boolean(),
    fields: fc.oneof(text, fc.array(text, { maxLength: 3 })),
    where: fc.oneof(fc.dictionary(text, value, { maxKeys: 3 }), value),
    whereIn: fc.oneof(fc.dictionary(text, fc.array(value, { maxLength: 3 }), { maxKeys: 3 }), value),
    filters: fc.oneof(
      fc.record({ logic: fc.constantFrom('and', 'or'), conditions: fc.array(condition, { maxLength: 5 }) }),
      value,
    ),
    sort: fc.oneof(fc.array(fc.record({ id: text, desc: fc.boolean() }), { maxLength: 3 }), value),
    orderBy: text,
    orderDirection: text,
    search: text,
    searchFields: text,
    cursor: text,
  },
  { requiredKeys: [] },
);
const record = fc.dictionary(fc.oneof(fc.constantFrom(...NAMES, 'lastName'), text), value, { maxKeys: 5 });
const project = fc.record(
  {
    files: fc.dictionary(
      fc.oneof(fc.constantFrom('objects/A__c/object.yaml', 'objects/A__c/fields/B__c.yaml', 'profiles/P.yaml'), text),
      fc.oneof(
        text,
        value.map((one) => JSON.stringify(one) ?? ''),
      ),
      { maxKeys: 3 },
    ),
    package: fc.oneof(
      fc.record({
        version: fc.constantFrom(1, 2),
        types: fc.array(
          fc.record({
            name: fc.constantFrom('CustomObject', 'CustomField', 'Profile', 'X'),
            members: fc.array(text, { maxLength: 3 }),
          }),
          { maxLength: 3 },
        ),
      }),
      value,
    ),
    allowDestructiveChanges: scalar,
    checkOnly: fc.constant(true),
    baseMetadataVersion: scalar,
  },
  { requiredKeys: ['files', 'package'] },
);
const header = fc.string({
  unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 40,
});
const request = fc.record({
  user: fc.constantFrom('sam', 'ada', 'eve'),
  // A stream does not end by itself.
  operation: fc.constantFrom(...OPERATIONS.filter(({ response }) => response.kind !== 'events')),
  path: fc.array(text, { minLength: 2, maxLength: 2 }),
  query,
  own: fc.boolean(),
  body: fc.oneof(
    { weight: 3, arbitrary: query },
    record,
    project,
    value,
    fc.json({ maxDepth: 3 }).map((one) => one.slice(0, -1)),
  ),
  headers: fc.dictionary(
    fc.constantFrom(
      'if-match',
      'if-none-match',
      'idempotency-key',
      'accept',
      'x-agent-run-id',
      'x-duplicate-confirmation',
      'traceparent',
      'accept-language',
      'prefer',
    ),
    header,
    { maxKeys: 3 },
  ),
});

describe(`bad input: anything at all (BAD_INPUT_SEED=${seed})`, () => {
  let platform: TestPlatform;
  const users: Record<string, Api> = {};
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    for (const name of ['sam', 'ada', 'eve'])
      users[name] = api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
  });
  after(() => platform?.stop());

  it(`gets a sound answer, ${numRuns} times`, async function () {
    this.timeout(300_000);
    await fc.assert(
      fc.asyncProperty(request, async ({ user, operation, path, query: asked, own, body, headers }) => {
        const parts = [...path];
        const address = operation.path.replace(/\{\w+\}/g, () => {
          const part = encoded((parts.shift() ?? 'x').toWellFormed());
          // Clients resolve dots before they send an address.
          return /^\.{0,2}$/.test(part) ? 'x' : part;
        });
        const known = new Set((operation.queryParameters ?? []).map((one) => one.name));
        const pairs = Object.entries(asked).filter(([name]) => (own ? known.has(name) : known.size > 0));
        const search = pairs
          .map(([name, one]) => `${name}=${encoded(typeof one === 'string' ? one.toWellFormed() : one)}`)
          .join('&');
        const sent = `${address}${search ? `?${search}` : ''}`;
        const answer = await users[user]!.send(operation.method, sent, operation.requestBody ? body : undefined, {
          ...(operation.precondition === 'ifMatch' ? { etag: '"1"' } : {}),
          headers,
        });
        assertSound(answer, `${user} ${operation.method} ${sent.slice(0, 300)} ${JSON.stringify(body)?.slice(0, 300)}`);
      }),
      { seed, numRuns, endOnFailure: true },
    );
  });
});

/**
 * Conditions of every JSON shape, through each path that accepts them: lists, dashboards as saved and as
 * deployed, and runs of their widgets. BAD_INPUT_SEED replays one run, BAD_INPUT_CONDITIONS sets how many are tried.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { after, before, describe, it } from 'mocha';
import { OPERATORS } from '../../../lib/schema/field-types/types.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertRefused, assertSound } from './support.ts';

const seed = Number(process.env['BAD_INPUT_SEED'] ?? Date.now() % 1_000_000_000);
const numRuns = Number(process.env['BAD_INPUT_CONDITIONS'] ?? 100);

const OBJECT = 'Shape__c';
const CHOICES = 'picklist: {values: [{value: x}, {value: y}]}';
const FIELDS: Readonly<Record<string, string>> = {
  Text__c: 'fieldType: text',
  Count__c: 'fieldType: integer',
  Share__c: 'fieldType: decimal\nprecision: 10\nscale: 2',
  Amount__c: 'fieldType: currency',
  Day__c: 'fieldType: date',
  Moment__c: 'fieldType: dateTime',
  Hour__c: 'fieldType: time',
  Length__c: 'fieldType: duration',
  Done__c: 'fieldType: boolean',
  One__c: `fieldType: picklist\n${CHOICES}`,
  Many__c: `fieldType: multiPicklist\n${CHOICES}`,
  Of__c: 'fieldType: reference\nreferenceTo: [Account]',
};

interface Condition {
  readonly field: string;
  readonly operator: string;
  readonly value?: unknown;
  readonly valueTo?: unknown;
}

/** Values of other forms than the operators accept: each of them was once a failure, or could be. */
const WRONG: readonly [operators: readonly string[], more: object, pointer: string][] = [
  ...['central', 5, true, { a: 1 }, [], Array(201).fill('x')].map((value): [string[], object, string] => [
    ['in', 'not_in'],
    { value },
    '/value',
  ]),
  [['in', 'not_in', 'eq', 'neq', 'gt', 'contains', 'between', 'in_related'], {}, '/value'],
  [['in', 'not_in', 'eq', 'neq', 'gt', 'contains', 'between', 'in_related'], { value: null }, '/value'],
  [['between'], { value: 'a' }, '/valueTo'],
  [['between'], { value: 'a', valueTo: null }, '/valueTo'],
  [['eq', 'gt', 'in'], { value: ['a'], valueTo: 'b' }, '/valueTo'],
  [['is_blank', 'is_not_blank'], { value: 'x' }, '/value'],
  [['is_blank', 'is_not_blank'], { value: [] }, '/value'],
  [['contains'], { value: 'x'.repeat(1_001) }, '/value'],
  [['in_related'], { value: 'x' }, '/value'],
  [['in_related'], { value: [] }, '/value'],
  [['in_related'], { value: { field: 'id' } }, '/value/objectApiName'],
  [['in_related'], { value: { objectApiName: 'Account', field: 'id', conditions: {} } }, '/value/conditions'],
];

const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, -1, 1e308, 2 ** 53));
const text = fc.oneof(
  fc.constantFrom('x', 'TODAY', 'LAST_N_DAYS:9', 'id', 'Account', '2026-02-30', '\u0000', '\ud800', '__proto__', ''),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.uuid(),
);
const scalar = fc.oneof(text, number, fc.boolean(), fc.constant(null));
const operator = fc.constantFrom(...OPERATORS);
const field = fc.constantFrom(...Object.keys(FIELDS), 'id', 'name', 'ownerId', 'createdAt', 'Absent__c');
const { value } = fc.letrec<{ value: unknown; condition: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    { weight: 3, arbitrary: scalar },
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(text, tie('value'), { maxKeys: 3 }),
    fc.record(
      {
        objectApiName: fc.oneof(fc.constantFrom('Account', OBJECT), tie('value')),
        field: fc.oneof(field, tie('value')),
        logic: fc.constantFrom('and', 'or', 5),
        conditions: fc.oneof(fc.array(tie('condition'), { maxLength: 2 }), tie('value')),
      },
      { requiredKeys: ['objectApiName', 'field'] },
    ),
  ),
  condition: fc.record(
    { id: fc.constantFrom('a', 'b'), field, operator, value: tie('value'), valueTo: tie('value') },
    { requiredKeys: ['id', 'field', 'operator'] },
  ),
}));
const condition: fc.Arbitrary<Condition> = fc.record(
  { field, operator, value, valueTo: value },
  { requiredKeys: ['field', 'operator'] },
);

describe(`bad input: conditions of any shape (BAD_INPUT_SEED=${seed})`, () => {
  let platform: TestPlatform;
  let ada: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    await deployOverHttp(ada, objectFiles(OBJECT, { ...FIELDS }));
  });
  after(() => platform?.stop());

  const query = (more: object) => ({
    objectApiName: OBJECT,
    dimensions: [],
    measures: [{ key: 'n', aggregation: 'count' }],
    ...more,
  });
  const widget = (widgetKey: string, filters?: object) => ({
    widgetKey,
    title: widgetKey,
    type: 'metric',
    layout: { x: 0, y: 0, w: 3, h: 2 },
    query: query(filters ? { filters } : {}),
  });
  const own = (one: Condition) => ({ logic: 'and', conditions: [{ id: 'c', ...one }] });
  const filter = (one: Condition) => ({ filterKey: 'f', label: 'F', objectApiName: OBJECT, ...one });
  const asWidget = (one: Condition) => ({ name: 'Shapes', widgets: [widget('w', own(one))], filters: [] });
  const asFilter = (one: Condition) => ({ name: 'Shapes', widgets: [widget('w')], filters: [filter(one)] });
  const AT = '/analytics/dashboards';

  /** Saves a dashboard; returns the refusal, or null when it was saved. */
  async function save(at: string, body: object): Promise<Answer | null> {
    const { revision } = (await ada.get(at)).body;
    const reply = await ada.patch(at, { ...body, expectedRevision: revision });
    return reply.status === 200 ? null : reply;
  }
  const run = (at: string, body: object = {}): Promise<Answer> =>
    ada.post(`${at}/widgets/w/run`, { maxAgeSeconds: 0, ...body }, { idempotencyKey: null });
  const list = (one: Condition): Promise<Answer> => ada.post(`/data/${OBJECT}/query`, { filters: own(one) });
  // JSON is YAML.
  const files = (body: object) => ({
    'dashboards/Shapes.yaml': JSON.stringify({ type: 'Dashboard', apiName: 'Shapes', visibility: 'private', ...body }),
  });
  const validate = (body: object): Promise<Answer> =>
    ada.post('/metadata/validate', { files: files(body), package: wholePackage(files(body)) });
  const made = async (body: object): Promise<string> => {
    const reply = await ada.post(AT, body);
    assert.equal(reply.status, 201, reply.text);
    return `${AT}/${reply.body.dashboardId}`;
  };

  it('are refused by every path alike when they cannot be compared with any record', async function () {
    this.timeout(120_000);
    const plain = await made({ name: 'Plain', widgets: [widget('w')] });
    for (const [operators, more, pointer] of WRONG)
      for (const operator of operators) {
        const one: Condition = { field: operator === 'in_related' ? 'id' : 'Text__c', operator, ...more };
        const about = JSON.stringify(one).slice(0, 200);
        const pointers = ({ body }: Answer): string[] => body.errors.map((each: { pointer: string }) => each.pointer);
        const expected = (reply: Answer, at: string, code: Parameters<typeof assertRefused>[2]): void => {
          assertRefused(reply, about, code);
          assert.deepEqual(pointers(reply), [`${at}${pointer}`], about);
        };
        expected(await list(one), '/filters/conditions/0', ['FILTER_VALUE_INVALID', 'FILTER_INVALID']);
        expected(await run(plain, { conditions: [one] }), '/conditions/0', 'WIDGET_QUERY_INVALID');
        for (const [body, at] of [
          [asWidget(one), '/widgets/0/query/filters/conditions/0'],
          [asFilter(one), '/filters/0'],
        ] as const) {
          // A filter of a dashboard without a value is valid: it waits for one.
          if (body.filters.length > 0 && (one.value ?? one.valueTo ?? null) === null) continue;
          expected(await ada.post(AT, body), at, 'DASHBOARD_INVALID');
          expected((await save(plain, body))!, at, 'DASHBOARD_INVALID');
          const { valid, blocked } = (await validate(body)).body;
          const codes = blocked.map((each: { code: string }) => each.code);
          assert.deepEqual([valid, codes], [false, ['YAML_SCHEMA_INVALID']], about);
        }
        if (!('value' in one) || operator.endsWith('blank')) continue;
        const waiting = await made({ ...asFilter({ field: one.field, operator }), name: operator });
        const { value, valueTo } = one;
        const given = await run(waiting, {
          filterValues: { f: { value, ...(valueTo === undefined ? {} : { valueTo }) } },
        });
        expected(given, '/filterValues/f', 'WIDGET_QUERY_INVALID');
        await ada.delete(waiting, { headers: { 'x-expected-revision': '1' } });
      }
  });

  it(`get a sound answer, ${numRuns} times, also when they were saved or deployed`, async function () {
    this.timeout(300_000);
    const at = await made({ name: 'Any', widgets: [widget('w')] });
    const deployable: Condition[] = [];
    await fc.assert(
      fc.asyncProperty(condition, async (one) => {
        const about = JSON.stringify(one);
        assertSound(await list(one), about);
        for (const body of [asWidget(one), asFilter(one)]) {
          const refused = await save(at, body);
          if (refused) assertRefused(refused, about);
          else assertSound(await run(at), about);
        }
        assert.equal(await save(at, asFilter({ field: one.field, operator: one.operator })), null, about);
        const { value, valueTo } = one;
        assertSound(await run(at, { filterValues: { f: { value, valueTo } } }), about);
        assertSound(await run(at, { conditions: [one] }), about);
        const validated = await validate(asWidget(one));
        assertSound(validated, about);
        if (validated.body.valid === true && deployable.length < 40) deployable.push(one);
      }),
      { seed, numRuns },
    );
    assert.ok(deployable.length > 0);
    const widgets = deployable.map((one, place) => widget(`w${place}`, own(one)));
    await deployOverHttp(ada, files({ name: 'Deployed shapes', widgets }));
    const [deployed] = (await ada.get(`${AT}?search=Deployed`)).body.records;
    for (const [place, one] of deployable.entries())
      assertSound(
        await ada.post(`${AT}/${deployed.dashboardId}/widgets/w${place}/run`, undefined, { idempotencyKey: null }),
        JSON.stringify(one),
      );
  });
});

/**
 * Random widgets of a dashboard open to all users: each user's results equal a brute-force evaluation of the records
 * that this user can list, and no more. GROUPS_DASHBOARDS sets how many dashboards are tried, GROUPS_SEED
 * replays one run.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { FieldMeta, FieldTypeName, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import type { Row, Value } from '../../service/query/evaluate.ts';
import { type GroupQuery, group, shows } from '../../service/query/groups.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { aField, anObject } from '../../support/snapshots.ts';

const DASHBOARDS = Number(process.env['GROUPS_DASHBOARDS'] ?? 1);
const seed = Number(process.env['GROUPS_SEED'] ?? Date.now() % 1_000_000_000);
const WIDGETS = 12;
/** Pages that are read of a result: some have thousands. */
const PAGES_MAX = 40;
/** ada reads everything; the others see parts of the records, and not every field. */
const CALLERS = ['ada', 'mia', 'sam', 'sue'] as const;
const OBJECTS = ['Opportunity__c', 'Opportunity__c', 'Product', 'Product', 'CreditNote__c', 'Invoice__c'];
const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Pacific/Kiritimati'];
const EXACT = { headers: { accept: 'application/json;IEEE754Compatible=true' } };

interface Described {
  readonly meta: ObjectMeta;
  readonly dimensions: readonly {
    field: string;
    granularities: readonly string[];
    filterOperators: readonly string[];
  }[];
  readonly measures: readonly { field: string; aggregations: readonly string[] }[];
  readonly readable: ReadonlySet<string>;
}

interface Question extends GroupQuery {
  objectApiName: string;
  filters?: { logic: 'and' | 'or'; conditions: { id: string; field: string; operator: string; value?: unknown }[] };
  limit: number;
}

type Generate = fc.GeneratorValue;
const pick = <T>(g: Generate, list: readonly T[]): T => g(() => fc.constantFrom(...list));

describe(`widgets against the records that their caller can list (GROUPS_SEED=${seed})`, function () {
  this.timeout(600_000);
  let platform: TestPlatform;
  const as = new Map<string, Api>();
  before(async () => {
    platform = await startPlatform();
    for (const who of CALLERS) as.set(who, api(platform.baseUrl, await tokenFor(platform.baseUrl, who)));
  });
  after(() => platform?.stop());

  const described = new Map<string, Promise<Described | null>>();
  /** A user's description of an object; null: hidden. */
  function describeFor(who: string, objectApiName: string): Promise<Described | null> {
    const key = `${who} ${objectApiName}`;
    let found = described.get(key);
    if (!found) described.set(key, (found = readDescription(as.get(who)!, objectApiName)));
    return found;
  }

  it('show the same groups and measures, and nothing that the list hides', async () => {
    const seen = { shown: 0, refused: 0, noted: 0, rows: 0 };
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (g) => {
        const questions = await hiddenQuestions(g);
        while (questions.length < WIDGETS) questions.push(await randomQuestion(g));
        const dashboardId = await published(questions);
        for (const [at, question] of questions.entries())
          for (const who of CALLERS) {
            const timezone = pick(g, ZONES);
            await check(`/analytics/dashboards/${dashboardId}/widgets/w${at}/run`, question, who, timezone, seen);
          }
      }),
      { seed, numRuns: DASHBOARDS, endOnFailure: true },
    );
    // Users who see everything alike would prove nothing.
    assert.ok(seen.shown > WIDGETS && seen.rows > WIDGETS, JSON.stringify(seen));
    assert.ok(seen.refused > 0 && seen.noted > 0, JSON.stringify(seen));
  });

  const lists = new Map<string, Promise<Row[] | string>>();
  /** The records that a user can list, by this filter; the code when the list is refused. */
  function listed(who: string, question: Question, meta: ObjectMeta): Promise<Row[] | string> {
    const key = JSON.stringify([who, question.objectApiName, question.filters]);
    let found = lists.get(key);
    if (!found) lists.set(key, (found = readList(who, question, meta)));
    return found;
  }

  async function readList(
    who: string,
    { objectApiName, filters }: Question,
    meta: ObjectMeta,
  ): Promise<Row[] | string> {
    const rows: Row[] = [];
    for (let cursor: string | null = null; ; ) {
      const body: object = { take: 200, ...(filters ? { filters } : {}), ...(cursor ? { cursor } : {}) };
      const page: Answer = await as.get(who)!.post(`/data/${objectApiName}/query`, body, EXACT);
      if (page.status !== 200) return page.body.code;
      for (const record of page.body.records) rows.push(rowOf(record, meta));
      cursor = page.body.nextCursor;
      if (cursor === null) return rows;
    }
  }

  async function check(
    path: string,
    question: Question,
    who: string,
    timezone: string,
    seen: { shown: number; refused: number; noted: number; rows: number },
  ): Promise<void> {
    const about = `${who} ${timezone} ${JSON.stringify(question)}`;
    const all = (await describeFor('ada', question.objectApiName))!;
    const own = await describeFor(who, question.objectApiName);
    const run = (more: object) => as.get(who)!.post(path, { maxAgeSeconds: 0, timezone, ...more }, EXACT);
    const first = await run({});
    const records = own ? await listed(who, question, all.meta) : 'OBJECT_NOT_FOUND';
    const isGrouped = question.dimensions.every(({ field }) => own?.readable.has(field));
    if (typeof records === 'string' || !isGrouped) {
      assert.deepEqual([first.status, first.body.code], [422, 'WIDGET_QUERY_INVALID'], `${first.text} ${about}`);
      seen.refused++;
      return;
    }
    assert.equal(first.status, 200, `${first.text} ${about}`);
    const expected = group(question, all.meta, records, { timezone, readable: (name) => own!.readable.has(name) });
    const rows: unknown[][] = [];
    let isWhole = false;
    let page = first;
    for (let pages = 1; ; pages++, page = await run({ cursor: page.body.nextCursor })) {
      assert.equal(page.status, 200, page.text);
      const { columns, rows: some, totals } = exactly(page.text);
      assert.deepEqual(
        columns.map(({ key }) => key),
        expected.keys,
        about,
      );
      assert.deepEqual(
        [page.body.rowCount, page.body.truncated],
        [expected.rows.length, page.body.nextCursor !== null],
        about,
      );
      rows.push(...some);
      for (const [at, cell] of expected.totals.entries())
        assert.ok(shows(totals[question.measures[at]!.key], cell), `total ${at}: ${page.text} ${about}`);
      isWhole = page.body.nextCursor === null;
      if (isWhole || pages === PAGES_MAX) break;
    }
    assert.equal(rows.length, isWhole ? expected.rows.length : PAGES_MAX * question.limit, about);
    for (const [at, cells] of expected.rows.slice(0, rows.length).entries())
      assert.ok(
        cells.every((cell, column) => shows(rows[at]![column], cell)),
        `row ${at}: ${JSON.stringify(rows[at])} ${about}`,
      );
    const hidden = new Set(
      question.measures.flatMap(({ field }) => (field && !own!.readable.has(field) ? [field] : [])),
    );
    const noted: { code: string; field: string | null }[] = first.body.accessNotes;
    assert.deepEqual(
      new Set(noted.flatMap(({ code, field }) => (code === 'FIELD_HIDDEN' ? [field] : []))),
      hidden,
      about,
    );
    if (who === 'ada') assert.ok(!noted.some(({ code }) => code === 'ROWS_RESTRICTED'));
    seen.shown++;
    seen.rows += rows.length;
    if (hidden.size > 0) seen.noted++;
  }

  async function published(questions: readonly Question[]): Promise<string> {
    const ada = as.get('ada')!;
    const widgets = questions.map((query, at) => ({
      widgetKey: `w${at}`,
      title: `Widget ${at}`,
      type: 'table',
      layout: { x: 0, y: at, w: 12, h: 1 },
      query,
    }));
    const made = await ada.post('/analytics/dashboards', { name: 'Random', visibility: 'public', widgets });
    assert.equal(made.status, 201, made.text);
    const { dashboardId, revision } = made.body;
    const done = await ada.post(`/analytics/dashboards/${dashboardId}/publish`, { expectedRevision: revision });
    assert.equal(done.status, 201, done.text);
    return dashboardId;
  }

  /** Of fields that ada reads and sam does not. */
  async function hiddenQuestions(g: Generate): Promise<Question[]> {
    const hidden: { objectApiName: string; field: string; aggregations: readonly string[] }[] = [];
    for (const objectApiName of new Set(OBJECTS)) {
      const own = await describeFor('sam', objectApiName);
      for (const { field, aggregations } of (await describeFor('ada', objectApiName))!.measures)
        if (own && !own.readable.has(field)) hidden.push({ objectApiName, field, aggregations });
    }
    assert.ok(hidden.length > 0, 'sam does not read everything');
    const { objectApiName, field, aggregations } = pick(g, hidden);
    const asked: Question = {
      objectApiName,
      dimensions: [],
      measures: [
        { key: 'count', aggregation: 'count' },
        { key: 'hidden', aggregation: pick(g, aggregations), field },
      ],
      sort: [{ id: 'hidden', desc: true }],
      limit: 10,
    };
    const filters = { logic: 'and' as const, conditions: [{ id: 'c', field, operator: 'is_not_blank' }] };
    return [asked, { ...asked, filters, measures: asked.measures.slice(0, 1), sort: [] }];
  }

  /** Queries that ada could send. */
  async function randomQuestion(g: Generate): Promise<Question> {
    const objectApiName = pick(g, OBJECTS);
    const { meta, dimensions: groupable, measures: measurable } = (await describeFor('ada', objectApiName))!;
    const dimensions = g(() => fc.shuffledSubarray([...groupable], { maxLength: 2 })).map(({ field, granularities }) =>
      granularities.length > 0 && g(fc.nat, { max: 4 }) > 0
        ? { field, granularity: pick(g, granularities) }
        : { field },
    );
    const measures = Array.from({ length: g(fc.integer, { min: 1, max: 4 }) }, (_, at) => {
      if (g(fc.nat, { max: 3 }) === 0) return { key: `m${at}`, aggregation: 'count' };
      const { field, aggregations } = pick(g, measurable);
      return { key: `m${at}`, aggregation: pick(g, aggregations), field };
    });
    const sortable = [
      ...dimensions.map(({ field, granularity }) => (granularity ? `${field}_${granularity}` : field)),
      ...measures
        .filter(({ aggregation, field }) => aggregation !== 'avg' || meta.fields[field!]?.fieldType !== 'duration')
        .map(({ key }) => key),
    ];
    const sort = g(() => fc.shuffledSubarray(sortable, { maxLength: Math.min(2, sortable.length) })).map((id) => ({
      id,
      desc: g(fc.boolean),
    }));
    const question: Question = { objectApiName, dimensions, measures, sort, limit: pick(g, [3, 50, 2_000]) };
    if (g(fc.boolean)) return question;
    // Stored values, so that conditions match.
    const records = (await listed('ada', question, meta)) as Row[];
    const conditions = Array.from({ length: g(fc.integer, { min: 1, max: 3 }) }, (_, at) => {
      const { field, filterOperators } = pick(g, groupable);
      const operator = pick(
        g,
        filterOperators.filter((name) => ['eq', 'neq', 'gt', 'lte', 'is_blank', 'is_not_blank'].includes(name)),
      );
      const found = records.map((row) => row[field] ?? null).filter((value) => value !== null);
      if (operator.endsWith('_blank') || found.length === 0) return { id: `c${at}`, field, operator: 'is_not_blank' };
      const value = pick(g, found);
      const text = meta.fields[field]!.fieldType === 'dateTime' ? new Date(value as number).toISOString() : value;
      return { id: `c${at}`, field, operator, value: text };
    });
    return { ...question, filters: { logic: pick(g, ['and', 'or']), conditions } };
  }
});

async function readDescription(who: Api, objectApiName: string): Promise<Described | null> {
  const catalog = await who.get(`/analytics/catalog/${objectApiName}`);
  if (catalog.status === 404) return null;
  assert.equal(catalog.status, 200, catalog.text);
  const { fields } = (await who.get(`/objects/${objectApiName}/describe`)).body as {
    fields: {
      apiName: string;
      fieldType: FieldTypeName;
      scale: number | null;
      currencyField: string | null;
      picklistValues: FieldMeta['picklistValues'];
      referenceTo: string[];
    }[];
  };
  const { dimensions, measures } = catalog.body as {
    dimensions: { field: string; fieldType: FieldTypeName; granularities: string[]; filterOperators: string[] }[];
    measures: { field: string; fieldType: FieldTypeName; aggregations: string[] }[];
  };
  // The catalog gives the value type of a formula or rollup.
  const types = new Map([...dimensions, ...measures].map(({ field, fieldType }) => [field, fieldType]));
  const metas = fields.map(({ apiName, fieldType, scale, currencyField, picklistValues }) =>
    aField(apiName, types.get(apiName) ?? fieldType, { scale, currencyField, picklistValues }),
  );
  const meta = anObject(objectApiName, metas);
  return { meta, dimensions, measures, readable: new Set(fields.map(({ apiName }) => apiName)) };
}

/** The values of a record in the form that the evaluation uses. */
const rowOf = (record: Record<string, Value>, { fields }: ObjectMeta): Row =>
  Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name,
      value !== null && fields[name]?.fieldType === 'dateTime' ? Date.parse(String(value)) : value,
    ]),
  );

/** A result with numbers as their original text. */
const exactly = (json: string): { columns: { key: string }[]; rows: unknown[][]; totals: Record<string, unknown> } =>
  JSON.parse(json, (_key, value: unknown, { source }: { source?: string } = {}) =>
    typeof value === 'number' ? source : value,
  );

/** Widgets over HTTP: the answer of a run, its audience and its age. */
import assert from 'node:assert/strict';
import { LIMITS } from '../../../lib/limits.ts';
import { OPERATORS } from '../../../lib/schema/field-types/types.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { signIn } from '../../../scripts/sign-in.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { objectFiles } from '../../support/metadata-tenant.ts';
import { startPlatform } from '../../support/platform.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const refused = (reply: Answer, status: number, code: string): void =>
  assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text);
const pointers = (reply: Answer): string[] => reply.body.errors.map((one: { pointer: string }) => one.pointer);

describe('widgets over HTTP', () => {
  let deals: Deals;
  let ada: Api;
  let sam: Api;
  let sue: Api;
  let eve: Api;

  const QUERY = {
    objectApiName: 'Deal__c',
    dimensions: [{ field: 'Stage__c' }],
    measures: [{ key: 'deals', aggregation: 'count' }],
    sort: [{ id: 'deals', desc: true }],
  };
  const widget = (widgetKey: string, query: object | null, more: object = {}) => ({
    widgetKey,
    title: widgetKey,
    type: query ? 'bar' : 'text',
    layout: { x: 0, y: 0, w: 6, h: 4 },
    query,
    ...more,
  });

  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ ada, sam, sue, eve } = deals.as);
    for (const Stage__c of ['open', 'open', 'won']) await deals.deal(sam, { Stage__c });
    await deals.deal(sue, { Stage__c: 'lost' });
  });
  after(() => deals?.platform.stop());

  /** A public dashboard of sam; returns the path of its widgets. */
  const dashboard = async (widgets: object[], more: object = {}): Promise<string> => {
    const made = await sam.post('/analytics/dashboards', { name: 'Deals', visibility: 'public', widgets, ...more });
    assert.equal(made.status, 201, made.text);
    const at = `/analytics/dashboards/${made.body.dashboardId}`;
    const published = await sam.post(`${at}/publish`, { expectedRevision: 1 });
    assert.equal(published.status, 201, published.text);
    return at;
  };
  const run = (at: string, key: string, body?: object, who = sam): Promise<Answer> =>
    who.post(`${at}/widgets/${key}/run`, body, { idempotencyKey: null });
  const rows = async (at: string, body: object, who = sam): Promise<unknown[]> => {
    const reply = await run(at, 'stages', { maxAgeSeconds: 0, ...body }, who);
    assert.equal(reply.status, 200, reply.text);
    return reply.body.rows;
  };

  it('answer groups of the records that the caller can see', async () => {
    const at = await dashboard([widget('stages', QUERY)]);
    const reply = await run(at, 'stages');
    assert.equal(reply.status, 200, reply.text);
    const { computedAt, dataAsOf, durationMs, ...rest } = reply.body;
    assert.deepEqual(rest, {
      dashboardId: at.split('/').at(-1),
      widgetKey: 'stages',
      version: 'published',
      revision: 2,
      columns: [
        { key: 'Stage__c', label: 'Stage__c', role: 'dimension', fieldType: 'text', currency: null },
        { key: 'deals', label: 'Count', role: 'measure', fieldType: 'integer', currency: null },
      ],
      rows: [
        ['open', 2],
        ['won', 1],
      ],
      totals: { deals: 3 },
      rowCount: 2,
      truncated: false,
      nextCursor: null,
      accessNotes: [
        { code: 'ROWS_RESTRICTED', field: null, message: 'Only records that you have access to are counted.' },
      ],
      labels: {},
      fromCache: false,
    });
    assert.ok(durationMs > 0 && dataAsOf <= computedAt);
    assert.deepEqual((await run(at, 'stages', {}, sue)).body.rows, [['lost', 1]]);
    assert.equal((await run(at, 'stages', {}, ada)).body.totals.deals, 4);
    refused(await run(at, 'stages', {}, eve), 404, 'DASHBOARD_NOT_FOUND');
  });

  it('cache a result per caller and query, wherever the query is stored, within the accepted age', async () => {
    const at = await dashboard([widget('stages', { ...QUERY, limit: 111 })]);
    const first = (await run(at, 'stages')).body;
    const id = (await deals.deal(sam, { Stage__c: 'won' })).body.id;
    const kept = (await run(at, 'stages')).body;
    assert.deepEqual(
      [kept.fromCache, kept.rows, kept.computedAt, kept.dataAsOf],
      [true, first.rows, first.computedAt, first.dataAsOf],
    );
    assert.equal((await run(at, 'stages', {}, sue)).body.fromCache, false);
    assert.equal((await run(at, 'stages', { limit: 7 })).body.fromCache, false);
    const fresh = (await run(at, 'stages', { maxAgeSeconds: 0 })).body;
    assert.deepEqual([fresh.fromCache, fresh.totals.deals], [false, 4]);
    const again = (await run(at, 'stages', { maxAgeSeconds: 3_600 })).body;
    assert.deepEqual([again.fromCache, again.totals.deals], [true, 4], 'what was computed last');
    await sam.delete(`/data/Deal__c/${id}`, { etag: (await sam.get(`/data/Deal__c/${id}`)).headers.get('etag')! });
  });

  it('drop cached results when the permissions of the user change', async () => {
    const at = await dashboard([widget('stages', QUERY)]);
    assert.equal((await run(at, 'stages', {}, sue)).status, 200);
    const { permissionSetApiNames } = (await ada.get(`/data/User/${deals.ids.sue}?fields=permissionSetApiNames`)).body;
    await deals.setUser('sue', {
      permissionSetApiNames: permissionSetApiNames.filter((name: string) => !name.startsWith('Deals')),
    });
    refused(await run(at, 'stages', {}, sue), 422, 'WIDGET_QUERY_INVALID');
    await deals.setUser('sue', { permissionSetApiNames });
    assert.deepEqual((await run(at, 'stages', {}, sue)).body.rows, [['lost', 1]]);
  });

  it("accept the dashboard's filters, values for them, and further conditions", async () => {
    const filter = (filterKey: string, more: object) => ({
      filterKey,
      label: filterKey,
      objectApiName: 'Deal__c',
      field: 'Stage__c',
      operator: 'eq',
      ...more,
    });
    const at = await dashboard(
      [widget('stages', QUERY), widget('accounts', { ...QUERY, objectApiName: 'Account', dimensions: [], sort: [] })],
      {
        filters: [
          filter('stage', { value: 'open' }),
          filter('other', {}),
          filter('never', { operator: 'neq', value: 'lost', locked: true }),
        ],
      },
    );
    assert.deepEqual(await rows(at, {}), [['open', 2]]);
    assert.deepEqual(await rows(at, { filterValues: { stage: { value: 'won' } } }), [['won', 1]]);
    assert.deepEqual(await rows(at, { filterValues: { other: { value: 'won' } } }), []);
    const condition = { id: 'mine', field: 'Stage__c', operator: 'starts_with', value: 'w' };
    assert.deepEqual(await rows(at, { conditions: [condition] }), []);
    assert.deepEqual(await rows(at, { conditions: [condition], filterValues: { stage: { value: 'won' } } }), [
      ['won', 1],
    ]);
    assert.equal((await run(at, 'accounts')).status, 200, 'filters on other objects do not matter');
    assert.deepEqual(await rows(at, {}, sue), []);
    const wrong = await run(at, 'stages', { filterValues: { never: { value: 'won' }, nothing: { value: 1 } } });
    refused(wrong, 400, 'PARAMETER_INVALID');
    assert.deepEqual(pointers(wrong), ['/filterValues/never', '/filterValues/nothing']);
  });

  it('accept conditions of several authors, whose labels may collide', async () => {
    const related = (id: string) => ({
      operator: 'in_related',
      field: 'id',
      value: {
        objectApiName: 'DealLine__c',
        field: 'Deal__c',
        conditions: [{ id, field: 'name', operator: 'eq', value: 'x' }],
      },
    });
    const filter = (filterKey: string, more: object) => ({
      filterKey,
      label: filterKey,
      objectApiName: 'Deal__c',
      ...more,
    });
    const at = await dashboard([widget('stages', QUERY)], {
      filters: [filter('one', related('a')), filter('two', related('a'))],
    });
    const own = { id: 'c1', field: 'Stage__c', operator: 'eq', value: 'open' };
    assert.deepEqual(await rows(at, { conditions: [{ id: 'b', ...related('c0') }, own] }), []);
    assert.deepEqual(await rows(at, { conditions: [{ id: 'one', ...related('a') }, own] }), []);
    for (const [conditions, pointer] of [
      [[own, own], '/conditions/1/id'],
      [[own, { id: 'b', ...related('c1') }], '/conditions/1/value/conditions/0/id'],
    ] as const) {
      const twice = await run(at, 'stages', { conditions });
      refused(twice, 422, 'WIDGET_QUERY_INVALID');
      assert.deepEqual(pointers(twice), [pointer]);
      assert.deepEqual(twice.body.errors[0].params.conditionId, 'c1');
    }
  });

  it('cannot be saved with more filter conditions than a query may have', async () => {
    const conditions = [{ id: 'a', field: 'name', operator: 'eq', value: 'x' }];
    const value = { objectApiName: 'DealLine__c', field: 'Deal__c', conditions };
    const filters = Array.from({ length: 11 }, (_, place) => ({
      filterKey: `f${place}`,
      label: 'Lines',
      objectApiName: 'Deal__c',
      field: 'id',
      operator: 'in_related',
      value,
    }));
    const reply = await sam.post('/analytics/dashboards', { name: 'Many', widgets: [widget('w', QUERY)], filters });
    refused(reply, 422, 'DASHBOARD_INVALID');
    assert.deepEqual(pointers(reply), ['/filters/10']);
    const at = await dashboard([widget('stages', QUERY)], { filters: filters.slice(0, 10) });
    assert.deepEqual(await rows(at, {}), []);
    const more = { value: { ...value, conditions: [...conditions, { ...conditions[0], id: 'b' }] } };
    const wider = await run(at, 'stages', { filterValues: { f9: more } });
    refused(wider, 422, 'WIDGET_QUERY_INVALID');
    assert.deepEqual(pointers(wider), ['/filterValues/f9']);
  });

  it('answer in pages, and report further ones', async () => {
    const at = await dashboard([widget('stages', { ...QUERY, limit: 1 })]);
    const first = (await run(at, 'stages')).body;
    assert.deepEqual([first.rows, first.rowCount, first.truncated], [[['open', 2]], 2, true]);
    const next = (await run(at, 'stages', { cursor: first.nextCursor })).body;
    assert.deepEqual([next.rows, next.truncated, next.nextCursor], [[['won', 1]], false, null]);
    const all = (await run(at, 'stages', { limit: LIMITS.widget_rows_max })).body;
    assert.equal(all.rows.length, 2);
    refused(await run(at, 'stages', { cursor: 'x' }), 400, 'CURSOR_INVALID');
    refused(await run(at, 'stages', { cursor: first.nextCursor, limit: 5 }), 400, 'CURSOR_QUERY_MISMATCH');
    refused(await run(at, 'stages', { cursor: first.nextCursor }, sue), 400, 'CURSOR_INVALID');
  });

  it('are cached per client, whose cursor another client of the same user can neither get nor use', async () => {
    const scope = 'analytics:read analytics:run';
    await deals.deploy({
      'externalClients/Second.yaml':
        'type: ExternalClient\napiName: Second\nname: Second\nredirectUris: [http://127.0.0.1:8976/callback]\n' +
        `scopes: [${scope.replace(' ', ', ')}]\ngrantTypes: [authorization_code]\n`,
    });
    const { baseUrl } = deals.platform;
    const signed = { baseUrl, user: 'sam@demo.example', password: 'demo-password', clientId: 'demo-Second', scope };
    const elsewhere = api(baseUrl, (await signIn(signed)).access_token);
    const at = await dashboard([widget('stages', { ...QUERY, limit: 1 })]);
    const [first, again] = [(await run(at, 'stages')).body, (await run(at, 'stages')).body];
    assert.deepEqual([first.fromCache, again.fromCache, again.nextCursor], [false, true, first.nextCursor]);
    const other = (await run(at, 'stages', {}, elsewhere)).body;
    assert.deepEqual([other.rows, other.fromCache], [first.rows, false]);
    assert.equal((await run(at, 'stages', { cursor: other.nextCursor }, elsewhere)).status, 200);
    refused(await run(at, 'stages', { cursor: first.nextCursor }, elsewhere), 400, 'CURSOR_INVALID');
    // A result that the first client has computed by then does not answer the other one either.
    assert.equal((await run(at, 'stages', { cursor: first.nextCursor })).status, 200);
    refused(await run(at, 'stages', { cursor: first.nextCursor }, elsewhere), 400, 'CURSOR_INVALID');
    refused(await run(at, 'stages', { cursor: other.nextCursor }), 400, 'CURSOR_INVALID');
  });

  it('rank amounts within their currency, and choices in picklist order', async () => {
    const choices = (...values: string[]) =>
      `picklist: {values: [${values.map((value) => `{value: ${value}}`).join(', ')}]}`;
    await deals.deploy(
      objectFiles('Bid__c', {
        Size__c: `fieldType: picklist\n${choices('small', 'medium', 'large')}`,
        Currency__c: `fieldType: picklist\n${choices('EUR', 'USD')}`,
        Amount__c: 'fieldType: currency\ncurrencyField: Currency__c',
      }),
    );
    for (const [Size__c, Currency__c, Amount__c] of [
      ['small', 'USD', 900],
      ['large', 'EUR', 20],
      ['medium', 'EUR', 500],
      ['medium', 'USD', 30],
      [null, 'EUR', 1],
    ]) {
      const made = await ada.post('/data/Bid__c', { name: 'Bid', Size__c, Currency__c, Amount__c });
      assert.equal(made.status, 201, made.text);
    }
    const query = {
      objectApiName: 'Bid__c',
      dimensions: [{ field: 'Size__c' }],
      measures: [{ key: 'amount', aggregation: 'sum', field: 'Amount__c' }],
    };
    const ask = async (sort: object[]): Promise<unknown[]> => {
      const made = await ada.post('/analytics/dashboards', {
        name: 'Bids',
        widgets: [widget('bids', { ...query, sort, limit: 2 })],
      });
      const found: unknown[] = [];
      for (let cursor: string | null = null; ; ) {
        const page = await run(`/analytics/dashboards/${made.body.dashboardId}`, 'bids', cursor ? { cursor } : {}, ada);
        assert.equal(page.status, 200, page.text);
        found.push(...page.body.rows);
        cursor = page.body.nextCursor;
        if (cursor === null) return found;
      }
    };
    assert.deepEqual(await ask([{ id: 'amount', desc: true }]), [
      ['medium', 'EUR', 500],
      ['large', 'EUR', 20],
      [null, 'EUR', 1],
      ['small', 'USD', 900],
      ['medium', 'USD', 30],
    ]);
    const bySize = [
      ['small', 'USD', 900],
      ['medium', 'EUR', 500],
      ['medium', 'USD', 30],
      ['large', 'EUR', 20],
      [null, 'EUR', 1],
    ];
    assert.deepEqual(await ask([{ id: 'Size__c' }]), bySize);
    assert.deepEqual(await ask([]), bySize);
    const downwards = await ask([{ id: 'Size__c', desc: true }, { id: 'amount' }]);
    assert.deepEqual(downwards, [bySize[4], bySize[3], bySize[1], bySize[2], bySize[0]]);
  });

  it('point to the invalid part of a query', async () => {
    const at = await dashboard([widget('note', null), widget('stages', QUERY), widget('empty', null, { type: 'bar' })]);
    for (const [key, pointer] of [
      ['note', '/widgets/0/query'],
      ['empty', '/widgets/2/query'],
    ] as const) {
      const reply = await run(at, key);
      refused(reply, 422, 'WIDGET_QUERY_INVALID');
      assert.deepEqual(pointers(reply), [pointer]);
    }
    refused(await run(at, 'nothing'), 404, 'WIDGET_NOT_FOUND');
    refused(await run(at, 'stages', { version: 'draft' }, sue), 404, 'DASHBOARD_VERSION_NOT_FOUND');
    refused(await run(at.replace(/[^/]+$/, uuidv7()), 'stages'), 404, 'DASHBOARD_NOT_FOUND');
    const conditions = [
      { field: 'Stage__c', operator: 'eq', value: 'open' },
      { id: 'mine', field: 'Secret__c', operator: 'eq', value: 'x' },
    ];
    const hidden = await run(at, 'stages', { conditions });
    refused(hidden, 422, 'WIDGET_QUERY_INVALID');
    assert.deepEqual(pointers(hidden), ['/conditions/1/field']);
    const absent = await run(at, 'stages', { conditions: [conditions[0], { ...conditions[1], field: 'Absent__c' }] });
    assert.equal(
      absent.text.replaceAll('Absent__c', 'Secret__c').replaceAll(/req_\w+/g, ''),
      hidden.text.replaceAll(/req_\w+/g, ''),
    );
    refused(await run(at, 'stages', { timezone: 'Mars' }), 400, 'PARAMETER_INVALID');
    for (const body of [
      { limit: 0 },
      { limit: LIMITS.widget_rows_max + 1 },
      { maxAgeSeconds: 3_601 },
      { conditions: Array(11).fill(conditions[0]) },
    ])
      refused(await run(at, 'stages', body), 400, 'PARAMETER_INVALID');
    refused(await run(at, 'stages', { colour: 'red' }), 400, 'BODY_PROPERTY_UNKNOWN');
    const unknown = await run(at, 'stages', { conditions: [{ ...conditions[0], operator: 'like' }] });
    refused(unknown, 400, 'PARAMETER_INVALID');
    assert.deepEqual(
      unknown.body.errors.map((one: { pointer: string; message: string }) => [one.pointer, one.message]),
      [['/conditions/0/operator', `/conditions/0/operator must be one of ${OPERATORS.join(', ')}.`]],
    );
  });

  it('report content that is hidden from the caller, or deleted', async () => {
    const at = await dashboard([widget('secrets', { ...QUERY, dimensions: [{ field: 'Stage__c' }], sort: [] })]);
    const grouped = await ada.patch(at, {
      widgets: [
        widget('grouped', { ...QUERY, dimensions: [{ field: 'Stage__c' }, { field: 'Secret__c' }] }),
        widget('measured', {
          ...QUERY,
          measures: [{ key: 'deals', aggregation: 'countDistinct', field: 'Secret__c' }],
          sort: [],
        }),
      ],
      expectedRevision: 2,
    });
    assert.equal(grouped.status, 200, grouped.text);
    await ada.post(`${at}/publish`, { expectedRevision: 3 });
    const hidden = await run(at, 'grouped');
    refused(hidden, 422, 'WIDGET_QUERY_INVALID');
    assert.deepEqual(pointers(hidden), ['/widgets/0/query/dimensions/1/field']);
    const measured = await run(at, 'measured');
    assert.equal(measured.status, 200, measured.text);
    assert.deepEqual(
      measured.body.accessNotes.map((one: { code: string; field: string }) => [one.code, one.field])[0],
      ['FIELD_HIDDEN', 'Secret__c'],
    );
    assert.equal((await run(at, 'grouped', {}, ada)).status, 200);
  });

  it('cannot be saved with a query that their author may not run, unless it was already there', async () => {
    const queries = [
      { ...QUERY, objectApiName: 'Nothing__c' },
      { ...QUERY, dimensions: [{ field: 'Secret__c' }, { field: 'createdAt', granularity: 'month' }] },
      { ...QUERY, dimensions: [{ field: 'Stage__c', granularity: 'day' }] },
      {
        ...QUERY,
        measures: [
          { key: 'deals', aggregation: 'sum', field: 'Stage__c' },
          { key: 'secrets', aggregation: 'count', field: 'Secret__c' },
        ],
      },
    ];
    const widgets = queries.map((query, at) => widget(`w${at}`, query));
    const reply = await sam.post('/analytics/dashboards', { name: 'Wrong', widgets });
    refused(reply, 422, 'WIDGET_QUERY_INVALID');
    assert.deepEqual(pointers(reply), [
      '/widgets/0/query/objectApiName',
      '/widgets/1/query/dimensions/0/field',
      '/widgets/2/query/dimensions/0/granularity',
      '/widgets/3/query/measures/0/aggregation',
      '/widgets/3/query/measures/1/field',
    ]);
    const share = { principalType: 'user', principalId: deals.ids.sam, access: 'edit' };
    const secret = [widget('secret', { ...QUERY, dimensions: [{ field: 'Secret__c' }] })];
    const made = await ada.post('/analytics/dashboards', {
      name: 'Ada',
      visibility: 'shared',
      sharedWith: [share],
      widgets: secret,
    });
    assert.equal(made.status, 201, made.text);
    const at = `/analytics/dashboards/${made.body.dashboardId}`;
    const kept = [...secret, widget('stages', QUERY)];
    assert.equal((await sam.patch(at, { widgets: kept, expectedRevision: 1 })).status, 200);
    const changed = [widget('secret', { ...QUERY, dimensions: [{ field: 'Secret__c' }], limit: 5 })];
    refused(await sam.patch(at, { widgets: changed, expectedRevision: 2 }), 422, 'WIDGET_QUERY_INVALID');
  });

  it('of a whole dashboard are run at once', async () => {
    const platform = await startPlatform({
      database: deals.platform.database,
      env: { CONCURRENCY: '50', CONCURRENCY_COSTLY: '8' },
    });
    try {
      const there = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
      const at = await dashboard(
        Array.from({ length: LIMITS.dashboard_widgets_max }, (_, place) =>
          widget(`w${place}`, { ...QUERY, limit: 300 + place }),
        ),
      );
      const runs = await Promise.all(
        Array.from({ length: LIMITS.dashboard_widgets_max }, (_, place) => run(at, `w${place}`, {}, there)),
      );
      assert.deepEqual(new Set(runs.map(({ status }) => status)), new Set([200]));
    } finally {
      await platform.stop();
    }
  });

  it('list the possible queries of an object', async () => {
    const catalog = await sam.get('/analytics/catalog/Deal__c');
    assert.equal(catalog.status, 200, catalog.text);
    const fields = catalog.body.dimensions.map((one: { field: string }) => one.field);
    assert.ok(fields.includes('Stage__c') && !fields.includes('Secret__c'), fields.join());
    assert.deepEqual(catalog.body.limits, { maxDimensions: 3, maxMeasures: 10, maxRows: 2_000 });
    const invoices = await sam.get('/analytics/catalog/Invoice__c');
    const status = invoices.body.dimensions.find(({ field }: { field: string }) => field === 'Status__c');
    assert.deepEqual(status.choices[0], { value: 'draft', label: 'Draft' });
    refused(await sam.get('/analytics/catalog/Nothing__c'), 404, 'OBJECT_NOT_FOUND');
    const reader = await deals.sign('sam', 'analytics:read');
    assert.equal((await reader.get('/analytics/catalog/Deal__c')).status, 200);
    const at = await dashboard([widget('stages', QUERY)]);
    refused(await run(at, 'stages', {}, reader), 403, 'SCOPE_INSUFFICIENT');
  });
});

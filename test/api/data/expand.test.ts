/** References expanded over HTTP: the same answer as reading the other record, in one request. */
import assert from 'node:assert/strict';
import type { Answer, Api } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from './deals.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

const FILES: Record<string, string> = {
  ...fieldFile('Deal__c', 'Other__c', 'fieldType: reference\nreferenceTo: [Deal__c]'),
  ...fieldFile('Deal__c', 'Contact__c', 'fieldType: reference\nreferenceTo: [Contact]'),
  ...fieldFile('Deal__c', 'Price__c', 'fieldType: currency\nprecision: 18\nscale: 2'),
  ...fieldFile(
    'Deal__c',
    'Double__c',
    'fieldType: formula\nformula:\n  expression: record.Price__c * 2\n  resultType: currency',
  ),
  'permissionSets/DealRefs.yaml': [
    'type: PermissionSet',
    'apiName: DealRefs',
    'label: Refs',
    'fields:',
    ...['Other__c', 'Contact__c', 'Price__c'].flatMap((name) => [
      `  Deal__c.${name}:`,
      '    read: true',
      '    edit: true',
    ]),
    '  Deal__c.Double__c:',
    '    read: true',
    '    edit: false',
    '',
  ].join('\n'),
  'agentPolicies/Users.yaml': [
    'type: AgentPolicy',
    'apiName: Users',
    'appliesTo:',
    '  clients:',
    '    - "*"',
    'rules:',
    '  - operationIds:',
    '      - data.*',
    '      - analytics.*',
    '      - events.*',
    '    objects:',
    '      - Contact',
    '    decision: deny',
    '',
  ].join('\n'),
};

describe('expanded references over HTTP', function () {
  this.timeout(60_000);
  let deals: Deals;
  let ada: Api;
  let sam: Api;
  let mia: Api;
  let eve: Api;
  /** Sam's deals: one of his own, one that Ada keeps to herself, and deals that refer to them. */
  const ids: Record<string, string> = {};

  before(async function () {
    this.timeout(180_000);
    // Of so few units a day none comes back between two requests.
    deals = await startDeals({ env: { RATE_DAILY_UNITS: '2000' } });
    ({ ada, sam, mia, eve } = deals.as);
    await deals.deploy(FILES);
    for (const name of ['mia', 'sam'] as const)
      await deals.setUser(name, { permissionSetApiNames: ['Deals', 'DealRefs'] });
    const make = async (name: string, owner: Api, more: object = {}): Promise<void> => {
      ids[name] = (await deals.deal(owner, { name, ...more })).body.id;
    };
    await make('open', sam, { Price__c: 12.5 });
    await make('secret', ada, { Price__c: 99, Secret__c: 'x' });
    await make('to open', sam, { Other__c: ids['open'] });
    await make('to secret', ada, { Other__c: ids['secret'], ownerId: deals.ids.sam });
    await make('to nothing', sam);
  });
  after(() => deals?.platform.stop());

  const good = ({ status, body, text }: Answer): Anything => {
    assert.equal(status, 200, text);
    return body;
  };
  const refused = ({ status, body, text }: Answer, pointer: string): Anything => {
    assert.deepEqual([status, body.code, body.errors[0].pointer], [400, 'PARAMETER_INVALID', pointer], text);
    return body;
  };
  const query = (who: Api, body: object, options = {}): Promise<Answer> =>
    who.post('/data/Deal__c/query', { sort: [{ id: 'name' }], ...body }, options);
  const byName = (body: Anything): Record<string, Anything> =>
    Object.fromEntries(body.records.map(({ name, _expanded }: Anything) => [name, _expanded]));

  it('are null when empty, or when the caller cannot see the record', async () => {
    const expand = 'Other__c(name,Price__c,Double__c),ownerId(displayName)';
    const open = { id: ids['open'], name: 'open', Price__c: 12.5, Double__c: 25 };
    const owner = { id: deals.ids.sam, displayName: (await sam.get('/identity')).body.user.displayName };
    const expected = {
      open: { Other__c: null, ownerId: owner },
      'to nothing': { Other__c: null, ownerId: owner },
      'to open': { Other__c: open, ownerId: owner },
      'to secret': { Other__c: null, ownerId: owner },
    };
    assert.deepEqual(byName(good(await sam.get(`/data/Deal__c?expand=${expand}`))), expected);
    assert.deepEqual(byName(good(await query(sam, { expand }))), expected);
    const asObject = { Other__c: ['name', 'Price__c', 'Double__c'], ownerId: ['displayName'] };
    const { records } = good(await query(sam, { fields: ['name'], expand: asObject }));
    assert.deepEqual(byName({ records }), expected);
    assert.deepEqual(Object.keys(records[0]), ['id', 'name', '_expanded']);
    const seen = byName(good(await query(ada, { expand: asObject })));
    assert.equal(seen['to secret'].Other__c.id, ids['secret']);
    assert.deepEqual(good(await eve.get('/data/Account?take=1')).records.length, 1);
  });

  it('equal the answer of reading the other record, also with decimals as text', async () => {
    const options = { headers: { accept: 'application/json;IEEE754Compatible=true' } };
    const record = good(await sam.get(`/data/Deal__c/${ids['to open']}?expand=Other__c(Price__c,Double__c)`, options));
    const target = good(await sam.get(`/data/Deal__c/${ids['open']}?fields=id,Price__c,Double__c`, options));
    assert.deepEqual(record._expanded, { Other__c: target });
    assert.equal(target.Price__c, '12.50');
  });

  it('leave the ETag unchanged, and are never answered with a 304', async () => {
    const path = `/data/Deal__c/${ids['to open']}`;
    const etag = (await sam.get(path)).headers.get('etag')!;
    const options = { headers: { 'if-none-match': etag } };
    assert.equal((await sam.get(path, options)).status, 304);
    const renamed = await sam.patch(`/data/Deal__c/${ids['open']}`, { name: 'opened' }, { etag: '"1"' });
    assert.equal(renamed.status, 200, renamed.text);
    const full = await sam.get(`${path}?expand=Other__c(name)`, options);
    assert.deepEqual([full.status, full.headers.get('etag'), full.body._expanded.Other__c.name], [200, etag, 'opened']);
    const back = await sam.patch(`/data/Deal__c/${ids['open']}`, { name: 'open' }, { etag: '"2"' });
    assert.equal(back.status, 200, back.text);
  });

  it('continue from page to page, and may be omitted or changed in between', async () => {
    const first = good(await query(sam, { take: 2, expand: 'Other__c(id)' }));
    const cursor = first.nextCursor;
    const second = good(await query(sam, { take: 2, cursor, expand: { ownerId: ['displayName'] } }));
    assert.deepEqual(Object.keys(second.records[0]._expanded), ['ownerId']);
    assert.equal('_expanded' in good(await query(sam, { take: 2, cursor })).records[0], false);
  });

  it('are gone when the other record is deleted', async () => {
    const target = await deals.deal(sam, { name: 'gone' });
    const from = await deals.deal(sam, { name: 'from', Other__c: target.body.id });
    const deleted = await sam.delete(`/data/Deal__c/${target.body.id}`, { etag: '"1"' });
    assert.equal(deleted.status, 200, deleted.text);
    const path = `/data/Deal__c/${from.body.id}`;
    assert.deepEqual(good(await sam.get(`${path}?expand=Other__c(name)`))._expanded, { Other__c: null });
    await sam.delete(path, { etag: '"2"' });
  });

  it('are refused with a pointer to the fault, identically for hidden and unknown names', async () => {
    const get = (expand: string): Promise<Answer> => sam.get(`/data/Deal__c?expand=${encodeURIComponent(expand)}`);
    refused(await get('Other__c'), 'query:expand');
    refused(await get('Stage__c(name)'), 'query:expand');
    refused(await sam.get(`/data/Deal__c/${ids['open']}?expand=Other__c(Secret__c)`), 'query:expand');
    refused(await query(sam, { expand: { Other__c: ['id', 'Secret__c'] } }), '/expand/Other__c/1');
    const shape = ({ body }: Answer, name: string): string =>
      JSON.stringify({ ...body, requestId: '' }).replaceAll(name, '');
    assert.equal(
      shape(await get('Other__c(Secret__c)'), 'Secret__c'),
      shape(await get('Other__c(Nothing__c)'), 'Nothing__c'),
    );
    // Sue lacks read access to the references.
    const sue = deals.as.sue;
    const ask = async (name: string): Promise<string> => shape(await sue.get(`/data/Deal__c?expand=${name}(id)`), name);
    assert.equal(await ask('Other__c'), await ask('Nothing__c'));
  });

  const names = ({ records }: Anything): string[] => records.map(({ name }: Anything) => name);

  it('lead filters and order to one level of fields, as far as the caller sees the record', async () => {
    const listed = async (who: Api, body: object): Promise<string[]> => names(good(await query(who, body)));
    const filters = (field: string, operator: string, value?: unknown): object => ({
      filters: { logic: 'and', conditions: [{ id: 'c', field, operator, value }] },
    });
    assert.deepEqual(await listed(sam, { where: { 'Other__c.Price__c': 12.5 } }), ['to open']);
    assert.deepEqual(await listed(sam, { whereIn: { 'Other__c.name': ['open', 'secret'] } }), ['to open']);
    assert.deepEqual(await listed(sam, filters('Other__c.Double__c', 'gte', 25)), ['to open']);
    assert.deepEqual(await listed(ada, { where: { 'Other__c.name': 'secret' } }), ['to secret']);
    for (const hidden of [filters('Other__c.Price__c', 'gt', 50), { where: { 'Other__c.name': 'secret' } }])
      assert.deepEqual(await listed(sam, hidden), []);
    const blank = ['open', 'to nothing', 'to secret'];
    assert.deepEqual(await listed(sam, { where: { 'Other__c.name': null } }), blank);
    assert.deepEqual(await listed(sam, filters('Other__c.name', 'neq', 'open')), blank);
    const sort = (desc: boolean) => [{ id: 'Other__c.name', desc }, { id: 'name' }];
    assert.deepEqual(await listed(sam, { sort: sort(false) }), ['to open', ...blank]);
    assert.deepEqual(await listed(sam, { sort: sort(true) }), [...blank, 'to open']);
    assert.deepEqual(names(good(await sam.get('/data/Deal__c?orderBy=Other__c.name&take=1'))), ['to open']);
    const pages: string[] = [];
    let cursor: string | null = null;
    do {
      const body = good(await query(sam, { sort: sort(true), take: 1, cursor }));
      pages.push(...names(body));
      cursor = body.nextCursor;
    } while (cursor);
    assert.deepEqual(pages, [...blank, 'to open']);
  });

  it('lead filters and order to no field that the caller cannot read', async () => {
    const shape = ({ status, body }: Answer, name: string): string => {
      assert.equal(status, 400);
      return JSON.stringify({ ...body, requestId: '' }).replaceAll(name, '');
    };
    for (const asked of [
      (name: string) => ({ where: { [name]: null } }),
      (name: string) => ({ sort: [{ id: name }] }),
    ]) {
      const answer = async (name: string): Promise<string> => shape(await query(sam, asked(name)), name);
      const unknown = await answer('Nothing__c');
      for (const name of ['Other__c.Secret__c', 'Other__c.Nothing__c', 'Nothing__c.name', 'Other__c.Other__c.name'])
        assert.equal(await answer(name), unknown, name);
      // Sue cannot read the reference.
      const sues = shape(await query(deals.as.sue, asked('Other__c.name')), 'Other__c.name');
      assert.equal(sues, unknown);
    }
    const six = ['Other__c', 'Contact__c', 'ownerId', 'createdById', 'updatedById'].map((one) => [`${one}.id`, null]);
    good(await query(sam, { where: Object.fromEntries(six) }));
  });

  it('cost one additional unit each', async () => {
    const remaining = async (path: string): Promise<number> =>
      Number((await mia.get(path)).headers.get('x-ratelimit-remaining'));
    const before = await remaining('/data/Deal__c?take=1');
    const after = await remaining('/data/Deal__c?take=1&expand=Other__c(id),ownerId(id),createdById(id)');
    assert.ok(before - after >= 3, `${before} then ${after}`);
    const body = { take: 1, expand: { Other__c: ['id'], ownerId: ['id'] } };
    const last = Number((await query(mia, body)).headers.get('x-ratelimit-remaining'));
    assert.ok(after - last >= 2, `${after} then ${last}`);
    const followed = { take: 1, where: { 'Other__c.name': 'x' }, sort: [{ id: 'ownerId.displayName' }] };
    const end = Number((await query(mia, followed)).headers.get('x-ratelimit-remaining'));
    assert.ok(last - end >= 3, `${last} then ${end}`);
  });

  it('count for the budget of a run, and lead an agent to no object that a policy denies', async () => {
    const run = await sam.post('/agent/runs', { agentKey: 'tester', goal: 'Read deals.', budget: { maxCost: 10 } });
    assert.equal(run.status, 201, run.text);
    const { runId } = run.body;
    const options = { headers: { 'x-agent-run-id': runId } };
    good(await sam.get('/data/Deal__c?expand=Other__c(name),ownerId(displayName)', options));
    assert.equal((await sam.get(`/agent/runs/${runId}`)).body.usage.cost, 3);
    for (const denied of [
      await sam.get('/data/Contact', options),
      await sam.get('/data/Deal__c?expand=Other__c(id),Contact__c(name)', options),
      await sam.post('/data/Deal__c/query', { expand: { Contact__c: ['name'] } }, options),
    ])
      assert.deepEqual([denied.status, denied.body.code], [403, 'AGENT_POLICY_DENIED'], denied.text);
    const named = [{ id: 'c', field: 'Contact__c.name', operator: 'eq', value: 'Nora' }];
    for (const asked of [
      { sort: [{ id: 'Contact__c.name' }] },
      { orderBy: 'Contact__c.name' },
      { where: { 'Contact__c.name': 'Nora' } },
      { whereIn: { 'Contact__c.name': ['Nora'] } },
      { filters: { logic: 'and', conditions: named } },
    ]) {
      const denied = await sam.post('/data/Deal__c/query', asked, options);
      assert.deepEqual([denied.status, denied.body.code], [403, 'AGENT_POLICY_DENIED'], denied.text);
      good(await sam.post('/data/Deal__c/query', asked));
      const parameters = new URLSearchParams();
      for (const [name, value] of Object.entries(asked))
        parameters.set(name, typeof value === 'string' ? value : JSON.stringify(value));
      assert.equal((await sam.get(`/data/Deal__c?${parameters}`, options)).body.code, 'AGENT_POLICY_DENIED');
    }
    good(await sam.get('/data/Deal__c?expand=Contact__c(name)'));
    // A name that the caller cannot read is unknown, whatever a policy says about its target.
    assert.equal((await sam.get('/data/Deal__c?expand=Nothing__c(name)', options)).status, 400);
  });

  it('are not open to an agent in a filter or a widget either', async () => {
    const run = await sam.post('/agent/runs', { agentKey: 'tester', goal: 'Read deals.' });
    const options = { headers: { 'x-agent-run-id': run.body.runId } };
    const denied = ({ status, body, text }: Answer): void =>
      assert.deepEqual([status, body.code], [403, 'AGENT_POLICY_DENIED'], text);
    const filters = (objectApiName: string) => ({
      logic: 'and',
      conditions: [
        { id: 'a', field: 'name', operator: 'is_not_blank' },
        { id: 'b', field: 'Contact__c', operator: 'in_related', value: { objectApiName, field: 'id' } },
      ],
    });
    const listed = (objectApiName: string): Promise<Answer> =>
      sam.get(`/data/Deal__c?filters=${encodeURIComponent(JSON.stringify(filters(objectApiName)))}`, options);
    denied(await listed('Contact'));
    denied(await query(sam, { filters: filters('Contact') }, options));
    good(await query(sam, { filters: filters('Contact') }));
    // A name that the caller cannot read is unknown.
    assert.equal((await listed('Nothing__c')).body.code, 'FILTER_VALUE_INVALID');
    const measures = [{ key: 'count', aggregation: 'count' }];
    const widgets = {
      contacts: { objectApiName: 'Contact', measures },
      filtered: { objectApiName: 'Deal__c', measures, filters: filters('Contact') },
      deals: { objectApiName: 'Deal__c', measures, dimensions: [{ field: 'Contact__c' }] },
    };
    const contact = await sam.post('/data/Contact', { name: 'Nora Named', lastName: 'Named' });
    assert.equal(contact.status, 201, contact.text);
    await deals.deal(sam, { name: 'to Nora', Contact__c: contact.body.id });
    const dashboard = await sam.post('/analytics/dashboards', {
      name: 'Contacts',
      widgets: Object.entries(widgets).map(([widgetKey, asked], y) => ({
        widgetKey,
        title: '',
        type: 'dimensions' in asked ? 'bar' : 'metric',
        layout: { x: 0, y, w: 1, h: 1 },
        query: asked,
      })),
    });
    assert.equal(dashboard.status, 201, dashboard.text);
    const shown = (widgetKey: string, body: object = {}, more: object = options): Promise<Answer> =>
      sam.post(`/analytics/dashboards/${dashboard.body.dashboardId}/widgets/${widgetKey}/run`, body, more);
    for (const widgetKey of ['contacts', 'filtered']) {
      good(await shown(widgetKey, {}, { headers: {} }));
      denied(await shown(widgetKey));
    }
    assert.match((await shown('deals', {}, { headers: {} })).text, /Nora Named/);
    const { labels, rows } = good(await shown('deals'));
    assert.deepEqual([rows.length, labels], [2, {}]);
    denied(await shown('deals', { conditions: filters('Contact').conditions }));
  });

  it('are left out of the audit trail for an agent', async () => {
    const { body } = await sam.post('/data/Contact', { name: 'Audited', lastName: 'Audited' });
    const run = await ada.post('/agent/runs', { agentKey: 'tester', goal: 'Read the trail.' });
    const options = { headers: { 'x-agent-run-id': run.body.runId } };
    const found = async (parameters: string, more: object = {}): Promise<number> =>
      good(await ada.get(`/events/audit?${parameters}`, more)).records.length;
    assert.equal(await found(`recordId=${body.id}`), 1);
    assert.equal(await found(`recordId=${body.id}`, options), 0);
    assert.equal(await found('objectApiName=Contact', options), 0);
    assert.notEqual(await found('objectApiName=Deal__c', options), 0);
    assert.notEqual(await found('operationId=agent.runs.create', options), 0, 'entries about no object');
  });
});

/** Dashboards in deployments. */
import assert from 'node:assert/strict';
import { LIMITS } from '../../../lib/limits.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const PATH = 'dashboards/Cash.yaml';

const yaml = (name: string, more = ''): string => `type: Dashboard
apiName: Cash
name: ${name}
visibility: shared
sharedWith:
  - principalType: role
    principalId: SalesManager
    access: edit
  - principalType: group
    principalId: Sales
    access: view
filters:
  - filterKey: open
    label: Open
    objectApiName: Invoice__c
    field: Status__c
    operator: neq
    value: paid
    locked: true
widgets:
  - widgetKey: total
    title: Open amount
    type: metric
    layout:
      x: 0
      "y": 0
      w: 3
      h: 2
    query:
      objectApiName: Invoice__c
      measures:
        - key: amount
          aggregation: sum
          field: Amount__c
    options:
      unit: EUR
${more}`;

describe('deployed dashboards over HTTP', () => {
  let platform: TestPlatform;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    const as = async (user: string): Promise<Api> => api(platform.baseUrl, await tokenFor(platform.baseUrl, user));
    [ada, mia, sam] = await Promise.all([as('ada'), as('mia'), as('sam')]);
  });
  after(() => platform?.stop());

  const found = async (who: Api, search = 'Cash'): Promise<Answer['body'][]> =>
    (await who.get(`/analytics/dashboards?search=${search}`)).body.records;
  const validate = (files: Record<string, string>): Promise<Answer> =>
    ada.post('/metadata/validate', { files, package: wholePackage(files) });

  it('are published by a deployment, and again by the next one that changes them', async () => {
    await deployOverHttp(ada, { [PATH]: yaml('Cash') });
    const [listed] = await found(sam);
    assert.equal(listed.name, 'Cash');
    const at = `/analytics/dashboards/${listed.dashboardId}`;
    const { body } = await mia.get(at);
    assert.deepEqual(
      [body.version, body.state, body.revision, body.publishedRevision, body.visibility],
      ['published', 'published', 1, 1, 'shared'],
    );
    assert.deepEqual(body.filters[0].locked, true);
    assert.deepEqual(body.widgets, [
      {
        widgetKey: 'total',
        title: 'Open amount',
        type: 'metric',
        layout: { x: 0, y: 0, w: 3, h: 2 },
        query: {
          objectApiName: 'Invoice__c',
          dimensions: [],
          measures: [{ key: 'amount', aggregation: 'sum', field: 'Amount__c' }],
        },
        options: { unit: 'EUR' },
      },
    ]);
    const edited = await mia.patch(at, { name: 'Cash of mine', expectedRevision: 1 });
    assert.equal(edited.body.state, 'modified', edited.text);
    await deployOverHttp(ada, { [PATH]: yaml('Cash again') });
    const again = await mia.get(at);
    assert.deepEqual([again.body.name, again.body.revision, again.body.state], ['Cash again', 3, 'published']);
    assert.equal((await mia.patch(at, { name: 'Late', expectedRevision: 2 })).body.code, 'REVISION_MISMATCH');
  });

  it('are retrieved byte for byte, without a change in the plan', async () => {
    const files = { [PATH]: yaml('Cash') };
    await deployOverHttp(ada, files);
    const package_ = { version: 1, types: [{ name: 'Dashboard', members: ['Cash'] }] };
    const { body } = await ada.post('/metadata/retrieve', { package: package_ }, { idempotencyKey: null });
    assert.equal(body.files[PATH], yaml('Cash'));
    const plan = await validate({ [PATH]: body.files[PATH] });
    assert.deepEqual([plan.body.valid, plan.body.noops.length, plan.body.updates], [true, 1, []]);
  });

  it('are refused when they name missing components, or contradict themselves', async () => {
    const wrong = yaml(
      'Cash',
      '  - widgetKey: total\n    title: Text\n    type: text\n    layout: {x: 8, "y": 0, w: 6, h: 1}\n',
    )
      .replace('Amount__c', 'Nothing__c')
      .replace('SalesManager', 'Nobody');
    const { body } = await validate({ [PATH]: wrong });
    assert.equal(body.valid, false);
    assert.deepEqual(
      body.blocked.map((one: { code: string; line: number }) => [one.code, one.line]).sort(),
      [
        ['DEPENDENCY_MISSING', 34],
        ['DEPENDENCY_MISSING', 7],
        ['YAML_SCHEMA_INVALID', 37],
        ['YAML_SCHEMA_INVALID', 40],
      ],
      JSON.stringify(body.blocked),
    );
  });

  it('can be deleted, and return with the next deployment that changes them', async () => {
    await deployOverHttp(ada, { [PATH]: yaml('Cash') });
    const [before] = await found(ada);
    const gone = await ada.delete(`/analytics/dashboards/${before.dashboardId}?expectedRevision=${before.revision}`);
    assert.equal(gone.status, 204, gone.text);
    await deployOverHttp(ada, { [PATH]: yaml('Cash') });
    assert.deepEqual(await found(ada), [], 'nothing has changed');
    await deployOverHttp(ada, { [PATH]: yaml('Cash flow') });
    const [after] = await found(ada);
    assert.deepEqual([after.name, after.revision], ['Cash flow', 1]);
    assert.notEqual(after.dashboardId, before.dashboardId);
  });

  it('can be saved as they were read, also at the maximum size', async () => {
    const key = (letter: string, n: number): string => `${letter}${n}`.padEnd(64, '-');
    const count = { key: key('m', 0), aggregation: 'count' };
    const content = {
      name: 'L'.repeat(120),
      description: 'd'.repeat(2_000),
      visibility: 'shared',
      sharedWith: [{ principalType: 'role', principalId: 'SalesManager', access: 'edit' }],
      timezone: 'America/Argentina/ComodRivadavia',
      filters: Array.from({ length: LIMITS.dashboard_filters_max }, (_, n) => ({
        filterKey: key('f', n),
        label: 'l'.repeat(255),
        objectApiName: 'Invoice__c',
        field: 'Status__c',
        operator: 'neq',
        value: 'paid',
        locked: false,
      })),
      widgets: Array.from({ length: LIMITS.dashboard_widgets_max }, (_, n) => ({
        widgetKey: key('w', n),
        title: 't'.repeat(200),
        type: 'table',
        layout: { x: 11, y: 1_000, w: 1, h: 100 },
        query: {
          objectApiName: 'Invoice__c',
          measures: [count],
          dimensions: [{ field: 'Status__c' }],
          filters: {
            logic: 'and',
            conditions: Array.from({ length: n === 0 ? LIMITS.filter_conditions_max : 1 }, (_, c) => ({
              id: key('c', c),
              field: 'Status__c',
              operator: 'neq',
              value: 'paid',
            })),
          },
        },
        options: Object.fromEntries(Array.from({ length: n === 0 ? 50 : 2 }, (_, o) => [key('o', o), ''])),
      })),
    };
    // Deployed without members that have defaults; the size counts them as stored.
    const last = content.widgets.at(-1)!;
    last.options[key('o', 0)] = 'o'.repeat(LIMITS.dashboard_max_bytes - Buffer.byteLength(JSON.stringify(content)));
    const filters = content.filters.map(({ locked: _default, ...filter }) => filter);
    const component = { type: 'Dashboard', apiName: 'Large', ...content, filters };
    const path = 'dashboards/Large.yaml';
    await deployOverHttp(ada, { [path]: JSON.stringify(component) });
    const [{ dashboardId }] = await found(mia, 'LLL');
    const at = `/analytics/dashboards/${dashboardId}`;
    const { body } = await mia.get(at);
    const { name, description, visibility, sharedWith, timezone, filters: shown, widgets, revision } = body;
    const read = { name, description, visibility, sharedWith, timezone, filters: shown, widgets };
    assert.deepEqual(read, content);
    const saved = await mia.patch(at, read, { headers: { 'x-expected-revision': String(revision) } });
    assert.equal(saved.status, 200, saved.text.slice(0, 2_000));
    last.options[key('o', 1)] = 'o';
    const larger = await validate({ [path]: JSON.stringify({ ...component, widgets: content.widgets }) });
    assert.deepEqual(
      larger.body.blocked.map((one: { code: string }) => one.code),
      ['LIMIT_EXCEEDED'],
    );
  });
});

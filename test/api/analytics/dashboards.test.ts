/** Dashboards over HTTP: contents, access, versions and revisions. */
import assert from 'node:assert/strict';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const refused = (reply: Answer, status: number, code: string): void =>
  assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text);

const pointers = (reply: Answer): string[] => reply.body.errors.map((one: { pointer: string }) => one.pointer);

describe('dashboards over HTTP', () => {
  let platform: TestPlatform;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  let sue: Api;
  let eve: Api;
  const ids: Record<string, string> = {};

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    const as = async (user: string): Promise<Api> => {
      const client = api(platform.baseUrl, await tokenFor(platform.baseUrl, user));
      ids[user] = (await client.get('/identity')).body.user.id;
      return client;
    };
    [ada, mia, sam, sue, eve] = await Promise.all([as('ada'), as('mia'), as('sam'), as('sue'), as('eve')]);
  });
  after(() => platform?.stop());

  const AT = '/analytics/dashboards';
  const widget = (widgetKey: string, more: object = {}) => ({
    widgetKey,
    title: 'Invoices',
    type: 'bar',
    layout: { x: 0, y: 0, w: 6, h: 4 },
    query: {
      objectApiName: 'Invoice__c',
      dimensions: [{ field: 'Status__c' }],
      measures: [{ key: 'invoices', aggregation: 'count' }],
    },
    ...more,
  });
  const create = async (body: object = {}, who = sam): Promise<Answer> => {
    const reply = await who.post(AT, { name: 'Receivables', ...body });
    assert.equal(reply.status, 201, reply.text);
    return reply;
  };
  const idOf = async (body: object = {}, who = sam): Promise<string> => (await create(body, who)).body.dashboardId;
  const publish = (id: string, expectedRevision: number, who = sam): Promise<Answer> =>
    who.post(`${AT}/${id}/publish`, { expectedRevision });

  it('are created as drafts of the caller, at revision 1, with every default', async () => {
    const reply = await create({ widgets: [widget('by-status')] });
    const { dashboardId, createdAt, updatedAt, ...rest } = reply.body;
    assert.deepEqual(rest, {
      name: 'Receivables',
      description: null,
      ownerId: ids['sam'],
      visibility: 'private',
      sharedWith: [],
      version: 'draft',
      state: 'draft',
      revision: 1,
      publishedRevision: null,
      publishedAt: null,
      publishedById: null,
      timezone: null,
      capabilities: { editable: true, publishable: true, deletable: true, shareable: true },
      createdById: ids['sam'],
      updatedById: ids['sam'],
      filters: [],
      widgets: [{ ...widget('by-status'), options: {} }],
    });
    assert.equal(createdAt, updatedAt);
    assert.match(createdAt, /^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/);
    assert.equal(reply.headers.get('etag'), '"r1"');
    assert.equal(reply.headers.get('location'), `/api/v1${AT}/${dashboardId}`);
    const read = await sam.get(`${AT}/${dashboardId}`);
    assert.deepEqual(read.body, reply.body);
    assert.equal(read.headers.get('etag'), '"r1"');
    const unchanged = await sam.get(`${AT}/${dashboardId}`, { headers: { 'if-none-match': '"r1"' } });
    assert.equal(unchanged.status, 304);
  });

  it('aggregate all records when a query has no dimensions', async () => {
    const { dimensions: _, ...query } = widget('all').query;
    const reply = await create({ widgets: [widget('all', { type: 'metric', query })] });
    assert.deepEqual(reply.body.widgets[0].query, { ...query, dimensions: [] });
    const run = await sam.post(`${AT}/${reply.body.dashboardId}/widgets/all/run`, {}, { idempotencyKey: null });
    assert.deepEqual([run.status, run.body.rows.length], [200, 1], run.text);
  });

  it('explain an invalid query instead of denying that queries exist', async () => {
    const reply = await sam.post(AT, {
      name: 'Wrong',
      widgets: [widget('none', { query: { objectApiName: 'Invoice__c' } }), widget('word', { query: 'all' })],
    });
    refused(reply, 400, 'PARAMETER_REQUIRED');
    assert.deepEqual(
      reply.body.errors.map((one: { message: string }) => one.message),
      ['measures is required.', '/widgets/1/query must be an object or null.'],
    );
  });

  it("are reread when the caller's view of them has changed, also at the same revision", async () => {
    const to = (access: string) => [{ principalType: 'user', principalId: ids['sue'], access }];
    const id = await idOf({ visibility: 'shared', sharedWith: to('view') });
    assert.equal((await publish(id, 1)).status, 201);
    const at = `${AT}/${id}`;
    const read = async (etag: string, who = sue) => {
      const { status, body, headers } = await who.get(at, { headers: { 'if-none-match': etag } });
      return { status, body, etag: headers.get('etag') ?? '' };
    };
    const seen = await read('');
    assert.match(seen.etag, /^"r2-[\w-]{12}"$/);
    assert.deepEqual(await read(seen.etag), { status: 304, body: null, etag: seen.etag });

    const opened = await sam.patch(at, { visibility: 'public', expectedRevision: 2 });
    assert.equal(opened.status, 200, opened.text);
    const open = await read(seen.etag);
    assert.deepEqual([open.status, open.body.visibility, open.body.revision], [200, 'public', 2]);

    assert.equal((await publish(id, 3)).status, 201);
    const viewed = await read('');
    assert.deepEqual([viewed.body.revision, viewed.body.capabilities.editable], [4, false]);
    const asSam = await sam.get(at);
    const asAda = await read(viewed.etag, ada);
    assert.deepEqual([asSam.headers.get('etag'), asAda.status, asAda.etag], ['"r4"', 200, '"r4"']);

    const edits = await sam.patch(at, { sharedWith: to('edit'), expectedRevision: 4 });
    assert.equal(edits.status, 200, edits.text);
    const edited = await read(viewed.etag);
    assert.deepEqual([edited.status, edited.body.capabilities.editable], [200, true]);
    const byTag = await sue.patch(at, { name: 'Ours' }, { etag: edited.etag });
    assert.deepEqual([byTag.status, byTag.body.revision], [200, 6], byTag.text);
    refused(await sue.patch(at, { name: 'Mine' }, { etag: edited.etag }), 412, 'REVISION_MISMATCH');
    assert.equal((await sue.patch(at, { name: 'Mine' }, { etag: '"r6"' })).status, 200);
  });

  it('are reread by the same user with a connection that may change them', async () => {
    const id = await idOf();
    const reader = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', 'analytics:read'));
    const seen = await reader.get(`${AT}/${id}`);
    assert.deepEqual([seen.body.revision, seen.body.capabilities.editable], [1, false]);
    const again = await sam.get(`${AT}/${id}`, { headers: { 'if-none-match': seen.headers.get('etag') ?? '' } });
    assert.deepEqual([again.status, again.body.capabilities?.editable], [200, true]);
  });

  it('go through draft, published and modified; viewers see the published version', async () => {
    const id = await idOf({ visibility: 'public', name: 'First' });
    refused(await sue.get(`${AT}/${id}`), 404, 'DASHBOARD_VERSION_NOT_FOUND');
    const published = await publish(id, 1);
    assert.equal(published.status, 201, published.text);
    const { state, version, revision, publishedRevision, publishedById } = published.body;
    assert.deepEqual(
      { state, version, revision, publishedRevision, publishedById },
      { state: 'published', version: 'published', revision: 2, publishedRevision: 2, publishedById: ids['sam'] },
    );
    const changed = await sam.patch(`${AT}/${id}`, { name: 'Second', expectedRevision: 2 });
    assert.deepEqual(
      [changed.status, changed.body.state, changed.body.revision, changed.body.version],
      [200, 'modified', 3, 'draft'],
    );
    const seen = await sue.get(`${AT}/${id}`);
    assert.deepEqual([seen.body.name, seen.body.state, seen.body.revision], ['First', 'published', 2]);
    assert.deepEqual(seen.body.capabilities, {
      editable: false,
      publishable: false,
      deletable: false,
      shareable: false,
    });
    refused(await sue.get(`${AT}/${id}?version=draft`), 404, 'DASHBOARD_VERSION_NOT_FOUND');
    assert.equal((await sam.get(`${AT}/${id}`)).body.name, 'First');
    assert.equal((await sam.get(`${AT}/${id}?version=draft`)).body.name, 'Second');
    assert.equal((await sam.get(`${AT}/${id}?version=published`)).body.name, 'First');
    const again = await publish(id, 3);
    assert.deepEqual([again.status, again.body.revision, again.body.name], [201, 4, 'Second']);
    const twice = await publish(id, 4);
    assert.deepEqual([twice.status, twice.body.revision, twice.body.state], [201, 5, 'published']);
  });

  it('stay published when only their sharing changes', async () => {
    const id = await idOf({ visibility: 'private', widgets: [widget('w')] });
    await publish(id, 1);
    const toSue = { principalType: 'user', principalId: ids['sue'], access: 'view' };
    const sharing = { visibility: 'shared', sharedWith: [toSue], name: 'Receivables' };
    const shared = await sam.patch(`${AT}/${id}`, { ...sharing, expectedRevision: 2 });
    assert.deepEqual([shared.body.state, shared.body.revision, shared.body.publishedRevision], ['published', 3, 2]);
    for (const who of [sam, sue]) {
      const run = await who.post(`${AT}/${id}/widgets/w/run`, undefined, { idempotencyKey: null });
      assert.deepEqual([run.body.version, run.body.revision], ['published', 2], run.text);
    }
    const changed = await sam.patch(`${AT}/${id}`, { name: 'Changed', expectedRevision: 3 });
    const hidden = await sam.patch(`${AT}/${id}`, { visibility: 'private', sharedWith: [], expectedRevision: 4 });
    assert.deepEqual([changed.body.state, hidden.body.state], ['modified', 'modified']);
    assert.equal((await publish(id, 5)).body.state, 'published');
  });

  it('are shared with users, roles and groups, to view or to edit', async () => {
    const id = await idOf();
    refused(await sue.get(`${AT}/${id}`), 404, 'DASHBOARD_NOT_FOUND');
    const toSue = { principalType: 'user', principalId: ids['sue'], access: 'view' };
    const shared = await sam.patch(`${AT}/${id}`, { visibility: 'shared', sharedWith: [toSue], expectedRevision: 1 });
    assert.equal(shared.status, 200, shared.text);
    await publish(id, 2);
    assert.deepEqual((await sue.get(`${AT}/${id}`)).body.sharedWith, [toSue]);
    refused(await sue.patch(`${AT}/${id}`, { name: 'Mine', expectedRevision: 3 }), 403, 'RECORD_ACCESS_DENIED');
    refused(await publish(id, 3, sue), 403, 'RECORD_ACCESS_DENIED');
    refused(await sue.delete(`${AT}/${id}?expectedRevision=3`), 403, 'RECORD_ACCESS_DENIED');
    const toManagers = { principalType: 'role', principalId: 'SalesManager', access: 'edit' };
    await sam.patch(`${AT}/${id}`, { sharedWith: [toManagers, toSue], expectedRevision: 3 });
    const edited = await mia.patch(`${AT}/${id}`, { name: 'Ours', expectedRevision: 4 });
    assert.equal(edited.status, 200, edited.text);
    assert.deepEqual(edited.body.capabilities, {
      editable: true,
      publishable: true,
      deletable: false,
      shareable: false,
    });
    assert.deepEqual(edited.body.sharedWith, [toManagers, toSue]);
    refused(await mia.patch(`${AT}/${id}`, { sharedWith: [], expectedRevision: 5 }), 403, 'RECORD_ACCESS_DENIED');
    refused(await mia.delete(`${AT}/${id}?expectedRevision=5`), 403, 'RECORD_ACCESS_DENIED');
    const closed = await sam.patch(`${AT}/${id}`, { visibility: 'private', sharedWith: [], expectedRevision: 5 });
    assert.equal(closed.status, 200, closed.text);
    refused(await sue.get(`${AT}/${id}`), 404, 'DASHBOARD_NOT_FOUND');
    assert.equal((await ada.get(`${AT}/${id}`)).status, 200, 'modifyAllData reaches every dashboard');
    refused(await eve.get(`${AT}/${id}`), 404, 'DASHBOARD_NOT_FOUND');
  });

  it('cannot be shared with principals that do not exist', async () => {
    const shares = [
      { principalType: 'user', principalId: uuidv7(), access: 'view' },
      { principalType: 'user', principalId: 'sue', access: 'view' },
      { principalType: 'user', principalId: ids['eve'], access: 'view' },
      { principalType: 'role', principalId: 'Nobody', access: 'view' },
      { principalType: 'role', principalId: 'Finance', access: 'view' },
    ];
    const reply = await sam.post(AT, { name: 'x', visibility: 'shared', sharedWith: shares });
    refused(reply, 422, 'VALIDATION_FAILED');
    assert.deepEqual(
      pointers(reply),
      [0, 1, 2, 3].map((at) => `/sharedWith/${at}/principalId`),
    );
    assert.ok(reply.body.errors.every((one: { code: string }) => one.code === 'REFERENCE_NOT_FOUND'));
    assert.deepEqual(
      reply.body.errors.map((one: { message: string }) => one.message),
      [
        'There is no such user.',
        'A user is named by their id, a UUID, not by their username.',
        'There is no such user.',
        'There is no such role.',
      ],
    );
  });

  it('are refused with all their violations', async () => {
    const reply = await sam.post(AT, {
      name: ' ',
      timezone: 'Mars/Olympus',
      sharedWith: [{ principalType: 'role', principalId: 'SalesManager', access: 'view' }],
      widgets: [
        widget('one', { layout: { x: 8, y: 0, w: 6, h: 4 } }),
        widget('one'),
        widget('text', { type: 'text' }),
        widget('sums', {
          query: {
            objectApiName: 'Invoice__c',
            dimensions: [{ field: 'Status__c' }, { field: 'Status__c' }],
            measures: [{ key: 'Status__c', aggregation: 'sum' }],
            sort: [{ id: 'nothing' }],
          },
        }),
      ],
    });
    refused(reply, 422, 'DASHBOARD_INVALID');
    assert.deepEqual(pointers(reply).sort(), [
      '/name',
      '/sharedWith',
      '/timezone',
      '/widgets/0/layout/w',
      '/widgets/1/widgetKey',
      '/widgets/2/query',
      '/widgets/3/query/dimensions/1',
      '/widgets/3/query/measures/0',
      '/widgets/3/query/measures/0/field',
      '/widgets/3/query/sort/0/id',
    ]);
    refused(await sam.post(AT, {}), 400, 'PARAMETER_REQUIRED');
    refused(await sam.post(AT, { name: 'x', colour: 'red' }), 400, 'BODY_PROPERTY_UNKNOWN');
    refused(await sam.post(AT), 400, 'BODY_REQUIRED');
    const many = Array.from({ length: 41 }, (_, at) => widget(`w${at}`));
    refused(await sam.post(AT, { name: 'x', widgets: many }), 400, 'PARAMETER_INVALID');
    const large = widget('large', { options: { text: 'x'.repeat(256 * 1024) } });
    refused(await sam.post(AT, { name: 'x', widgets: [large] }), 413, 'REQUEST_TOO_LARGE');
  });

  it('accept the expected revision in body, query, header or If-Match, which must agree', async () => {
    const id = await idOf();
    const at = `${AT}/${id}`;
    const patch = (body: object, headers: Record<string, string> = {}): Promise<Answer> =>
      sam.patch(at, { name: 'x', ...body }, { headers });
    refused(await patch({}), 400, 'EXPECTED_REVISION_REQUIRED');
    refused(await patch({ expectedRevision: 1 }, { 'x-expected-revision': '2' }), 400, 'PARAMETER_CONFLICT');
    refused(await patch({ expectedRevision: 1 }, { 'if-match': '"r2"' }), 400, 'PARAMETER_CONFLICT');
    refused(await patch({}, { 'x-expected-revision': '1', 'if-match': '"r2"' }), 400, 'PARAMETER_CONFLICT');
    for (const tag of ['*', 'W/"r1"', '"k1"', '"r1", "r2"', '"r01"', '"r1-"', '"r1-x y"'])
      refused(await patch({}, { 'if-match': tag }), 400, 'IF_MATCH_INVALID');
    refused(await patch({}, { 'x-expected-revision': 'x' }), 400, 'PARAMETER_INVALID');
    refused(await patch({ expectedRevision: 0 }), 400, 'PARAMETER_INVALID');
    const stale = await patch({ expectedRevision: 2 });
    refused(stale, 412, 'REVISION_MISMATCH');
    assert.deepEqual(stale.body.details, { expectedRevision: 2, currentRevision: 1 });
    assert.equal((await patch({ expectedRevision: 1 })).body.revision, 2);
    assert.equal((await patch({}, { 'x-expected-revision': '2' })).body.revision, 3);
    assert.equal((await patch({}, { 'if-match': '"r3"' })).body.revision, 4);
    const byHeader = await sam.post(`${at}/publish`, {}, { headers: { 'x-expected-revision': '4' } });
    assert.deepEqual([byHeader.status, byHeader.body.revision], [201, 5]);
    refused(await sam.delete(at), 400, 'EXPECTED_REVISION_REQUIRED');
    refused(
      await sam.delete(`${at}?expectedRevision=5`, { headers: { 'x-expected-revision': '4' } }),
      400,
      'PARAMETER_CONFLICT',
    );
    refused(await sam.delete(`${at}?expectedRevision=5`, { etag: '"r4"' }), 400, 'PARAMETER_CONFLICT');
    refused(await sam.delete(`${at}?expectedRevision=4`), 412, 'REVISION_MISMATCH');
    assert.equal((await sam.delete(at, { etag: '"r5"' })).status, 204);
  });

  it('are gone for all users when they are deleted', async () => {
    for (const options of [{ headers: { 'x-expected-revision': '2' } }, { etag: '"r2"' }, {}]) {
      const id = await idOf({ visibility: 'public' });
      await publish(id, 1);
      const query = Object.keys(options).length === 0 ? '?expectedRevision=2' : '';
      const idempotencyKey = uuidv7();
      const gone = await sam.delete(`${AT}/${id}${query}`, { ...options, idempotencyKey });
      assert.deepEqual([gone.status, gone.text], [204, '']);
      const replayed = await sam.delete(`${AT}/${id}${query}`, { ...options, idempotencyKey });
      assert.deepEqual([replayed.status, replayed.headers.get('idempotency-replayed')], [204, 'true']);
      for (const who of [sam, sue, ada]) refused(await who.get(`${AT}/${id}`), 404, 'DASHBOARD_NOT_FOUND');
      refused(await publish(id, 3), 404, 'DASHBOARD_NOT_FOUND');
    }
  });

  it('are listed by name in pages, with the capabilities of the caller', async () => {
    const name = `Paged ${uuidv7()}`;
    const mine = await idOf({ name: `${name} a`, description: 'Überfällig' }, sue);
    const open = await idOf({ name: `${name} b`, visibility: 'public', widgets: [widget('one')] }, sam);
    await idOf({ name: `${name} c` }, sam);
    const share = { principalType: 'user', principalId: ids['sue'], access: 'edit' };
    const shared = await idOf({ name: `${name} d`, visibility: 'shared', sharedWith: [share] }, sam);
    const list = async (query: string, who = sue): Promise<Answer> => {
      const reply = await who.get(`${AT}?search=${encodeURIComponent(name)}${query}`);
      assert.equal(reply.status, 200, reply.text);
      return reply;
    };
    const found = async (query: string, who = sue): Promise<string[]> =>
      (await list(query, who)).body.records.map((one: { dashboardId: string }) => one.dashboardId);
    assert.deepEqual(await found(''), [mine, shared], 'not what was never published');
    await publish(open, 1);
    assert.deepEqual(await found(''), [mine, open, shared]);
    assert.deepEqual(await found('&scope=all'), [mine, open, shared]);
    assert.deepEqual(await found('&scope=mine'), [mine]);
    assert.deepEqual(await found('&scope=public'), [open]);
    assert.deepEqual(await found('&scope=shared'), [shared]);
    const page = await list('&page=2&pageSize=2');
    assert.deepEqual(
      [page.body.page, page.body.pageSize, page.body.total, page.body.nextCursor, page.body.records.length],
      [2, 2, 3, null, 1],
    );
    const beyond = await list('&page=9');
    assert.deepEqual([beyond.body.records, beyond.body.total, beyond.body.pageSize], [[], 3, 25]);
    const [, second] = (await list('')).body.records;
    assert.deepEqual([second.widgetCount, 'widgets' in second, 'filters' in second], [1, false, false]);
    assert.deepEqual((await sue.get(`${AT}?search=%C3%BCberF%C3%84llig`)).body.records.length, 1, 'in the description');
    for (const query of ['page=0', 'page=x', 'pageSize=0', 'pageSize=101', 'scope=theirs', 'search='])
      refused(await sue.get(`${AT}?${query}`), 400, 'PARAMETER_INVALID');
  });

  it('need the scopes for reading and changing', async () => {
    const read = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', 'analytics:read'));
    const run = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', 'analytics:run'));
    const id = await idOf();
    const seen = await read.get(`${AT}/${id}`);
    assert.deepEqual(seen.body.capabilities, {
      editable: false,
      publishable: false,
      deletable: false,
      shareable: false,
    });
    refused(await read.post(AT, { name: 'x' }), 403, 'SCOPE_INSUFFICIENT');
    refused(await run.get(AT), 403, 'SCOPE_INSUFFICIENT');
    assert.equal((await run.patch(`${AT}/${id}`, { name: 'x', expectedRevision: 1 })).status, 200);
  });

  it('record each change in the audit trail, and publishing in the events', async () => {
    const id = await idOf({ name: 'Audited' });
    await publish(id, 1);
    const trail = await ada.get(`/events/audit?recordId=${id}`);
    assert.deepEqual(
      trail.body.records.map((one: { operationId: string }) => one.operationId),
      ['analytics.dashboards.publish', 'analytics.dashboards.create'],
    );
  });
});

import assert from 'node:assert/strict';
import { Database } from '../../../mixins/database/database.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { destructiveManifest, fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { restore } from '../../support/restore.ts';

type Files = Record<string, string>;
type Body = Answer['body'];

const child = (folder: string, type: string, name: string, body: string): Files => ({
  [`objects/Deal__c/${folder}/${name}.yaml`]: `type: ${type}\napiName: ${name}\nobject: Deal__c\n${body}`,
});
const top = (folder: string, type: string, name: string, body: string): Files => ({
  [`${folder}/${name}.yaml`]: `type: ${type}\napiName: ${name}\n${body}`,
});

const DEALS: Files = {
  ...objectFiles('Deal__c', { Amount__c: 'fieldType: currency' }),
  ...child('validationRules', 'ValidationRule', 'Positive', 'condition: record.Amount__c < 0\nmessage: Positive!\n'),
  ...child('recordTypes', 'RecordType', 'Large', 'label: Large\n'),
  ...top('profiles', 'Profile', 'Temp', 'label: Temp\nsystem: [apiEnabled]\n'),
  ...top('groups', 'Group', 'Friends', 'label: Friends\nmembers:\n  users: [mia@demo.example]\n'),
  ...top(
    'permissionSets',
    'PermissionSet',
    'Deals',
    'label: Deals\nsystem: [apiEnabled]\nobjects:\n  Deal__c: {create: true, read: true, update: true, delete: true}\nfields:\n  Deal__c.Amount__c: {read: true, edit: true}\n',
  ),
};

describe('API: deleting configuration', () => {
  let platform: TestPlatform;
  let ada: Api;
  let mia: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    await deployed(DEALS);
    await give('ada', { permissionSetApiNames: ['Deals'] });
  });
  after(() => platform?.stop());

  const project = (files: Files, more: object = {}) => ({ files, package: wholePackage(files), ...more });
  const deploy = async (files: Files, more: object = { allowDestructiveChanges: true }): Promise<Body> => {
    const { status, body, text } = await ada.post('/metadata/deploy', project(files, more));
    assert.equal(status, 202, text);
    for (let i = 0; i < 400; i++) {
      const answer = await ada.get(`/metadata/deployments/${body.deploymentId}`);
      if (['SUCCEEDED', 'FAILED'].includes(answer.body.status)) return answer.body;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return assert.fail('The deployment did not end.');
  };
  const deployed = async (files: Files, more?: object): Promise<Body> => {
    const deployment = await deploy(files, more);
    assert.equal(deployment.status, 'SUCCEEDED', JSON.stringify([deployment.error, deployment.blocked]));
    return deployment;
  };
  const refused = async (types: Record<string, string[]>, files: Files = {}): Promise<Body[]> => {
    const all = { ...files, ...destructiveManifest(types) };
    const checked = await ada.post('/metadata/validate', project(all, { allowDestructiveChanges: true }));
    assert.equal(checked.status, 200, checked.text);
    const deployment = await deploy(all);
    assert.deepEqual([deployment.status, deployment.error?.code], ['FAILED', 'PLAN_BLOCKED']);
    assert.deepEqual(checked.body.blocked, deployment.blocked, 'validate says the same');
    return deployment.blocked;
  };
  const refusedFiles = async (files: Files): Promise<Body[]> => {
    const { body, text } = await ada.post('/metadata/validate', project(files));
    assert.equal(body.valid, false, text);
    return body.blocked;
  };
  const user = async (name: string): Promise<Body> => {
    const where = encodeURIComponent(JSON.stringify({ username: `${name}@demo.example` }));
    return (await ada.get(`/data/User?where=${where}`)).body.records[0];
  };
  const give = async (name: string, fields: object): Promise<void> => {
    const path = `/data/User/${(await user(name)).id}`;
    const answer = await ada.patch(path, fields, { etag: (await ada.get(path)).headers.get('etag')! });
    assert.equal(answer.status, 200, answer.text);
  };
  const retrieve = async (types: Record<string, string[]>): Promise<Body> =>
    (
      await ada.post('/metadata/retrieve', {
        package: { version: 1, types: Object.entries(types).map(([name, members]) => ({ name, members })) },
      })
    ).body;

  it('POST /metadata/deploy without the flag: 422 DESTRUCTIVE_CHANGES_NOT_ALLOWED', async () => {
    const files = destructiveManifest({ ValidationRule: ['Deal__c.Positive'] });
    const { status, body } = await ada.post('/metadata/deploy', project(files));
    assert.deepEqual([status, body.code], [422, 'DESTRUCTIVE_CHANGES_NOT_ALLOWED']);
  });

  it('a deleted component is neither applied nor retrieved; deployed again it is', async () => {
    const negative = { name: 'Loss', Amount__c: -1 };
    assert.equal((await ada.post('/data/Deal__c', negative)).status, 422);
    const deployment = await deployed(destructiveManifest({ ValidationRule: ['Deal__c.Positive'] }));
    assert.deepEqual(
      deployment.changes.deletes.map(({ type, fullName, destructive, reversible }: Body) => [
        type,
        fullName,
        destructive,
        reversible,
      ]),
      [['ValidationRule', 'Deal__c.Positive', true, true]],
    );
    assert.equal((await ada.post('/data/Deal__c', negative)).status, 201);
    const { files, notFound } = await retrieve({ ValidationRule: ['Deal__c.Positive'] });
    assert.deepEqual(notFound, [{ type: 'ValidationRule', member: 'Deal__c.Positive' }]);
    assert.equal(files['objects/Deal__c/validationRules/Positive.yaml'], undefined);
    await deployed({
      ...child(
        'validationRules',
        'ValidationRule',
        'Positive',
        'condition: record.Amount__c < 0\nmessage: Positive!\n',
      ),
    });
    assert.equal((await ada.post('/data/Deal__c', negative)).status, 422);
  });

  it('another user deployed or deleted it since: 409 METADATA_DRIFT', async () => {
    const { metadataVersion } = await retrieve({ Group: ['*'] });
    const file = top('groups', 'Group', 'Passing', 'label: Passing\n');
    await deployed(file);
    const manifest = destructiveManifest({ Group: ['Passing'] });
    const stale = { allowDestructiveChanges: true, baseMetadataVersion: metadataVersion };
    const drifted = await ada.post('/metadata/deploy', project(manifest, stale));
    assert.deepEqual([drifted.status, drifted.body.code], [409, 'METADATA_DRIFT']);
    const { metadataVersion: seen } = await retrieve({ Group: ['*'] });
    await deployed(manifest);
    const again = await ada.post('/metadata/deploy', project(file, { baseMetadataVersion: seen }));
    assert.deepEqual([again.status, again.body.code], [409, 'METADATA_DRIFT'], again.text);
    assert.deepEqual(again.body.details.components[0].fullName, 'Passing');
  });

  it("refuses an assigned profile, the caller's own too, and an assigned permission set", async () => {
    const { profileApiName } = await user('ada');
    const problems = await refused({ Profile: [profileApiName] });
    const [problem] = problems.filter(({ code }) => code === 'DEPENDENT_EXISTS');
    assert.ok(problem.fullName === profileApiName && problem.details.records >= 1);
    const [held] = await refused({ PermissionSet: ['Deals'] });
    assert.deepEqual([held.code, held.details], ['DEPENDENT_EXISTS', { records: 1 }]);
    await deployed(destructiveManifest({ Profile: ['Temp'] }));
  });

  it('refuses a record type that records have', async () => {
    const created = await ada.post('/data/Deal__c', { name: 'Typed', recordTypeApiName: 'Large' });
    assert.equal(created.status, 201, created.text);
    const [problem] = await refused({ RecordType: ['Deal__c.Large'] });
    assert.deepEqual([problem.code, problem.details], ['DEPENDENT_EXISTS', { records: 1 }]);
    const path = `/data/Deal__c/${created.body.id}`;
    assert.equal((await ada.delete(path, { etag: created.headers.get('etag')! })).status, 200);
    await deployed(destructiveManifest({ RecordType: ['Deal__c.Large'] }));
    const restored = await ada.post(`/data/Deal__c/${created.body.id}/restore`);
    assert.ok(restored.status < 500, restored.text);
  });

  it('a group loses its shares with it: a new group of its name has no access', async () => {
    const { body: deal } = await ada.post('/data/Deal__c', { name: 'Shared' });
    const share = await ada.post(`/data/Deal__c/${deal.id}/shares`, {
      principalType: 'group',
      principalId: 'Friends',
      access: 'read',
    });
    assert.ok(share.status < 300, share.text);
    await give('mia', { permissionSetApiNames: ['Deals'] });
    assert.equal((await mia.get(`/data/Deal__c/${deal.id}`)).status, 200);
    await deployed(destructiveManifest({ Group: ['Friends'] }));
    await deployed({ 'groups/Friends.yaml': DEALS['groups/Friends.yaml']! });
    assert.deepEqual((await ada.get(`/data/Deal__c/${deal.id}/shares`)).body.shares ?? [], []);
  });

  it('the audit trail names the deleted components', async () => {
    const { text } = await ada.get('/events/audit?operationId=metadata.deployments.create&take=50');
    assert.match(text, /ValidationRule:Deal__c\.Positive/);
  });

  describe('objects and fields', () => {
    const THINGS: Files = {
      ...objectFiles('Deal2__c'),
      ...objectFiles('Thing__c', {
        Code__c: 'fieldType: text\nunique: true\nrequired: true',
        Serial__c: 'fieldType: autoNumber\nformat: T-{00}',
        Deal__c: 'fieldType: reference\nreferenceTo: [Deal2__c]',
        Note__c: 'fieldType: text',
      }),
      ...objectFiles('Part__c', {
        Thing__c: 'fieldType: masterDetail\nreferenceTo: [Thing__c]',
        Price__c: 'fieldType: currency',
      }),
      ...fieldFile(
        'Thing__c',
        'Total__c',
        'fieldType: rollup\nrollup: {childObject: Part__c, referenceField: Thing__c, function: sum, field: Price__c}',
      ),
    };
    const access = (objects: string[], fields: string[]): Files =>
      top(
        'permissionSets',
        'PermissionSet',
        'Things',
        `label: Things\nsystem: [apiEnabled]\nobjects:\n${objects
          .map((name) => `  ${name}: {create: true, read: true, update: true, delete: true, viewAll: true}\n`)
          .join(
            '',
          )}${fields.length > 0 ? 'fields:\n' : ''}${fields.map((name) => `  ${name}: {read: true, edit: ${!/Serial|Total/.test(name)}}\n`).join('')}`,
      );
    const ALL = ['Thing__c.Code__c', 'Thing__c.Serial__c', 'Thing__c.Deal__c', 'Thing__c.Note__c', 'Thing__c.Total__c'];
    const PARTS = ['Part__c.Thing__c', 'Part__c.Price__c'];
    const EVERY_ACCESS = access(['Deal2__c', 'Thing__c', 'Part__c'], [...ALL, ...PARTS]);
    const only = (paths: RegExp): Files =>
      Object.fromEntries(Object.entries(THINGS).filter(([path]) => paths.test(path)));
    let database: Database;
    let tenantId: string;
    const ids: Record<string, string> = {};

    before(async () => {
      database = new Database(platform.database.url, { size: 2, applicationName: 'deleting test' });
      const { rows } = await database.query<{ id: string }>(`SELECT id FROM metadata.tenants WHERE key = 'demo'`);
      tenantId = rows[0]!.id;
      await deployed({ ...THINGS, ...EVERY_ACCESS });
      await give('ada', { permissionSetApiNames: ['Deals', 'Things'] });
      ids['deal'] = (await create('Deal2__c', { name: 'D' })).id;
      ids['gone'] = (await create('Deal2__c', { name: 'Gone' })).id;
      for (const [name, deal] of [
        ['one', 'deal'],
        ['two', 'gone'],
        ['binned', 'deal'],
      ] as const) {
        const fields = { name, Code__c: `C-${name}`, Note__c: 'kept', Deal__c: ids[deal] };
        ids[name] = (await create('Thing__c', fields)).id;
        await create('Part__c', { name, Thing__c: ids[name], Price__c: 5 });
      }
      await remove('Thing__c', 'binned');
    });
    after(() => database?.close());

    const create = async (object: string, fields: object): Promise<Body> => {
      const { status, body, text } = await ada.post(`/data/${object}`, fields);
      assert.equal(status, 201, text);
      return body;
    };
    const remove = async (object: string, name: string): Promise<void> => {
      const path = `/data/${object}/${ids[name]}`;
      const { status, text } = await ada.delete(path, { etag: (await ada.get(path)).headers.get('etag')! });
      assert.equal(status, 200, text);
    };
    /** Every operation that could still use the object or the field; none may fail. */
    const readEverything = async (changes: string, cursor: string): Promise<Record<string, number>> => {
      const sorted = encodeURIComponent(JSON.stringify([{ id: 'Code__c', desc: false }]));
      const answers = {
        list: await ada.get('/data/Thing__c'),
        sorted: await ada.get(`/data/Thing__c?sort=${sorted}`),
        filtered: await ada.get(`/data/Thing__c?where=${encodeURIComponent('{"Code__c":"C-one"}')}`),
        page: await ada.get(`/data/Thing__c?take=1&sort=${sorted}&cursor=${encodeURIComponent(cursor)}`),
        get: await ada.get(`/data/Thing__c/${ids['one']}`),
        write: await ada.post('/data/Thing__c', { name: 'x', Code__c: 'X' }),
        history: await ada.get(`/data/Thing__c/${ids['one']}/history`),
        changes: await ada.get(`/data/Thing__c/changes?cursor=${encodeURIComponent(changes)}`),
        shares: await ada.get(`/data/Thing__c/${ids['one']}/shares`),
        explain: await ada.get(`/data/Thing__c/${ids['one']}/access/explain`),
        objects: await ada.get('/objects'),
        describe: await ada.get('/objects/Thing__c/describe'),
        schema: await ada.get('/objects/Thing__c/schema.json'),
        audit: await ada.get('/events/audit?take=20'),
        dashboard: await ada.get(`/analytics/dashboards/${ids['dashboard']}`),
        widgets: await ada.post(`/analytics/dashboards/${ids['dashboard']}/widgets/codes/run`, {}),
        dashboards: await ada.get('/analytics/dashboards'),
        retrieve: await ada.post('/metadata/retrieve', {
          package: { version: 1, types: [{ name: 'CustomObject', members: ['*'] }] },
        }),
      };
      for (const [name, { status, text }] of Object.entries(answers)) assert.ok(status < 500, `${name}: ${text}`);
      return Object.fromEntries(Object.entries(answers).map(([name, { status }]) => [name, status]));
    };

    it('hides a field at once, keeps its values, and accepts records without them', async () => {
      const dashboard = await ada.post('/analytics/dashboards', {
        name: 'Things',
        widgets: [
          {
            widgetKey: 'codes',
            title: 'Codes',
            type: 'bar',
            layout: { x: 0, y: 0, w: 3, h: 2 },
            query: {
              objectApiName: 'Thing__c',
              dimensions: [{ field: 'Code__c' }],
              measures: [{ key: 'n', aggregation: 'count' }],
            },
          },
        ],
      });
      ids['dashboard'] = dashboard.body.dashboardId;
      const { body: feed } = await ada.get('/data/Thing__c/changes');
      const sorted = encodeURIComponent(JSON.stringify([{ id: 'Code__c', desc: false }]));
      const { body: page } = await ada.get(`/data/Thing__c?take=1&sort=${sorted}`);
      const fewer = ALL.filter((name) => !/Code|Serial|Total/.test(name));
      const deployment = await deployed({
        ...access(['Deal2__c', 'Thing__c', 'Part__c'], [...fewer, ...PARTS]),
        ...destructiveManifest({ CustomField: ['Thing__c.Code__c', 'Thing__c.Serial__c', 'Thing__c.Total__c'] }),
      });
      assert.deepEqual(
        deployment.changes.deletes.map(({ fullName, impact }: Body) => [fullName, impact.records]),
        [
          ['Thing__c.Code__c', 2],
          ['Thing__c.Serial__c', 2],
          // Computed: no value is lost.
          ['Thing__c.Total__c', null],
        ],
      );
      const statuses = await readEverything(feed.nextCursor ?? feed.cursor ?? '', page.nextCursor ?? '');
      assert.deepEqual([statuses['list'], statuses['get'], statuses['history']], [200, 200, 200]);
      assert.equal((await ada.get(`/data/Thing__c/${ids['one']}`)).body.Code__c, undefined);
      ids['new'] = (await create('Thing__c', { name: 'new' })).id;
      const restored = await ada.post(`/data/Thing__c/${ids['binned']}/restore`);
      assert.equal(restored.status, 201, restored.text);
      const [reserved] = await refusedFiles(only(/Code__c/));
      assert.equal(reserved.code, 'NAME_RESERVED');
      assert.ok(Date.parse(reserved.details.until) > Date.now());
    });

    it('restores a field with its values, once the records allow it', async () => {
      const files = { ...only(/Code__c|Serial__c|Total__c/), ...EVERY_ACCESS };
      assert.deepEqual(
        (await restore(database, tenantId, files)).map(({ code, fullName, details }) => [code, fullName, details]),
        [['DATA_INCOMPATIBLE', 'Thing__c.Code__c', { records: 2 }]],
        'records that came, or came back, meanwhile have no code',
      );
      await remove('Thing__c', 'new');
      await remove('Thing__c', 'binned');
      assert.deepEqual(await restore(database, tenantId, files), []);
      const read = async (name: string): Promise<unknown[]> => {
        const { body } = await ada.get(`/data/Thing__c/${ids[name]}`);
        return [body.Code__c, body.Serial__c, body.Total__c];
      };
      assert.deepEqual(await read('one'), ['C-one', 'T-01', 5]);
      assert.deepEqual(await read('two'), ['C-two', 'T-02', 5]);
      const next = await create('Thing__c', { name: 'next', Code__c: 'C-next' });
      assert.match(next.Serial__c, /^T-0\d$/);
      const twice = await ada.post('/data/Thing__c', { name: 'twice', Code__c: 'C-one' });
      assert.equal(twice.body.code, 'UNIQUE_VALUE_CONFLICT', twice.text);
    });

    it('hides objects with everything that belongs to them, and restores them', async () => {
      const { body: feed } = await ada.get('/data/Thing__c/changes');
      const gone = await deployed({
        ...access(['Deal2__c'], []),
        ...destructiveManifest({ CustomObject: ['Thing__c', 'Part__c'] }),
      });
      assert.equal(gone.changes.deletes.length, 2 + ALL.length + PARTS.length);
      const statuses = await readEverything(feed.nextCursor ?? feed.cursor ?? '', '');
      assert.deepEqual(
        [statuses['list'], statuses['get'], statuses['write'], statuses['describe']],
        [404, 404, 404, 404],
      );
      // Its referenced component can be deleted now.
      await remove('Deal2__c', 'gone');
      assert.deepEqual(await restore(database, tenantId, { ...THINGS, ...EVERY_ACCESS }), []);
      const { body: one } = await ada.get(`/data/Thing__c/${ids['one']}`);
      assert.deepEqual([one.Code__c, one.Deal__c, one.Total__c], ['C-one', ids['deal'], 5]);
      const { body: two } = await ada.get(`/data/Thing__c/${ids['two']}`);
      assert.deepEqual([two.Code__c, two.Deal__c], ['C-two', null]);
      const total = (await ada.get('/data/Part__c?includeTotal=true')).body.total;
      assert.equal(total, 2);
      await create('Part__c', { name: 'more', Thing__c: ids['one'], Price__c: 2 });
      assert.equal((await ada.get(`/data/Thing__c/${ids['one']}`)).body.Total__c, 7);
    });

    it('removes the details of a restored object whose master is gone', async () => {
      await deployed({
        ...access(
          ['Deal2__c', 'Thing__c'],
          ALL.filter((name) => !name.endsWith('Total__c')),
        ),
        ...destructiveManifest({ CustomObject: ['Part__c'], CustomField: ['Thing__c.Total__c'] }),
      });
      await remove('Thing__c', 'one');
      assert.deepEqual(await restore(database, tenantId, { ...only(/Part__c|Total__c/), ...EVERY_ACCESS }), []);
      assert.equal((await ada.get('/data/Part__c?includeTotal=true')).body.total, 1);
    });
  });
});

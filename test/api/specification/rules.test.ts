/** The rules of the specification's sections Authentication, Errors, Limits and Versioning, each under its number. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'mocha';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { CATALOGUE, type ErrorCode } from '../../../lib/errors/catalogue.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('specification: rules', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  const users: Record<string, Api> = {};
  let stranger: Api;
  let ada: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    stranger = api(platform.baseUrl);
    for (const name of ['ada', 'mia', 'sam', 'sue', 'pat', 'eve'])
      users[name] = api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
    ada = users['ada']!;
    sam = users['sam']!;
  });
  after(() => platform?.stop());

  const refused = (answer: Answer, code: ErrorCode): void => {
    assert.equal(answer.body?.code, code, answer.text);
    assert.equal(answer.status, CATALOGUE[code].status);
  };
  const deploy = (files: Record<string, string>): Promise<void> => deployOverHttp(ada, files);
  const contact = (): Promise<Answer> => sam.post('/data/Contact', { name: 'x', lastName: 'x' });

  describe('Authentication', () => {
    it('1: requests carry a bearer token; the scheme is called oauth2', async () => {
      const { body } = await stranger.get('/openapi.json');
      assert.equal(body.components.securitySchemes.oauth2.type, 'oauth2');
      assert.equal((await sam.get('/identity')).body.user.username, 'sam@demo.example');
    });

    it('2: scopes are the contract; GET /scopes lists them all', async () => {
      const { body } = await stranger.get('/scopes');
      for (const entry of body) assert.deepEqual(Object.keys(entry).sort(), ['description', 'scope']);
      const listed = body.map((entry: { scope: string }) => entry.scope);
      for (const scope of [
        'data:read',
        'data:write',
        'data:delete',
        'actions:read',
        'actions:execute',
        'analytics:read',
        'analytics:run',
        'agent:run',
        'agent:approve',
        'setup:read',
        'metadata:deploy',
      ])
        assert.ok(listed.includes(scope), scope);
      const reader = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada', 'data:read'));
      for (const { capabilities } of (await reader.get('/objects')).body.records)
        assert.deepEqual(capabilities, { creatable: false, updateable: false, deletable: false, editable: false });
      refused(await reader.post('/data/Account', { name: 'x' }), 'SCOPE_INSUFFICIENT');
      refused(await reader.delete('/data/Account/x', { etag: '"1"' }), 'SCOPE_INSUFFICIENT');
      refused(await reader.get('/data/Account/x/transitions'), 'SCOPE_INSUFFICIENT');
      refused(await reader.get('/metadata/types'), 'SCOPE_INSUFFICIENT');
    });

    it('3: effective is the conjunction of scope, object permission and field permission', async () => {
      const writer = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', 'data:read data:write'));
      const described = await writer.get('/objects/Payment__c/describe');
      assert.equal(described.body.capabilities.creatable, false, 'the scope alone does not create payments');
      refused(await writer.post('/data/Payment__c', { Amount__c: 1 }), 'OBJECT_PERMISSION_DENIED');
      const price = (await sam.get('/data/Product?take=1&includeEtag=true')).body.records[0];
      refused(
        await writer.patch(`/data/Product/${price.id}`, { listPrice: 0 }, { etag: price._etag }),
        'OBJECT_PERMISSION_DENIED',
      );
      const account = (await sam.get('/data/Account?take=1&includeEtag=true')).body.records[0];
      refused(
        await writer.patch(`/data/Account/${account.id}`, { discountPercent: 99 }, { etag: account._etag }),
        'FIELD_PERMISSION_DENIED',
      );
    });

    it('4: an administrator grants the API, the object, its fields, and publishes it; each step counts', async () => {
      const files = objectFiles('Step__c', { Note__c: 'fieldType: text' });
      const path = 'objects/Step__c/object.yaml';
      const published = files[path]!;
      await deploy({ ...files, [path]: published.replace('published: true', 'published: false') });
      refused(await ada.get('/data/Step__c'), 'OBJECT_NOT_FOUND');
      await deploy({ [path]: published });
      assert.equal((await ada.get('/data/Step__c')).status, 200);
      refused(await sam.get('/data/Step__c'), 'OBJECT_NOT_FOUND');
      const set = (lines: string): Record<string, string> => ({
        'permissionSets/Steps.yaml': `type: PermissionSet\napiName: Steps\nlabel: Steps\nsystem:\n  - apiEnabled\nobjects:\n  Step__c:\n    create: true\n    read: true\n    update: true\n    delete: true\n    viewAll: false\n    modifyAll: false\n${lines}`,
      });
      await deploy(set(''));
      const user = async (name: string): Promise<Answer> => {
        const found = await ada.get(
          `/data/User?where=${encodeURIComponent(JSON.stringify({ username: `${name}@demo.example` }))}&includeEtag=true`,
        );
        return { ...found, body: found.body.records[0] };
      };
      for (const name of ['sam', 'pat']) {
        const { body } = await user(name);
        const given = await ada.patch(
          `/data/User/${body.id}`,
          { permissionSetApiNames: [...(body.permissionSetApiNames ?? []), 'Steps'] },
          { etag: body._etag },
        );
        assert.equal(given.status, 200, given.text);
      }
      const created = await sam.post('/data/Step__c', { name: 'x' });
      assert.equal(created.status, 201, created.text);
      assert.equal('Note__c' in created.body, false);
      await deploy(set('fields:\n  Step__c.Note__c:\n    read: true\n    edit: true\n'));
      assert.equal((await sam.post('/data/Step__c', { name: 'x', Note__c: 'y' })).body.Note__c, 'y');
      assert.equal((await users['pat']!.get('/data/Step__c')).status, 200, 'Pat has the API permission now');
    });

    it('5: descriptions are public, everything else needs a token', async () => {
      for (const path of ['/openapi.json', '/scopes', '/capabilities'])
        assert.equal((await stranger.get(path)).status, 200);
      for (const path of ['/identity', '/objects', '/objects/Account/describe', '/data/Account'])
        refused(await stranger.get(path), 'TOKEN_MISSING');
    });

    it('6: no or a bad token is 401; too little scope or permission 403', async () => {
      refused(await stranger.get('/objects'), 'TOKEN_MISSING');
      refused(await api(platform.baseUrl, 'x').get('/objects'), 'TOKEN_INVALID');
      refused(
        await sam.post('/metadata/retrieve', { package: { version: 1, types: [] } }),
        'METADATA_PERMISSION_DENIED',
      );
    });

    it('7: the authorization server can be discovered', async () => {
      const { body } = await stranger.get('/openapi.json');
      const { authorizationUrl, tokenUrl } = body.components.securitySchemes.oauth2.flows.authorizationCode;
      const answer = await fetch(`${platform.baseUrl}/.well-known/oauth-authorization-server`);
      const discovered = (await answer.json()) as Record<string, unknown>;
      assert.deepEqual(
        [discovered['authorization_endpoint'], discovered['token_endpoint']],
        [authorizationUrl, tokenUrl],
      );
    });
  });

  describe('Errors', () => {
    it('every documented status has its meaning and the one Error body', async () => {
      const made = await contact();
      const path = `/data/Contact/${made.body.id}`;
      const account = (await sam.get('/data/Account?take=1&includeEtag=true')).body.records[0];
      const idempotencyKey = randomUUID();
      await sam.post('/data/Contact', { name: 'y', lastName: 'y' }, { idempotencyKey });
      const cases: [number, Answer][] = [
        [400, await sam.get('/data/Account?take=x')],
        [401, await stranger.get('/data/Account')],
        [403, await sam.delete(`/data/Account/${account.id}`, { etag: account._etag })],
        [404, await sam.get(`/data/Account/${randomUUID()}`)],
        [409, await sam.post('/data/Contact', { name: 'z', lastName: 'z' }, { idempotencyKey })],
        [412, await sam.patch(path, { lastName: 'z' }, { etag: '"never"' })],
        [413, await sam.post('/data/Account', { name: 'x'.repeat(1024 * 1024) })],
        [422, await sam.post('/data/Account', { name: 1 })],
      ];
      for (const [status, answer] of cases) {
        assert.equal(answer.status, status, answer.text);
        assert.equal(answer.body.status, status);
        assert.equal(answer.body.requestId, answer.headers.get('x-request-id'));
        assert.equal(CATALOGUE[answer.body.code as ErrorCode].status, status);
        assert.ok(answer.body.message.length > 0);
      }
    });

    it('1: on 412 the client re-reads and reconciles; there is no way to force', async () => {
      const { body, headers } = await contact();
      const path = `/data/Contact/${body.id}`;
      const stale = headers.get('etag')!;
      const current = (await sam.patch(path, { jobTitle: 'first' }, { etag: stale })).headers.get('etag')!;
      const late = await sam.patch(path, { jobTitle: 'second' }, { etag: stale });
      refused(late, 'ETAG_MISMATCH');
      assert.equal(late.body.details.currentETag, current);
      refused(await sam.delete(path, { etag: stale }), 'ETAG_MISMATCH');
      refused(await sam.patch(path, { jobTitle: 'x' }), 'IF_MATCH_REQUIRED');
      refused(await sam.delete(path), 'IF_MATCH_REQUIRED');
      for (const etag of ['*', `W/${current}`, current.slice(1, -1)])
        refused(await sam.patch(path, { jobTitle: 'x' }, { etag }), 'IF_MATCH_INVALID');
      const read = await sam.get(path);
      assert.equal(read.body.jobTitle, 'first');
      assert.equal((await sam.patch(path, { jobTitle: 'second' }, { etag: read.headers.get('etag')! })).status, 200);
    });

    it('3: an idempotency key with another body, address or operation is 409', async () => {
      const idempotencyKey = randomUUID();
      const first = await sam.post('/data/Contact', { name: 'k', lastName: 'k' }, { idempotencyKey });
      const again = await sam.post('/data/Contact', { lastName: 'k', name: 'k' }, { idempotencyKey });
      assert.deepEqual(
        [again.status, again.body, again.headers.get('idempotency-replayed')],
        [201, first.body, 'true'],
      );
      refused(
        await sam.post('/data/Contact', { name: 'k', lastName: 'l' }, { idempotencyKey }),
        'IDEMPOTENCY_KEY_REUSED',
      );
      refused(await sam.post('/data/Account', { name: 'k' }, { idempotencyKey }), 'IDEMPOTENCY_KEY_REUSED');
      const etag = first.headers.get('etag')!;
      refused(await sam.delete(`/data/Contact/${first.body.id}`, { idempotencyKey, etag }), 'IDEMPOTENCY_KEY_REUSED');
    });

    it('all violations of a record are named at once, each with a pointer', async () => {
      const { status, body } = await sam.post('/data/Account', {
        name: 1,
        country: 'nowhere',
        employees: 'many',
        creditLimit: 5,
        'a/b~c': 1,
      });
      assert.equal(status, 422);
      const found = Object.fromEntries(
        body.errors.map((one: { pointer: string; code: string }) => [one.pointer, one.code]),
      );
      assert.deepEqual(Object.keys(found).sort(), ['/a~1b~0c', '/country', '/creditLimit', '/employees', '/name']);
      assert.equal(found['/creditLimit'], found['/a~1b~0c']);
    });
  });

  describe('Limits', () => {
    const list = (parameter: string, value: unknown): Promise<Answer> =>
      sam.get(`/data/Account?take=1&${parameter}=${encodeURIComponent(JSON.stringify(value))}`);
    const conditions = (count: number): unknown[] =>
      Array.from({ length: count }, (_, i) => ({ id: `c${i}`, field: 'name', operator: 'neq', value: `${i}` }));

    it('take: 200 is the effective maximum', async () => {
      assert.equal((await sam.get('/data/Account?take=201')).body.records.length, 200);
    });

    it('filters: up to 10 conditions, no nested groups', async () => {
      assert.equal((await list('filters', { logic: 'and', conditions: conditions(10) })).status, 200);
      refused(await list('filters', { logic: 'and', conditions: conditions(11) }), 'FILTER_TOO_MANY_CONDITIONS');
      const group = { logic: 'or', conditions: conditions(1) };
      refused(await list('filters', { logic: 'and', conditions: [group] }), 'FILTER_NESTED_GROUP');
      refused(await list('filters', { logic: 'and', conditions: [{ id: 'g', ...group }] }), 'FILTER_NESTED_GROUP');
    });

    it('sort: up to 2 items', async () => {
      const keys = ['city', 'name', 'country'].map((id) => ({ id, desc: false }));
      assert.equal((await list('sort', keys.slice(0, 2))).status, 200);
      refused(await list('sort', keys), 'SORT_TOO_MANY');
    });

    it('Idempotency-Key: 8 to 200 letters, digits, periods, hyphens, underscores and colons', async () => {
      const random = randomUUID();
      for (const key of [random.slice(0, 8), `${random}${'x'.repeat(164)}`, `aZ09.-_:${random}`]) {
        const answer = await sam.post('/data/Contact', { name: 'x', lastName: 'x' }, { idempotencyKey: key });
        assert.equal(answer.status, 201, `${key}: ${answer.text}`);
      }
      for (const key of [
        '',
        'a'.repeat(7),
        'a'.repeat(201),
        'a b c d e',
        'aaaaaaa/',
        'aaaaaaaé',
        '{aaaaaaa}',
        'aaaaaaaa,bbbbbbbb',
      ])
        refused(
          await sam.post('/data/Contact', { name: 'x', lastName: 'x' }, { idempotencyKey: key }),
          'IDEMPOTENCY_KEY_INVALID',
        );
    });

    it('1: every mutation requires Idempotency-Key, and nothing else does', async () => {
      const { body } = await stranger.get('/openapi.json');
      for (const row of OPERATIONS) {
        const described = body.paths[row.path][row.method.toLowerCase()];
        const header = (described.parameters ?? []).find((one: { name?: string; $ref?: string }) =>
          /Idempotency-?Key/i.test(one.name ?? one.$ref ?? ''),
        );
        assert.equal(Boolean(header), row.mutation, row.operationId);
        assert.equal(described['x-erp-mutation'], row.mutation);
      }
      refused(
        await sam.post('/data/Contact', { name: 'x', lastName: 'x' }, { idempotencyKey: null }),
        'IDEMPOTENCY_KEY_REQUIRED',
      );
    });

    it('2: every answer reports the remaining budget', async () => {
      for (const answer of [
        await sam.get('/data/Account?take=1'),
        await sam.get('/nowhere'),
        await contact(),
        await stranger.get('/scopes'),
      ])
        assert.match(answer.headers.get('x-ratelimit-remaining') ?? '', /^\d+$/);
    });

    it('request cost: x-erp-cost of each operation is what the specification and its gaps fixed', async () => {
      const costs: Record<string, [string, number]> = {
        'schema.openapi.get': ['low', 0],
        'schema.scopes.list': ['low', 0],
        'schema.capabilities.get': ['low', 0],
        'me.identity.get': ['low', 1],
        'schema.objects.list': ['low', 1],
        'schema.objects.describe': ['low', 1],
        'data.records.list': ['low', 1],
        'data.records.create': ['medium', 2],
        'data.records.get': ['low', 1],
        'data.records.update': ['medium', 2],
        'data.records.delete': ['high', 2],
        'data.transitions.list': ['low', 1],
        'metadata.components.retrieve': ['low', 5],
        'metadata.components.validate': ['low', 5],
        'metadata.deployments.create': ['high', 10],
        'metadata.deployments.get': ['low', 1],
      };
      const { body } = await stranger.get('/openapi.json');
      const described = Object.values(body.paths as Record<string, Record<string, Record<string, unknown>>>).flatMap(
        (path) => Object.values(path),
      );
      for (const [operationId, [risk, cost]] of Object.entries(costs)) {
        const operation = described.find((one) => one['operationId'] === operationId);
        assert.deepEqual([operation?.['x-erp-risk'], operation?.['x-erp-cost']], [risk, cost], operationId);
        const mcp = /^metadata\.(components|deployments\.get)/.test(operationId);
        assert.equal(operation!['x-erp-mcp-available'], mcp, operationId);
      }
    });
  });

  describe('Versioning', () => {
    it('1: the description reports 1.0.0 below /api/v1', async () => {
      const { body } = await stranger.get('/openapi.json');
      assert.equal(body.info.version, '1.0.0');
      assert.match(body.servers[0].url, /\/api\/v1$/);
    });
  });

  describe('Metadata rules', () => {
    const validate = (body: unknown): Promise<Answer> => ada.post('/metadata/validate', body);

    it('1: files are keyed by relative paths, never local ones', async () => {
      for (const path of [
        '/etc/passwd',
        '../x.yaml',
        'a/../b.yaml',
        'C:\\x.yaml',
        'a//b.yaml',
        './a.yaml',
        'a\\b.yaml',
        'x'.repeat(300),
      ])
        refused(await validate({ files: { [path]: 'a: 1' }, package: { version: 1, types: [] } }), 'FILE_PATH_INVALID');
    });

    it('2: nothing is deleted without the manifest and the flag, which is a boolean', async () => {
      const files = fieldFile('Contact', 'Gone__c', 'fieldType: text');
      await deploy(files);
      const manifest = {
        'manifest/destructiveChanges.yaml':
          'version: 1\ntypes:\n  - name: CustomField\n    members:\n      - Contact.Gone__c\n',
      };
      const body = { files: manifest, package: { version: 1, types: [] } };
      const unflagged = await validate(body);
      assert.equal(unflagged.body.valid, false);
      assert.equal(unflagged.body.blocked[0].code, 'DESTRUCTIVE_CHANGES_NOT_ALLOWED');
      refused(await ada.post('/metadata/deploy', body), 'DESTRUCTIVE_CHANGES_NOT_ALLOWED');
      // Omitting a component deletes nothing, whatever the flag says.
      const omitted = await validate({ files: {}, package: { version: 1, types: [] }, allowDestructiveChanges: true });
      assert.deepEqual(omitted.body.deletes, []);
      refused(await validate({ ...body, allowDestructiveChanges: 'true' }), 'PARAMETER_INVALID');
      assert.ok((await ada.get('/objects/Contact/describe')).text.includes('Gone__c'));
    });

    it('3 and 6: neither a valid plan nor a recorded validation applies anything', async () => {
      const files = objectFiles('Only__c');
      const body = { files, package: wholePackage(files) };
      assert.equal((await validate(body)).body.valid, true);
      const checked = await ada.post('/metadata/deploy', { ...body, checkOnly: true });
      assert.deepEqual([checked.status, checked.body.status], [202, 'QUEUED']);
      for (let status = ''; status !== 'SUCCEEDED'; ) {
        ({ status } = (await ada.get(`/metadata/deployments/${checked.body.deploymentId}`)).body);
        assert.notEqual(status, 'FAILED');
      }
      refused(await ada.get('/objects/Only__c/describe'), 'OBJECT_NOT_FOUND');
    });

    it('5: selecting a component neither pulls in nor deletes others', async () => {
      const { body } = await ada.post('/metadata/retrieve', {
        package: { version: 1, types: [{ name: 'CustomField', members: ['Account.city'] }] },
      });
      assert.deepEqual(
        body.components.map((one: { fullName: string }) => one.fullName),
        ['Account.city'],
      );
      const back = await validate({ files: body.files, package: body.package });
      assert.deepEqual([back.body.valid, back.body.deletes, back.body.noops.length], [true, [], 1], back.text);
    });

    it('8: the client sets neither actor nor operation', async () => {
      for (const name of ['operationOverride', 'rollbackOf', 'actor', 'actorId', 'userId'])
        for (const path of ['/metadata/validate', '/metadata/deploy']) {
          const plain = { files: {}, package: { version: 1, types: [] } };
          refused(await ada.post(path, { ...plain, [name]: 'x' }), 'BODY_PROPERTY_FORBIDDEN');
          refused(
            await ada.post(path, { ...plain, package: { ...plain.package, [name]: 1 } }),
            'BODY_PROPERTY_FORBIDDEN',
          );
        }
    });
  });
});

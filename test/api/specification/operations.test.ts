/**
 * The specification's tables of public operations, data and schema discovery, and metadata: each row works as written,
 * refuses malformed and forbidden requests, and shows another tenant nothing. (Requests without a token, scope or API
 * permission are generated for all rows in test/isolation.)
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { CATALOGUE, type ErrorCode } from '../../../lib/errors/catalogue.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('specification: operations', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let stranger: Api;
  let ada: Api;
  let sam: Api;
  let eve: Api;
  /** An account of the demo tenant, as Sam reads it. */
  let account: { id: string; name: string; _etag: string };
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    stranger = api(platform.baseUrl);
    const as = async (name: string): Promise<Api> => api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
    [ada, sam, eve] = [await as('ada'), await as('sam'), await as('eve')];
    account = (await sam.get('/data/Account?take=1&includeEtag=true')).body.records[0];
    const files = objectFiles('DemoOnly__c');
    const accepted = await ada.post('/metadata/deploy', { files, package: wholePackage(files) });
    await finished(accepted.body.deploymentId);
  });
  after(() => platform?.stop());

  const finished = async (deploymentId: string): Promise<Answer['body']> => {
    for (;;) {
      const { body, text } = await ada.get(`/metadata/deployments/${deploymentId}`);
      assert.notEqual(body.status, 'FAILED', text);
      if (body.status === 'SUCCEEDED') return body;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const answered = (answer: Answer, status: number): void => {
    assert.equal(answer.status, status, answer.text);
    assert.ok(answer.headers.get('x-request-id'));
    assert.match(answer.headers.get('x-ratelimit-remaining') ?? '', /^\d+$/);
  };
  const refused = (answer: Answer, code: ErrorCode): void => {
    assert.equal(answer.body?.code, code, answer.text);
    answered(answer, CATALOGUE[code].status);
  };
  /** The answer of the same request about an unknown target. */
  const alike = (foreign: Answer, absent: Answer): void => {
    const bare = ({ status, body: { requestId, ...body } }: Answer): unknown => ({ status, body });
    assert.ok(foreign.status === 404, foreign.text);
    assert.deepEqual(bare(foreign), bare(absent));
  };
  const nowhere = '01a1fc02-9079-7ef5-b26c-000000000000';
  const contact = async (): Promise<{ path: string; etag: string; id: string }> => {
    const created = await sam.post('/data/Contact', { name: 'x', lastName: 'x' });
    answered(created, 201);
    return { path: `/data/Contact/${created.body.id}`, etag: created.headers.get('etag')!, id: created.body.id };
  };

  describe('public operations', () => {
    it('GET /openapi.json, /scopes and /capabilities work without a token and refuse parameters', async () => {
      const description = await stranger.get('/openapi.json');
      answered(description, 200);
      assert.equal(typeof description.body.openapi, 'string');
      const scopes = await stranger.get('/scopes');
      answered(scopes, 200);
      assert.ok(
        Array.isArray(scopes.body) && scopes.body.every((one: object) => 'scope' in one && 'description' in one),
      );
      const capabilities = await stranger.get('/capabilities');
      answered(capabilities, 200);
      for (const path of ['/openapi.json', '/scopes', '/capabilities'])
        refused(await stranger.get(`${path}?tenant=demo`), 'PARAMETER_UNKNOWN');
    });

    it('they answer every tenant and user identically', async () => {
      for (const path of ['/openapi.json', '/scopes', '/capabilities']) {
        const texts = await Promise.all([stranger, sam, ada, eve].map(async (user) => (await user.get(path)).text));
        assert.equal(new Set(texts).size, 1, path);
        assert.equal(texts[0]!.includes('DemoOnly__c'), false);
      }
    });
  });

  describe('GET /identity', () => {
    it('works: tenant and user of the token', async () => {
      const answer = await sam.get('/identity');
      answered(answer, 200);
      assert.equal(answer.body.user.username, 'sam@demo.example');
      assert.notEqual((await eve.get('/identity')).body.tenant.id, answer.body.tenant.id);
    });
    it('malformed', async () => refused(await sam.get('/identity?tenant=acme'), 'PARAMETER_UNKNOWN'));
  });

  describe('GET /objects', () => {
    it('works: apiName, label and capabilities', async () => {
      const answer = await sam.get('/objects');
      answered(answer, 200);
      for (const { apiName, label, capabilities } of answer.body.records) {
        assert.equal(typeof apiName, 'string');
        assert.equal(typeof label, 'string');
        assert.deepEqual(Object.keys(capabilities).sort(), ['creatable', 'deletable', 'editable', 'updateable']);
      }
    });
    it('malformed', async () => refused(await sam.get('/objects?search=a'), 'PARAMETER_UNKNOWN'));
    it('forbidden or of another tenant: not in the list', async () => {
      const names = async (user: Api): Promise<string[]> =>
        (await user.get('/objects')).body.records.map((one: { apiName: string }) => one.apiName);
      assert.ok((await names(ada)).includes('DemoOnly__c'));
      assert.equal((await names(sam)).includes('DemoOnly__c'), false);
      assert.equal((await names(eve)).includes('DemoOnly__c'), false);
    });
  });

  describe('GET /objects/{objectApiName}/describe', () => {
    it('works: fields with apiName, fieldType, readable and editable', async () => {
      const answer = await sam.get('/objects/Account/describe');
      answered(answer, 200);
      for (const { apiName, fieldType, readable, editable } of answer.body.fields) {
        assert.equal(typeof apiName, 'string');
        assert.equal(typeof fieldType, 'string');
        assert.equal(readable, true);
        assert.equal(typeof editable, 'boolean');
      }
      assert.equal(typeof answer.body.capabilities.creatable, 'boolean');
    });
    it('malformed', async () => {
      refused(await sam.get('/objects/Account/describe?x=1'), 'PARAMETER_UNKNOWN');
      refused(await sam.get('/objects/account/describe'), 'OBJECT_NOT_FOUND');
    });
    it('forbidden', async () => refused(await sam.get('/objects/DemoOnly__c/describe'), 'OBJECT_NOT_FOUND'));
    it('other tenant', async () =>
      alike(await eve.get('/objects/DemoOnly__c/describe'), await eve.get('/objects/Nowhere__c/describe')));
  });

  describe('GET /data/{objectApiName}', () => {
    it('works: records, total when asked, nextCursor', async () => {
      const answer = await sam.get('/data/Account?take=2&includeTotal=true');
      answered(answer, 200);
      assert.deepEqual(Object.keys(answer.body).sort(), ['nextCursor', 'records', 'total']);
      assert.equal(answer.body.records.length, 2);
    });
    it('malformed', async () => {
      refused(await sam.get('/data/Account?tak=2'), 'PARAMETER_UNKNOWN');
      refused(await sam.get('/data/Account?where={'), 'PARAMETER_INVALID');
      refused(await sam.get('/data/Account?filters={"logic":"and"}'), 'FILTER_INVALID');
    });
    it('forbidden', async () => refused(await sam.get('/data/DemoOnly__c'), 'OBJECT_NOT_FOUND'));
    it('other tenant', async () => {
      alike(await eve.get('/data/DemoOnly__c'), await eve.get('/data/Nowhere__c'));
      const where = encodeURIComponent(JSON.stringify({ id: account.id }));
      assert.deepEqual((await eve.get(`/data/Account?where=${where}`)).body.records, []);
    });
  });

  describe('POST /data/{objectApiName}', () => {
    it('works: the created record with its ETag', async () => {
      const answer = await sam.post('/data/Contact', { name: 'New', lastName: 'New' });
      answered(answer, 201);
      assert.equal(answer.body.lastName, 'New');
      const read = await sam.get(`/data/Contact/${answer.body.id}`);
      assert.deepEqual([read.body, read.headers.get('etag')], [answer.body, answer.headers.get('etag')]);
    });
    it('malformed', async () => {
      refused(await sam.post('/data/Contact', '{'), 'REQUEST_MALFORMED');
      refused(await sam.post('/data/Contact', []), 'PARAMETER_INVALID');
      refused(await sam.post('/data/Contact', { name: 'x', lastName: 5 }), 'VALIDATION_FAILED');
      refused(await sam.post('/data/Contact', { name: 'x', lastName: 'x', Nothing__c: 5 }), 'VALIDATION_FAILED');
    });
    it('forbidden', async () => {
      refused(await sam.post('/data/Product', { name: 'x' }), 'OBJECT_PERMISSION_DENIED');
      refused(await sam.post('/data/Account', { name: 'x', discountPercent: 5 }), 'FIELD_PERMISSION_DENIED');
      refused(await sam.post('/data/DemoOnly__c', { name: 'x' }), 'OBJECT_NOT_FOUND');
    });
    it('other tenant', async () => {
      alike(await eve.post('/data/DemoOnly__c', { name: 'x' }), await eve.post('/data/Nowhere__c', { name: 'x' }));
      const refer = (accountId: string): Promise<Answer> =>
        eve.post('/data/Contact', { name: 'x', lastName: 'x', accountId });
      const [foreign, absent] = [await refer(account.id), await refer(nowhere)];
      refused(foreign, 'VALIDATION_FAILED');
      assert.deepEqual(foreign.body.errors, absent.body.errors);
    });
  });

  describe('GET /data/{objectApiName}/{id}', () => {
    it('works: the record with its ETag; 304 while it has not changed', async () => {
      const answer = await sam.get(`/data/Account/${account.id}`);
      answered(answer, 200);
      assert.equal(answer.body.name, account.name);
      const etag = answer.headers.get('etag')!;
      assert.equal(etag, account._etag);
      answered(await sam.get(`/data/Account/${account.id}`, { headers: { 'if-none-match': etag } }), 304);
    });
    it('malformed', async () => {
      refused(await sam.get('/data/Account/x'), 'PARAMETER_INVALID');
      refused(await sam.get(`/data/Account/${account.id}?fields=`), 'PARAMETER_INVALID');
    });
    it('forbidden', async () => refused(await sam.get(`/data/DemoOnly__c/${nowhere}`), 'OBJECT_NOT_FOUND'));
    it('other tenant', async () =>
      alike(await eve.get(`/data/Account/${account.id}`), await eve.get(`/data/Account/${nowhere}`)));
  });

  describe('PATCH /data/{objectApiName}/{id}', () => {
    it('works: the updated record with a new ETag, nothing else changed', async () => {
      const { path, etag } = await contact();
      const before = (await sam.get(path)).body;
      const answer = await sam.patch(path, { jobTitle: 'Buyer' }, { etag });
      answered(answer, 200);
      const { updatedAt, recordVersion } = answer.body;
      assert.deepEqual(answer.body, { ...before, jobTitle: 'Buyer', updatedAt, recordVersion });
      assert.notEqual(answer.headers.get('etag'), etag);
    });
    it('malformed', async () => {
      const { path, etag } = await contact();
      refused(await sam.patch(path, '{', { etag }), 'REQUEST_MALFORMED');
      refused(await sam.patch(path, {}, { etag }), 'VALIDATION_FAILED');
      refused(await sam.patch(path, { jobTitle: 'x' }), 'IF_MATCH_REQUIRED');
      refused(await sam.patch(path, { jobTitle: 'x' }, { etag: '*' }), 'IF_MATCH_INVALID');
      refused(await sam.patch(path, { createdAt: '2020-01-01T00:00:00Z' }, { etag }), 'VALIDATION_FAILED');
    });
    it('forbidden', async () => {
      const product = (await sam.get('/data/Product?take=1&includeEtag=true')).body.records[0];
      refused(
        await sam.patch(`/data/Product/${product.id}`, { name: 'x' }, { etag: product._etag }),
        'OBJECT_PERMISSION_DENIED',
      );
      refused(
        await sam.patch(`/data/Account/${account.id}`, { discountPercent: 5 }, { etag: account._etag }),
        'FIELD_PERMISSION_DENIED',
      );
    });
    it('other tenant', async () => {
      const change = (id: string): Promise<Answer> =>
        eve.patch(`/data/Account/${id}`, { name: 'x' }, { etag: account._etag });
      alike(await change(account.id), await change(nowhere));
      assert.equal((await sam.get(`/data/Account/${account.id}`)).body.name, account.name);
    });
  });

  describe('DELETE /data/{objectApiName}/{id}', () => {
    it('works: the deletion result; the record is gone', async () => {
      const { path, etag, id } = await contact();
      const answer = await sam.delete(path, { etag });
      answered(answer, 200);
      assert.deepEqual([answer.body.id, answer.body.objectApiName, answer.body.deleted], [id, 'Contact', true]);
      refused(await sam.get(path), 'RECORD_NOT_FOUND');
    });
    it('malformed', async () => {
      const { path, etag } = await contact();
      refused(await sam.delete(path), 'IF_MATCH_REQUIRED');
      refused(await sam.delete(path, { etag: 'x' }), 'IF_MATCH_INVALID');
      refused(await sam.delete(path, { etag: '"never"' }), 'ETAG_MISMATCH');
      refused(await sam.delete(path, { etag, idempotencyKey: 'short' }), 'IDEMPOTENCY_KEY_INVALID');
      answered(await sam.get(path), 200);
    });
    it('forbidden', async () =>
      refused(await sam.delete(`/data/Account/${account.id}`, { etag: account._etag }), 'OBJECT_PERMISSION_DENIED'));
    it('other tenant', async () => {
      const remove = (id: string): Promise<Answer> => eve.delete(`/data/Account/${id}`, { etag: account._etag });
      alike(await remove(account.id), await remove(nowhere));
      answered(await sam.get(`/data/Account/${account.id}`), 200);
    });
  });

  describe('GET /data/{objectApiName}/{id}/transitions', () => {
    it('works', async () => {
      const answer = await sam.get(`/data/Account/${account.id}/transitions`);
      answered(answer, 200);
      assert.ok(Array.isArray(answer.body.records));
    });
    it('malformed', async () =>
      refused(await sam.get(`/data/Account/${account.id}/transitions?x=1`), 'PARAMETER_UNKNOWN'));
    it('forbidden', async () => refused(await sam.get(`/data/DemoOnly__c/${nowhere}/transitions`), 'OBJECT_NOT_FOUND'));
    it('other tenant', async () =>
      alike(
        await eve.get(`/data/Account/${account.id}/transitions`),
        await eve.get(`/data/Account/${nowhere}/transitions`),
      ));
  });

  describe('metadata operations', () => {
    const demoOnly = { version: 1, types: [{ name: 'CustomObject', members: ['DemoOnly__c'] }] };

    it('POST /metadata/retrieve works: files as YAML by relative path, manifestHash, generatedAt', async () => {
      const answer = await ada.post('/metadata/retrieve', { package: demoOnly });
      answered(answer, 200);
      assert.match(answer.body.files['objects/DemoOnly__c/object.yaml'], /^type: CustomObject\napiName: DemoOnly__c\n/);
      assert.match(answer.body.manifestHash, /^sha256:[0-9a-f]{64}$/);
      assert.ok(!Number.isNaN(Date.parse(answer.body.generatedAt)));
    });
    it('POST /metadata/retrieve, other tenant: not found there', async () => {
      const { body } = await eve.post('/metadata/retrieve', { package: demoOnly });
      assert.equal('objects/DemoOnly__c/object.yaml' in body.files, false);
      assert.deepEqual(body.notFound, [{ type: 'CustomObject', member: 'DemoOnly__c' }]);
    });

    it('POST /metadata/validate works: the plan, with nothing applied', async () => {
      const files = objectFiles('Planned__c');
      const answer = await ada.post('/metadata/validate', {
        files,
        package: wholePackage(files),
        allowDestructiveChanges: false,
      });
      answered(answer, 200);
      const { valid, blocked, warnings, creates, updates, deletes, noops } = answer.body;
      assert.deepEqual([valid, blocked, updates, deletes, noops], [true, [], [], [], []]);
      assert.ok(Array.isArray(warnings) && creates.length === 1);
      refused(await ada.get('/objects/Planned__c/describe'), 'OBJECT_NOT_FOUND');
    });
    it('POST /metadata/validate, other tenant: what exists here is new there', async () => {
      const files = objectFiles('DemoOnly__c');
      const there = await eve.post('/metadata/validate', { files, package: wholePackage(files) });
      assert.equal(there.body.creates.length, 1, there.text);
      const here = await ada.post('/metadata/validate', { files, package: wholePackage(files) });
      assert.equal(here.body.creates.length, 0, here.text);
    });

    it('POST /metadata/deploy and GET /metadata/deployments/{deploymentId} work: QUEUED, then SUCCEEDED', async () => {
      const files = objectFiles('Deployed__c');
      const answer = await ada.post('/metadata/deploy', { files, package: wholePackage(files) });
      answered(answer, 202);
      assert.equal(answer.body.status, 'QUEUED');
      const deployment = await finished(answer.body.deploymentId);
      assert.equal(deployment.deploymentId, answer.body.deploymentId);
      answered(await ada.get('/objects/Deployed__c/describe'), 200);
      refused(await eve.get('/objects/Deployed__c/describe'), 'OBJECT_NOT_FOUND');
    });
    it('GET /metadata/deployments/{deploymentId}, other tenant', async () => {
      const files = objectFiles('Mine__c');
      const { body } = await ada.post('/metadata/deploy', { files, package: wholePackage(files), checkOnly: true });
      await finished(body.deploymentId);
      const read = (id: string): Promise<Answer> => eve.get(`/metadata/deployments/${id}`);
      alike(await read(body.deploymentId), await read(nowhere));
    });

    it('malformed', async () => {
      refused(await ada.post('/metadata/retrieve', {}), 'PARAMETER_REQUIRED');
      refused(await ada.post('/metadata/retrieve', { package: { version: 2, types: [] } }), 'PACKAGE_INVALID');
      for (const path of ['/metadata/validate', '/metadata/deploy']) {
        refused(await ada.post(path, { package: { version: 1, types: [] } }), 'PARAMETER_REQUIRED');
        refused(
          await ada.post(path, { files: { 'objects/X__c/object.yaml': '{' }, package: { version: 1, types: [] } }),
          'YAML_INVALID',
        );
      }
      refused(await ada.post('/metadata/deploy', {}, { idempotencyKey: null }), 'IDEMPOTENCY_KEY_REQUIRED');
      refused(await ada.get('/metadata/deployments/x'), 'PARAMETER_INVALID');
    });
    it('forbidden', async () => {
      const body = { files: {}, package: { version: 1, types: [] } };
      refused(await sam.post('/metadata/retrieve', { package: body.package }), 'METADATA_PERMISSION_DENIED');
      refused(await sam.post('/metadata/validate', body), 'METADATA_PERMISSION_DENIED');
      refused(await sam.post('/metadata/deploy', body), 'METADATA_PERMISSION_DENIED');
    });
  });
});

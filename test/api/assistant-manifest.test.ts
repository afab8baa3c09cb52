/** A program without built-in paths completes its workflows by the assistant manifest alone. */
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import { after, before, describe, it } from 'mocha';
import { call } from '../../contracts/call.ts';
import { walk } from '../../scripts/sign-in.ts';
import { type Api, api, demoPassword, tokenFor } from '../support/client.ts';
import { type Manifest, ManifestProgram, type Person } from '../support/manifest-program.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const RECORDS = ['discover-objects', 'find-records', 'create-record', 'update-record'];

describe('the assistant manifest', () => {
  let platform: TestPlatform;
  let manifest: Manifest;
  /** Mia without a program: concurrent actions of another user. */
  let colleague: Api;
  const programs: ManifestProgram[] = [];
  /** Address of the manifest; its relative addresses are resolved against it. */
  let source: string;

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    const response = await fetch(`${platform.baseUrl}/versions/latest/docs/ai-manifest.json`);
    assert.equal(response.status, 200);
    source = response.url;
    manifest = (await response.json()) as Manifest;
    colleague = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
  });
  after(() => platform?.stop());

  /** Signs in as this demo user, with the forms that a browser would show. */
  const person =
    (user: string): Person =>
    (address) =>
      walk(address, { username: `${user}@demo.example`, password: demoPassword() });

  const program = async (user: string, workflows: readonly string[]): Promise<ManifestProgram> => {
    const signedIn = new ManifestProgram(platform.baseUrl, manifest);
    await signedIn.signIn(person(user), workflows);
    programs.push(signedIn);
    return signedIn;
  };

  /** The object labeled accounts, found like a program would. */
  const accounts = async (sam: ManifestProgram): Promise<string> => {
    const values = await sam.run('discover-objects', {}, (at, found) => {
      if (at !== 'objects') return;
      const objects = found.get('objects') as { apiName: string; label: string; capabilities: object }[];
      found.set('objectApiName', objects.find(({ label }) => label === 'Account')?.apiName);
    });
    assert.ok((values.get('fields') as unknown[]).length > 5);
    return String(values.get('objectApiName'));
  };

  const overdueInvoice = async (by: ManifestProgram): Promise<{ objectApiName: string; id: string }> => {
    const objectApiName = 'Invoice__c';
    const filters = { logic: 'and', conditions: [{ id: 'c1', field: 'Status__c', operator: 'eq', value: 'overdue' }] };
    const [first] = (await by.run('find-records', { objectApiName, filters })).get('records') as { id: string }[];
    return { objectApiName, id: first!.id };
  };

  it('names documents with the checksums of the served bytes', async () => {
    for (const { url, sha256 } of [manifest.openapi, ...manifest.guides]) {
      const response = await fetch(new URL(url, source));
      const bytes = Buffer.from(await response.arrayBuffer());
      assert.equal(createHash('sha256').update(bytes).digest('hex'), sha256, url);
    }
  });

  it('is the start of /llms.txt, whose links resolve', async () => {
    const response = await fetch(`${platform.baseUrl}/llms.txt`);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
    const links = [...(await response.text()).matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link);
    assert.match(links[0] ?? '', /\/ai-manifest\.json$/);
    for (const link of links) assert.equal((await fetch(`${platform.baseUrl}${link}`)).status, 200, link);
  });

  it('leads from sign-in to the objects, their fields and their records', async () => {
    const sam = await program('sam', RECORDS);
    const objectApiName = await accounts(sam);
    const filters = {
      logic: 'and',
      conditions: [{ id: 'c1', field: 'name', operator: 'is_not_blank' }],
    };
    const values = await sam.run('find-records', { objectApiName, filters, sort: [{ id: 'name' }] });
    assert.ok((values.get('records') as unknown[]).length > 0);
    assert.equal(values.get('cursor'), null);
  });

  it("leads through a conflict with another user's change", async () => {
    const sam = await program('sam', RECORDS);
    const mia = await program('mia', RECORDS);
    const objectApiName = await accounts(sam);
    const created = await sam.run('create-record', { objectApiName, fields: { name: `Manifest ${randomUUID()}` } });
    const record = { objectApiName, id: created.get('id') };

    sam.trail.length = 0;
    let disturbed = false;
    const values = await sam.run('update-record', { ...record, changes: { city: 'Hamburg' } }, async (at) => {
      if (at !== 'read' || disturbed) return;
      disturbed = true;
      await mia.run('update-record', { ...record, changes: { city: 'Kiel' } });
    });
    assert.deepEqual(sam.trail, ['read 200', 'update 412', 'read 200', 'update 200']);
    assert.equal((values.get('record') as { city: string }).city, 'Hamburg');
  });

  it('leads through the confirmation of a duplicate', async () => {
    const sam = await program('sam', RECORDS);
    const objectApiName = await accounts(sam);
    const fields = { name: `Twofold ${randomUUID()} GmbH`, city: 'Bremen' };
    const first = await sam.run('create-record', { objectApiName, fields });

    sam.trail.length = 0;
    let shown: string[] = [];
    const second = await sam.run('create-record', { objectApiName, fields }, (at, values) => {
      if (at !== 'create DUPLICATE_RULE') return;
      const rules = values.get('rules') as { matches: { id: string }[] }[];
      shown = rules.flatMap(({ matches }) => matches.map(({ id }) => id));
    });
    assert.deepEqual(sam.trail, ['describe 200', 'create 409', 'confirm 201']);
    assert.ok(shown.includes(String(first.get('id'))));
    assert.notEqual(second.get('id'), first.get('id'));
  });

  it('leads to a validated package', async () => {
    const ada = await program('ada', ['validate-configuration']);
    const values = await ada.run(
      'validate-configuration',
      { package: { version: 1, types: [{ name: 'CustomObject', members: ['Account'] }] } },
      (at, given) => {
        if (at !== 'retrieve') return;
        const files = Object.entries(given.get('files') as Record<string, string>);
        given.set(
          'files',
          Object.fromEntries(
            files.map(([path, text]) => [path, text.replace('label: Account\n', 'label: Customer\n')]),
          ),
        );
      },
    );
    assert.equal(values.get('valid'), true, JSON.stringify(values.get('blocked')));
    assert.equal((values.get('updates') as unknown[]).length, 1);
  });

  it('leads through a transition on the current version', async () => {
    const fay = await program('fay', ['find-records', 'move-record']);
    const invoice = await overdueInvoice(fay);
    fay.trail.length = 0;
    let disturbed = false;
    const values = await fay.run(
      'move-record',
      { ...invoice, transitionKey: 'dispute', comment: 'Two desks arrived damaged.' },
      async (at) => {
        if (at !== 'transitions' || disturbed) return;
        disturbed = true;
        const { headers } = await colleague.get(`/data/Invoice__c/${invoice.id}`);
        const etag = headers.get('etag')!;
        assert.equal(
          (await colleague.patch(`/data/Invoice__c/${invoice.id}`, { Notes__c: 'Call.' }, { etag })).status,
          200,
        );
      },
    );
    assert.deepEqual(fay.trail, ['transitions 200', 'execute 412', 'transitions 200', 'execute 201']);
    assert.equal((values.get('record') as { Status__c: string }).Status__c, 'disputed');
  });

  it('leads to the layer that denies access', async () => {
    const sam = await program('sam', ['find-records', 'explain-refusal']);
    const values = await sam.run('explain-refusal', { ...(await overdueInvoice(sam)), operation: 'delete' });
    assert.equal(values.get('allowed'), false);
    const layers = values.get('layers') as { layer: string; result: string; remedy: string | null }[];
    assert.ok(layers.find(({ result }) => result === 'deny')?.remedy);
  });

  it('leads to a copy that misses no change', async () => {
    const sam = await program('sam', ['follow-changes']);
    const copy = new Map<string, string>();
    let created = '';
    await sam.run('follow-changes', { objectApiName: 'Account' }, async (at, values) => {
      if (at === 'list') {
        for (const one of values.get('records') as { id: string; name: string }[]) copy.set(one.id, one.name);
        // Changes made while the list is read are reported afterwards.
        if (created === '')
          created = (await colleague.post('/data/Account', { name: `Meanwhile ${randomUUID()}` })).body.id;
      }
      if (at === 'follow')
        for (const { id, record } of values.get('changes') as { id: string; record: { name: string } | null }[])
          if (record) copy.set(id, record.name);
          else copy.delete(id);
    });
    const { total } = (await colleague.get('/data/Account?take=1&includeTotal=true')).body;
    assert.equal(copy.size, total);
    assert.match(copy.get(created)!, /^Meanwhile /);
  });

  it('leads from a validated plan to its deployment', async () => {
    const ada = await program('ada', ['validate-configuration', 'deploy-configuration']);
    const selected = { version: 1, types: [{ name: 'CustomField', members: ['Invoice__c.CustomerReference__c'] }] };
    const plan = await ada.run('validate-configuration', { package: selected }, (at, values) => {
      if (at !== 'retrieve') return;
      const files = values.get('files') as Record<string, string>;
      const edited = Object.entries(files).map(([path, text]) => [
        path,
        text.replace(/^label: .*/m, 'label: Purchase order'),
      ]);
      values.set('files', Object.fromEntries(edited));
    });
    const deployed = await ada.run('deploy-configuration', Object.fromEntries(plan));
    assert.equal(deployed.get('status'), 'SUCCEEDED', JSON.stringify(deployed.get('error')));
  });

  describe('for an agent', () => {
    const goal = { agentKey: 'keeper', goal: 'Keep addresses right.', summary: 'One address corrected.' };
    const POLICY = {
      type: 'AgentPolicy',
      apiName: 'Keeper',
      appliesTo: { clients: ['erp-cli'] },
      rules: [{ operationIds: ['data.records.update'], decision: 'approve', approvers: [{ role: 'SalesManager' }] }],
    };
    before(async () => {
      const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
      await deployOverHttp(ada, { 'agentPolicies/Keeper.yaml': JSON.stringify(POLICY) });
    });

    for (const [decision, trail, city] of [
      ['approve', ['wait 200', 'update 200', 'complete 201'], 'Lübeck'],
      ['reject', ['wait 200', 'update 403', 'give-up 201'], 'Kiel'],
    ] as const)
      it(`waits for a person and follows the decision: ${decision}`, async () => {
        const sam = await program('sam', ['create-record', 'work-as-agent']);
        const fields = { name: `Agent ${randomUUID()}`, city: 'Kiel' };
        const id = (await sam.run('create-record', { objectApiName: 'Account', fields })).get('id');
        const record = { objectApiName: 'Account', id, changes: { city: 'Lübeck' } };
        sam.trail.length = 0;
        await sam.run('work-as-agent', { ...goal, ...record }, async (at, values) => {
          if (at !== 'update APPROVAL_REQUIRED') return;
          const path = `/agent/approvals/${values.get('approvalId')}`;
          const { fingerprint } = (await colleague.get(path)).body;
          const decided = await colleague.post(`${path}/decision`, {
            decision,
            fingerprint,
            comment: 'I have looked.',
          });
          assert.equal(decided.status, 201, decided.text);
        });
        assert.deepEqual(sam.trail, ['begin 201', 'read 200', 'update 403', ...trail]);
        assert.equal((await colleague.get(`/data/Account/${id}`)).body.city, city);
      });
  });

  it('leads to a dashboard shared with others', async () => {
    const mia = await program('mia', ['build-dashboard']);
    const widget = {
      widgetKey: 'open',
      title: 'Open',
      type: 'bar',
      layout: { x: 0, y: 0, w: 6, h: 4 },
      query: {
        objectApiName: 'Invoice__c',
        dimensions: [{ field: 'Status__c' }],
        measures: [{ key: 'open', aggregation: 'sum', field: 'OpenAmount__c' }],
      },
    };
    const inputs = { objectApiName: 'Invoice__c', name: 'Open invoices', widgets: [widget], widgetKey: 'open' };
    const values = await mia.run('build-dashboard', inputs);
    assert.ok((values.get('rows') as unknown[]).length > 1);
    assert.equal(values.get('revision'), 2);
  });

  describe('for a program without a user', () => {
    const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const client = (apiName: string, more: object): Record<string, string> => ({
      [`externalClients/${apiName}.yaml`]: JSON.stringify({
        type: 'ExternalClient',
        apiName,
        name: apiName,
        scopes: ['data:read'],
        grantTypes: ['client_credentials'],
        confidential: true,
        integrationUser: 'fay@demo.example',
        active: true,
        ...more,
      }),
    });
    const { x, y } = jwk.publicKey.export({ format: 'jwk' });
    const key = { kty: 'EC', crv: 'P-256', x, y, kid: 'one', alg: 'ES256', use: 'sig' };

    before(async () => {
      const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
      await deployOverHttp(ada, { ...client('Warehouse', {}), ...client('Signer', { jwks: { keys: [key] } }) });
    });

    const reads = async (one: ManifestProgram): Promise<void> => {
      const values = await one.run('find-records', {
        objectApiName: 'Account',
        filters: { logic: 'and', conditions: [{ id: 'c1', field: 'city', operator: 'eq', value: 'Berlin' }] },
      });
      assert.ok((values.get('records') as unknown[]).length > 0);
    };

    it('leads to a token by its secret', async () => {
      const tenantId = (await colleague.get('/identity')).body.tenant.id;
      const { secret } = await call(platform.broker, 'auth.clients.rotateSecret', { tenantId, apiName: 'Warehouse' });
      const warehouse = new ManifestProgram(platform.baseUrl, manifest);
      const clientCredentials = Buffer.from(`demo-Warehouse:${secret}`).toString('base64');
      await warehouse.goWay('program', { clientCredentials }, ['find-records']);
      await reads(warehouse);
    });

    it('leads to a token by its key', async () => {
      const { issuer } = (await (await fetch(`${platform.baseUrl}/.well-known/oauth-authorization-server`)).json()) as {
        issuer: string;
      };
      const clientAssertion = await new SignJWT({})
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .setIssuer('demo-Signer')
        .setSubject('demo-Signer')
        .setAudience(issuer)
        .setIssuedAt()
        .setExpirationTime('1m')
        .setJti(randomUUID())
        .sign(jwk.privateKey);
      const signer = new ManifestProgram(platform.baseUrl, manifest);
      await signer.goWay('program-with-key', { clientAssertion }, ['find-records']);
      await reads(signer);
    });
  });

  describe('as a whole', () => {
    it('has no workflow without a test of it here', () => {
      const followed = new Set(programs.flatMap((one) => [...one.followed]));
      assert.deepEqual(manifest.workflows.map(({ id }) => id).sort(), [...followed].sort());
    });
  });
});

/** A new tenant starts from its template, and what was interrupted is finished by repeating it. */
import assert from 'node:assert/strict';
import { call } from '../../../contracts/call.ts';
import { Database } from '../../../mixins/database/database.ts';
import { createTenant } from '../../../services/metadata/tenants.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { makeCompany } from './company.ts';

describe('creating a tenant', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform();
  });
  after(() => platform?.stop());

  const create = (params: Parameters<typeof call<'metadata.tenants.create'>>[2]) =>
    call(platform.broker, 'metadata.tenants.create', params);
  const described = async (key: string) => (await call(platform.broker, 'metadata.tenants.describe', { key }))[0];

  it('starts from the ERP, by default', async () => {
    const { admin } = await makeCompany(platform, 'bakery', 'erp');
    const { status, text } = await admin.post('/data/Account', { name: 'First customer' });
    assert.equal(status, 201, text);
    const { body } = await admin.get('/analytics/dashboards');
    assert.ok(body.records.length > 0);
  });

  it('without a template has users alone', async () => {
    const { admin } = await makeCompany(platform, 'plain', 'empty');
    assert.equal((await admin.get('/data/Account')).status, 404);
    assert.equal((await admin.get('/data/User')).status, 200);
  });

  it('finishes what a process that died between tenant and template has left', async () => {
    const owner = new Database(platform.database.url, { size: 2, applicationName: 'test' });
    const given = { key: 'halfway', name: 'Halfway Ltd', template: 'erp', timezone: 'Europe/London' } as const;
    await createTenant(owner, 'local', given).finally(() => owner.close());
    assert.equal((await described('halfway'))?.templatePending, true);
    const { created, tenantId } = await create(given);
    assert.equal(created, false);
    const done = await described('halfway');
    assert.deepEqual([done?.templatePending, done?.id], [false, tenantId]);
    const version = done?.metadataVersion;
    assert.ok(version! > 1, 'the template has made a version');
    // And once more, when everything is done.
    assert.deepEqual(await create(given), { created: false, tenantId });
    assert.equal((await described('halfway'))?.metadataVersion, version);
  });

  it('makes one tenant of calls at the same moment', async () => {
    const given = { key: 'race', name: 'Race Ltd', template: 'empty' } as const;
    const made = await Promise.all([create(given), create(given), create(given)]);
    assert.equal(new Set(made.map(({ tenantId }) => tenantId)).size, 1);
    assert.equal(made.filter(({ created }) => created).length, 1);
  });

  it('refuses the key of another company, and says all that is wrong', async () => {
    await assert.rejects(create({ key: 'demo', name: 'Another one', template: 'erp' }), (error: Error) => {
      assert.match(error.message, /There is a tenant demo already\. name was "Northwind Office GmbH"/);
      return true;
    });
    const wrong = { key: 'Demo!', name: ' ', template: 'crm', timezone: 'Mars', currency: '€', locale: '?' };
    await assert.rejects(create(wrong as never), (error: Error & { errors: { pointer: string }[] }) => {
      assert.deepEqual(
        error.errors.map(({ pointer }) => pointer),
        ['/key', '/name', '/template', '/locale', '/timezone', '/currency'],
      );
      return true;
    });
  });

  it('refuses a name that would break lines or never ends', async () => {
    for (const name of ['x'.repeat(201), 'two\nlines', 'bell\u0007'])
      await assert.rejects(create({ key: 'named', name, template: 'empty' }), /name must be a name of 200 characters/);
  });
});

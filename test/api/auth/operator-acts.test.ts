/** Operators' changes to a tenant's users and keys are recorded in the audit trail of that tenant. */
import assert from 'node:assert/strict';
import { call } from '../../../contracts/call.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { Database } from '../../../mixins/database/database.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { Browser } from './browser.ts';

describe('acts of an operator', function () {
  this.timeout(180_000);
  let platform: TestPlatform;
  let owner: Database;
  const tenants = new Map<string, string>();
  before(async () => {
    platform = await startPlatform();
    owner = new Database(platform.database.url, { size: 1, applicationName: 'operator test' });
    const { rows } = await owner.query<{ id: string; key: string }>('SELECT id, key FROM metadata.tenants');
    for (const { id, key } of rows) tenants.set(key, id);
  });
  after(async () => {
    await owner?.close();
    await platform?.stop();
  });

  const entries = async (key: string, operationId: string): Promise<Record<string, unknown>[]> => {
    const { rows } = await owner.query(
      `SELECT channel, user_id AS "userId", outcome, object, record_id AS "recordId", changes
        FROM ${tenantSchema(tenants.get(key)!)}._audit WHERE operation_id = $1 ORDER BY tx, audit_id`,
      [operationId],
    );
    return rows;
  };
  const committed = { channel: 'job', userId: null, outcome: 'committed' };
  const none = { object: null, recordId: null, changes: null };

  it('record the creation of a password link, and the password set with it', async () => {
    const tenantId = tenants.get('demo')!;
    const user = await call(platform.broker, 'data.users.find', { tenantId, username: 'sam@demo.example' });
    const { url } = await call(platform.broker, 'auth.users.createLink', { username: 'sam@demo.example' });
    const about = { object: 'User', recordId: user!.id, changes: null };
    assert.deepEqual(await entries('demo', 'auth.users.createLink'), [{ ...committed, ...about }]);
    assert.deepEqual(await entries('acme', 'auth.users.createLink'), []);
    const browser = new Browser();
    const password = 'entirely new words';
    await browser.submit(await browser.visit(platform.baseUrl + new URL(url).pathname), {
      password,
      repeated: password,
    });
    assert.deepEqual(await entries('demo', 'auth.users.setPassword'), [{ ...committed, channel: 'ui', ...about }]);
  });

  it('record mail domains, one entry each', async () => {
    const tenantId = tenants.get('acme')!;
    await call(platform.broker, 'auth.domains.add', { tenantId, domain: 'acme.test' });
    await call(platform.broker, 'auth.domains.remove', { tenantId, domain: 'ACME.test' });
    await call(platform.broker, 'auth.domains.remove', { tenantId, domain: 'acme.test' });
    const added = (await entries('acme', 'auth.domains.add')).at(-1);
    assert.deepEqual(added, { ...committed, ...none, changes: { domain: { from: null, to: 'acme.test' } } });
    assert.deepEqual(await entries('acme', 'auth.domains.remove'), [
      { ...committed, ...none, changes: { domain: { from: 'acme.test', to: null } } },
    ]);
  });

  it('record an act on all tenants in the trail of each', async () => {
    await call(platform.broker, 'auth.keys.rotate', {});
    await call(platform.broker, 'auth.secrets.reseal', {});
    for (const key of ['demo', 'acme'])
      for (const operationId of ['auth.keys.rotate', 'auth.secrets.reseal'])
        assert.deepEqual(await entries(key, operationId), [{ ...committed, ...none }], `${key} ${operationId}`);
  });
});

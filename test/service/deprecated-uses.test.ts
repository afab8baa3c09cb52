/** Usage records of deprecated operations: summed per day, visible to their tenant only, kept for 30 days. */
import assert from 'node:assert/strict';
import { call } from '../../contracts/call.ts';
import { uuidv7 } from '../../lib/values/ids.ts';
import { Database } from '../../mixins/database/database.ts';
import { AuthStore } from '../../services/auth/store/store.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const DAY_MS = 86_400_000;

describe('the stored use of deprecated operations', () => {
  let platform: TestPlatform;
  let database: Database;
  const [one, other] = [uuidv7(), uuidv7()];
  const use = (tenantId: string, operationId: string, clientId: string, requests: number, daysAgo: number) => ({
    ...{ tenantId, operationId, clientId, requests },
    lastUsedAt: new Date(Date.now() - daysAgo * DAY_MS).toISOString(),
  });
  const add = (...uses: ReturnType<typeof use>[]) => call(platform.broker, 'auth.deprecatedUses.add', { uses });
  const list = async (tenantId: string, ...operationIds: string[]) => {
    const { uses } = await call(platform.broker, 'auth.deprecatedUses.list', { tenantId, operationIds });
    return uses.map(({ operationId, clientId, clientName, requests }) => [operationId, clientId, clientName, requests]);
  };

  before(async function () {
    this.timeout(60_000);
    platform = await startPlatform({ seed: false });
    database = new Database(platform.database.url, { size: 2, applicationName: 'deprecated uses' });
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  it('sums the counts of several gateways by day', async () => {
    await add(use(one, 'old', 'erp-cli', 2, 3), use(one, 'old', 'erp-cli', 3, 3), use(one, 'old', 'script', 1, 1));
    await add(use(one, 'old', 'erp-cli', 5, 3), use(one, 'older', 'script', 7, 0));
    assert.deepEqual(await list(one, 'old', 'older'), [
      ['older', 'script', 'script', 7],
      ['old', 'script', 'script', 1],
      ['old', 'erp-cli', 'ERP command line', 10],
    ]);
    assert.deepEqual(await list(one, 'new'), []);
    const { rows } = await database.query('SELECT count(*)::integer AS count FROM auth.deprecated_uses');
    assert.equal(rows[0]?.['count'], 3, 'one row per tenant, operation, client and day');
  });

  it('is visible to its own tenant only', async () => {
    await add(use(other, 'old', 'theirs', 9, 0));
    assert.deepEqual(await list(other, 'old'), [['old', 'theirs', 'theirs', 9]]);
    assert.equal(
      (await list(one, 'old')).some(([, clientId]) => clientId === 'theirs'),
      false,
    );
  });

  it('is deleted after 30 days', async () => {
    await add(use(one, 'ancient', 'script', 1, 30), use(one, 'ancient', 'script', 1, 29));
    assert.deepEqual(await list(one, 'ancient'), [['ancient', 'script', 'script', 1]]);
    await new AuthStore(database).deleteExpired();
    const stored = await database.query("SELECT day FROM auth.deprecated_uses WHERE operation_id = 'ancient'");
    assert.equal(stored.rows.length, 1);
  });
});

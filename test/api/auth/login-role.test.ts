import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Database } from '../../../mixins/database/database.ts';
import { ensureServiceRole } from '../../../mixins/database/migrate.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { refresh, tokens } from './browser.ts';
import { ACME, type AuthHarness, SAM, startAuth } from './harness.ts';

describe('auth on a database whose login role is no superuser', () => {
  const role = `auth_login_${randomBytes(4).toString('hex')}`;
  let own: TestDatabase;
  let admin: Database;
  let auth: AuthHarness;
  before(async () => {
    own = await createDatabase();
    admin = new Database(own.url, { size: 1, applicationName: 'login role test' });
    // The service's role is shared by all databases of the server; an earlier test may have created it as superuser.
    await admin.query('CREATE SCHEMA auth');
    await ensureServiceRole(admin, 'auth');
    await admin.query('DROP SCHEMA auth');
    await admin.query(`CREATE ROLE ${role} LOGIN CREATEROLE PASSWORD 'secret' IN ROLE svc_auth`);
    await admin.query(`ALTER DATABASE ${own.name} OWNER TO ${role}`);
    const url = new URL(own.url);
    url.username = role;
    url.password = 'secret';
    auth = await startAuth({ databaseUrl: url.href });
  });
  after(async () => {
    await auth?.stop();
    await admin.query(`REASSIGN OWNED BY ${role} TO CURRENT_USER`);
    await admin.query(`DROP OWNED BY ${role}`);
    await admin.query(`DROP ROLE ${role}`);
    await admin.close();
    await own.drop();
  });

  it('signs users in: the tenant look-up may read across tenants despite row-level security', async () => {
    const { rows } = await auth.database.query<{ super: boolean }>(
      'SELECT rolsuper AS super FROM pg_roles WHERE rolname = current_user',
    );
    assert.equal(rows[0]!.super, false);
    const answer = await tokens(auth.baseUrl);
    assert.equal((await refresh(auth.baseUrl, answer.refresh_token)).status, 200);
  });

  it('still keeps work for one tenant from the rows of another', async () => {
    const found = await auth.database.shared('auth', ACME, (tx) =>
      tx.query('SELECT FROM auth.credentials WHERE user_id = $1', [SAM]),
    );
    assert.equal(found.rowCount, 0);
  });
});

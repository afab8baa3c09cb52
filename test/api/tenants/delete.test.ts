/** A deleted tenant can be restored for a while; afterwards only a proof of deletion remains. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { call } from '../../../contracts/call.ts';
import { Database } from '../../../mixins/database/database.ts';
import { derivedUrl } from '../../../mixins/database/logins.ts';
import { signIn } from '../../../scripts/sign-in.ts';
import { eraseDue } from '../../../services/metadata/lifecycle/erase.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { createJob, upload } from '../bulk/bulk.ts';
import { store } from '../files/world.ts';
import { type Company, makeCompany, refresh, within } from './company.ts';

const robotOf = (integrationUser: string) => ({
  files: {
    'externalClients/Robot.yaml':
      'type: ExternalClient\napiName: Robot\nname: Robot\nactive: true\nconfidential: true\n' +
      'grantTypes: [client_credentials]\nscopes: [data:read]\norigins: ["https://app.example"]\n' +
      `integrationUser: ${integrationUser}\n`,
  },
  package: { version: 1, types: [{ name: 'ExternalClient', members: ['Robot'] }] },
});

describe('a deleted tenant', function () {
  this.timeout(120_000);
  const folder = temporaryFolder('deleted-tenant');
  let platform: TestPlatform;
  /** The owner, who sees everything; and the erasing login of the metadata service. */
  let owner: Database;
  let login: Database;
  let survivor: Company;
  before(async () => {
    platform = await startPlatform({ seed: false, env: { DATA_DIR: folder } });
    owner = new Database(platform.database.url, { size: 2, applicationName: 'test' });
    login = new Database(derivedUrl(platform.database.url, 'metadata')!, { size: 2, applicationName: 'test' });
    // Erasing is the work of these tests: the platform's own rounds would take a tenant that is due out of their hands.
    await owner.query(
      `INSERT INTO pgboss.job (name, policy, start_after) VALUES ('metadata.erasure', 'exclusive', now() + interval '1 d')`,
    );
    survivor = await makeCompany(platform, 'survivor', 'erp');
  });
  after(async () => {
    await login?.close();
    await owner?.close();
    await platform?.stop();
  });

  const remove = (key: string, more: { confirm?: string; graceDays?: number } = {}) =>
    call(platform.broker, 'metadata.tenants.delete', { key, confirm: key, ...more });
  const described = async (key: string) => (await call(platform.broker, 'metadata.tenants.describe', { key }))[0];
  const proofsOf = (key: string) => call(platform.broker, 'metadata.tenants.listDeletions', { key });
  /** The column has milliseconds, which round up: a moment that has passed for certain. */
  const due = (key: string) =>
    owner.query("UPDATE metadata.tenants SET delete_at = now() - interval '1 s' WHERE key = $1", [key]);
  const erase = (database: Database = login) => {
    const failures: unknown[] = [];
    const left: unknown[] = [];
    return eraseDue(database, {
      eraseContents: async (tenantId) => {
        const { removed } = await call(platform.broker, 'files.tenants.erase', { tenantId });
        return removed + (await call(platform.broker, 'bulk.tenants.erase', { tenantId })).removed;
      },
      erased: () => {},
      failed: (_, error) => failures.push(error),
      left: (_, remaining) => left.push(remaining),
    }).then(() => ({ failures, left }));
  };

  const blobsIn = (name: string): number => {
    const path = join(folder, 'files', name);
    return existsSync(path) ? readdirSync(path).length : 0;
  };

  /** Every row of every table of every schema that contains one of the texts, except for the proofs of deletion. */
  async function rowsWith(texts: readonly string[]): Promise<string[]> {
    const { rows: tables } = await owner.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND (schemaname, tablename) <> ('metadata', 'deletions')`,
    );
    assert.ok(tables.length > 100, `${tables.length} tables`);
    const found: string[] = [];
    for (const { name } of tables) {
      const { rows } = await owner.query<{ text: string }>(
        `SELECT left(one::text, 200) AS text FROM ${name} one WHERE one::text LIKE ANY ($1)`,
        [texts.map((text) => `%${text}%`)],
      );
      found.push(...rows.map(({ text }) => `${name}: ${text}`));
    }
    const { rows: roles } = await owner.query<{ name: string }>(
      `SELECT rolname AS name FROM pg_roles WHERE rolname LIKE ANY ($1)
       UNION SELECT nspname FROM pg_namespace WHERE nspname LIKE ANY ($1)`,
      [texts.map((text) => `%${text}%`)],
    );
    return [...found, ...roles.map(({ name }) => name)];
  }

  /** A company with data in as many tables as possible. */
  async function busyCompany(key: string): Promise<Company & { userIds: string[] }> {
    const company = await makeCompany(platform, key, 'erp');
    const { admin, tenantId } = company;
    const made = await admin.post('/data/Account', { name: 'Customer' });
    assert.equal(made.status, 201, made.text);
    const changed = await admin.patch(
      `/data/Account/${made.body.id}`,
      { name: 'Customer & Co' },
      { etag: made.headers.get('etag')! },
    );
    assert.equal(changed.status, 200, changed.text);
    const user = await admin.post('/data/User', {
      username: `bob@${key}.example`,
      email: `bob@${key}.example`,
      displayName: 'Bob',
      profileApiName: 'SalesRep',
    });
    assert.equal(user.status, 201, user.text);
    const { body: accepted } = await admin.post('/metadata/deploy', robotOf(company.adminName));
    await within(20, async () => {
      const { body } = await admin.get(`/metadata/deployments/${accepted.deploymentId}`);
      assert.notEqual(body.status, 'FAILED', JSON.stringify(body));
      return body.status === 'SUCCEEDED';
    });
    await call(platform.broker, 'auth.clients.rotateSecret', { tenantId, apiName: 'Robot' });
    await store(admin, 'Contract');
    const jobId = await createJob(admin, { operation: 'create', objectApiName: 'Account' });
    assert.equal((await upload(admin, jobId, 1, 'name\nCustomer')).status, 201);
    const { body: board, status } = await admin.get('/analytics/dashboards');
    assert.equal(status, 200);
    assert.ok(board.records.length > 0);
    await call(platform.broker, 'auth.users.createLink', { username: company.adminName, tenantId });
    for (const typed of ['wrong', 'wrong again'])
      await assert.rejects(signIn({ baseUrl: platform.baseUrl, user: company.adminName, password: typed }));
    return { ...company, userIds: [company.adminId, String(user.body.id)] };
  }

  it('is suspended at once, and complete again when the deletion is revoked', async () => {
    const regret = await makeCompany(platform, 'regret');
    for (const confirm of ['', 'Regret', 'survivor', undefined])
      await assert.rejects(remove('regret', { confirm: confirm as string }), /confirm must be the key/);
    for (const graceDays of [-1, 1.5, 366, '3' as never])
      await assert.rejects(remove('regret', { graceDays }), /graceDays must be a whole number/);
    assert.equal((await described('regret'))?.state, 'active');

    const deleted = await remove('regret');
    assert.equal(deleted.state, 'deleting');
    const days = (Date.parse(deleted.deleteAt!) - Date.now()) / 86_400_000;
    assert.ok(days > 29.9 && days < 30.1, `${days} days`);
    await within(4, async () => (await regret.admin.get('/identity')).status === 403);
    // Repeating the call does not extend the period; a call with days does.
    assert.equal((await remove('regret')).deleteAt, deleted.deleteAt);
    assert.notEqual((await remove('regret', { graceDays: 5 })).deleteAt, deleted.deleteAt);
    await assert.rejects(call(platform.broker, 'metadata.tenants.resume', { key: 'regret' }), /undelete it first/);

    const back = await call(platform.broker, 'metadata.tenants.undelete', { key: 'regret' });
    assert.deepEqual([back.state, back.deleteAt], ['active', null]);
    await within(4, async () => (await regret.admin.get('/identity')).status === 200);
    assert.equal((await refresh(platform.baseUrl, regret.tokens.refresh_token!)).status, 200);
    const { body } = await regret.admin.get('/events/audit?operationId=metadata.tenants.delete');
    assert.equal(body.records.length, 2);
    await erase();
    assert.equal((await described('regret'))?.state, 'active');
  });

  it('stays suspended when it was so before its deletion', async () => {
    await makeCompany(platform, 'twice');
    await call(platform.broker, 'metadata.tenants.suspend', { key: 'twice', reason: 'Not paid.' });
    await remove('twice');
    const back = await call(platform.broker, 'metadata.tenants.undelete', { key: 'twice' });
    assert.deepEqual([back.state, back.suspension?.reason], ['suspended', 'Not paid.']);
  });

  it('leaves nothing but a proof, and its key and domain to others', async () => {
    const gone = await busyCompany('gone');
    const id = gone.tenantId;
    await owner.query(
      `INSERT INTO pgboss.job (name, data, start_after)
        VALUES ('data.userSync', jsonb_build_object('tenantId', $1::text), now() + interval '1 day')`,
      [id],
    );
    const traces = [id, id.replaceAll('-', ''), ...gone.userIds];
    assert.ok((await rowsWith(traces)).length > 100, 'the search finds what is there');
    const kept = (await rowsWith([survivor.tenantId])).length;
    const contents = (): number => [id, `bulk/${id}`].reduce((sum, name) => sum + blobsIn(name), 0);
    assert.equal(contents(), 2);
    await remove('gone', { graceDays: 0 });
    // Requests under way end first.
    await erase();
    assert.equal((await described('gone'))?.state, 'deleting');
    const jobs = await owner.query(`SELECT FROM pgboss.job_common WHERE strpos(data::text, $1) > 0`, [id]);
    await due('gone');
    assert.deepEqual(await erase(), { failures: [], left: [] });

    assert.deepEqual(await rowsWith(traces), []);
    assert.equal(contents(), 0);
    assert.equal((await rowsWith([survivor.tenantId])).length, kept);
    assert.equal((await survivor.admin.get('/data/Account')).status, 200);
    const [proof, ...more] = await proofsOf('gone');
    assert.equal(more.length, 0);
    assert.deepEqual(
      [proof!.tenantId, proof!.key, proof!.name, proof!.rolesRemoved, proof!.remaining],
      [id, 'gone', 'gone Ltd', true, {}],
    );
    assert.ok(proof!.finishedAt && proof!.tablesChecked! > 20, JSON.stringify(proof));
    for (const [table, rows] of [
      ['auth.credentials', 2],
      ['auth.domains', 1],
      ['auth.client_secrets', 1],
      ['pgboss.job_common', jobs.rows.length],
      ['tenant.User', 2],
      ['tenant.Account', 1],
    ] as const)
      assert.equal(proof!.removed[table], rows, JSON.stringify(proof!.removed));
    const seen = await call(platform.broker, 'metadata.tenants.findTraces', { tenantId: id });
    assert.deepEqual(seen.remaining, {});
    await assert.rejects(
      call(platform.broker, 'metadata.tenants.findTraces', { tenantId: survivor.tenantId }),
      /must be the id of an erased tenant/,
    );

    assert.equal((await gone.admin.get('/identity')).status, 401);
    const anew = await makeCompany(platform, 'gone');
    assert.notEqual(anew.tenantId, id);
    assert.equal((await anew.admin.get('/data/User')).body.records.length, 1);
    // The old token stays invalid, whatever the key is used for.
    assert.equal((await gone.admin.get('/identity')).status, 401);
  });

  it('is erased once, with correct numbers, when a process dies after any of the steps', async () => {
    const mortal = await busyCompany('mortal');
    const count = async (table: string): Promise<number> =>
      (
        await owner.query<{ rows: number }>(`SELECT count(*)::int AS rows FROM ${table} WHERE tenant_id = $1`, [
          mortal.tenantId,
        ])
      ).rows[0]!.rows;
    const before = { grants: await count('auth.grants'), components: await count('metadata.components') };
    await remove('mortal', { graceDays: 0 });
    await due('mortal');
    let steps = 0;
    /** A process that dies after so many transactions. */
    const dying = (after: number): Database => {
      let lives = after;
      return new Proxy(login, {
        get(target, name) {
          const value = Reflect.get(target, name, target);
          if (name !== 'transaction') return typeof value === 'function' ? value.bind(target) : value;
          return async (work: Parameters<Database['transaction']>[0]) => {
            if (lives-- === 0) throw new Error('dead');
            steps = Math.max(steps, after);
            return target.transaction(work);
          };
        },
      });
    };
    for (let round = 0; round < 100 && (await proofsOf('mortal'))[0]?.finishedAt == null; round++) {
      await erase(dying(round + 1));
      if (round > 0) continue;
      // It can no longer be restored, and the key is not free yet.
      await assert.rejects(call(platform.broker, 'metadata.tenants.undelete', { key: 'mortal' }), /no way back/);
      await assert.rejects(
        call(platform.broker, 'metadata.tenants.create', { key: 'mortal', name: 'New', template: 'empty' }),
        /is being erased/,
      );
    }
    assert.ok(steps > 3, `${steps} steps`);
    assert.deepEqual(await rowsWith([mortal.tenantId, mortal.tenantId.replaceAll('-', ''), ...mortal.userIds]), []);
    const proofs = await proofsOf('mortal');
    assert.equal(proofs.length, 1);
    assert.equal(proofs[0]!.removed['auth.grants'], before.grants);
    assert.equal(proofs[0]!.removed['metadata.components'], before.components);
  });

  it('is erased once by two simultaneous processes', async () => {
    const race = await makeCompany(platform, 'raced');
    await remove('raced', { graceDays: 0 });
    await due('raced');
    const rounds = await Promise.all([erase(), erase(), erase()]);
    assert.deepEqual((await erase()).failures, [], JSON.stringify(rounds.map(({ failures }) => failures.map(String))));
    const [proof] = await proofsOf('raced');
    assert.equal(proof?.removed['auth.credentials'], 1);
    assert.ok(proof?.finishedAt);
    assert.deepEqual(await rowsWith([race.tenantId]), []);
  });

  it('reports leftovers, and stays unfinished with them', async () => {
    const stain = await makeCompany(platform, 'stain');
    await owner.query('CREATE TABLE auth.stain (note text)');
    await owner.query('INSERT INTO auth.stain VALUES ($1)', [`about ${stain.tenantId}`]);
    await remove('stain', { graceDays: 0 });
    await due('stain');
    assert.deepEqual(await erase(), { failures: [], left: [{ 'auth.stain': 1 }] });
    const [proof] = await proofsOf('stain');
    assert.deepEqual([proof?.finishedAt, proof?.remaining], [null, { 'auth.stain': 1 }]);
    await owner.query('DROP TABLE auth.stain');
    await erase();
    assert.ok((await proofsOf('stain'))[0]?.finishedAt);
  });
});

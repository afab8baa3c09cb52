/** The second lock behind our own checks: no statement runs as another tenant, whatever happened on the connection before. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { tenantSchema } from '../../../lib/context.ts';
import { Database, sqlState } from '../../../mixins/database/database.ts';
import { ensureServiceRole } from '../../../mixins/database/migrate.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

const A = '01990000-0000-7000-8000-00000000aaa1';
const B = '01990000-0000-7000-8000-00000000bbb2';
const NOBODY = '01990000-0000-7000-8000-00000000ccc3';

describe('roles of the database', () => {
  let server: TestDatabase;
  let database: Database;
  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 2, applicationName: 'roles test' });
    for (const tenant of [A, B]) {
      const role = tenantSchema(tenant);
      await database.query(`DO $$ BEGIN CREATE ROLE ${role} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
        CREATE SCHEMA ${role}; CREATE TABLE ${role}.thing (id int, name text);
        INSERT INTO ${role}.thing SELECT i, '${role}' FROM generate_series(1, 3) i;
        GRANT USAGE ON SCHEMA ${role} TO ${role}; GRANT SELECT, INSERT ON ${role}.thing TO ${role}`);
    }
    await database.query(
      `DO $$ BEGIN CREATE ROLE svc_roles NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
    );
    await database.query('CREATE TABLE public.open (who text); GRANT ALL ON public.open TO PUBLIC');
  });
  after(async () => {
    await database.close();
    for (const tenant of [A, B]) await drop(tenantSchema(tenant));
    await drop('svc_roles');
    await server.drop();
  });
  const drop = async (role: string): Promise<void> => {
    const cleaner = new Database(server.url, { size: 1, applicationName: 'roles test' });
    await cleaner.query(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`);
    await cleaner.close();
  };

  const WHO = "SELECT current_user::text AS who, coalesce(current_setting('app.tenant_id', true), '') AS tenant";
  const failing = (work: Promise<unknown>): Promise<unknown> => work.catch(() => {});

  /** Possible work on a connection; each checks its role. */
  const happenings: Record<string, (tenant: string) => Promise<void>> = {
    async reads(tenant) {
      const [who, rows] = await database.tenant(tenant, (tx) =>
        Promise.all([tx.query(WHO), tx.query(`SELECT name FROM ${tx.schema}.thing`)]),
      );
      assert.deepEqual(who.rows, [{ who: tenantSchema(tenant), tenant: '' }]);
      assert.ok(rows.rows.every((row) => row['name'] === tenantSchema(tenant)));
    },
    async 'reads a page'(tenant) {
      const page = await database.tenant(tenant, (tx) => {
        const text = `SELECT name, id::text FROM ${tx.schema}.thing ORDER BY id`;
        const statement = { text, name: `page ${tx.schema}`, shown: 1, marker: 1, take: 2 };
        return Promise.all([
          tx.page(statement, '['),
          failing(tx.page({ ...statement, text: 'SELECT 1/0', name: 'bad' }, '[')),
          tx.page(statement, '['),
        ]);
      });
      for (const one of [page[0], page[2]]) {
        assert.deepEqual([one.count, one.more], [2, true]);
        assert.ok(one.writer.finish().toString().split(tenantSchema(tenant)).length === 3);
      }
    },
    async 'fails in the middle of a pipeline'(tenant) {
      await database.tenant(tenant, async (tx) => {
        const bad = failing(tx.query({ name: 'zero', text: 'SELECT 1/0' }));
        const who = tx.query(WHO);
        await bad;
        assert.equal((await who).rows[0]!['who'], tenantSchema(tenant));
      });
    },
    async 'leaves statements behind'(tenant) {
      await failing(
        database.tenant(tenant, async (tx) => {
          failing(tx.query('SELECT pg_sleep(0.005)'));
          failing(tx.query('SELECT 1/0'));
          throw new Error('gone');
        }),
      );
    },
    async 'aborts a transaction'(tenant) {
      await failing(database.tenantTransaction(tenant, (tx) => tx.query('SELECT 1/0')));
    },
    async 'runs out of time'(tenant) {
      const work = database.tenantTransaction(tenant, async (tx) => {
        await tx.query('SET LOCAL statement_timeout = 5');
        await tx.query('SELECT pg_sleep(1)');
      });
      await assert.rejects(work, { code: '57014' });
    },
    async 'loses the connection'(tenant) {
      await failing(database.tenant(tenant, (tx) => tx.query('SELECT 1')));
      await failing(database.query('SELECT pg_terminate_backend(pg_backend_pid())'));
    },
    async 'works on shared tables'(tenant) {
      const { rows } = await database.shared('roles', tenant, (tx) => tx.query(WHO));
      assert.deepEqual(rows, [{ who: 'svc_roles', tenant }]);
    },
    async 'works on shared tables for nobody'() {
      const { rows } = await database.shared('roles', null, (tx) => tx.query(WHO));
      assert.deepEqual(rows, [{ who: 'svc_roles', tenant: '' }]);
    },
    async 'fails on shared tables'(tenant) {
      await failing(database.shared('roles', tenant, (tx) => tx.query('SELECT 1/0')));
    },
    async 'asks for a tenant that is not there'() {
      await assert.rejects(
        database.tenant(NOBODY, (tx) => tx.query('SELECT 1')),
        (error) => sqlState(error) === '22023',
      );
    },
    async 'looks into the other tenant'(tenant) {
      const other = tenantSchema(tenant === A ? B : A);
      await assert.rejects(
        database.tenant(tenant, (tx) => tx.query(`SELECT * FROM ${other}.thing`)),
        { code: '42501' },
      );
    },
  };

  it('apply to one use of a connection, regardless of earlier ones', async function () {
    this.timeout(60_000);
    const step = fc.record({ what: fc.constantFrom(...Object.keys(happenings)), tenant: fc.constantFrom(A, B) });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { maxLength: 12 }), async (rounds) => {
        for (const round of rounds) await Promise.all(round.map(({ what, tenant }) => happenings[what]!(tenant)));
        for (const tenant of [A, B]) await happenings['reads']!(tenant);
      }),
      { numRuns: 40 },
    );
  });

  it('that cannot be set prevent any statement under another role', async () => {
    await database.tenant(A, (tx) => tx.query('SELECT 1'));
    const write = { text: 'INSERT INTO public.open VALUES (current_user) RETURNING who' };
    for (const work of [
      database.tenant(NOBODY, (tx) => tx.query(write)),
      database.tenantTransaction(NOBODY, (tx) => tx.query(write)),
    ])
      await assert.rejects(work, (error) => sqlState(error) === '22023');
    assert.deepEqual((await database.query('SELECT * FROM public.open')).rows, []);
  });

  it('created by another role are reported when the platform cannot use them', async () => {
    await database.query(`DO $$ BEGIN CREATE ROLE outsider LOGIN PASSWORD 'outsider';
      EXCEPTION WHEN duplicate_object THEN NULL; END $$`);
    const url = Object.assign(new URL(server.url), { username: 'outsider', password: 'outsider' }).toString();
    const other = new Database(url, { size: 1, applicationName: 'roles test' });
    try {
      await assert.rejects(ensureServiceRole(other, 'roles'), /is not a member of the role svc_roles/);
    } finally {
      await other.close();
      await drop('outsider');
    }
  });

  it('of a service are created once by concurrently starting processes', async () => {
    await database.query('CREATE SCHEMA roles; CREATE TABLE roles.one (id int); CREATE TABLE roles.two (id serial)');
    const processes = [1, 2, 3, 4].map(() => new Database(server.url, { size: 1, applicationName: 'roles test' }));
    try {
      for (let round = 1; round <= 20; round++)
        await Promise.all(processes.map((each) => ensureServiceRole(each, 'roles')));
    } finally {
      await Promise.all(processes.map((each) => each.close()));
    }
  });

  it('fail with the error of a statement that the work ignored, because nothing is committed', async () => {
    const work = database.tenantTransaction(A, async (tx) => {
      await tx.query('INSERT INTO public.open VALUES (current_user)');
      await failing(tx.query('SELECT 1/0'));
    });
    await assert.rejects(work, /division by zero/);
  });
});

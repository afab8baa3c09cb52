/** Models run on a connection that the database door lends: its role, its transaction, its errors, and bound values. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { col, fn, Op, where } from 'sequelize';
import { Database, isConnectionError, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { ensureServiceRole, migrate } from '../../../mixins/database/migrate.ts';
import { NOW, on, secondsFromNow } from '../../../mixins/models/sequelize.ts';
import { ClientSecretModel } from '../../../services/auth/models/client-secret.ts';
import { CredentialModel } from '../../../services/auth/models/credential.ts';
import { PasswordLinkModel } from '../../../services/auth/models/password-link.ts';
import { TenantOriginsModel } from '../../../services/auth/models/tenant-origins.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

const A = '01990000-0000-7000-8000-00000000aaa1';
const B = '01990000-0000-7000-8000-00000000bbb2';
const user = (tenantId: string, username: string) => ({
  tenantId,
  userId: `${tenantId.slice(0, -4)}${tenantId === A ? '0001' : '0002'}`,
  username,
  email: `${username}@example.com`,
  active: true,
});
const INJECTION = "x'; DROP TABLE auth.credentials; -- \\' OR '1'='1 $1 $2 :name ?";

describe('models on the database door', () => {
  let server: TestDatabase;
  let database: Database;
  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 2, applicationName: 'models test' });
    await migrate(database, 'auth', join(import.meta.dirname, '../../../services/auth/migrations'));
    await ensureServiceRole(database, 'auth');
    for (const [tenantId, username] of [
      [A, 'ann'],
      [B, 'bob'],
    ] as const)
      await database.shared('auth', tenantId, (tx) => CredentialModel.create(user(tenantId, username), on(tx)));
  });
  after(async () => {
    await database.close();
    await server.drop();
  });

  const usernames = async (tx: Tx): Promise<string[]> =>
    (await CredentialModel.findAll({ order: ['username'], ...on(tx) })).map(({ username }) => username);

  it('runs as the role of the service and sees the rows of one tenant alone', async () => {
    assert.deepEqual(await database.shared('auth', A, usernames), ['ann']);
    assert.deepEqual(await database.shared('auth', B, usernames), ['bob']);
    assert.deepEqual(await database.shared('auth', null, usernames), []);
    assert.deepEqual(await database.login(usernames), ['ann', 'bob']);
    await database.shared('auth', A, async (tx) => {
      const changes = { active: false };
      assert.deepEqual(await CredentialModel.update(changes, { where: { tenantId: B }, ...on(tx) }), [0]);
      assert.equal(await CredentialModel.destroy({ where: { tenantId: B }, ...on(tx) }), 0);
    });
    await assert.rejects(
      database.shared('auth', A, (tx) => CredentialModel.create(user(B, 'eve'), on(tx))),
      { code: '42501' },
    );
  });

  it('sends the one statement, with all values bound, and prepares it once', async () => {
    const sent: { text: string; values: unknown[] }[] = [];
    await database.shared('auth', A, async (tx) => {
      const { client } = tx;
      const query = client.query.bind(client);
      const spy = (statement: string | { text: string; values: unknown[] }, ...rest: unknown[]) => {
        sent.push(typeof statement === 'string' ? { text: statement, values: [] } : statement);
        return Reflect.apply(query, client, [statement, ...rest]);
      };
      Object.assign(client, { query: spy });
      const tokenHash = Buffer.from(INJECTION);
      const row = { tenantId: A, userId: user(A, '').userId, tokenHash, expiresAt: secondsFromNow(60) };
      await PasswordLinkModel.create(row, on(tx));
      const live = { tenantId: A, tokenHash: { [Op.in]: [tokenHash] }, expiresAt: { [Op.gt]: NOW } };
      assert.equal(await PasswordLinkModel.count({ where: live, ...on(tx) }), 1);
      await ClientSecretModel.upsert({ tenantId: A, apiName: INJECTION, secretHash: tokenHash }, on(tx));
      await CredentialModel.findOne({ where: where(fn('lower', col('username')), fn('lower', INJECTION)), ...on(tx) });
      await TenantOriginsModel.findOne({ where: { origins: { [Op.contains]: [INJECTION] } }, ...on(tx) });
      await CredentialModel.update({ email: INJECTION }, { where: { username: [INJECTION, 'none'] }, ...on(tx) });
      await PasswordLinkModel.destroy({ where: { tokenHash }, limit: 3, ...on(tx) });
      await PasswordLinkModel.bulkCreate([row], on(tx));
      await PasswordLinkModel.destroy({ where: { tokenHash }, limit: 4, ...on(tx) });
      Reflect.deleteProperty(client, 'query');
    });
    const [create, count, ...others] = sent;
    assert.match(create!.text, /^INSERT INTO "auth"."password_links" /);
    assert.match(count!.text, /^SELECT count\(\*\) /);
    assert.deepEqual(count!.values, [A, Buffer.from(INJECTION)]);
    assert.equal(others.length, 7);
    for (const { text } of sent) {
      assert.match(text, /^(?:SELECT|INSERT|UPDATE|DELETE) /);
      assert.doesNotMatch(text, /'/);
    }
    assert.equal(
      new Set(sent.map(({ text }) => text)).size,
      sent.length - 2,
      'calls that differ in values share a text',
    );
  });

  it('keeps a value a value, whatever is in it', async () => {
    await database.shared('auth', A, async (tx) => {
      await ClientSecretModel.upsert({ tenantId: A, apiName: INJECTION, secretHash: Buffer.from([1]) }, on(tx));
      const found = await ClientSecretModel.findOne({ where: { tenantId: A, apiName: INJECTION }, ...on(tx) });
      assert.deepEqual(found?.secretHash, Buffer.from([1]));
      assert.equal(await ClientSecretModel.findOne({ where: { apiName: "x' OR 'a'='a" }, ...on(tx) }), null);
      await ClientSecretModel.update({ apiName: `${INJECTION}2` }, { where: { apiName: INJECTION }, ...on(tx) });
      assert.equal(await ClientSecretModel.destroy({ where: { apiName: `${INJECTION}2` }, ...on(tx) }), 1);
    });
    assert.deepEqual(await database.login(usernames), ['ann', 'bob']);
  });

  it('returns rows as plain objects, with columns parsed by the database door', async () => {
    const where = { tenantId: A };
    const row = await database.shared('auth', A, (tx) => CredentialModel.findOne({ where, ...on(tx) }));
    assert.ok(row);
    assert.equal(Object.getPrototypeOf(row), Object.prototype);
    assert.match(String(row.createdAt), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\+00$/);
    assert.equal(row.passwordHash, null);
  });

  it('is undone with the transaction', async () => {
    const where = { tenantId: A };
    await assert.rejects(
      database.shared('auth', A, async (tx) => {
        await CredentialModel.update({ username: 'gone' }, { where, ...on(tx) });
        assert.deepEqual(await usernames(tx), ['gone']);
        throw new Error('undo');
      }),
      /undo/,
    );
    assert.deepEqual(await database.shared('auth', A, usernames), ['ann']);
  });

  it('reports the error of PostgreSQL, without the values of the statement', async () => {
    const failed = await database
      .shared('auth', A, (tx) => CredentialModel.create({ ...user(A, 'ANN'), userId: randomUUID() }, on(tx)))
      .then(
        () => assert.fail('It was not refused.'),
        (error: unknown) => error,
      );
    assert.equal(sqlState(failed), '23505');
    assert.ok(failed instanceof pg.DatabaseError);
    assert.deepEqual([Reflect.get(failed, 'sql'), Reflect.get(failed, 'parameters')], [undefined, undefined]);
    const lost = await database
      .login(async (tx) => {
        await tx.query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {});
        return usernames(tx);
      })
      .then(
        () => assert.fail('It was not refused.'),
        (error: unknown) => error,
      );
    assert.ok(isConnectionError(lost));
    assert.deepEqual(await database.shared('auth', A, usernames), ['ann'], 'the pool has dropped the connection');
  });

  it('refuses a call without a connection of the door', async () => {
    await assert.rejects(CredentialModel.findAll(), /pass \.\.\.on\(tx\)/);
    await assert.rejects(CredentialModel.sync(), /pass \.\.\.on\(tx\)/);
  });
});

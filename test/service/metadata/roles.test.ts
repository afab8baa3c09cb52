/** The second lock of the deployment path: PostgreSQL refuses what the role of each part of the work may not do. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { tenantSchema } from '../../../lib/context.ts';
import { Database, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { ownerRole, tenantRole } from '../../../mixins/database/roles.ts';
import { IndexUpkeep } from '../../../services/metadata/indexes.ts';
import { deployTemplate } from '../../../services/metadata/tenants.ts';
import {
  createMetadataTenant,
  fieldFile,
  type MetadataTenant,
  objectFiles,
  wholePackage,
} from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

/** A statement's view of its own role, and the SQLSTATE or row count of everything it should not be able to do. */
interface Seen {
  readonly role: string;
  readonly crossings: readonly (string | number | null)[];
}

const STATEMENTS: ReadonlySet<PropertyKey> = new Set(['query', 'all', 'first', 'one', 'arrays']);

/**
 * The same transaction with our own lock open: ahead of each statement, in the same role, others reach for the tables of
 * another tenant.
 */
function intruded(tx: Tx, crossings: readonly string[], seen: Promise<Seen>[]): Tx {
  const attempt = async (text: string): Promise<string | number | null> => {
    const sent = [tx.client.query('SAVEPOINT intrusion'), tx.query(text), tx.client.query('ROLLBACK TO intrusion')];
    const [, crossed] = await Promise.allSettled(sent);
    return crossed?.status === 'fulfilled' ? crossed.value.rowCount : sqlState(crossed?.reason);
  };
  const look = async (): Promise<Seen> => {
    const who = tx.one<{ role: string }>({ text: 'SELECT current_user::text AS role' });
    const done = crossings.map(attempt);
    return { ...(await who), crossings: await Promise.all(done) };
  };
  return new Proxy(tx, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (!STATEMENTS.has(name)) return value.bind(target);
      return (...given: unknown[]) => {
        const looked = look();
        looked.catch(() => {});
        seen.push(looked);
        return value.apply(target, given);
      };
    },
  });
}

describe('metadata: the roles of a deployment', () => {
  let platform: TestPlatform;
  let mine: MetadataTenant;
  let theirs: MetadataTenant;
  before(async function () {
    this.timeout(60_000);
    platform = await startPlatform({ seed: false });
    mine = await createMetadataTenant(platform);
    theirs = await createMetadataTenant(platform);
    await theirs.deployed(objectFiles('Secret__c', { Text__c: 'fieldType: text' }));
  });
  after(async () => {
    await mine?.database.close();
    await theirs?.database.close();
    await platform?.stop();
  });

  /** Every statement of the transactions that `work` makes in this process. */
  const watched = async (work: () => Promise<unknown>): Promise<Seen[]> => {
    const other = `"${tenantSchema(theirs.tenantId)}"`;
    const crossings = [
      `SELECT FROM ${other}."Secret__c"`,
      `SELECT FROM ${other}._audit`,
      `UPDATE ${other}._state SET metadata_version = 0`,
      `CREATE TABLE ${other}.intruder (id integer)`,
      `ALTER TABLE ${other}."Secret__c" DROP COLUMN "Text__c"`,
      `CREATE SCHEMA intruder`,
      ...['components', 'snapshots', 'versions', 'deployments'].map(
        (table) => `SELECT FROM metadata.${table} WHERE tenant_id = '${theirs.tenantId}'`,
      ),
    ];
    const seen: Promise<Seen>[] = [];
    const { shared, tenant, tenantTransaction, transaction } = Database.prototype;
    const open = <T>(act: (tx: Tx) => Promise<T>, tenantId: string | null = null): ((tx: Tx) => Promise<T>) => {
      // Other services and the queue of this process work in the background, and so does the upkeep of the other tenant.
      const isForeign = tenantId === theirs.tenantId || !String(new Error().stack).includes('services/metadata');
      return isForeign ? act : (tx) => act(intruded(tx, crossings, seen));
    };
    Database.prototype.shared = function (service, tenantId, act) {
      return shared.call(this, service, tenantId, open(act, tenantId)) as never;
    };
    Database.prototype.tenant = function (tenantId, act) {
      return tenant.call(this, tenantId, open(act, tenantId)) as never;
    };
    Database.prototype.tenantTransaction = function (tenantId, act) {
      return tenantTransaction.call(this, tenantId, open(act, tenantId)) as never;
    };
    Database.prototype.transaction = function (act) {
      return transaction.call(this, open(act)) as never;
    };
    try {
      await work();
    } finally {
      Object.assign(Database.prototype, { shared, tenant, tenantTransaction, transaction });
    }
    return Promise.all(seen);
  };

  const assertRefused = (seen: readonly Seen[]): void => {
    // Row-level security shows no row of metadata's tables, but its login finds due work of all tenants; everything else
    // is a privilege that the role lacks.
    for (const { role, crossings } of seen)
      for (const [i, outcome] of crossings.slice(0, role === 'login_metadata' ? 6 : undefined).entries())
        assert.equal(outcome, i >= 6 && role === 'svc_metadata' ? 0 : '42501', `${role}, crossing ${i}`);
  };
  /** The roles in which statements ran: all that the path may have, and no other. */
  const rolesOf = (seen: readonly Seen[]): string[] => [...new Set(seen.map(({ role }) => role))].sort();
  const all = () => ['svc_metadata', tenantRole(mine.tenantId).name, ownerRole(mine.tenantId).name];

  it('confine every statement of a deployment to its tenant', async () => {
    const files = {
      ...objectFiles('Order__c', { Number__c: 'fieldType: autoNumber\nformat: "O-{0000}"' }),
      ...fieldFile('User', 'Half__c', 'fieldType: text'),
    };
    const seen = await watched(async () => {
      const done = await mine.deploy(files);
      assert.equal(done.status, 'SUCCEEDED', JSON.stringify(done));
    });
    // Whoever deployed is told by a job, which the login of the service requests.
    assert.deepEqual(rolesOf(seen), ['login_metadata', ...all()]);
    assertRefused(seen);
  });

  it('confine every statement of a validation, a template, and a refused deployment', async () => {
    const validated = await watched(() => mine.deploy(objectFiles('Never__c'), { checkOnly: true }));
    assert.deepEqual(rolesOf(validated), all());
    assertRefused(validated);
    const templated = await watched(() => deployTemplate(mine.database, mine.tenantId, objectFiles('Template__c')));
    assert.deepEqual(rolesOf(templated), all());
    assertRefused(templated);
    const refused = await watched(async () => {
      const files = objectFiles('Refused__c');
      const call = { body: { files, package: wholePackage(files), baseMetadataVersion: 1 } };
      const headers = { idempotencyKey: randomUUID() };
      await assert.rejects(mine.call('metadata.deployments.create', { ...call, headers }, 'reader'));
    });
    assert.ok(refused.length > 0 && rolesOf(refused).every((role) => all().slice(0, 2).includes(role)));
    assertRefused(refused);
  });

  it('confine every statement of index maintenance', async () => {
    await mine.database.query('UPDATE metadata.tenants SET index_generation = 0 WHERE id = $1', [mine.tenantId]);
    const upkeep = new IndexUpkeep(mine.database, (_, error) => assert.fail(String(error)));
    const seen = await watched(async () => assert.deepEqual(await upkeep.run(), { done: 1, left: 0 }));
    assert.deepEqual(rolesOf(seen), all());
    assertRefused(seen);
  });

  it('do not let record writers change table definitions', async () => {
    for (const text of ['DROP TABLE', 'ALTER TABLE', 'CREATE INDEX ON'] as const) {
      const rest = text === 'DROP TABLE' ? '' : text === 'ALTER TABLE' ? ' ADD COLUMN x text' : ' (name)';
      const done = mine.database.tenantTransaction(mine.tenantId, (tx) =>
        tx.query(`${text} ${tx.schema}."User"${rest}`),
      );
      await assert.rejects(done, { code: '42501' }, text);
    }
  });

  it('are set within a transaction only, which fails with the reason when one cannot be set', async () => {
    const { database } = mine;
    const nobody = tenantRole('01990000-0000-7000-8000-00000000ccc3');
    await assert.rejects(
      database.tenant(mine.tenantId, (tx) => tx.actAs(ownerRole(mine.tenantId))),
      /within a transaction/,
    );
    const behind = database.shared('metadata', mine.tenantId, async (tx) => {
      tx.actAs(nobody);
      return tx.query('SELECT 1');
    });
    await assert.rejects(behind, (error) => sqlState(error) === '22023');
  });
});

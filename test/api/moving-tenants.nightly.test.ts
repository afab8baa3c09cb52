/**
 * A tenant that is exported, imported and copied, as seen by its users and the operator. Source:
 * docs/reference/moving-tenants.md.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import pg from 'pg';
import { SERVICES } from '../../config/services.ts';
import { call } from '../../contracts/call.ts';
import { tenantSchema } from '../../lib/context.ts';
import { PROJECT_PATH } from '../../lib/metadata/manifest.ts';
import type { Blobs } from '../../mixins/blobs/blobs.ts';
import { FolderBlobs } from '../../mixins/blobs/folder.ts';
import { Database } from '../../mixins/database/database.ts';
import { ArchiveWriter, readArchive } from '../../scripts/tenant/moving/archive.ts';
import { exportTenant } from '../../scripts/tenant/moving/export.ts';
import { checkFile, copyTenant, exportToFile, importFromFile } from '../../scripts/tenant/moving/files.ts';
import { newUserId } from '../../scripts/tenant/moving/ids-of-users.ts';
import { type Imported, type ImportOptions, TenantImport } from '../../scripts/tenant/moving/import.ts';
import type { Item } from '../../scripts/tenant/moving/items.ts';
import { type Api, api, demoPassword, tokenFor } from '../support/client.ts';
import { deploymentEnded, deployOverHttp, destructiveManifest, wholePackage } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { root } from '../support/sources.ts';
import { store } from './files/world.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are compared, whatever they hold
type Anything = any;

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const PEOPLE = [
  { username: 'eve@acme.example', displayName: 'Eve Carter', profileApiName: 'Administrator', roleApiName: 'Ceo' },
  { username: 'rob@acme.example', displayName: 'Rob Field', profileApiName: 'SalesRep', roleApiName: 'SalesRep' },
] as const;

describe('a tenant that is moved', function () {
  this.timeout(180_000);
  let folder: string;
  let file: string;
  let first: TestPlatform;
  let second: TestPlatform;
  let eve: Api;
  let original: Anything;
  let exported: Anything;
  let ofRob: Anything;
  let tenantId: string;

  const tenant = (args: readonly string[], on: TestPlatform = first): Promise<Outcome> =>
    promisify(execFile)(process.execPath, [join(root, 'scripts/tenant.ts'), ...args], {
      env: { ...process.env, DATABASE_URL: on.database.url, DATA_DIR: on.config.dataDir },
      maxBuffer: 64 * 1024 * 1024,
    }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: Outcome) => error,
    );
  const done = async (args: readonly string[], on: TestPlatform = first): Promise<Anything> => {
    const { code, stdout, stderr } = await tenant([...args, '--json'], on);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const blobsOf = ({ config }: TestPlatform): Blobs => {
    assert.ok(config.files.by === 'folder');
    return new FolderBlobs(config.files.folder);
  };
  const allOf = (on: TestPlatform) => ({ blobs: blobsOf(on), records: true, trail: true });
  /** Runs the work of a command without a process for each. */
  const within = async <T>(on: TestPlatform, work: (database: Database) => Promise<T>): Promise<T> => {
    const database = new Database(on.database.url, { size: 3, applicationName: 'test' });
    try {
      return await work(database);
    } finally {
      await database.close();
    }
  };
  const importing = (path: string, given: Partial<ImportOptions> = {}, on = first): Promise<Imported> =>
    within(on, (database) =>
      importFromFile(
        database,
        path,
        { blobs: blobsOf(on), region: null, domains: false, ...given },
        new AbortController().signal,
      ),
    );
  const copying = (from: string, to: string, records = false, maskRecords = false): Promise<Imported> =>
    within(first, (database) =>
      copyTenant(
        database,
        from,
        { blobs: blobsOf(first), records, trail: false },
        { blobs: blobsOf(first), key: to, domains: false, sandbox: { maskKey: 'secret', maskRecords } },
        new AbortController().signal,
      ),
    );
  const sql = async (on: TestPlatform, text: string, values: unknown[] = []): Promise<Anything[]> => {
    const client = new pg.Client(on.database.url);
    await client.connect();
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  };
  const idOf = async (on: TestPlatform, key: string): Promise<string | null> =>
    (await call(on.broker, 'metadata.tenants.get', { key }))?.id ?? null;
  /** Signs in as a user with a newly set password. */
  const signedIn = async (on: TestPlatform, id: string, key: string, username: string): Promise<Api> => {
    const person = PEOPLE.find((one) => one.username === username)!;
    const { signInNames } = await call(on.broker, 'data.users.provision', {
      tenantId: id,
      users: [{ ...person, email: username, password: demoPassword() }],
    });
    const name = signInNames[username]!;
    assert.ok([username, `${key}\\${username}`].includes(name), name);
    return api(on.baseUrl, await tokenFor(on.baseUrl, name));
  };

  let stored: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'erp-moving-'));
    file = join(folder, 'acme.tar.gz');
    first = await startPlatform();
    tenantId = (await idOf(first, 'acme'))!;
    await call(first.broker, 'data.users.provision', {
      tenantId,
      users: [{ ...PEOPLE[1], email: PEOPLE[1].username, password: demoPassword() }],
    });
    eve = api(first.baseUrl, await tokenFor(first.baseUrl, 'eve@acme.example'));
    await work(eve);
    stored = (await store(eve, 'Plans of the office')).fileId;
    await call(first.broker, 'data.audit.seal', { tenantId });
    original = await everything(eve);
    ofRob = await records(api(first.baseUrl, await tokenFor(first.baseUrl, 'rob@acme.example')));
    exported = await done(['export', 'acme', '--to', file]);
    second = await startPlatform({ seed: false });
  });
  after(async () => {
    await second?.stop();
    await first?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('has an audit entry for each export', async () => {
    const rows = await sql(
      first,
      `SELECT channel, user_id AS actor, changes FROM "${tenantSchema(tenantId)}"._audit
       WHERE operation_id = 'tenants.export' ORDER BY audit_id`,
    );
    const exported = { from: null, to: 'configuration and users, records, trail' };
    assert.deepEqual(rows[0], { channel: 'job', actor: null, changes: { exported } });
  });

  it('is a file that only its owner can read, without passwords', async () => {
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(folder), ['acme.tar.gz']);
    await assert.rejects(
      within(first, (database) => exportToFile(database, 'acme', file, new AbortController().signal, allOf(first))),
      /is there already/,
    );
    const text = gunzipSync(await readFile(file)).toString('latin1');
    assert.doesNotMatch(text, /argon2|password_hash|secret_hash|sealed_secret/);
    const whole = await done(['import', file, '--check']);
    assert.deepEqual([whole.key, whole.name], ['acme', 'Acme Interiors Inc.']);
  });

  describe('to another installation', () => {
    let imported: Anything;
    before(async () => {
      imported = await done(['import', file], second);
    });

    it('shows an administrator everything, with the same ids', async () => {
      assert.deepEqual([imported.key, imported.newUserIds, imported.domains], ['acme', false, ['acme.example']]);
      assert.notEqual(imported.tenantId, tenantId);
      const admin = await signedIn(second, imported.tenantId, 'acme', 'eve@acme.example');
      const after = await everything(admin);
      assert.equal((await admin.get(`/files/${stored}/content`)).text, 'Plans of the office');
      for (const name of Object.keys(original)) assert.deepEqual(after[name], original[name], name);
    });

    it('shows a lesser user the same as before, and no more', async () => {
      const rob = await signedIn(second, imported.tenantId, 'acme', 'rob@acme.example');
      const after = await records(rob);
      assert.deepEqual(after, ofRob);
      assert.ok(after.SalesOrder__c.total > 0 && after.SalesOrder__c.total < original.records.SalesOrder__c.total);
    });

    it('has the tables, indexes, keys, triggers and functions of the original', async () => {
      assert.deepEqual(await shape(second, imported.tenantId), await shape(first, tenantId));
    });

    it('has an audit trail whose chain continues', async () => {
      const end = exported.audit;
      assert.equal((await verified(first, tenantId)).broken, null);
      assert.ok(end.position > 0);
      await call(second.broker, 'data.audit.seal', { tenantId: imported.tenantId });
      const after = await verified(second, imported.tenantId);
      assert.equal(after.unsealed, 0);
      const expected = await call(second.broker, 'data.audit.verify', {
        tenantId: imported.tenantId,
        expect: { position: end.position, hash: end.hash },
      });
      assert.equal(expected.broken, null);
      const [entry] = await sql(
        second,
        `SELECT changes FROM "${tenantSchema(imported.tenantId)}"._audit WHERE operation_id = 'tenants.import'`,
      );
      assert.equal(entry.changes.from.tenantId, tenantId);
      assert.equal(entry.changes.from.auditTrailEndedAt, `${end.position}:${end.hash}`);
    });

    it('counts, sums, refuses and deploys as the original does', async () => {
      const admin = await signedIn(second, imported.tenantId, 'acme', 'eve@acme.example');
      const made: Anything[] = [];
      for (const user of [eve, admin]) made.push(await newOrder(user));
      const last = Math.max(...original.records.SalesOrder__c.list.map(({ name }: Anything) => Number(name.slice(3))));
      assert.equal(Number(made[1].name.slice(3)), last + 1);
      assert.deepEqual(made[1].sums, made[0].sums);
      const { accountNumber } = original.records.Account.list.find((one: Anything) => one.accountNumber);
      const twice = await admin.post('/data/Account', { name: 'Somebody else', accountNumber });
      assert.equal(twice.status, 409, twice.text);
      const deployed = await admin.post('/metadata/deploy', {
        files: { 'groups/Sales.yaml': original.files['groups/Sales.yaml'].replace(/label: .*/, 'label: Sellers') },
        package: { version: 1, types: [{ name: 'Group', members: ['Sales'] }] },
      });
      assert.equal(deployed.status, 202, deployed.text);
    });

    it('is refused when its key or its domain is taken', async () => {
      const key = await tenant(['import', file], second);
      assert.deepEqual([key.code, key.stdout], [1, '']);
      assert.match(key.stderr, /There is a tenant acme here/);
      await assert.rejects(
        importing(file, { key: 'other', domains: true }, second),
        /Another tenant has the domain acme\.example/,
      );
      assert.equal(await idOf(second, 'other'), null);
    });
  });

  it('refuses invalid settings, limits and domains of a file, and names all of them', async () => {
    const hostile = join(folder, 'hostile.tar.gz');
    const writer = new ArchiveWriter(createWriteStream(hostile));
    for await (const item of readArchive(createReadStream(file))) {
      if (item.kind !== 'head') {
        await writer.add(item);
        continue;
      }
      const { tenant } = item.head;
      const changed: Anything = {
        ...item.head,
        metadataVersion: -5,
        domains: ['GMAIL.com', 'no domain'],
        columns: null,
        tenant: {
          ...tenant,
          name: 'x'.repeat(100_000),
          currency: 'XXXXXXX',
          timezone: 'Nope/Nowhere',
          operatorLimits: { connection: 'unlimited' },
          rateLimits: { ...tenant.rateLimits, tenant: 1e300 },
        },
      };
      await writer.add({ kind: 'head', head: changed });
    }
    await writer.finish();
    for (const check of [
      () => checkFile(hostile, new AbortController().signal),
      () => importing(hostile, { key: 'hostile', domains: true }),
    ])
      await assert.rejects(check, ({ message }: Error) => {
        for (const name of ['metadataVersion', 'domains', 'columns', 'name', 'currency', 'timezone', 'operatorLimits'])
          assert.match(message, new RegExp(`\\b${name} must be`), message);
        assert.match(message, /tenant\.rateLimits must be/);
        assert.ok(message.length < 2_000);
        return true;
      });
    assert.equal(await idOf(first, 'hostile'), null);
  });

  it('gets the region of the local tenants, of its original, or of REGION, and is refused when ambiguous', async () => {
    const regionOf = async (made: Promise<Imported>): Promise<string> =>
      (await sql(first, 'SELECT region FROM metadata.tenants WHERE id = $1', [(await made).tenantId]))[0].region;
    await sql(first, `UPDATE metadata.tenants SET region = 'eu-central'`);
    try {
      assert.equal(await regionOf(importing(file, { key: 'placed' })), 'eu-central');
      assert.equal(await regionOf(importing(file, { key: 'chosen', region: 'us-east' })), 'us-east');
      assert.equal(await regionOf(copying('chosen', 'chosentest')), 'us-east');
      await assert.rejects(
        importing(file, { key: 'nowhere' }),
        /Set REGION to .*: those here are in eu-central, us-east\./,
      );
      assert.equal(await idOf(first, 'nowhere'), null);
    } finally {
      await sql(first, `UPDATE metadata.tenants SET region = 'local'`);
    }
  });

  it('as a second copy, has the same records, and users with ids of their own', async () => {
    const imported = await importing(file, { key: 'acme2', name: 'Acme Two' });
    assert.equal(imported.newUserIds, true);
    const [user] = await sql(first, `SELECT id FROM "${tenantSchema(imported.tenantId)}"."User" ORDER BY id LIMIT 1`);
    const [eldest] = await sql(first, `SELECT id FROM "${tenantSchema(tenantId)}"."User" ORDER BY id LIMIT 1`);
    assert.equal(user.id, newUserId(imported.tenantId, eldest.id));
    const admin = await signedIn(first, imported.tenantId, 'acme2', 'eve@acme.example');
    const after = await everything(admin);
    const users = await sql(first, `SELECT id FROM "${tenantSchema(tenantId)}"."User"`);
    const renamed: Anything = JSON.parse(
      users.reduce(
        (text: string, { id }) => text.replaceAll(id, newUserId(imported.tenantId, id)),
        JSON.stringify(original),
      ),
    );
    for (const name of Object.keys(original).filter((one) => one !== 'audit'))
      assert.deepEqual(JSON.parse(JSON.stringify(after[name])), renamed[name], name);
    // It has a chain of its own.
    const unchained = ({ position: _, hash: __, prevHash: ___, ...entry }: Anything): Anything => entry;
    assert.deepEqual(after.audit.map(unchained), renamed.audit.map(unchained));
    const [person] = await sql(first, 'SELECT user_id FROM auth.identities WHERE tenant_id = $1', [imported.tenantId]);
    const [rob] = await sql(first, 'SELECT user_id FROM auth.identities WHERE tenant_id = $1', [tenantId]);
    assert.equal(person.user_id, newUserId(imported.tenantId, rob.user_id));
    const [addresses] = await sql(
      first,
      'SELECT email, pending_email, invited_at FROM auth.credentials WHERE tenant_id = $1 AND user_id = $2',
      [imported.tenantId, person.user_id],
    );
    assert.deepEqual([addresses.email, addresses.pending_email], ['rob.before@acme.example', 'rob@acme.example']);
    assert.ok(addresses.invited_at, 'nobody gets a mail of the import');
    const identity = await admin.get('/identity');
    assert.deepEqual([identity.body.tenant.name, identity.body.tenant.id], ['Acme Two', imported.tenantId]);
    await call(first.broker, 'data.audit.seal', { tenantId: imported.tenantId });
    assert.equal((await verified(first, imported.tenantId)).unsealed, 0);
    // The original is unchanged.
    assert.deepEqual((await verified(first, tenantId)).broken, null);
    assert.equal((await eve.get('/identity')).status, 200);
  });

  describe('as a sandbox', () => {
    it('with masked records, sends no mail and keeps unique values unique and related ones related', async () => {
      const { tenantId: id } = await done(['copy', 'acme', '--to', 'masked', '--records', '--mask']);
      const schema = `"${tenantSchema(id)}"`;
      const source = `"${tenantSchema(tenantId)}"`;
      for (const [object, field, form] of [
        ['Contact', 'email', /^[0-9a-f]{24}@sandbox\.invalid$/],
        ['Account', 'invoiceEmail', /^[0-9a-f]{24}@sandbox\.invalid$/],
        ['Contact', 'phone', /^\+999\d{11}$/],
        ['User', 'email', /^[0-9a-f]{24}@sandbox\.invalid$/],
      ] as const) {
        const pairs = await sql(
          first,
          `SELECT s."${field}" AS was, c."${field}" AS is FROM ${source}."${object}" s JOIN ${schema}."${object}" c
            ON ${object === 'User' ? 'c.username = s.username' : 'c.id = s.id'} WHERE s."${field}" IS NOT NULL`,
        );
        assert.ok(pairs.length > 0, field);
        for (const { is } of pairs) assert.match(is, form);
        const distinct = (name: string): number => new Set(pairs.map((pair) => pair[name])).size;
        assert.equal(distinct('is'), distinct('was'), `${object}.${field}`);
        assert.equal(new Set(pairs.map(({ was, is }) => `${was} ${is}`)).size, distinct('was'));
      }
      const credentials = await sql(first, 'SELECT email, password_hash FROM auth.credentials WHERE tenant_id = $1', [
        id,
      ]);
      assert.ok(credentials.length > 1);
      for (const { email, password_hash } of credentials)
        assert.deepEqual([email.endsWith('@sandbox.invalid'), password_hash], [true, null]);
      const [trail] = await sql(
        first,
        `SELECT (SELECT count(*)::int FROM ${schema}._history) AS history,
          (SELECT count(*)::int FROM ${schema}._audit WHERE object IS NOT NULL) AS audit,
          (SELECT count(*)::int FROM ${schema}._outbox WHERE type LIKE 'data.%') AS events,
          (SELECT count(*)::int FROM ${schema}._recycle_bin) AS bin`,
      );
      assert.deepEqual(trail, { history: 0, audit: 0, events: 0, bin: 0 });
    });

    it('is marked as one, and admits no program', async () => {
      const id = (await idOf(first, 'masked'))!;
      const admin = await signedIn(first, id, 'masked', 'eve@acme.example');
      const { body } = await admin.get('/identity');
      assert.deepEqual([body.tenant.sandbox, body.tenant.id], [true, id]);
      const { files } = await retrieved(admin);
      const clients = Object.keys(files).filter((path) => path.startsWith('externalClients/'));
      assert.ok(clients.length > 1);
      for (const path of clients) assert.match(files[path], /^active: false$/m);
      const users = (await admin.get('/data/User?take=200')).body.records;
      const active = (name: string): boolean => users.find(({ username }: Anything) => username === name).active;
      assert.deepEqual([active('robot@acme.example'), active('eve@acme.example')], [false, true]);
      assert.equal((await everything(admin)).records.Invoice__c.total, original.records.Invoice__c.total);
    });

    it('without records has only the configuration, the dashboards and the users', async () => {
      const { tenantId: id, rows } = await copying('acme', 'bare');
      const admin = await signedIn(first, id, 'bare', 'eve@acme.example');
      const after = await everything(admin);
      for (const [object, { total }] of Object.entries<Anything>(after.records))
        assert.equal(total, object === 'User' ? original.records.User.total : 0, object);
      assert.equal(after.dashboards.length, original.dashboards.length);
      assert.deepEqual(Object.keys(after.files), Object.keys(original.files));
      assert.equal(rows['shares'], undefined);
      const order = await admin.post('/data/SalesOrder__c', { AccountId__c: (await account(admin)).id });
      assert.match(order.body.name, /0*1$/, order.text);
    });

    it('is refused under a taken key, and for an unknown tenant', async () => {
      await assert.rejects(copying('acme', 'demo'), /There is a tenant demo here/);
      await assert.rejects(copying('nobody', 'nobody2'), /There is no tenant nobody/);
    });
  });

  describe('from an invalid file', () => {
    const refused = async (bytes: Uint8Array | string, why: RegExp): Promise<void> => {
      const path = join(folder, 'wrong.tar.gz');
      await writeFile(path, bytes);
      await assert.rejects(importing(path, { key: 'wrong' }), why);
      assert.equal(await idOf(first, 'wrong'), null);
    };
    /** The same file with other items, and a matching manifest. */
    const rewritten = async (change: (item: Item) => Item): Promise<Buffer> => {
      const path = join(folder, 'rewritten.tar.gz');
      const writer = new ArchiveWriter(createWriteStream(path));
      for await (const item of readArchive(createReadStream(file))) await writer.add(change(item));
      await writer.finish();
      return readFile(path);
    };
    const withHead = (more: object): Promise<Buffer> =>
      rewritten((item) => (item.kind === 'head' ? { ...item, head: { ...item.head, ...more } } : item));

    const headText = async (): Promise<string> => {
      for await (const item of readArchive(createReadStream(file)))
        if (item.kind === 'head') return JSON.stringify(item.head);
      throw new Error('The file has no head.');
    };

    it('that is truncated, is refused', async () => {
      const whole = await readFile(file);
      await refused(whole.subarray(0, whole.length - 9), /damaged or cut off/);
      await refused(whole.subarray(0, whole.length >> 1), /damaged or cut off/);
      const tar = gunzipSync(whole);
      const manifestAt = tar.lastIndexOf('manifest.json\0');
      await refused(
        gzipSync(Buffer.concat([tar.subarray(0, manifestAt), Buffer.alloc(1024)])),
        /its manifest is missing/,
      );
    });

    it('that was modified, is refused', async () => {
      const tar = gunzipSync(await readFile(file));
      const at = tar.indexOf('"Eve Carter"');
      assert.ok(at > 0);
      tar.write('"Eva Carter"', at);
      await refused(gzipSync(tar), /records\/User\/000001\.jsonl is not what its manifest says/);
    });

    it('of another kind, is refused', async () => {
      await refused('not at all', /damaged or cut off/);
      await refused(gzipSync('not a tar'), /damaged or cut off/);
      await assert.rejects(importing(join(folder, 'nothing.tar.gz')), /nothing\.tar\.gz/);
    });

    it('of a newer platform, is refused', async () => {
      await refused(await withHead({ formatVersion: 2 }), /has the format 2/);
      await refused(await withHead({ tenantSchemaVersion: 9_999 }), /made by a newer version of the platform/);
    });

    it('with more configuration than any tenant may have, is refused before all of it is in memory', async () => {
      const text = `# ${'x'.repeat(1024 * 1024)}\n`;
      const work = within(first, (database) =>
        database.transaction(async (tx) => {
          const made = new TenantImport(tx, { blobs: blobsOf(first), key: 'wrong', region: null, domains: false });
          for await (const item of readArchive(createReadStream(file))) {
            await made.accept(item);
            for (let i = 0; item.kind === 'head' && i < 65; i++)
              await made.accept({ kind: 'file', path: `roles/Role${i}.yaml`, text });
          }
        }),
      );
      await assert.rejects(work, /more than 67108864 characters, which no tenant may have/);
      assert.equal(await idOf(first, 'wrong'), null);
    });

    it('with inconsistent configuration, is refused with the reason', async () => {
      const path = join(folder, 'orphan.tar.gz');
      const text = 'type: Role\napiName: Orphan\nlabel: Orphan\nparent: Nobody\n';
      const writer = new ArchiveWriter(createWriteStream(path));
      for await (const item of readArchive(createReadStream(file))) {
        await writer.add(item);
        if (item.kind === 'head') await writer.add({ kind: 'file', path: 'roles/Orphan.yaml', text });
      }
      await writer.finish();
      const { code, stderr } = await tenant(['import', path, '--key', 'orphan', '--without-domains']);
      assert.deepEqual([code, await idOf(first, 'orphan')], [1, null]);
      assert.match(stderr, /^tenant: The plan is blocked by 1 problem\.\n {2}Role Orphan: .*Nobody/m);
    });

    it('with records of a table without an object, is refused', async () => {
      const { columns, counters } = JSON.parse(await headText());
      for (const table of ['_audit', '_outbox', '_idempotency', '_shares', '_state', 'Unknown__c'])
        await refused(
          await withHead({ columns: { ...columns, [`records/${table}`]: ['id'] } }),
          new RegExp(`records of what its configuration does not have: ${table}\\.`),
        );
      const counter = { object: '_audit_head', field: 'position', value: 1, given: true };
      await refused(await withHead({ counters: [...counters, counter] }), /does not have: _audit_head\./);
    });

    it('with incompatible columns and records, is refused', async () => {
      await refused(
        await rewritten((item) =>
          item.kind === 'head'
            ? {
                ...item,
                head: {
                  ...item.head,
                  columns: { ...item.head.columns, shares: [...item.head.columns['shares']!, 'x"; DROP TABLE x'] },
                },
              }
            : item,
        ),
        /does not fit: there is no x"; DROP TABLE x here/,
      );
      await refused(
        await rewritten((item) =>
          item.kind === 'rows' && item.part === 'records/Account' ? { ...item, lines: [] } : item,
        ),
        /does not fit together/,
      );
    });
  });

  describe('by an interrupted command', () => {
    /** An import that has read the first half of the file and waits for the rest. */
    const halfWay = async (key: string): Promise<ChildProcess> => {
      const child = spawn(
        process.execPath,
        [join(root, 'scripts/tenant.ts'), 'import', '-', '--key', key, '--without-domains'],
        { env: { ...process.env, DATABASE_URL: first.database.url }, stdio: ['pipe', 'pipe', 'pipe'] },
      );
      const whole = await readFile(file);
      child.stdin!.on('error', () => {});
      child.stdin!.write(whole.subarray(0, Math.floor(whole.length * 0.8)));
      for (;;) {
        const [busy] = await sql(
          first,
          `SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'erp tenant import'
            AND datname = current_database() AND state = 'idle in transaction' AND query LIKE '%json_populate_recordset%'`,
        );
        if (busy.n > 0) return child;
        assert.equal(child.exitCode, null);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const nothingLeft = async (key: string, schemas: number): Promise<void> => {
      for (;;) {
        const [{ n }] = await sql(
          first,
          `SELECT count(*)::int AS n FROM pg_stat_activity
            WHERE application_name = 'erp tenant import' AND datname = current_database()`,
        );
        if (n === 0) break;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      assert.equal(await idOf(first, key), null);
      assert.equal(await schemaCount(), schemas);
    };
    const schemaCount = async (): Promise<number> =>
      (await sql(first, `SELECT count(*)::int AS n FROM pg_namespace WHERE nspname LIKE 't\\_%'`))[0].n;

    it('leaves nothing behind when it is killed, and can be repeated', async () => {
      const schemas = await schemaCount();
      const child = await halfWay('killed');
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      await nothingLeft('killed', schemas);
      await importing(file, { key: 'killed' });
      assert.notEqual(await idOf(first, 'killed'), null);
    });

    it('leaves nothing behind on Ctrl-C, and reports it', async () => {
      const schemas = await schemaCount();
      const child = await halfWay('stopped');
      let said = '';
      child.stderr!.on('data', (chunk) => {
        said += chunk;
      });
      const ended = once(child, 'exit');
      child.kill('SIGINT');
      const [code] = await ended;
      assert.equal(code, 1);
      assert.match(said, /Stopped\. Nothing is left behind\./);
      await nothingLeft('stopped', schemas);
    });

    it('leaves no file when the export does not complete', async () => {
      const to = join(folder, 'none.tar.gz');
      const stopped = new AbortController();
      const exporting = (key: string, path: string): Promise<unknown> =>
        within(first, (database) => exportToFile(database, key, path, stopped.signal, allOf(first)));
      await assert.rejects(exporting('nobody', to), /There is no tenant nobody/);
      await assert.rejects(exporting('acme', join(folder, 'no', 'folder.tar.gz')), /ENOENT/);
      stopped.abort();
      await assert.rejects(exporting('acme', to), /Stopped/);
      assert.ok(!existsSync(to));
      assert.deepEqual(
        (await readdir(folder)).filter((name) => name.includes('partial')),
        [],
      );
    });
  });

  it('has one consistent state, whatever is written meanwhile', async () => {
    const lines = new Map<string, number>();
    let late: Anything;
    await within(first, (database) =>
      exportTenant(database, 'acme', allOf(first), async (item) => {
        if (item.kind !== 'rows') return;
        if (!late) late = await newOrder(eve);
        lines.set(item.part, (lines.get(item.part) ?? 0) + item.lines.filter((line) => line.includes(late.id)).length);
      }),
    );
    assert.ok(lines.has('records/SalesOrder__c') && lines.has('trail/audit'));
    assert.deepEqual(
      [...lines.values()].filter((n) => n > 0),
      [],
    );
  });

  it('leaves out deleted fields, whose columns are kept for a rollback', async () => {
    const sandbox = await copying('acme', 'deleting');
    const admin = await signedIn(first, sandbox.tenantId, 'deleting', 'eve@acme.example');
    const field = 'type: CustomField\napiName: Gone__c\nobject: Account\nlabel: Gone\nfieldType: text\n';
    await deployOverHttp(admin, { 'objects/Account/fields/Gone__c.yaml': field });
    const files = destructiveManifest({ CustomField: ['Account.Gone__c'] });
    const gone = await admin.post('/metadata/deploy', {
      files,
      package: wholePackage({}),
      allowDestructiveChanges: true,
    });
    assert.equal((await deploymentEnded(admin, gone)).status, 'SUCCEEDED');
    const schema = tenantSchema(sandbox.tenantId);
    const kept = `SELECT FROM information_schema.columns WHERE table_schema = $1 AND column_name = 'Gone__c'`;
    assert.equal((await sql(first, kept, [schema])).length, 1);
    const copy = await copying('deleting', 'deleting2', true);
    assert.equal((await sql(first, kept, [tenantSchema(copy.tenantId)])).length, 0);
  });

  it('uses constant memory at any size', async () => {
    const path = join(folder, 'large.tar.gz');
    const writer = new ArchiveWriter(createWriteStream(path));
    const lines = Array.from({ length: 1_000 }, () => JSON.stringify({ text: 'x'.repeat(1_000) }));
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 300; i++) await writer.add({ kind: 'rows', part: 'records/Contact', lines });
    await writer.finish();
    const grown = Math.round((process.memoryUsage().arrayBuffers - before) / 1e6);
    assert.ok(grown < 150, `${grown} MB of 300 MB are still in memory`);
    await rm(path);
  });

  it('covers every table of a tenant: moved, recreated or left out', async () => {
    const rows = await sql(
      first,
      `SELECT n.nspname AS schema, c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND (
          (n.nspname = $1 AND c.relname LIKE '\\_%') OR (n.nspname = ANY ($2)
            AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')))`,
      [tenantSchema(tenantId), Object.keys(SERVICES)],
    );
    const there = rows.map(({ schema, name }) => (schema.startsWith('t_') ? name : `${schema}.${name}`));
    const known = Object.values(SERVICES).flatMap(({ moving }) => [
      ...(moving?.parts ?? []).map(({ table }) => table),
      ...(moving?.made ?? []),
      ...(moving?.leftBehind ?? []),
    ]);
    const missing = there.filter((name) => !known.includes(name));
    assert.deepEqual(
      missing,
      [],
      'name them in `moving` of contracts/<service>.ts, and in docs/reference/moving-tenants.md',
    );
    assert.deepEqual(
      known.filter((name) => !there.includes(name)),
      ['metadata.tenants'],
    );
    assert.equal(new Set(known).size, known.length);
  });

  /** Creates data of every kind: history, the recycle bin, shares, dashboards, a program's user. */
  async function work(admin: Api): Promise<void> {
    const made = async (path: string, body: object): Promise<Anything> => {
      const answer = await admin.post(path, body);
      assert.ok(answer.status < 300, answer.text);
      return answer.body;
    };
    const { records: accounts } = (await admin.get('/data/Account?take=3')).body;
    const { records: orders } = (await admin.get('/data/SalesOrder__c?take=3')).body;
    const robId = (await admin.get('/data/User?take=200')).body.records.find(
      ({ username }: Anything) => username === 'rob@acme.example',
    ).id;
    const paths = [
      ...accounts.map(({ id }: Anything) => `/data/Account/${id}`),
      ...orders.map(({ id }: Anything) => `/data/SalesOrder__c/${id}`),
    ];
    for (const path of paths) {
      const { headers } = await admin.get(path);
      const changed = await admin.patch(path, { ownerId: robId }, { etag: headers.get('etag')! });
      assert.equal(changed.status, 200, changed.text);
    }
    await sql(
      first,
      `INSERT INTO auth.identities (tenant_id, issuer, subject, user_id) VALUES ($1, 'https://login.example', 'rob', $2)`,
      [tenantId, robId],
    );
    // He has changed his address without confirming it.
    await sql(
      first,
      `UPDATE auth.credentials SET email = 'rob.before@acme.example', pending_email = 'rob@acme.example' WHERE user_id = $1`,
      [robId],
    );
    const { records: invoices } = (await admin.get('/data/Invoice__c?take=5')).body;
    await made(`/data/Invoice__c/${invoices[0].id}/shares`, {
      principalType: 'user',
      principalId: robId,
      access: 'read',
      reason: 'He asked for it.',
    });
    const contact = await made('/data/Contact', {
      name: 'Ole Møller',
      lastName: 'Møller "the 2nd"\n\\ 🦊',
      ...(await contactFields(admin)),
    });
    const { headers } = await admin.get(`/data/Contact/${contact.id}`);
    const gone = await admin.delete(`/data/Contact/${contact.id}`, { etag: headers.get('etag')! });
    assert.equal(gone.status, 200, gone.text);
    const dashboards = (await admin.get('/analytics/dashboards')).body.records;
    assert.ok(dashboards.length > 0);
    await call(first.broker, 'data.users.provision', {
      tenantId,
      users: [
        {
          username: 'robot@acme.example',
          email: 'robot@acme.example',
          displayName: 'Robot',
          profileApiName: 'SalesRep',
          roleApiName: null,
        },
      ],
    });
    const files = {
      'externalClients/Nightly.yaml': `type: ExternalClient
apiName: Nightly
name: Nightly
confidential: true
scopes:
  - data:read
grantTypes:
  - client_credentials
integrationUser: robot@acme.example
active: true
`,
    };
    await deployOverHttp(admin, files);
  }

  async function contactFields(admin: Api): Promise<Anything> {
    const { records } = (await admin.get('/data/Contact?take=1')).body;
    return { accountId: records[0].accountId };
  }
});

const account = async (admin: Api): Promise<Anything> => {
  const answer = await admin.post('/data/Account', { name: `Account ${Math.random()}` });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
};

/** An order with a line, and its computed values. */
async function newOrder(user: Api): Promise<{ id: string; name: string; sums: Anything }> {
  const { records: orders } = (await user.get('/data/SalesOrder__c?take=1')).body;
  const { records: lines } = (await user.get('/data/SalesOrderLine__c?take=1')).body;
  const order = await user.post('/data/SalesOrder__c', { AccountId__c: orders[0].AccountId__c });
  assert.equal(order.status, 201, order.text);
  const line = await user.post('/data/SalesOrderLine__c', {
    SalesOrderId__c: order.body.id,
    ProductId__c: lines[0].ProductId__c,
    Quantity__c: '3',
    UnitPrice__c: '19.99',
  });
  assert.equal(line.status, 201, line.text);
  const { body } = await user.get(`/data/SalesOrder__c/${order.body.id}`);
  return { id: body.id, name: body.name, sums: [body.NetAmount__c, body.TaxAmount__c, body.LineCount__c] };
}

const verified = async (on: TestPlatform, tenantId: string): Promise<Anything> => {
  const verification = await call(on.broker, 'data.audit.verify', { tenantId });
  assert.deepEqual([verification.broken, verification.next], [null, null]);
  return verification;
};

const retrieved = async (user: Api): Promise<Anything> => {
  const types = (await user.get('/metadata/types')).body.records.map(({ name, type }: Anything) => ({
    name: name ?? type,
    members: ['*'],
  }));
  const answer = await user.post('/metadata/retrieve', { package: { version: 1, types } });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

/** The user's sign-in is the only event in the compared tenants. */
const timeless = ({ lastSignInAt: _, ...record }: Anything): Anything => record;

/** All records that a user sees, by object. */
async function records(user: Api): Promise<Anything> {
  const { records: objects } = (await user.get('/objects')).body;
  const found: Anything = {};
  for (const { apiName } of objects) {
    const list: Anything[] = [];
    let total: number | null = null;
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Anything = await user.get(
        `/data/${apiName}?take=200&includeTotal=true${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`,
      );
      assert.equal(page.status, 200, page.text);
      list.push(...page.body.records.map(timeless));
      total ??= page.body.total;
      cursor = page.body.nextCursor;
    }
    found[apiName] = { total, list };
  }
  return found;
}

/** Everything that an administrator can read over HTTP. */
async function everything(user: Api): Promise<Anything> {
  const read = async (path: string): Promise<Anything> => {
    const answer = await user.get(path);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const { files, metadataVersion } = await retrieved(user);
  // The answer contains its time of retrieval.
  delete files[PROJECT_PATH];
  const all = await records(user);
  const history: Anything[] = [];
  const shares: Anything[] = [];
  for (const { id } of all.Account?.list.slice(-3) ?? []) history.push(await read(`/data/Account/${id}/history`));
  for (const { id } of all.Invoice__c?.list.slice(0, 5) ?? []) shares.push(await read(`/data/Invoice__c/${id}/shares`));
  const dashboards = (await read('/analytics/dashboards')).records;
  const widgets: Anything[] = [];
  for (const { dashboardId } of dashboards) {
    const dashboard = await read(`/analytics/dashboards/${dashboardId}`);
    for (const { widgetKey } of dashboard.widgets) {
      const answer = await user.post(
        `/analytics/dashboards/${dashboardId}/widgets/${widgetKey}/run`,
        {},
        { idempotencyKey: null },
      );
      const { rows, labels, revision } = answer.body;
      widgets.push([dashboardId, widgetKey, answer.status, rows, labels, revision]);
    }
  }
  const audit = (await read('/events/audit?take=50&objectApiName=Account')).records;
  const deployments = (await read('/metadata/deployments')).records;
  return { files, metadataVersion, records: all, history, shares, dashboards, widgets, audit, deployments };
}

/** PostgreSQL's description of a tenant's schema, without the names of the tenant. */
async function shape(on: TestPlatform, tenantId: string): Promise<string[]> {
  const client = new pg.Client(on.database.url);
  await client.connect();
  try {
    const { rows } = await client.query<{ line: string }>(
      `WITH own AS (SELECT c.oid, c.relname, c.relkind, c.relowner, c.relacl FROM pg_class c WHERE c.relnamespace = $1::text::regnamespace)
      SELECT relname || ' ' || relkind::text || ' ' || pg_get_userbyid(relowner) || ' ' || coalesce((SELECT string_agg(x::text, ',' ORDER BY x::text) FROM unnest(relacl) x), '') AS line FROM own
      UNION ALL SELECT relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || a.attnotnull || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
        FROM own JOIN pg_attribute a ON a.attrelid = own.oid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE own.relkind IN ('r', 'S') AND a.attnum > 0 AND NOT a.attisdropped
      UNION ALL SELECT pg_get_indexdef(i.indexrelid) || i.indisvalid FROM own JOIN pg_index i ON i.indrelid = own.oid
      UNION ALL SELECT relname || ' ' || conname || ' ' || pg_get_constraintdef(c.oid) || c.convalidated
        FROM own JOIN pg_constraint c ON c.conrelid = own.oid
      UNION ALL SELECT relname || ' ' || pg_get_triggerdef(t.oid) || t.tgenabled::text FROM own JOIN pg_trigger t ON t.tgrelid = own.oid
        WHERE NOT t.tgisinternal
      UNION ALL SELECT pg_get_functiondef(p.oid) FROM pg_proc p WHERE p.pronamespace = $1::text::regnamespace`,
      [`"${tenantSchema(tenantId)}"`],
    );
    return rows.map(({ line }) => line.replaceAll(tenantSchema(tenantId), 't_tenant')).sort();
  } finally {
    await client.end();
  }
}

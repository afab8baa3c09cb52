/**
 * A database of the previous release, upgraded as docs/guides/operators.md says: what the two companies in it had done
 * (test/support/previous) is as it was, and goes on. What the way back needs is held as well: that the upgrade takes
 * nothing away which processes of the previous release use.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompressSync } from 'node:zlib';
import pg from 'pg';
import { databaseVariable } from '../../config/env.ts';
import { ALL_SERVICES } from '../../config/services.ts';
import { call } from '../../contracts/call.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { loginOf } from '../../mixins/database/logins.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { type Server, Servers } from '../support/postgres.ts';
import {
  type Answered,
  type Call,
  RECORDED_ADDRESS,
  RECORDED_SECRET,
  type Recorded,
  send,
} from '../support/previous/company.ts';
import { root } from '../support/sources.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are compared, whatever they hold
type Anything = any;

const previous = (name: string): Buffer =>
  brotliDecompressSync(readFileSync(join(root, 'test/support/previous', `${name}.br`)));

const TENANT = '^t_[0-9a-f]{32}$';
/** What is kept for a while: its times are moved, as if the database had been left this minute. */
const KEPT_FOR_A_WHILE = `n.nspname IN ('auth', 'agent', 'metadata', 'analytics')
  OR n.nspname ~ '${TENANT}' AND c.relname IN ('_idempotency', '_outbox', '_recycle_bin')`;
/** Of what the authorization server keeps: seconds since 1970. */
const SECONDS = ['exp', 'iat', 'iiat', 'loginTs', 'auth_time', 'authTime'];

/** Names of everything that processes use in a database; what only grows is told by what it still has. */
const SHAPE = `
  SELECT format('column %s.%s %s', c.oid::regclass, a.attname, format_type(a.atttypid, a.atttypmod)) AS part
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v') AND n.nspname !~ '^(pg_|information_schema)'
  UNION ALL SELECT format('function %s', p.oid::regprocedure)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname !~ '^(pg_|information_schema)' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
  UNION ALL SELECT format('result of %s: %s %s', p.oid::regprocedure, r.name, format_type(r.type, NULL))
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
      CROSS JOIN LATERAL unnest(coalesce(p.proallargtypes, ARRAY[p.prorettype]), coalesce(p.proargmodes, ARRAY['t'::"char"]),
        coalesce(p.proargnames, ARRAY['result'])) AS r (type, mode, name)
    WHERE n.nspname !~ '^(pg_|information_schema)' AND r.mode IN ('t', 'o') AND r.type IS NOT NULL
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
  UNION ALL SELECT format('%s may %s %s', grantee.rolname, g.privilege_type, c.oid::regclass)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL aclexplode(c.relacl) g
      JOIN pg_roles grantee ON grantee.oid = g.grantee WHERE n.nspname !~ '^(pg_|information_schema)'
  UNION ALL SELECT format('%s may %s %s.%s', grantee.rolname, g.privilege_type, c.oid::regclass, a.attname)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
      CROSS JOIN LATERAL aclexplode(a.attacl) g JOIN pg_roles grantee ON grantee.oid = g.grantee
    WHERE n.nspname !~ '^(pg_|information_schema)'
  UNION ALL SELECT format('%s may call %s', grantee.rolname, p.oid::regprocedure)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace CROSS JOIN LATERAL aclexplode(p.proacl) g
      JOIN pg_roles grantee ON grantee.oid = g.grantee WHERE n.nspname !~ '^(pg_|information_schema)'
  UNION ALL SELECT format('%s may be %s', pg_get_userbyid(member), pg_get_userbyid(roleid)) FROM pg_auth_members`;

/** What would refuse a row that a process of the previous release writes: columns that it does not know, and new rules. */
const DEMANDS = `
  SELECT format('column %s.%s without a default', c.oid::regclass, a.attname) AS part
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
      AND c.relkind IN ('r', 'p') AND n.nspname !~ '^(pg_|information_schema)'
  UNION ALL SELECT format('rule of %s: %s', conrelid::regclass, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE contype IN ('c', 'f', 'x', 'u') AND conrelid <> 0 AND connamespace::regnamespace::text !~ '^(pg_|information_schema)'
  UNION ALL SELECT format('unique index %s', indexrelid::regclass) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE i.indisunique AND c.relnamespace::regnamespace::text !~ '^(pg_|information_schema)'`;

/** What is another one in every answer. */
const ANEW = ['requestId', 'nextCursor', 'resumeCursor'];
/** Null until an entry of the audit trail is sealed. */
const SEALED = ['position', 'prevHash', 'hash'];
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/;

/**
 * All that `before` says, `after` says too; it may say more of an object, and where in the sealed trail an entry
 * stands that was not sealed then. `moved`: milliseconds of times that were moved.
 */
function holds(after: Anything, before: Anything, moved: number, path = ''): void {
  if (typeof before === 'string' && typeof after === 'string' && TIME.test(before) && TIME.test(after))
    assert.ok([0, moved].includes(Date.parse(after) - Date.parse(before)), `${path}: ${before}, and now ${after}`);
  else if (typeof before !== 'object' || before === null || Array.isArray(before) !== Array.isArray(after))
    assert.deepEqual(after, before, path);
  else {
    if (Array.isArray(before))
      assert.equal(after.length, before.length, `${path}: ${JSON.stringify(after).slice(0, 500)}`);
    for (const [key, value] of Object.entries(before))
      if (!ANEW.includes(key) && !(SEALED.includes(key) && value === null))
        holds(after?.[key], value, moved, `${path}/${key}`);
  }
}

describe('a database of the previous release that is upgraded', function () {
  this.timeout(60_000);
  const recorded = JSON.parse(previous('answers.json').toString()) as Recorded;
  const logins: Record<string, string> = {};
  let servers: Servers;
  let server: Server;
  let platform: TestPlatform;
  let address: string;
  let moved: number;
  let old: { shape: string[]; demands: string[] };
  const tokens = new Map<string, string>();

  const parts = async (text: string): Promise<string[]> =>
    (await server.query<{ part: string }>(text)).map(({ part }) => part).sort();
  const migrate = (): Promise<{ stdout: string; stderr: string }> =>
    promisify(execFile)(process.execPath, [join(root, 'scripts/migrate.ts')], {
      env: { ...process.env, DATABASE_URL: server.url(), ...logins },
    });
  const again = async (one: Call): Promise<Answered> => {
    let token = tokens.get(one.who);
    if (token === undefined) {
      const refreshed = await refresh(recorded.refreshTokens[one.who]!, 'erp-cli');
      tokens.set(one.who, (token = refreshed.access_token));
    }
    return send(address, token!, one);
  };
  const as = async (who: string, method: string, path: string, body?: object, more = {}): Promise<Answered> =>
    again({
      who,
      method,
      path,
      headers: { ...(method === 'GET' ? {} : { 'idempotency-key': randomUUID() }), ...more },
      body: body === undefined ? null : JSON.stringify(body),
    });
  const refresh = async (token: string, clientId: string): Promise<Anything> => {
    const response = await fetch(`${address}/oauth2/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token, client_id: clientId }),
    });
    const body = await response.json();
    assert.equal(response.status, 200, JSON.stringify(body));
    return body;
  };

  const done = async (sent: Promise<Answered>): Promise<Answered> => {
    const answered = await sent;
    assert.ok(answered.status < 300, `${answered.method} ${answered.path}: ${JSON.stringify(answered.answer)}`);
    return answered;
  };
  const ended = async (deploymentId: string): Promise<void> => {
    for (;;) {
      const { answer } = await done(as('ada', 'GET', `/metadata/deployments/${deploymentId}`));
      if (answer.status === 'SUCCEEDED') return;
      assert.ok(!['FAILED', 'CANCELED'].includes(answer.status), JSON.stringify(answer));
    }
  };

  before(async () => {
    servers = new Servers();
    server = await servers.create('upgraded');
    writeFileSync(servers.path('roles.sql'), previous('roles.sql'));
    writeFileSync(servers.path('database.dump'), previous('database.dump'));
    await servers.run('psql', '--quiet', '-d', server.url(), '-f', servers.path('roles.sql')).catch(() => {});
    for (const section of ['pre-data', 'data', 'post-data'])
      await servers.run(
        ...(['pg_restore', '--exit-on-error', `--section=${section}`, '--jobs=2'] as const),
        ...['--dbname', server.url(), servers.path('database.dump')],
      );
    moved = await leaveThisMinute(server, recorded.at);
    for (const service of ALL_SERVICES) {
      const url = new URL(server.url());
      [url.username, url.password] = [loginOf(service), `${service}-password`];
      logins[databaseVariable(service)] = url.href;
    }
    old = { shape: await parts(SHAPE), demands: await parts(DEMANDS) };
  });
  after(async () => {
    await platform?.stop();
    await servers?.stop();
  });

  it('is up to date after npm run migrate, which may be repeated', async () => {
    const { stdout, stderr } = await migrate();
    assert.match(stdout, /^The database is up to date\.$/m);
    assert.equal(stderr, '');
    const shape = await parts(SHAPE);
    assert.equal((await migrate()).stdout, 'The database is up to date.\n');
    assert.deepEqual(await parts(SHAPE), shape);
  });

  it('has all that the processes of before use, and demands nothing new of them', async () => {
    const [shape, demands] = [new Set(await parts(SHAPE)), await parts(DEMANDS)];
    assert.ok(old.shape.length > 1_000);
    assert.deepEqual(
      old.shape.filter((part) => !shape.has(part)),
      [],
    );
    // What belongs to a table that was not there is nobody's burden.
    const known = new Set(old.shape.flatMap((part) => /^column (.*)\.[^.]+ /.exec(part)?.[1] ?? []));
    const demanded = new Set(old.demands);
    const ofKnown = (part: string): boolean =>
      [...known].some((table) => part.includes(`${table}.`) || part.startsWith(`rule of ${table}:`));
    assert.deepEqual(
      demands.filter((part) => !demanded.has(part) && ofKnown(part)),
      [],
    );
  });

  it('takes the statements of the processes of before', async () => {
    const client = new pg.Client({ connectionString: server.url() });
    await client.connect();
    const refused: string[] = [];
    try {
      assert.ok(recorded.statements.length > 100);
      for (const [login, text] of recorded.statements)
        await client
          .query(`PREPARE statement AS ${text}`)
          .then(() => client.query('DEALLOCATE statement'))
          .catch((error: Error) => refused.push(`${login}: ${error.message}: ${text.slice(0, 300)}`));
    } finally {
      await client.end();
    }
    assert.deepEqual(refused, []);
  });

  it('starts, and says what it said', async () => {
    const port = await freePort();
    platform = await startPlatform({
      database: { name: 'erp', url: server.url(), drop: async () => {} },
      seed: false,
      env: { ...logins, PLATFORM_SECRET: RECORDED_SECRET, BASE_URL: RECORDED_ADDRESS, PORT: String(port) },
    });
    address = `http://127.0.0.1:${port}`;
    assert.ok(recorded.reads.length > 30);
    for (const one of recorded.reads) {
      const { status, etag, answer } = await again(one);
      const what = `${one.who} ${one.path}`;
      assert.equal(status, one.status, `${what}: ${JSON.stringify(answer).slice(0, 500)}`);
      assert.equal(etag, one.etag, what);
      holds(answer, one.answer, moved, what);
    }
  });

  it('goes on where pages and those who follow changes had come to', async () => {
    for (const one of recorded.cursors) {
      const { status, answer } = await again(one);
      assert.equal(status, 200, `${one.path}: ${JSON.stringify(answer)}`);
      holds(answer.records, one.answer.records, moved, one.path);
    }
    const before = await again(recorded.followed);
    const crate = before.answer.records.find((it: Anything) => it.change === 'upserted').record;
    const { etag } = await as('sam', 'GET', `/data/Crate__c/${crate.id}`);
    await done(as('sam', 'PATCH', `/data/Crate__c/${crate.id}`, { name: 'After' }, { 'if-match': etag }));
    const { answer } = await again({
      ...recorded.followed,
      path: `/data/Crate__c/changes?cursor=${encodeURIComponent(before.answer.resumeCursor)}`,
    });
    assert.deepEqual(
      answer.records.map((it: Anything) => it.record.name),
      ['After'],
    );
  });

  it('carries out nothing again that was sent with a key', async () => {
    assert.ok(recorded.changes.length > 20);
    for (const one of recorded.changes) {
      const { status, answer } = await again(one);
      if (/^\/data\/User\b|\/shares\b/.test(one.path)) {
        // The grants of before lack the scope that such changes need now.
        assert.deepEqual([status, answer.code], [403, 'SCOPE_INSUFFICIENT'], one.path);
        continue;
      }
      assert.equal(status, one.status, `${one.method} ${one.path}: ${JSON.stringify(answer)}`);
      assert.deepEqual(answer, one.answer, one.path);
    }
  });

  it('keeps the keys of tokens, and the grants of people and agents', async () => {
    const jwks: Anything = await (await fetch(`${address}/oauth2/jwks`)).json();
    for (const { kid } of recorded.jwks.keys) assert.ok(jwks.keys.some((key: Anything) => key.kid === kid));
    const agent = await refresh(recorded.agentRefreshToken, 'demo-DunningAgent');
    const identity = await send(address, agent.access_token, {
      ...{ who: 'agent', method: 'GET', path: '/identity', headers: {}, body: null },
    });
    assert.equal(identity.answer.connection.agent, true, JSON.stringify(identity));
  });

  it('lets people decide what an agent asked for, which is then carried out once', async () => {
    const { approvalId, fingerprint, request } = recorded.waiting;
    await done(as('mia', 'POST', `/agent/approvals/${approvalId}/decision`, { decision: 'approve', fingerprint }));
    // What people were shown by the previous release has no basis that could be compared: they are asked anew.
    assert.equal((await again(request)).answer.code, 'APPROVAL_STALE');
    const { answer: asked } = await again(request);
    assert.equal(asked.code, 'APPROVAL_REQUIRED', JSON.stringify(asked));
    const decision = { decision: 'approve', fingerprint: asked.details.fingerprint };
    await done(as('mia', 'POST', `/agent/approvals/${asked.details.approvalId}/decision`, decision));
    for (const one of [await again(request), await again(request)]) assert.equal(one.status, 200, JSON.stringify(one));
    const ended = { outcome: 'succeeded', summary: 'One draft deleted.' };
    await done(as('sam', 'POST', `/agent/runs/${recorded.runId}/complete`, ended));
  });

  it('takes a deployment of before back', async () => {
    const rollback = { deploymentId: recorded.deploymentId };
    const { answer } = await done(as('ada', 'POST', '/metadata/deploy', { rollback }));
    await ended(answer.deploymentId);
    const { answer: object } = await done(as('ada', 'GET', '/objects/Crate__c/describe'));
    assert.ok(!JSON.stringify(object).includes('Weight__c'));
  });

  it('has audit trails that are whole', async () => {
    const tenants = await call(platform.broker, 'metadata.tenants.list', {});
    assert.equal(tenants.length, 2);
    for (const { id: tenantId } of tenants) {
      const { broken, total } = await call(platform.broker, 'data.audit.verify', { tenantId });
      assert.equal(broken, null);
      assert.ok(total > 5);
    }
  });

  it('has what is new', async () => {
    const { broker } = platform;
    const file = `type: IdentityProvider
apiName: Company
label: Company
issuer: https://login.example.com
clientId: erp
domains:
  - demo.example
`;
    const { answer } = await done(
      as('ada', 'POST', '/metadata/deploy', {
        files: { 'identityProviders/Company.yaml': file },
        package: { version: 1, types: [{ name: 'IdentityProvider', members: ['Company'] }] },
      }),
    );
    await ended(answer.deploymentId);
    const { answer: users } = await done(as('ada', 'GET', '/data/User?where={"username":"sam@demo.example"}'));
    // A scope that is new belongs to no grant of before.
    const link = await as('ada', 'POST', `/users/${users.records[0].id}/password-links`);
    assert.equal(link.answer.code, 'SCOPE_INSUFFICIENT');

    await call(broker, 'metadata.tenants.suspend', { key: 'acme', reason: 'Tried out' });
    assert.equal((await as('eve', 'GET', '/data/Account')).answer.code, 'TENANT_SUSPENDED');
    await call(broker, 'metadata.tenants.resume', { key: 'acme' });
    assert.equal((await as('eve', 'GET', '/data/Account')).status, 200);
  });

  it('has its configuration compiled again where a process of before did that', async () => {
    // That one knows of no identity provider, and does not say that it was the one.
    await server.query(`UPDATE metadata.snapshots s SET bytes = convert_to((convert_from(bytes, 'UTF8')::jsonb - 'identityProviders')::text, 'UTF8')
      FROM metadata.tenants t WHERE t.id = s.tenant_id AND t.key = 'demo' AND s.version = t.metadata_version`);
    await server.query(`UPDATE metadata.tenants SET compiled_version = compiled_version - 1 WHERE key = 'demo'`);
    const compiled = `SELECT t.metadata_version AS version, convert_from(s.bytes, 'UTF8')::jsonb -> 'identityProviders' AS providers
      FROM metadata.tenants t JOIN metadata.snapshots s ON s.tenant_id = t.id AND s.version = t.metadata_version WHERE t.key = 'demo'`;
    const [older] = await server.query<{ version: number; providers: object | null }>(compiled);
    assert.equal(older!.providers, null);
    await migrate();
    const [newer] = await server.query<{ version: number; providers: object | null }>(compiled);
    assert.deepEqual([newer!.version, Object.keys(newer!.providers ?? {})], [older!.version + 1, ['Company']]);
    await migrate();
    assert.deepEqual(await server.query(compiled), [newer]);
  });
});

/**
 * Moves what is kept for a while to the present, and takes the copy for the database itself, in which those who follow
 * changes go on. Answers by how many milliseconds times were moved.
 */
async function leaveThisMinute(server: Server, at: string): Promise<number> {
  const [{ ms } = { ms: 0 }] = await server.query<{ ms: number }>(
    `SELECT (extract(epoch FROM now() - '${at}'::timestamptz)::bigint * 1000)::float8 AS ms`,
  );
  const seconds = ms / 1_000;
  const payload = SECONDS.map(
    (name) =>
      `CASE WHEN jsonb_typeof(payload -> '${name}') = 'number' THEN jsonb_build_object('${name}', (payload ->> '${name}')::bigint + ${seconds}) ELSE '{}' END`,
  );
  await server.query(`SET session_replication_role = replica;
    DO $$ DECLARE entry record; BEGIN
      FOR entry IN SELECT c.oid::regclass AS name, string_agg(format('%1$I = %1$I + interval ''${seconds} s''', a.attname), ', ') AS moves
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
          AND a.atttypid = 'timestamptz'::regtype AND (${KEPT_FOR_A_WHILE}) GROUP BY c.oid
      LOOP EXECUTE format('UPDATE %s SET %s', entry.name, entry.moves); END LOOP;
    END $$;
    UPDATE auth.artifacts SET payload = payload || ${payload.join(' || ')};
    UPDATE auth.grants SET payload = payload || ${payload.join(' || ')}`);
  const schemas = await server.query<{ schema: string }>(
    `SELECT nspname AS schema FROM pg_namespace WHERE nspname ~ '${TENANT}'`,
  );
  for (const { schema } of schemas)
    await server.query(`DO $$ DECLARE known text := (SELECT epoch FROM ${schema}._epoch); BEGIN
      PERFORM ${schema}._renew_epoch(known, (SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
        (SELECT oid FROM pg_database WHERE datname = current_database()), '${schema}._epoch'::regclass::oid,
        left(pg_walfile_name(pg_current_wal_lsn()), 8))));
      UPDATE ${schema}._epoch SET epoch = known;
      UPDATE ${schema}._audit_head SET server = known;
    END $$`);
  return ms;
}

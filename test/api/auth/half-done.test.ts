/**
 * Every change by auth is complete or absent, with its entry in the audit trail: the connection to the database is cut
 * at each of its writes in turn. Source: docs/reference/audit.md#entries-of-other-services.
 */

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { call } from '../../../contracts/call.ts';
import type { AuditEntry } from '../../../services/auth/store/audit-entries.ts';
import { AuthStore } from '../../../services/auth/store/store.ts';
import { authorize, authorizeUrl, Browser, pkce, refresh, type Seen, tokens } from './browser.ts';
import { ADA, type AuthHarness, DEMO, externalClient, startAuth } from './harness.ts';

const TABLES = [
  ...['credentials', 'password_links', 'address_links', 'grants', 'artifacts', 'mails', 'audit_entries', 'domains'],
  ...['passkeys', 'authenticators', 'recovery_codes', 'identities', 'provider_secrets', 'client_secrets'],
  'known_origins',
];

describe('changes by auth, when its database connection is cut', () => {
  let auth: AuthHarness;
  before(async () => {
    auth = await startAuth();
    await auth.database.query(
      `CREATE FUNCTION public.cut() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
         PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(1);
         RETURN NULL;
       END $$`,
    );
    auth.clients['Portal'] = externalClient({ apiName: 'Portal', confidential: true, scopes: ['data:read'] });
    await auth.bump();
  });
  after(() => auth?.stop());
  beforeEach(() => {
    auth.notes.length = 0;
  });

  const stored = async (): Promise<Record<string, unknown>> => {
    const found: Record<string, unknown> = {};
    for (const table of TABLES) {
      const { rows } = await auth.database.query<{ row: string }>(
        `SELECT t::text AS row FROM auth.${table} t ORDER BY 1`,
      );
      found[table] = rows.map(({ row }) => row);
    }
    return found;
  };
  const changed = (before: Record<string, unknown>, after: Record<string, unknown>): string[] =>
    TABLES.filter((table) => JSON.stringify(before[table]) !== JSON.stringify(after[table]));

  /** The rows once the mails of earlier requests are out. */
  const settled = async (): Promise<Record<string, unknown>> => {
    for (let before = await stored(); ; ) {
      await pause(250);
      const now = await stored();
      if (changed(before, now).length === 0) return now;
      before = now;
    }
  };

  /** Executes `act` with a cut at every table that it writes, then without one. */
  const inTurn = async (tables: readonly string[], act: () => Promise<unknown>): Promise<unknown> => {
    const before = await settled();
    for (const table of [...tables, 'audit_entries']) {
      await auth.database.query(
        `CREATE TRIGGER cut BEFORE INSERT OR UPDATE OR DELETE ON auth.${table} FOR EACH STATEMENT EXECUTE FUNCTION public.cut()`,
      );
      const outcome = await act().then(
        (answer) => ((answer as Seen)?.status >= 500 ? 'cut' : JSON.stringify(answer)),
        () => 'cut',
      );
      await auth.database.query(`DROP TRIGGER cut ON auth.${table}`);
      assert.equal(outcome, 'cut', table);
      assert.deepEqual(changed(before, await stored()), [], `cut at ${table}`);
      assert.deepEqual(auth.notes, [], `cut at ${table}`);
    }
    return act();
  };
  const noted = (): string[] => auth.notes.map(({ operationId }) => operationId);
  const username = 'ada@demo.example';

  it('apply a password set by a link completely: link, password, sessions, mail and trail', async () => {
    const before = await tokens(auth.baseUrl, { scope: 'data:read offline_access' }, username);
    const { url } = await call(auth.broker, 'auth.users.createLink', { username });
    auth.notes.length = 0;
    const browser = new Browser();
    const page = await browser.visit(url);
    const password = 'entirely new words';
    const send = (): Promise<Seen> => browser.submit(page, { password, repeated: password });
    const tables = ['password_links', 'credentials', 'grants', 'artifacts', 'mails'];
    const done = (await inTurn(tables, send)) as Seen;
    assert.match(done.html, /Your password is set/);
    assert.deepEqual(noted(), ['auth.users.setPassword']);
    assert.equal((await refresh(auth.baseUrl, before.refresh_token)).status, 400);
    await authorize(new Browser(), authorizeUrl(auth.baseUrl, pkce().challenge), username, password);
    // The response was lost: the browser sends its form again.
    assert.match((await send()).html, /Your password is set/);
    assert.deepEqual(noted(), ['auth.users.setPassword']);
  });

  it('apply acts of operators completely: links, domains, factors, identities, sessions, secrets', async () => {
    await call(auth.broker, 'auth.domains.add', { tenantId: DEMO, domain: 'gone.example' });
    auth.identityProviders.set(DEMO, [
      {
        apiName: 'Corp',
        label: 'Corp',
        active: true,
        issuer: 'https://login.corp.example',
        clientId: 'erp',
        domains: ['corp.example'],
        usernameClaim: 'email',
        passwordSignIn: true,
        createUsers: null,
      } as never,
    ]);
    await auth.bump();
    await auth.database.query(`INSERT INTO auth.recovery_codes (tenant_id, user_id, code_hash) VALUES ($1, $2, $3)`, [
      DEMO,
      ADA,
      randomBytes(32),
    ]);
    auth.notes.length = 0;
    const sessions = ['grants', 'artifacts', 'known_origins'];
    const acts: [tables: string[], act: () => Promise<unknown>, operationId: string][] = [
      [['password_links'], () => call(auth.broker, 'auth.users.createLink', { username }), 'auth.users.createLink'],
      [
        ['domains'],
        () => call(auth.broker, 'auth.domains.add', { tenantId: DEMO, domain: 'new.example' }),
        'auth.domains.add',
      ],
      [
        ['domains'],
        () => call(auth.broker, 'auth.domains.remove', { tenantId: DEMO, domain: 'gone.example' }),
        'auth.domains.remove',
      ],
      [sessions, () => call(auth.broker, 'auth.users.revoke', { tenantId: DEMO, userId: ADA }), 'auth.users.revoke'],
      [
        ['passkeys', 'authenticators', 'recovery_codes', ...sessions],
        () => call(auth.broker, 'auth.factors.reset', { username }),
        'auth.factors.reset',
      ],
      [
        ['identities', ...sessions],
        () => call(auth.broker, 'auth.identities.remove', { username }),
        'auth.identities.remove',
      ],
      [
        ['provider_secrets'],
        () =>
          call(auth.broker, 'auth.identityProviders.setSecret', { tenantId: DEMO, apiName: 'Corp', secret: 'x y z' }),
        'auth.identityProviders.setSecret',
      ],
      [
        ['client_secrets'],
        () => call(auth.broker, 'auth.clients.rotateSecret', { tenantId: DEMO, apiName: 'Portal' }),
        'auth.clients.rotateSecret',
      ],
    ];
    for (const [tables, act, operationId] of acts) {
      await auth.database.query(
        `INSERT INTO auth.grants (tenant_id, id, user_id, client_id, payload, expires_at)
         VALUES ($1, $2, $3, 'erp-cli', '{}', now() + interval '1 day')`,
        [DEMO, randomUUID(), ADA],
      );
      auth.notes.length = 0;
      await inTurn(tables, act);
      assert.deepEqual(noted(), [operationId]);
    }
  });

  it('store an entry that data does not accept, and send it once data is back', async () => {
    auth.dataAway = true;
    const { url } = await call(auth.broker, 'auth.users.createLink', { username });
    const browser = new Browser();
    const password = 'again entirely new words';
    const done = await browser.submit(await browser.visit(url), { password, repeated: password });
    assert.match(done.html, /Your password is set/);
    auth.dataAway = false;
    assert.deepEqual(noted(), []);
    const sent: AuditEntry[] = [];
    const failing = new AuthStore(auth.database, {
      send: async (entry) => {
        if (entry.operationId === 'auth.users.createLink') throw new Error('not yet');
        sent.push(entry);
      },
      failed: () => {},
    });
    await failing.trail.sendStored();
    assert.deepEqual(
      sent.map(({ operationId, userId }) => [operationId, userId]),
      [['auth.users.setPassword', ADA]],
      'one that fails holds up no other',
    );
    const later = new AuthStore(auth.database, {
      send: async (entry) => sent.push(entry),
      failed: (error) => assert.fail(String(error)),
    });
    await later.trail.sendStored();
    await later.trail.sendStored();
    assert.deepEqual(
      sent.map(({ operationId }) => operationId),
      ['auth.users.setPassword', 'auth.users.createLink'],
    );
  });
});

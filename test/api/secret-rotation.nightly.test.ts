/** The secret of the deployment is replaced while people are signed in: before, during and after. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readConfig } from '../../config/env.ts';
import { type Running, start } from '../../main.ts';
import { Database } from '../../mixins/database/database.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { signIn, type Tokens } from '../../scripts/sign-in.ts';
import { api } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { createPlatformDatabase, testEnvironment } from '../support/platform.ts';
import { root } from '../support/sources.ts';

const OLD = 'Zm9yZ2V0IG1lIG5vdCwgSSBhbSB0aGUgb2xkIG9uZSE';
const NEW = 'dGhlIG5ldyBvbmUgaXMgbG9uZ2VyIGFuZCBiZXR0ZXI';

describe('replacing PLATFORM_SECRET', () => {
  let own: TestDatabase;
  let database: Database;
  let folder: string;
  let port: number;
  let baseUrl: string;
  let running: Running | null = null;
  before(async () => {
    own = await createPlatformDatabase();
    database = new Database(own.url, { size: 1, applicationName: 'secret test' });
    folder = await mkdtemp(join(tmpdir(), 'erp-secret-'));
    port = await freePort();
    baseUrl = `http://localhost:${port}`;
  });
  after(async () => {
    await running?.stop();
    await database?.close();
    await own?.drop();
    await rm(folder, { recursive: true, force: true });
  });

  const environment = (secrets: Record<string, string>): Record<string, string> =>
    testEnvironment(own.url, { PORT: String(port), HOST: 'localhost', DATA_DIR: folder, ...secrets });
  const restart = async (secrets: Record<string, string>): Promise<void> => {
    await running?.stop();
    running = null;
    running = await start(readConfig(environment(secrets)), { control: true });
  };
  const page = async (token: string, cursor: string | null) => {
    const more = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    return api(baseUrl, token).get(`/data/Account?take=1&fields=name${more}`);
  };
  const refreshed = async (refreshToken: string): Promise<Tokens> => {
    const body = new URLSearchParams({
      grant_type: 'refresh_token',
      client_id: 'erp-cli',
      refresh_token: refreshToken,
    });
    const response = await fetch(`${baseUrl}/oauth2/token`, { method: 'POST', body });
    assert.equal(response.status, 200, await response.clone().text());
    return (await response.json()) as Tokens;
  };

  it('keeps all users signed in and every cursor readable, and no longer needs the old secret after the command', async () => {
    await restart({});
    const { access_token: fromBefore } = await signIn({ baseUrl, user: 'sam@demo.example', password: 'demo-password' });
    const stored = async (): Promise<{ open: number; sealed: number }> => {
      const { rows } = await database.query<{ open: number; sealed: number }>(
        'SELECT count(plain)::int AS open, count(sealed)::int AS sealed FROM auth.keys',
      );
      return rows[0]!;
    };
    const { open: kept, sealed } = await stored();
    assert.ok(kept >= 2 && sealed === 0);
    const command = async (): Promise<string> =>
      (
        await promisify(execFile)(process.execPath, ['scripts/rotate-secret.ts'], {
          cwd: root,
          env: { ...process.env, DATA_DIR: folder },
        })
      ).stdout;

    await restart({ PLATFORM_SECRET: OLD });
    assert.ok((await command()).startsWith(`Sealed anew: ${kept}.`));
    assert.deepEqual(await stored(), { open: 0, sealed: kept });
    assert.equal((await page(fromBefore, null)).status, 200);

    const scope = 'data:read offline_access';
    const session = await signIn({ baseUrl, user: 'sam@demo.example', password: 'demo-password', scope });
    const first = (await page(session.access_token, null)).body;
    assert.ok(first.nextCursor);

    await restart({ PLATFORM_SECRET: NEW, PLATFORM_SECRET_PREVIOUS: OLD });
    assert.equal((await page(session.access_token, first.nextCursor)).status, 200, 'a cursor of before');
    const during = await refreshed(session.refresh_token!);
    const second = (await page(during.access_token, null)).body;
    assert.ok((await command()).startsWith(`Sealed anew: ${kept}.`));
    assert.match(await command(), /^Sealed anew: 0\./);

    await restart({ PLATFORM_SECRET: NEW });
    for (const token of [session.access_token, during.access_token])
      assert.equal((await page(token, second.nextCursor)).status, 200, 'tokens, and a cursor made meanwhile');
    await refreshed(during.refresh_token!);
    const ended = await page(during.access_token, first.nextCursor);
    assert.equal(ended.status, 400);
    assert.equal(ended.body.code, 'CURSOR_INVALID');

    await assert.rejects(restart({ PLATFORM_SECRET: OLD }), /another PLATFORM_SECRET/);
  });
});

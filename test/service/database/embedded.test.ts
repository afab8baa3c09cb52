/** The embedded server listens on a port that every user of the machine can reach. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startEmbeddedDatabase } from '../../../mixins/database/embedded.ts';

describe('the embedded database', function () {
  this.timeout(60_000);
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'erp-embedded-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const on = async (url: string, text: string): Promise<void> => {
    const client = new pg.Client(url);
    await client.connect();
    await client.query(text).finally(() => client.end());
  };
  const withPassword = (url: string, password: string): string => Object.assign(new URL(url), { password }).toString();
  const file = (): string => join(folder, 'postgres', 'platform-password');

  it('has a password that only its account can read, and keeps it', async () => {
    const first = await startEmbeddedDatabase(folder);
    await on(first.url, 'SELECT 1');
    await assert.rejects(on(withPassword(first.url, 'postgres'), 'SELECT 1'), { code: '28P01' });
    assert.equal((await stat(file())).mode & 0o077, 0);
    await first.stop();
    const second = await startEmbeddedDatabase(folder);
    assert.equal(new URL(second.url).password, new URL(first.url).password);
    await on(second.url, "ALTER ROLE postgres PASSWORD 'postgres'");
    await second.stop();
  });

  it('accepts a folder from before generated passwords', async () => {
    await rm(file());
    const server = await startEmbeddedDatabase(folder);
    await on(server.url, 'SELECT 1');
    await server.stop();
  });
});

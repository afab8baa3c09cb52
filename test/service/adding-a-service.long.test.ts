/** Follows CONTRIBUTING in a copy of the repository: adds a service to an installation that is there. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { createPlatformDatabase, testEnvironment } from '../support/platform.ts';

const root = new URL('../../', import.meta.url).pathname;
const COPIED =
  'cli client config contracts docker-compose.yml docs k8s lib main.ts mixins package.json published scripts services templates tsconfig.json web';

describe('following CONTRIBUTING, a service', function () {
  this.timeout(240_000);
  const ended = promisify(execFile);
  let copy = '';
  let database: TestDatabase;
  let client: pg.Client;
  let running: ChildProcess | undefined;
  /** Files that are changed besides the folder of the service and its declaration. */
  const touched = new Set<string>();

  const add = (path: string, from: string): void => {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    writeFileSync(join(copy, path), readFileSync(join(root, 'test/cases/adding/service', from), 'utf8'));
  };
  /** Puts text before the first occurrence of each key. */
  const insert = (path: string, texts: Record<string, string>): void => {
    let file = readFileSync(join(copy, path), 'utf8');
    for (const [before, text] of Object.entries(texts)) {
      assert.ok(file.includes(before), `${path} does not contain ${before}`);
      file = file.replace(before, () => text + before);
    }
    touched.add(path);
    writeFileSync(join(copy, path), file);
  };

  before(async () => {
    copy = mkdtempSync(join(realpathSync(tmpdir()), 'adding-'));
    for (const path of COPIED.split(' ')) cpSync(join(root, path), join(copy, path), { recursive: true });
    symlinkSync(realpathSync(join(root, 'node_modules')), join(copy, 'node_modules'));
    database = await createPlatformDatabase();
    client = new pg.Client({ connectionString: database.url });
    await client.connect();

    add('contracts/notes.ts', 'contract.txt');
    add('services/notes/notes.service.ts', 'service.txt');
    add('services/notes/migrations/0001-notes.sql', 'migration.txt');
    insert('contracts/services.ts', {
      'import { type RatelimitActions':
        "import { type NotesActions, type NotesEvents, SERVICE as notes } from './notes.ts';\n",
      '} as const;': '  notes,\n',
      '  RatelimitActions;': '  NotesActions &\n',
      'MetadataEvents;': 'NotesEvents & ',
    });
    insert('lib/operation.ts', {
      "  offline_access: 'Receive": "  'notes:write': 'Write notes.',\n",
      '} as const;\n\ntype Tag': "  notes: { name: 'Notes', description: 'Notes of the tenant.' },\n",
    });
  });
  after(async () => {
    if (running?.exitCode === null) {
      const exited = new Promise((resolve) => running!.once('exit', resolve));
      running.kill('SIGTERM');
      await exited;
    }
    await client?.end();
    if (database) await dropAll(database);
    rmSync(copy, { recursive: true, force: true });
  });

  /** Roles belong to the server, which other tests use as well. */
  const dropAll = async (own: TestDatabase): Promise<void> => {
    await own.drop();
    const server = new pg.Client({ connectionString: Object.assign(new URL(own.url), { pathname: '/postgres' }).href });
    await server.connect();
    await server.query('DROP ROLE IF EXISTS login_notes, svc_notes');
    await server.end();
  };

  it('is its folder, its declaration and its lines in two files', () => {
    assert.deepEqual([...touched], ['contracts/services.ts', 'lib/operation.ts']);
  });

  it('compiles', async () => {
    // Of the scripts, only those that need no test are here.
    const settings = {
      extends: './tsconfig.json',
      include: ['main.ts', 'services', 'mixins', 'cli', 'scripts/manifests.ts'],
    };
    writeFileSync(join(copy, 'tsconfig.copy.json'), JSON.stringify(settings));
    const tsc = ended(join(root, 'node_modules/.bin/tsc'), ['--noEmit', '--project', 'tsconfig.copy.json'], {
      cwd: copy,
    });
    await tsc.catch(({ stdout }) => assert.fail(stdout));
  });

  it('gets its manifests from its declaration', async () => {
    await ended(process.execPath, ['scripts/manifests.ts'], { cwd: copy });
    assert.ok(existsSync(join(copy, 'k8s/base/services/notes.yaml')));
    assert.match(readFileSync(join(copy, 'docker-compose.yml'), 'utf8'), /^ {6}SERVICES: notes$/m);
    assert.match(readFileSync(join(copy, 'k8s/base/migrate.yaml'), 'utf8'), /key: DATABASE_URL_NOTES$/m);
  });

  it('answers its operation, keeps its rows, and gets its event and its job', async () => {
    running = spawn(process.execPath, ['main.ts'], {
      cwd: copy,
      env: { PATH: process.env['PATH'], ...testEnvironment(database.url), DATA_DIR: join(copy, '.data') },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let baseUrl: string | undefined;
    for await (const line of createInterface(running.stdout!)) {
      baseUrl = /^ready (http\S+)/.exec(line)?.[1];
      if (baseUrl !== undefined) break;
    }
    assert.ok(baseUrl);
    const add = async (token: string): Promise<Response> =>
      fetch(`${baseUrl}/api/v1/notes`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
        },
        body: JSON.stringify({ text: 'call the supplier' }),
      });
    assert.equal((await add(await tokenFor(baseUrl, 'sam', 'data:read'))).status, 403);
    const answer = await add(await tokenFor(baseUrl, 'sam', 'notes:write'));
    const body = await answer.text();
    assert.equal(answer.status, 201, body);
    const { id } = JSON.parse(body) as { id: string };

    const note = async (): Promise<unknown> =>
      (await client.query('SELECT text, words, heard FROM notes.notes WHERE id = $1', [id])).rows[0];
    const expected = { text: 'call the supplier', words: 3, heard: true };
    for (const end = performance.now() + 30_000; performance.now() < end; await pause(100))
      if (JSON.stringify(await note()) === JSON.stringify(expected)) break;
    assert.deepEqual(await note(), expected);
  });

  it('signs in with its own login, which reaches its own tables and the roles of all tenants', async () => {
    const { rows } = await client.query<{ login: boolean; missing: number; others: boolean }>(
      `SELECT (SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND usename = 'login_notes') > 0 AS login,
        (SELECT count(*)::int FROM metadata.tenants t
          WHERE NOT pg_has_role('login_notes', 't_' || replace(t.id::text, '-', ''), 'MEMBER')) AS missing,
        has_table_privilege('login_notes', 'data.secrets', 'SELECT') AS others`,
    );
    assert.deepEqual(rows[0], { login: true, missing: 0, others: false });
  });
});

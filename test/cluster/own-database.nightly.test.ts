/** The platform on a database of the operator's, in one process and in several, by the commands that the guide prints. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../mixins/database/embedded.ts';
import { exampleNamed } from '../support/examples.ts';
import { type Server, Servers } from '../support/postgres.ts';
import { compileCache } from '../support/processes.ts';
import { root } from '../support/sources.ts';
import { Terminal } from '../support/terminal.ts';
import { until } from './stage.ts';

const GUIDE = 'docs/guides/operators.md';

describe("a database of one's own", function () {
  this.timeout(90_000);
  let servers: Servers;
  let server: Server;
  let folder: string;
  let terminal: Terminal | undefined;

  before(async () => {
    servers = new Servers();
    server = await servers.create('server');
    await server.query('DROP DATABASE erp', 'postgres');
    for (const statement of exampleNamed(`${GUIDE}#start-and-stop 3`).split(/(?<=;)\n/))
      if (statement) await server.query(statement.replace('…', 'unused'), 'postgres');
    folder = await mkdtemp(join(tmpdir(), 'erp-own-database-'));
  });
  afterEach(() => terminal?.end('SIGKILL'));
  after(async () => {
    await servers?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** The commands as printed, in a terminal, with the addresses of this machine. */
  const run = (name: string, more: Readonly<Record<string, string>> = {}): Terminal => {
    const addresses = Object.entries({
      'erp:…@': 'erp:unused@',
      'db.internal:5432': `127.0.0.1:${server.port}`,
      ...more,
    });
    const text = addresses.reduce((all, [from, to]) => all.replaceAll(from, to), exampleNamed(`${GUIDE}#${name}`));
    const { NATS_URL: _, DATABASE_URL: __, ...env } = process.env;
    terminal = new Terminal(text, {
      cwd: root,
      env: { ...env, ...compileCache(), DATA_DIR: folder, SEED_DEMO: 'false', LOG_LEVEL: 'warn', PORT: '0' },
    });
    return terminal;
  };
  const readiness = async (baseUrl: string) => {
    const response = await fetch(`${baseUrl}/readyz`);
    const { services } = (await response.json()) as { services: Record<string, { processes: number }> };
    return { status: response.status, services };
  };

  it('serves one process', async () => {
    const platform = run('start-and-stop 2');
    const [ready] = await platform.until(/^ready (http\S+)$/);
    assert.equal((await readiness(ready![1]!)).status, 200);
    assert.equal(await platform.end(), 0, platform.output);
  });

  it('serves processes that talk over NATS, two of data among them', async () => {
    const [nats, port] = await Promise.all([freePort(), freePort()]);
    const platform = run('several-processes', {
      '4222': String(nats),
      'localhost:5432': `127.0.0.1:${server.port}`,
      'PORT=3000': `PORT=${port}`,
    });
    const ready = await platform.until(/^ready (.+)$/, 4);
    assert.deepEqual(
      ready.map(([, what]) => what!.replace(/ on nats:.*/, '')).sort(),
      ['data', 'data', `http://localhost:${port}`, 'metadata,auth,analytics,agent,ratelimit,mcp'].sort(),
    );
    assert.match(platform.output, /^The database is up to date\.$/m);
    const isWhole = async (): Promise<boolean> => {
      const { status, services } = await readiness(`http://localhost:${port}`);
      return status === 200 && services['data']?.processes === 2;
    };
    await until('the gateway sees both processes of data', isWhole, 30_000);
    assert.equal(await platform.end(), 0, platform.output);
  });
});

/** A change with unknown outcome: the same command finds the outcome, and applies nothing twice. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { tokenFor } from '../support/client.ts';
import { erpOf, startErp, userEnvironment } from '../support/erp.ts';
import { type Interfering, interfere } from '../support/interference.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('an unfinished request of erp', () => {
  let platform: TestPlatform;
  let proxy: Interfering;
  let env: Record<string, string>;
  /** Keys of the creations that arrived. */
  let keys: unknown[];
  let silent: boolean;

  before(async () => {
    platform = await startPlatform();
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    proxy = await interfere(platform.baseUrl, {
      answers: (method, headers) => {
        if (method !== 'POST') return 'as it is';
        keys.push(headers['idempotency-key']);
        return silent ? 'never' : 'as it is';
      },
    });
    env = userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: proxy.url });
  });
  beforeEach(() => {
    keys = [];
    silent = true;
  });
  after(async () => {
    proxy.close();
    await platform.stop();
  });

  const creation = (city: string): string[] => [
    'data',
    'create',
    'Account',
    '--data',
    `{"name":"Once","city":"${city}"}`,
  ];

  /** Starts a creation and kills the program after the platform has applied it. */
  const interrupted = async (
    city: string,
    signal: NodeJS.Signals,
  ): Promise<{ code: number | null; stderr: string }> => {
    const child = startErp(env, creation(city));
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk));
    while (!keys.length) await new Promise((resolve) => setTimeout(resolve, 20));
    child.kill(signal);
    const [code] = await once(child, 'close');
    silent = false;
    return { code, stderr };
  };

  const count = async (city: string): Promise<number> => {
    const { stdout } = await erpOf(env)(['data', 'list', 'Account', '--json', '--where', `city=${city}`]);
    return JSON.parse(stdout).records.length;
  };

  it('is resumed by the same command after kill -9, with its key', async () => {
    await interrupted('Killed', 'SIGKILL');
    const again = await erpOf(env)(creation('Killed'));
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr, /taken up again with its key .* nothing is done twice/);
    assert.equal(new Set(keys).size, 1);
    assert.equal(await count('Killed'), 1);
    assert.deepEqual(await readdir(join(env['HOME'] ?? '', '.config', 'erp', 'pending')), []);
    // Its outcome is known now: the same command is another request, which finds the first record.
    assert.match((await erpOf(env)(creation('Killed'))).stderr, /DUPLICATE_RULE/);
    assert.equal(new Set(keys).size, 2);
  });

  it('is resumed after Ctrl-C, which exits with 130', async () => {
    const { code, stderr } = await interrupted('Stopped', 'SIGINT');
    assert.equal(code, 130);
    assert.match(stderr, /the same command takes it up/);
    assert.equal((await erpOf(env)(creation('Stopped'))).code, 0);
    assert.equal(await count('Stopped'), 1);
  });

  it('is discarded with --no-resume', async () => {
    await interrupted('Anew', 'SIGKILL');
    const { code, stderr } = await erpOf(env)([...creation('Anew'), '--no-resume']);
    assert.equal(code, 5);
    assert.match(stderr, /DUPLICATE_RULE/);
    assert.equal(new Set(keys).size, 2);
  });

  it('is left alone while its process is running', async () => {
    const child = startErp(env, creation('Both'));
    while (!keys.length) await new Promise((resolve) => setTimeout(resolve, 20));
    const { code, stderr } = await erpOf(env)(creation('Both'));
    child.kill('SIGKILL');
    await once(child, 'close');
    assert.equal(code, 5);
    assert.match(stderr, /is at this very request now/);
    assert.equal(keys.length, 1);
  });

  it('is kept when the platform does not answer in time', async () => {
    const late = await erpOf(env)([...creation('Late'), '--timeout', '1']);
    assert.equal(late.code, 1);
    assert.match(late.stderr, /Whether it was done is not known\. Repeat the same command/);
    silent = false;
    assert.equal((await erpOf(env)(creation('Late'))).code, 0);
    assert.equal(new Set(keys).size, 1);
    assert.equal(await count('Late'), 1);
  });
});

describe('a request of erp that arrived without a response', () => {
  let server: Server;
  let port: number;
  let env: Record<string, string>;
  let keys: unknown[];
  /** Responses to the first creation, the second, and so on; the last one repeats. */
  let answers: ((response: ServerResponse) => void)[];

  const listen = (at: number): Promise<void> => new Promise((resolve) => server.listen(at, '127.0.0.1', resolve));
  beforeEach(async () => {
    keys = [];
    server = createServer((request, response) => {
      if (request.method !== 'POST') return response.writeHead(404).end();
      keys.push(request.headers['idempotency-key']);
      const answer = answers[Math.min(keys.length, answers.length) - 1];
      return request.resume().once('end', () => answer?.(response));
    });
    await listen(0);
    port = (server.address() as AddressInfo).port;
    env = userEnvironment({ ERP_TOKEN: 'token', ERP_BASE_URL: `http://127.0.0.1:${port}` });
  });
  afterEach(() => {
    server.close();
    server.closeAllConnections();
  });

  const create = () => erpOf(env)(['data', 'create', 'Account', '--data', '{"name":"Once"}']);
  const created = (response: ServerResponse): unknown => response.writeHead(201).end('{"id":"1","name":"Once"}');
  const lost = (response: ServerResponse): unknown => response.socket?.destroy();
  const refused =
    (status: number, code: string) =>
    (response: ServerResponse): unknown =>
      response
        .writeHead(status)
        .end(JSON.stringify({ code, message: 'No.', status, requestId: 'r', retryAfterSeconds: 3_600 }));

  const takenUpAfter = async (exitCode: number): Promise<void> => {
    const first = await create();
    assert.equal(first.code, exitCode, first.stderr);
    assert.match(first.stderr, /Whether it was done is not known\. Repeat the same command/);
    if (!server.listening) await listen(port);
    answers = [created];
    const second = await create();
    assert.equal(second.code, 0, second.stderr);
    assert.equal(new Set(keys).size, 1);
  };

  it('is resumed with its key after the server was unreachable', async () => {
    answers = [
      (response) => {
        server.close();
        lost(response);
      },
    ];
    await takenUpAfter(1);
  });

  it("is resumed with its key after a refusal that precedes the key's look-up", async () => {
    answers = [lost, refused(429, 'RATE_LIMITED')];
    await takenUpAfter(7);
    answers = [lost, refused(403, 'OBJECT_PERMISSION_DENIED')];
    keys = [];
    await takenUpAfter(4);
  });

  it('stays unfinished when resuming is refused likewise', async () => {
    answers = [lost, refused(429, 'RATE_LIMITED')];
    assert.equal((await create()).code, 7);
    await takenUpAfter(7);
  });

  it('is discarded once an answer reports that it was not applied', async () => {
    answers = [lost, refused(422, 'VALIDATION_FAILED')];
    assert.equal((await create()).code, 6);
    answers = [created];
    assert.equal((await create()).code, 0);
    assert.equal(new Set(keys).size, 2);
  });
});

/** `erp` with a base URL that belongs to a hostile server. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constants, deflateRawSync } from 'node:zlib';
import { type Ended, keptErpOf, userEnvironment } from '../support/erp.ts';

type Component = { type: string; fullName: string; path: string };

describe('erp against a hostile server', () => {
  let server: Server;
  let url: string;
  let folder: string;
  /** The server's answer to a request for this path. */
  let answers: Record<string, (response: ServerResponse) => void>;

  before(async () => {
    server = createServer((request, response) => {
      const { pathname } = new URL(request.url ?? '/', url);
      const answer = answers[pathname] ?? ((other) => other.writeHead(404).end());
      answer(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'erp-hostile-'));
    answers = { '/api/v1/identity': json(identity('Demo')) };
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const json =
    (value: unknown, status = 200) =>
    (response: ServerResponse): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
  const identity = (tenant: string) => ({
    user: { id: 'u', username: 'ada@demo.example', displayName: 'Ada' },
    tenant: { id: 't', name: tenant },
  });
  const erp = (...args: string[]): Promise<Ended> =>
    keptErpOf(userEnvironment({ ERP_TOKEN: 'token', ERP_BASE_URL: url }))(args, { cwd: folder });
  const offers = (...components: Component[]): void => {
    answers['/api/v1/metadata/retrieve'] = json({
      metadataVersion: 1,
      manifestHash: '',
      generatedAt: '2026-01-01T00:00:00Z',
      components,
      notFound: [],
      files: Object.fromEntries(components.map(({ path }) => [path, 'apiName: X\n'])),
    });
  };

  describe('that chooses the paths of files', () => {
    const role = { type: 'Role', fullName: 'Sales', path: 'roles/Sales.yaml' };
    const newer = (path: string): Component => ({ type: 'Newer', fullName: 'Sales', path });
    /** By a package, because `--type` accepts only known types. */
    const retrieve = async (...types: string[]): Promise<Ended> => {
      const elsewhere = mkdtempSync(join(tmpdir(), 'erp-package-'));
      const file = join(elsewhere, 'package.yaml');
      const names = types.map((type) => `  - name: ${type}\n    members: ["*"]\n`).join('');
      writeFileSync(file, `version: 1\ntypes:\n${names}`);
      const ended = await erp('metadata', 'retrieve', '--package', file);
      rmSync(elsewhere, { recursive: true });
      return ended;
    };
    const refused: Component[] = [
      { ...role, path: '.git/config' },
      { ...role, path: 'Makefile' },
      { ...role, path: 'roles/Other.yaml' },
      { ...role, path: 'manifest/package.yaml' },
      { ...role, fullName: '.git/x', path: 'roles/.git/x.yaml' },
      { ...role, fullName: '../x', path: 'roles/../x.yaml' },
      { type: 'CustomField', fullName: '.GIT.x', path: 'objects/.GIT/fields/x.yaml' },
      newer('.github/workflows/x.yaml'),
      newer('newer/.GIT/x.yaml'),
      newer('docker-compose.yaml'),
      newer('newer/x.yml'),
      newer('roles/Sales.yaml'),
      newer('manifest/package.yaml'),
      newer('git-hooks/x.yaml'),
    ];
    for (const component of refused)
      it(`writes no ${component.path} for ${component.type} ${component.fullName}`, async () => {
        offers(component);
        const { code, stderr } = await retrieve(component.type);
        assert.deepEqual(readdirSync(folder), []);
        assert.equal(code, 1);
        assert.match(stderr, /gave a file for .* that cannot be kept/);
      });

    it('writes no file of a type that was not requested', async () => {
      offers(newer('newer/Sales.yaml'));
      const { code } = await retrieve('Role');
      assert.equal(code, 1);
      assert.deepEqual(readdirSync(folder), []);
    });

    it('writes the files of a type that a newer platform has', async () => {
      offers(role, newer('newer/Sales.yaml'));
      const { code, stderr } = await retrieve('Role', 'Newer');
      assert.equal(code, 0, stderr);
      assert.deepEqual(readdirSync(folder).sort(), ['erp-project.yaml', 'manifest', 'newer', 'roles']);
    });
  });

  describe('that writes to the terminal', () => {
    const evil = '\u001b[2J\u001b]0;Title\u0007\u001b[8mDemo\r\u009b1A\u202e';
    const clean = ({ stdout, stderr }: Ended): void =>
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not come through.
      assert.equal(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/.test(stdout + stderr), false, stdout + stderr);

    it('is shown without control characters in the names of tenants and components', async () => {
      answers['/api/v1/identity'] = json(identity(evil));
      answers['/api/v1/metadata/retrieve'] = json({
        metadataVersion: 1,
        manifestHash: '',
        generatedAt: '2026-01-01T00:00:00Z',
        components: [],
        notFound: [{ type: 'Role', member: evil }],
        files: {},
      });
      const ended = await erp('metadata', 'retrieve', '--type', 'Role');
      assert.equal(ended.code, 0);
      assert.match(ended.stdout, /^Version 1 of .*Demo/m);
      assert.match(ended.stderr, /The platform has no Role .*Demo/);
      clean(ended);
    });

    it('is shown without them in refusals and advice', async () => {
      const details = { approvalId: evil };
      const refusal = { code: 'APPROVAL_REQUIRED', message: evil, status: 403, requestId: evil, details };
      answers['/api/v1/identity'] = json(refusal, 403);
      const ended = await erp('whoami', '--verbose');
      assert.equal(ended.code, 4);
      assert.match(ended.stderr, /approval .*Demo/);
      clean(ended);
    });

    it('is shown without them in the code of a sign-in', async () => {
      const endpoints = {
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        device_authorization_endpoint: `${url}/device`,
      };
      answers['/.well-known/oauth-authorization-server'] = json({ issuer: url, ...endpoints });
      answers['/device'] = json({
        device_code: 'd',
        user_code: evil,
        verification_uri: `https://x.example/${evil}`,
        expires_in: 60,
        interval: 1,
      });
      answers['/token'] = json({ error: 'access_denied' }, 400);
      const ended = await erp('login', '--device');
      assert.match(ended.stderr, /type the code .*Demo/);
      clean(ended);
    });
  });

  describe('that answers without end', () => {
    const endless =
      (encoding: string, chunk: Buffer) =>
      (response: ServerResponse): void => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding });
        const write = (): void => {
          while (!response.destroyed && response.write(chunk));
          if (!response.destroyed) response.once('drain', write);
        };
        write();
      };
    // Flushed, so that any number of them in a row is one stream.
    const zeros = deflateRawSync(Buffer.alloc(1 << 20), { finishFlush: constants.Z_FULL_FLUSH });
    const gzipHead = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
    const gzip = (response: ServerResponse): void => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      response.write(gzipHead);
      for (let i = 0; i < 512; i++) response.write(zeros);
    };

    for (const [what, answer] of [
      ['plain', endless('identity', Buffer.alloc(1 << 20, 0x20))],
      ['compressed', gzip],
    ] as const)
      it(`is aborted, ${what}, after 128 MiB, and called once`, async () => {
        let asked = 0;
        answers['/api/v1/identity'] = (response) => {
          asked++;
          answer(response);
        };
        const { code, stderr } = await erp('whoami');
        assert.equal(code, 1);
        assert.match(stderr, /answered with more than 128 MiB\./);
        assert.equal(asked, 1);
      });

    it('is aborted at the sign-in, too', async () => {
      answers['/.well-known/oauth-authorization-server'] = endless('identity', Buffer.alloc(1 << 20, 0x20));
      const { code, stderr } = await erp('login', '--device');
      assert.equal(code, 1);
      assert.match(stderr, /Error: No platform answers/);
    });
  });

  it("reports the platform's own address when it is called by another one", async () => {
    answers['/.well-known/oauth-authorization-server'] = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ issuer: 'http://localhost:3000' }));
    };
    const { code, stderr } = await erp('login', '--device');
    assert.equal(code, 1);
    assert.ok(stderr.includes(`Error: The platform at ${url} calls itself http://localhost:3000.`), stderr);
    assert.match(stderr, /--base-url http:\/\/localhost:3000$/m);
  });

  describe('that redirects the sign-in', () => {
    const own = (): Record<string, string> => ({
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      device_authorization_endpoint: `${url}/device`,
    });
    for (const [name, address] of [
      ['authorization_endpoint', 'file:///bin/sh'],
      ['authorization_endpoint', 'https://elsewhere.example/authorize'],
      ['token_endpoint', 'https://elsewhere.example/token'],
      ['revocation_endpoint', 'javascript:alert(1)'],
    ] as const)
      it(`is refused for ${name} ${address}`, async () => {
        answers['/.well-known/oauth-authorization-server'] = json({ ...own(), [name]: address });
        const { code, stderr } = await erp('login', '--no-browser');
        assert.equal(code, 1);
        assert.match(stderr, new RegExp(`^(?:Warning: .*\n)?Error: The ${name} that ${url} names is not`));
      });
  });
});

/** What `erp` does when the address that it was given belongs to a server that means harm. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ended, erpOf, userEnvironment } from '../support/erp.ts';

type Component = { type: string; fullName: string; path: string };

describe('erp against a hostile server', () => {
  let server: Server;
  let url: string;
  let folder: string;
  /** What the server answers to a request for this path. */
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
    erpOf(userEnvironment({ ERP_TOKEN: 'token', ERP_BASE_URL: url }))(args, { cwd: folder });
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
        const { code, stderr } = await erp('metadata', 'retrieve', '--type', component.type);
        assert.deepEqual(readdirSync(folder), []);
        assert.equal(code, 1);
        assert.match(stderr, /gave a file for .* that cannot be kept/);
      });

    it('writes no file of a type that was not asked for', async () => {
      offers(newer('newer/Sales.yaml'));
      const { code } = await erp('metadata', 'retrieve', '--type', 'Role');
      assert.equal(code, 1);
      assert.deepEqual(readdirSync(folder), []);
    });

    it('writes the files of a type that a newer platform has', async () => {
      offers(role, newer('newer/Sales.yaml'));
      const { code, stderr } = await erp('metadata', 'retrieve', '--type', 'Role', '--type', 'Newer');
      assert.equal(code, 0, stderr);
      assert.deepEqual(readdirSync(folder).sort(), ['erp-project.yaml', 'manifest', 'newer', 'roles']);
    });
  });
});

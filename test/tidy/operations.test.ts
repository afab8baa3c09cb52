/** One row per operation: router, OpenAPI, capabilities and the services' actions all hold the same set. */
import assert from 'node:assert/strict';
import { stripTypeScriptTypes } from 'node:module';
import { readConfig } from '../../config/env.ts';
import { ALL_SERVICES } from '../../config/services.ts';
import { OPERATIONS } from '../../contracts/operations.ts';
import { CATALOGUE, RESERVED_CODES } from '../../lib/errors/catalogue.ts';
import { SCOPES } from '../../lib/operation.ts';
import { Database } from '../../mixins/database/database.ts';
import { Router } from '../../services/gateway/pipeline/router.ts';
import { capabilities } from '../../services/gateway/public/capabilities.ts';
import { openapi } from '../../services/gateway/public/openapi.ts';
import { read, repositoryFiles } from '../support/sources.ts';

const BASE = 'http://localhost:3000';

/** Audit entries under the name of an operation that something other than its request has made. */
const NAMED_IN_AUDIT: Readonly<Record<string, string>> = {
  'services/agent/upkeep/upkeep.ts': 'agent.runs.cancel',
  'services/auth/store/entries.ts': 'me.connections.revoke',
  'services/data/revert/revert.sql.ts': 'agent.runs.revert',
  'services/metadata/store.ts': 'metadata.deployments.create',
};

/** The code of a file, without its types and comments. */
const codeOf = (path: string): string =>
  stripTypeScriptTypes(read(path))
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(?<=^|\s)\/\/ .*$/gm, '');

const addresses = (rows: readonly { method: string; path: string; operationId: string }[]): string[] =>
  rows.map(({ method, path, operationId }) => `${method} ${path} ${operationId}`).sort();
const expected = addresses(OPERATIONS);

describe('the operation rows', () => {
  it('name every operation once', () => {
    assert.ok(OPERATIONS.length > 0);
    assert.equal(new Set(OPERATIONS.map((operation) => operation.operationId)).size, OPERATIONS.length);
    assert.equal(new Set(OPERATIONS.map(({ method, path }) => `${method} ${path}`)).size, OPERATIONS.length);
  });

  it('are the only code that names an operation', () => {
    const ids = OPERATIONS.map(({ operationId }) => operationId);
    const roots = new Set(OPERATIONS.map(({ path }) => path.split('/')[1]));
    const namesOne = (text: string): boolean =>
      ids.includes(text) ||
      (/^\w+\.(?:\w+\.)?\*?$/.test(text) && ids.some((id) => id.startsWith(text.replace('*', ''))));
    const named = repositoryFiles()
      .filter((path) => /^(?:services|mixins|lib)\/.*\.ts$/.test(path))
      .flatMap((path) => {
        // The address of another operation is a link, which does not compile when there is no such operation.
        const code = codeOf(path).replace(/\baddressOf\('[\w.]+'/g, 'addressOf(');
        const texts = [...code.matchAll(/'([\w.*]+)'/g)].map((match) => match[1]!).filter(namesOne);
        const paths = [...code.matchAll(/(?:\$\{API_PREFIX\}|\/api\/v1)\/([\w.]+)/g)].filter(([, root]) =>
          roots.has(root!),
        );
        return [...texts, ...paths.map(([address]) => address)].map((text) => `${path}: ${text}`);
      });
    assert.deepEqual(
      named,
      Object.entries(NAMED_IN_AUDIT).map(([path, id]) => `${path}: ${id}`),
    );
  });

  it('are the routes', () => {
    assert.deepEqual(addresses(new Router(OPERATIONS).routes.map((route) => route.operation)), expected);
  });

  it('use every scope that is not reserved', () => {
    const asked = new Set<string>(OPERATIONS.flatMap(({ scopes }) => scopes));
    for (const [scope, description] of Object.entries(SCOPES))
      if (scope !== 'offline_access') assert.equal(/ Reserved: /.test(description), !asked.has(scope), scope);
  });

  it('can answer every code that is not reserved', () => {
    const sources = repositoryFiles()
      .filter(
        (path) => /^(?:services|lib|mixins|contracts|web)\/.*\.ts$/.test(path) && path !== 'lib/errors/catalogue.ts',
      )
      .map(read)
      .join('\n');
    const named = new Set(sources.match(/\b[A-Z][A-Z_]+[A-Z]\b/g));
    assert.deepEqual(
      [...RESERVED_CODES].toSorted(),
      Object.keys(CATALOGUE)
        .filter((code) => !named.has(code))
        .toSorted(),
    );
  });

  it('are the OpenAPI description', () => {
    const { paths } = openapi(OPERATIONS, BASE) as unknown as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const described = Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item)
        .filter(([method]) => /^(get|post|put|patch|delete)$/.test(method))
        .map(([method, { operationId }]) => ({ method: method.toUpperCase(), path, operationId })),
    );
    assert.deepEqual(addresses(described), expected);
  });

  it('are the capabilities', () => {
    const { operations } = capabilities(OPERATIONS, BASE, readConfig({}).rateLimits) as {
      operations: { method: string; path: string; operationId: string }[];
    };
    assert.deepEqual(addresses(operations), expected);
  });

  it('each have an action that answers them', async () => {
    // With a secret no service asks the database for its keys.
    const config = readConfig({ PLATFORM_SECRET: 'a secret of a service that is never started' });
    const database = new Database('postgres://nobody@127.0.0.1:1/none', { size: 1, applicationName: 'tidy' });
    const actions = new Set<string>();
    for (const name of ALL_SERVICES) {
      const module = await import(`../../services/${name}/${name}.service.ts`);
      const made: unknown = await module.default({ config, database });
      const schema = made as { name: string; actions?: Record<string, unknown> };
      for (const action of Object.keys(schema.actions ?? {})) actions.add(`${schema.name}.${action}`);
    }
    await database.close();
    assert.deepEqual(
      OPERATIONS.filter((operation) => !actions.has(operation.action)).map(
        (operation) => `${operation.operationId} → ${operation.action}`,
      ),
      [],
    );
  });
});

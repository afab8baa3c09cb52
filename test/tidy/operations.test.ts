/** One row per operation: router, OpenAPI, capabilities and the services' actions all hold the same set. */
import assert from 'node:assert/strict';
import { readConfig } from '../../config/env.ts';
import { ALL_SERVICES } from '../../config/services.ts';
import { OPERATIONS } from '../../contracts/operations.ts';
import { CATALOGUE, RESERVED_CODES } from '../../lib/errors/catalogue.ts';
import { SCOPES } from '../../lib/operation.ts';
import { Database } from '../../mixins/database/database.ts';
import { capabilities } from '../../services/gateway/public/capabilities.ts';
import { openapi } from '../../services/gateway/public/openapi.ts';
import { Router } from '../../services/gateway/router.ts';
import { read, repositoryFiles } from '../support/sources.ts';

const BASE = 'http://localhost:3000';
const addresses = (rows: readonly { method: string; path: string; operationId: string }[]): string[] =>
  rows.map(({ method, path, operationId }) => `${method} ${path} ${operationId}`).sort();
const expected = addresses(OPERATIONS);

describe('the operation rows', () => {
  it('name every operation once', () => {
    assert.ok(OPERATIONS.length > 0);
    assert.equal(new Set(OPERATIONS.map((operation) => operation.operationId)).size, OPERATIONS.length);
    assert.equal(new Set(OPERATIONS.map(({ method, path }) => `${method} ${path}`)).size, OPERATIONS.length);
  });

  it('are the routes', () => {
    assert.deepEqual(addresses(new Router(OPERATIONS).routes.map((route) => route.operation)), expected);
  });

  it('ask for every scope that is not called reserved', () => {
    const asked = new Set<string>(OPERATIONS.flatMap(({ scopes }) => scopes));
    for (const [scope, description] of Object.entries(SCOPES))
      if (scope !== 'offline_access') assert.equal(/ Reserved: /.test(description), !asked.has(scope), scope);
  });

  it('answer every code that is not called reserved', () => {
    const sources = repositoryFiles()
      .filter((path) => /^(?:services|lib|mixins|contracts)\/.*\.ts$/.test(path) && path !== 'lib/errors/catalogue.ts')
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
    const config = readConfig({});
    const database = new Database('postgres://nobody@127.0.0.1:1/none', { size: 1, applicationName: 'tidy' });
    const actions = new Set<string>();
    for (const name of ALL_SERVICES) {
      const module = await import(`../../services/${name}/${name}.service.ts`);
      const schema = module.default({ config, database }) as { name: string; actions?: Record<string, unknown> };
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

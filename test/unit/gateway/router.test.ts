import assert from 'node:assert/strict';
import { OPERATIONS } from '../../../contracts/operations.ts';
import type { Operation } from '../../../lib/operation.ts';
import { allowed, Router } from '../../../services/gateway/pipeline/router.ts';

const op = (method: string, path: string): Operation =>
  ({ method, path, operationId: `${method} ${path}` }) as Operation;

const NOW = Date.parse('2027-06-01T00:00:00Z');

describe('The router', () => {
  const router = new Router([
    op('GET', '/data/{object}'),
    op('POST', '/data/{object}'),
    op('GET', '/data/{object}/{id}'),
    op('POST', '/data/{object}/query'),
    op('GET', '/objects/{object}/describe'),
  ]);

  it('has exactly the paths of the operation rows', () => {
    const all = new Router(OPERATIONS);
    for (const operation of OPERATIONS) {
      const match = all.match(operation.path.replaceAll(/\{\w+\}/g, 'x'), NOW);
      assert.equal(match?.methods.get(operation.method)?.operation.operationId, operation.operationId);
    }
    for (const path of ['', '/', '/nope', '/data', '/data/', '/data//', '/data/a/b/c/d/e', '/objects/', '/DATA/a'])
      assert.equal(all.match(path, NOW)?.methods ?? null, null, path);
  });

  it('prefers literal segments and passes parameters undecoded', () => {
    assert.deepEqual(router.match('/data/A%20b/1', NOW)?.values, ['A%20b', '1']);
    const query = router.match('/data/Account/query', NOW)!;
    assert.deepEqual([...query.methods.keys()], ['POST']);
  });

  it('lists the allowed methods of a path', () => {
    assert.equal(allowed(router.match('/data/Account', NOW)!.methods), 'GET, POST, HEAD, OPTIONS');
  });

  it('serves an operation until its sunset, and others of its path afterwards', () => {
    const deprecated = { since: '2026-06-01', sunset: '2027-06-01', replacement: null, documentation: 'guides/x' };
    const ending = new Router([
      { ...op('GET', '/a'), deprecated },
      { ...op('GET', '/b'), deprecated },
      op('POST', '/b'),
    ]);
    assert.equal(allowed(ending.match('/b', NOW - 1)!.methods), 'GET, POST, HEAD, OPTIONS');
    assert.ok(ending.match('/a', NOW - 1));
    assert.equal(ending.match('/a', NOW), null);
    assert.equal(allowed(ending.match('/b', NOW)!.methods), 'POST, OPTIONS');
  });

  it('refuses two operations with the same route', () => {
    assert.throws(() => new Router([op('GET', '/a/{x}'), op('GET', '/a/{y}')]), /share/);
  });
});

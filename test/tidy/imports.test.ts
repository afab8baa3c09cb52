/** Imports point one way: services → mixins → lib; services meet in contract.ts alone; lib is pure. */
import assert from 'node:assert/strict';
import { type Import, importsOf, present, read, repositoryFiles } from '../support/sources.ts';

const files = repositoryFiles().filter((path) => path.endsWith('.ts') && !path.includes('/generated/'));
const below = (folder: string): string[] => files.filter((path) => path.startsWith(`${folder}/`));

/** Every import of `folder` that `allowed` turns down, as one line each. */
const violations = (folder: string, allowed: (found: Import, from: string) => boolean): string[] =>
  below(folder).flatMap((path) =>
    importsOf(path)
      .filter((found) => !allowed(found, path))
      .map((found) => `${path} imports ${found.specifier}`),
  );

const inFolder = (path: string | null, ...folders: string[]): boolean =>
  path !== null && folders.some((folder) => path.startsWith(`${folder}/`));

/** Packages and modules of Node that reach outside the process. */
const OUTSIDE =
  /^(moleculer|pg|pg-boss|nats|umzug|pino|oidc-provider|light-my-request|node:(fs|net|http|https|child_process|dgram|dns|tls|os|cluster|worker_threads|process)(\/|$))/;

describe('imports', () => {
  it('of every file lead to files that exist', () => {
    const missing = files.flatMap((path) =>
      importsOf(path)
        .filter((found) => found.path !== null && !present(found.path) && !found.path.includes('/generated/'))
        .map((found) => `${path} imports ${found.specifier}`),
    );
    assert.deepEqual(missing, []);
  });

  it('of lib stay in lib and reach nothing outside the process', () => {
    assert.deepEqual(
      violations('lib', (found) =>
        found.path === null ? !OUTSIDE.test(found.specifier) : inFolder(found.path, 'lib'),
      ),
      [],
    );
  });

  it('of mixins know lib and config, never a service', () => {
    assert.deepEqual(
      violations('mixins', (found) => found.path === null || inFolder(found.path, 'mixins', 'lib', 'config')),
      [],
    );
  });

  it('of config know lib; of mixins only the types', () => {
    assert.deepEqual(
      violations(
        'config',
        (found) =>
          found.path === null ||
          inFolder(found.path, 'config', 'lib') ||
          (found.typeOnly && inFolder(found.path, 'mixins')),
      ),
      [],
    );
  });

  it('of a service know other services by their contract only', () => {
    assert.deepEqual(
      violations('services', (found, from) => {
        if (found.path === null || inFolder(found.path, 'lib', 'mixins', 'config')) return true;
        const own = from.split('/').slice(0, 2).join('/');
        return (
          inFolder(found.path, own) ||
          found.path === 'services/contracts.ts' ||
          /^services\/[a-z]+\/contract\.ts$/.test(found.path)
        );
      }),
      [],
    );
  });
});

describe('the environment', () => {
  it('is read by config/env.ts alone', () => {
    const readers = ['lib', 'services', 'mixins', 'templates', 'config']
      .flatMap(below)
      .concat('main.ts')
      .filter((path) => path !== 'config/env.ts' && /\bprocess\.env\b/.test(read(path)));
    assert.deepEqual(readers, []);
  });
});

describe('lib', () => {
  it('asks neither a clock nor chance: both are arguments', () => {
    // ids.ts makes identifiers and time.ts names the present moment; everything else is a function of its arguments.
    const impure = below('lib').filter(
      (path) => !/^lib\/(ids|time)\.ts$/.test(path) && /\b(Math\.random|Date\.now)\(/.test(read(path)),
    );
    assert.deepEqual(impure, []);
  });
});

/**
 * Imports point down: services → mixins → config → contracts → lib, and gateway and auth → web → contracts;
 * inside lib from layer to layer. lib is pure.
 */
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
  /^(moleculer|pg|pg-boss|nats|pino|oidc-provider|light-my-request|node:(fs|net|http|https|child_process|dgram|dns|tls|os|cluster|worker_threads|process)(\/|$))/;

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

  it('of lib go down its layers', () => {
    // Files that stand beside the folders know of errors alone, and every layer knows them.
    const layers = [
      'errors',
      'json',
      'cells',
      'values',
      'yaml',
      'schema',
      'metadata',
      'expression',
      'access',
      'query',
      'dashboards',
    ];
    const layerOf = (path: string): number => {
      const [, folder, file] = path.split('/');
      return file === undefined ? 0 : layers.indexOf(folder!);
    };
    assert.deepEqual(
      violations('lib', (found, from) => found.path === null || layerOf(found.path) <= layerOf(from)),
      [],
    );
  });

  it('of contracts know contracts and lib', () => {
    assert.deepEqual(
      violations('contracts', (found) =>
        found.path === null ? !OUTSIDE.test(found.specifier) : inFolder(found.path, 'contracts', 'lib'),
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

  it('of config know lib and, for the list of services, contracts', () => {
    assert.deepEqual(
      violations(
        'config',
        (found, from) =>
          found.path === null ||
          inFolder(found.path, 'config', 'lib') ||
          (from === 'config/services.ts' && inFolder(found.path, 'contracts')),
      ),
      [],
    );
  });

  it('of the command line client know contracts, config, lib, the published client and what it shares with pages', () => {
    assert.deepEqual(
      violations(
        'cli',
        (found) =>
          found.path === null ||
          found.path === 'web/shared/rows.js' ||
          inFolder(found.path, 'cli', 'client', 'contracts', 'config', 'lib'),
      ),
      [],
    );
  });

  it('of the published client know the client alone, for it runs in browsers and brings no package', () => {
    assert.deepEqual(
      violations('client', (found) => inFolder(found.path, 'client')),
      [],
    );
  });

  it('of the pages in web know contracts, config and lib, and nothing of HTTP', () => {
    assert.deepEqual(
      violations('web', (found) =>
        found.path === null
          ? !OUTSIDE.test(found.specifier) || found.specifier === 'node:fs'
          : inFolder(found.path, 'web', 'contracts', 'config', 'lib'),
      ),
      [],
    );
  });

  it('of a service know contracts, mixins, config and lib, and no other service; gateway and auth also know web', () => {
    assert.deepEqual(
      violations('services', (found, from) => {
        const own = from.split('/').slice(0, 2).join('/');
        const pages = ['services/gateway', 'services/auth'].includes(own) ? ['web'] : [];
        return found.path === null || inFolder(found.path, own, ...pages, 'contracts', 'mixins', 'config', 'lib');
      }),
      [],
    );
  });
});

describe('the gateway', () => {
  const LAYERS = ['pipeline', 'edge', 'public', 'doors'];
  const layerOf = (path: string): number => {
    const [, , folder, file] = path.split('/');
    return file === undefined ? LAYERS.length : LAYERS.indexOf(folder!);
  };

  it('imports from its doors to its edge to its pipeline', () => {
    assert.deepEqual(
      violations(
        'services/gateway',
        ({ path }, from) => !inFolder(path, 'services/gateway') || layerOf(path!) <= layerOf(from),
      ),
      [],
    );
  });

  it('has steps that know no request of HTTP, so that every door can make a call', () => {
    const knowing = below('services/gateway/pipeline').filter((path) =>
      /\b(?:req|res)\b|IncomingMessage|ServerResponse/.test(read(path)),
    );
    assert.deepEqual(knowing, []);
  });
});

/** Groups of files that reach each other by imports, of types as well (Tarjan's strongly connected components). */
function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const cycles: string[][] = [];
  const lowestOf = (file: string): number => lowest.get(file) ?? Number.POSITIVE_INFINITY;
  const visit = (file: string): void => {
    order.set(file, order.size);
    lowest.set(file, order.size - 1);
    open.push(file);
    for (const next of graph.get(file) ?? []) {
      if (!order.has(next)) visit(next);
      if (open.includes(next)) lowest.set(file, Math.min(lowestOf(file), lowestOf(next)));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const cycle = open.splice(open.indexOf(file));
    if (cycle.length > 1 || graph.get(file)?.includes(file)) cycles.push(cycle.sort());
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return cycles.sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

describe('cycles of imports', () => {
  it('are found', () => {
    const graph = { a: ['b'], b: ['c'], c: ['b', 'd'], d: [], e: ['e'] };
    assert.deepEqual(cyclesOf(new Map(Object.entries(graph))), [['b', 'c'], ['e']]);
  });

  it('do not exist, including type imports', () => {
    const paths = ['contracts', 'lib', 'mixins', 'config', 'services', 'web', 'cli', 'client'].flatMap(below);
    const graph = new Map(
      paths.map((path) => [path, importsOf(path).flatMap((found) => (found.path === null ? [] : [found.path]))]),
    );
    assert.deepEqual(cyclesOf(graph), []);
  });
});

describe('the environment', () => {
  it('is read by config/env.ts alone', () => {
    const readers = ['lib', 'contracts', 'services', 'mixins', 'templates', 'config', 'web']
      .flatMap(below)
      .concat('main.ts')
      .filter((path) => path !== 'config/env.ts' && /\bprocess\.env\b/.test(read(path)));
    assert.deepEqual(readers, []);
  });

  it('is read by cli/environment.ts alone in the command line client', () => {
    const readers = below('cli').filter((path) => /\bprocess\.env\b/.test(read(path)));
    assert.deepEqual(readers, ['cli/environment.ts']);
  });
});

describe('lib', () => {
  it('uses neither clock nor randomness except as arguments', () => {
    // ids.ts makes identifiers and time.ts names the present moment; everything else is a function of its arguments.
    const impure = below('lib').filter(
      (path) => !/^lib\/values\/(ids|time)\.ts$/.test(path) && /\b(Math\.random|Date\.now)\(/.test(read(path)),
    );
    assert.deepEqual(impure, []);
  });
});

/** The repository as a whole: nothing lies about unused, nothing of one machine is in it, what it says is complete. */
import assert from 'node:assert/strict';
import { dirname, posix } from 'node:path';
import { TENANT_SCHEMA_VERSION } from '../../contracts/metadata.ts';
import { CATALOGUE } from '../../lib/errors/catalogue.ts';
import { PROBLEM_CODES } from '../../services/metadata/kinds/kind.ts';
import { environmentVariables, importsOf, present, read, repositoryFiles } from '../support/sources.ts';

const files = repositoryFiles();
const sources = files.filter(
  (path) =>
    path.endsWith('.ts') &&
    !path.endsWith('.d.ts') &&
    !path.includes('/generated/') &&
    // They import clients that their test generates.
    !path.includes('/generated-clients/programs/') &&
    !path.startsWith('docs/guides/application/'),
);
const isText = (path: string): boolean => !/\.(png|ico|woff2?|gz|br|zip|pdf)$/.test(path);
const packageFile = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;
/** Large programs that a few tests run. */
const toolsFile = JSON.parse(read('test/package.json')) as typeof packageFile;
interface LockFile {
  packages: Record<string, { version?: string; optionalDependencies?: Record<string, string> }>;
}
const LOCK_FILES = ['package-lock.json', 'test/package-lock.json'];

describe('every source file', () => {
  it('is reached from the program, a script, the benchmark or a test', () => {
    const scripts = Object.values(packageFile['scripts']!).join(' ');
    const isStart = (path: string): boolean =>
      path === 'main.ts' ||
      path === 'cli/main.ts' ||
      path === 'client/index.ts' ||
      path === '.mocharc.json' ||
      /^services\/([a-z]+)\/\1\.service\.ts$/.test(path) ||
      path.endsWith('.test.ts') ||
      scripts.includes(path) ||
      path === 'test/support/hooks.ts' ||
      // Loaded into processes before their program.
      path === 'test/storm/clock.ts' ||
      path === 'test/cluster/compose/hosts.ts' ||
      // A command in the shell of a test.
      path === 'test/cluster/compose/docker.ts' ||
      path === 'test/support/typescript-5.ts' ||
      // Commands of a guide, and so of its test.
      path.startsWith('docs/guides/') ||
      (path.startsWith('bench/') && read(path).startsWith('/**') && importsOf(path).length > 0);
    const reached = new Set(sources.filter(isStart));
    for (const path of reached) for (const found of importsOf(path)) if (found.path) reached.add(found.path);
    assert.deepEqual(
      sources.filter((path) => !reached.has(path)),
      [],
    );
  });

  it('of the product is reached from the program or a script, not from tests alone', () => {
    const scripts = Object.values(packageFile['scripts']!).join(' ');
    const reached = new Set(
      sources.filter(
        (path) =>
          path === 'main.ts' ||
          path === 'cli/main.ts' ||
          path === 'client/index.ts' ||
          /^services\/([a-z]+)\/\1\.service\.ts$/.test(path) ||
          scripts.includes(` ${path}`),
      ),
    );
    for (const path of reached) for (const found of importsOf(path)) if (found.path) reached.add(found.path);
    assert.deepEqual(
      sources.filter(
        (path) =>
          /^(lib|contracts|services|mixins|config|templates|scripts|cli|web)\//.test(path) && !reached.has(path),
      ),
      [],
    );
  });

  it('states its purpose at the top', () => {
    const silent = sources.filter(
      (path) =>
        /^(lib|contracts|services|mixins|config|scripts|templates|cli|web)\//.test(path) &&
        !/^(#!.*\n)?\s*(\/\*\*|\/\/)/.test(read(path)) &&
        !/\/\*\*/.test(read(path)),
    );
    assert.deepEqual(silent, []);
  });
});

describe('migrations', () => {
  it('have numbers of their own within their folder, which give their order', () => {
    const numbers = files.flatMap((path) => /^(.*\/migrations\/\d+)-/.exec(path)?.[1] ?? []);
    assert.ok(numbers.length > 5);
    assert.deepEqual(
      numbers.filter((number, i) => numbers.indexOf(number) !== i),
      [],
    );
  });

  it('of tenants are known by the number of the newest to the services that need it', () => {
    const numbers = files.flatMap((path) => /^services\/metadata\/tenant-schema\/(\d+)-/.exec(path)?.[1] ?? []);
    assert.equal(TENANT_SCHEMA_VERSION, Math.max(...numbers.map(Number)), 'contracts/metadata.ts');
  });
});

describe('every document', () => {
  const documents = files.filter((path) => path.endsWith('.md'));
  const linksOf = (path: string): string[] =>
    [
      ...read(path)
        .replace(/```[\s\S]*?```/g, '')
        .matchAll(/\]\(([^)\s]+)\)/g),
    ].map((match) => match[1]!);
  const target = (from: string, link: string): string =>
    posix.normalize(posix.join(dirname(from), link.split('#')[0]!));

  it('links only to existing files', () => {
    const broken = documents.flatMap((path) =>
      linksOf(path)
        .filter((link) => !/^(https?:|mailto:|#)/.test(link) && !present(target(path, link)))
        .map((link) => `${path} → ${link}`),
    );
    assert.deepEqual(broken, []);
  });

  it('links only to existing headings', () => {
    const anchors = (path: string): Set<string> =>
      new Set(
        [...read(path).matchAll(/^#+ (.+)$/gm)].map((match) =>
          match[1]!
            .toLowerCase()
            .replace(/[^\p{L}\p{N} _-]/gu, '')
            .replaceAll(' ', '-'),
        ),
      );
    const broken = documents.flatMap((path) =>
      linksOf(path)
        .filter((link) => link.includes('#') && !/^https?:/.test(link))
        .filter((link) => {
          const [file, anchor] = link.split('#') as [string, string];
          return !anchors(file ? target(path, link) : path).has(anchor);
        })
        .map((link) => `${path} → ${link}`),
    );
    assert.deepEqual(broken, []);
  });

  it('below docs is linked from another one', () => {
    const linked = new Set(
      documents.flatMap((path) =>
        linksOf(path)
          .filter((link) => !/^(https?:|#)/.test(link))
          .map((link) => target(path, link))
          .filter((found) => found !== path),
      ),
    );
    const folders = [...linked].filter((path) => !path.endsWith('.md'));
    assert.deepEqual(
      documents.filter(
        (path) =>
          path.startsWith('docs/') &&
          !linked.has(path) &&
          !folders.some((folder) => dirname(path) === folder.replace(/\/$/, '')),
      ),
      [],
    );
  });

  it('names only existing files and folders', () => {
    const folders = files.flatMap((path) => path.split('/').map((_, i, parts) => parts.slice(0, i).join('/')));
    const known = [...new Set([...files, ...folders])].map((path) => `/${path}`).join('\n');
    const described = documents.filter((path) =>
      /^(docs\/[^/]+|services\/\w+\/README|README|CONTRIBUTING)\.md$/.test(path),
    );
    const isPath = (text: string): boolean =>
      /^[\w<][\w.<>*-]*(\/[\w.<>*-]+)*\/?$/.test(text) &&
      (text.includes('/') || /\.(ts|sql|md|json|ya?ml)$/.test(text)) &&
      !text.startsWith('bench/.work');
    // A part of a path stands for the whole; `<name>` and `*` stand for any name.
    const exists = (text: string): boolean => {
      const pattern = text
        .replace(/\/$/, '')
        .replaceAll('.', '\\.')
        .replace(/<\w+>|\*/g, '[^/\n]+');
      return new RegExp(`/${pattern}$`, 'm').test(known);
    };
    const missing = described.flatMap((path) =>
      [
        ...read(path)
          .replace(/```[\s\S]*?```/g, '')
          .matchAll(/`([^`\s]+)`/g),
      ]
        .map((match) => match[1]!)
        .filter((text) => isPath(text) && !exists(text))
        .map((text) => `${path} → ${text}`),
    );
    assert.deepEqual(missing, []);
  });

  it('that code names as its source exists', () => {
    const missing = sources.flatMap((path) =>
      [...read(path).matchAll(/\bdocs\/[\w./-]+\.md\b/g)]
        .map((match) => match[0])
        .filter((document) => !present(document))
        .map((document) => `${path} names ${document}`),
    );
    assert.deepEqual(missing, []);
  });

  it('docs/reference/errors.md describes every error code, and no other', () => {
    const text = read('docs/reference/errors.md');
    const described = new Set([...text.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)].map((match) => match[1]!));
    assert.deepEqual(
      Object.keys(CATALOGUE).filter((code) => !described.has(code)),
      [],
    );
    const rows = [...text.matchAll(/^\| *`([A-Z]+(?:_[A-Z]+)+)`/gm)].map((match) => match[1]!);
    assert.deepEqual(
      rows.filter((code) => !(code in CATALOGUE)),
      [],
    );
  });

  it('docs/reference/metadata.md describes every code of a problem or warning that a plan can have, and no other', () => {
    const [, section = ''] =
      /^A \*\*problem\*\* is([\s\S]*?)^A \*\*change\*\* is/m.exec(read('docs/reference/metadata.md')) ?? [];
    const described = [...section.matchAll(/^\|([^|]+)\|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([A-Z_]+)`/g)].map(([, code]) => code!),
    );
    assert.deepEqual([...new Set(described)].sort(), [...PROBLEM_CODES].sort());
    const code = sources
      .filter((path) => path.startsWith('services/metadata/') && path !== 'services/metadata/kinds/kind.ts')
      .map(read)
      .join('\n');
    assert.deepEqual(
      PROBLEM_CODES.filter((name) => !code.includes(`'${name}'`)),
      [],
      'no plan has these',
    );
  });

  it('docs/reference/configuration.md describes every variable that is read, and no other', () => {
    const rows = [...read('docs/reference/configuration.md').matchAll(/^\| *`([A-Z][A-Z0-9_]*)`/gm)].map(
      (match) => match[1]!,
    );
    assert.deepEqual([...new Set(rows)].sort(), environmentVariables());
  });

  it('docs/dependencies.md gives a reason for every dependency', () => {
    const text = read('docs/dependencies.md');
    const names = [packageFile, toolsFile].flatMap((file) =>
      ['dependencies', 'optionalDependencies', 'devDependencies'].flatMap((kind) => Object.keys(file[kind] ?? {})),
    );
    assert.deepEqual(
      names.filter((name) => !text.includes(`\`${name}\``)),
      [],
    );
  });
});

describe('dependencies', () => {
  const runtime = Object.keys(packageFile['dependencies']!);
  const development = Object.keys(packageFile['devDependencies']!);
  const packageOf = (specifier: string): string =>
    specifier
      .split('/')
      .slice(0, specifier.startsWith('@') ? 2 : 1)
      .join('/');

  it('of the program are declared, and each is used', () => {
    const outside = (paths: readonly string[]): string[] =>
      paths
        .flatMap(importsOf)
        .filter((found) => found.path === null && !found.specifier.startsWith('node:') && !found.typeOnly)
        .map((found) => packageOf(found.specifier));
    const product = sources.filter(
      (path) =>
        /^(lib|contracts|services|mixins|config|templates|cli|web|main\.ts|scripts)/.test(path) &&
        path !== 'scripts/test.ts',
    );
    // The documents are built in a working copy, before the program is installed anywhere.
    const building = product.filter((path) => path.startsWith('scripts/documents'));
    const missing = outside(product.filter((path) => !building.includes(path)))
      .filter((name) => !runtime.includes(name))
      .concat(outside(building).filter((name) => !runtime.includes(name) && !development.includes(name)));
    assert.deepEqual(missing, [], 'imported, but not declared');
    const imported = new Set(outside(product));
    // Moleculer loads three by name: its transport, its log writer and the serializer's codec. Browsers load
    // the chart library and the API reference. commander comes with its types by another name.
    const byName = ['commander', 'nats', 'pino', 'cbor-x', 'pg-protocol', 'chart.js', 'swagger-ui-dist'];
    assert.deepEqual(
      runtime.filter((name) => !imported.has(name) && !byName.includes(name)),
      [],
      'declared, but not used',
    );
  });

  it('of the console are in no image of a service', () => {
    const lock = JSON.parse(read('package-lock.json')) as { packages: Record<string, { dev?: boolean }> };
    assert.equal(lock.packages['node_modules/moleculer-repl']!.dev, true);
    assert.ok(development.includes('moleculer-repl'));
  });

  it('of published packages match the version in the program, without install scripts', () => {
    for (const path of ['cli/package.json', 'client/package.json']) {
      const published = JSON.parse(read(path)) as Record<string, Record<string, string>>;
      assert.equal(published['version'], packageFile['version'], path);
      assert.deepEqual(Object.keys(published['scripts']!), ['prepack'], path);
      for (const [name, version] of Object.entries(published['dependencies'] ?? {}))
        assert.equal(version, packageFile['dependencies']![name], `${path}: ${name}`);
    }
  });

  it('are pinned to one version', () => {
    for (const kind of ['dependencies', 'optionalDependencies', 'devDependencies'])
      for (const [name, version] of [packageFile, toolsFile].flatMap((file) => Object.entries(file[kind] ?? {})))
        assert.match(version, /^(npm:[\w-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/, name);
  });

  it('send no telemetry when installed', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { name?: string; hasInstallScript?: boolean; dev?: boolean }>;
    };
    const named = Object.entries(packages).map(([path, { name }]) => name ?? path.replace(/^.*node_modules\//, ''));
    assert.deepEqual(
      named.filter((name) => /scarf|telemetry-node|posthog|opencollective-postinstall/.test(name)),
      [],
    );
    const allowed: Record<string, boolean> = JSON.parse(read('package.json')).allowScripts;
    const scripted = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript);
    assert.deepEqual(
      scripted.map(([path]) => path.replace(/^.*node_modules\//, '')).filter((name) => !(name in allowed)),
      [],
      'with a script that has not been looked at',
    );
  });

  it('in the lock file are complete for every platform and name no address', () => {
    const missing: string[] = [];
    for (const lock of LOCK_FILES) {
      assert.equal(read(lock).includes('"resolved"'), false);
      const { packages } = JSON.parse(read(lock)) as LockFile;
      for (const [path, { optionalDependencies = {} }] of Object.entries(packages))
        for (const name of Object.keys(optionalDependencies)) {
          let base = path;
          while (base && !packages[`${base}/node_modules/${name}`]) {
            const at = base.lastIndexOf('/node_modules/');
            base = at < 0 ? '' : base.slice(0, at);
          }
          if (!base && !packages[`node_modules/${name}`]) missing.push(`${path || 'package.json'}: ${name}`);
        }
    }
    assert.deepEqual(missing, []);
  });
});

describe('no file', () => {
  const found = (pattern: RegExp, except: readonly string[] = []): string[] =>
    files
      .filter((path) => isText(path) && !LOCK_FILES.includes(path) && !except.includes(path))
      .flatMap((path) => {
        const match = pattern.exec(read(path));
        return match ? [`${path}: ${match[0]}`] : [];
      });

  it('contains a machine-specific path', () => {
    assert.deepEqual(found(/(?<![\w.$}])\/(?:work|home\/[a-z]+|Users\/[A-Za-z]+|root)\/[\w.-]+\//), []);
  });

  it('names a package registry', () => {
    assert.deepEqual(
      found(/registry\.(npmjs|yarnpkg)[.\w]*|npm\.pkg\.github[.\w]*/, ['test/tidy/repository.test.ts']),
      [],
    );
  });

  it('holds a secret', () => {
    assert.deepEqual(found(/-----BEGIN [A-Z ]*PRIVATE KEY-----\n[A-Za-z0-9+/=\n]{40,}/), []);
  });

  it('contains a TODO', () => {
    assert.deepEqual(
      files
        .filter((path) => path.endsWith('.ts') && path !== 'test/tidy/repository.test.ts')
        .filter((path) => /\b(TODO|FIXME|XXX)\b/.test(read(path))),
      [],
    );
  });

  it('skips or singles out a test', () => {
    assert.deepEqual(
      files.filter(
        (path) =>
          path.endsWith('.test.ts') &&
          /\b(it|describe)\.(only|skip)\(/.test(read(path)) &&
          path !== 'test/tidy/repository.test.ts',
      ),
      [],
    );
  });
});

/** Files export only what other files import. */
import assert from 'node:assert/strict';
import { dirname, posix } from 'node:path';
import { read, repositoryFiles } from '../support/sources.ts';

/** Their exports are an interface for others: packages, examples in documents, programs that a tool loads. */
const FREE = /^(?:cli|client|docs|test\/support\/hooks\.ts|test\/api\/generated-clients)(?:\/|$)|\.(?:test|d)\.ts$/;
const EXPORT =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:const|let|function\*?|class|interface|type|enum) ([\w$]+)/gm;
const IMPORT = /\b(?:import|export)\s+(?:type\s+)?(?:[\w$]+,\s*)?(?:\{([^}]*)\}|\*[^'";]*?)\s*from\s*'(\.[^']+)'/g;
const WHOLE = /(?:\bimport|\bnew URL)\(\s*['`](\.[^'`]+)['`]/g;

describe('exports', () => {
  it('are imported by name in another file', () => {
    const files = repositoryFiles().filter((path) => /\.(?:ts|js)$/.test(path));
    const imported = new Set<string>();
    for (const path of files) {
      const source = read(path);
      const target = (specifier: string): string => posix.normalize(posix.join(dirname(path), specifier));
      for (const [, names, specifier = ''] of source.matchAll(IMPORT))
        for (const name of names === undefined ? ['*'] : names.split(','))
          imported.add(
            `${target(specifier)} ${name
              .trim()
              .replace(/^type /, '')
              .replace(/ as .*$/, '')}`,
          );
      for (const [, specifier = ''] of source.matchAll(WHOLE)) imported.add(`${target(specifier)} *`);
    }
    const needless = files
      .filter((path) => !FREE.test(path) && !imported.has(`${path} *`))
      .flatMap((path) =>
        [...read(path).matchAll(EXPORT)]
          .filter(([, name]) => !imported.has(`${path} ${name}`))
          .map(([, name]) => `${path} exports ${name}`),
      );
    assert.deepEqual(needless, []);
  });
});

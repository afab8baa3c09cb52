/** The repository as the rules about it see it: its files, their imports, the variables it reads. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { databaseVariable } from '../../config/env.ts';
import { ALL_SERVICES } from '../../config/services.ts';

export const root = join(import.meta.dirname, '..', '..');
export const read = (path: string): string => readFileSync(join(root, path), 'utf8');
export const present = (path: string): boolean => existsSync(join(root, path));

/** Every file that belongs to the repository, tracked or about to be. */
export function repositoryFiles(): string[] {
  const output = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  return [
    ...new Set(output.split('\0').filter((path) => path && present(path) && statSync(join(root, path)).isFile())),
  ];
}

export interface Import {
  /** As written. */
  specifier: string;
  /** Path below the root for a relative import, else null. */
  path: string | null;
  /** Vanishes when types are stripped. */
  typeOnly: boolean;
}

/** Imports of a TypeScript source: static, re-exporting and dynamic with a fixed text. */
export function importsOf(path: string): Import[] {
  const source = read(path).replace(/\/\*[\s\S]*?\*\//g, '');
  const found: Import[] = [];
  const add = (specifier: string, typeOnly: boolean): void => {
    found.push({
      specifier,
      path: specifier.startsWith('.') ? posix.normalize(posix.join(dirname(path), specifier)) : null,
      typeOnly,
    });
  };
  for (const match of source.matchAll(/^\s*(?:import|export)\s+(type\s+)?(?:[^'";]*?\s+from\s+)?'([^']+)'/gm))
    add(match[2]!, Boolean(match[1]));
  for (const match of source.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g)) add(match[1]!, false);
  return found;
}

/** What the SDK of the bucket reads from the environment by itself. */
export const BUCKET_VARIABLES: readonly string[] = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'];

/** Names of the environment variables that config/env.ts reads. */
export function environmentVariables(): string[] {
  const source = [
    'config/env.ts',
    'config/bus.ts',
    'config/files.ts',
    'config/mail.ts',
    'config/production.ts',
    'config/tracing.ts',
  ]
    .map(read)
    .join('\n');
  const named = [...source.matchAll(/\benv(?:\[|, )'([A-Z][A-Z0-9_]*)'/g)].map((match) => match[1]!);
  return [...new Set([...named, ...ALL_SERVICES.map(databaseVariable)])].sort();
}

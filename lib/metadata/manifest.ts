/**
 * The manifest beside a project's components, and the hash that identifies the whole project: the same on the platform and
 * in the command line client. Source: docs/reference/metadata.md#manifest-hash.
 */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { byCodePoint } from '../values/code-points.ts';

export const MANIFEST_PATH = 'manifest/package.yaml';
export const DESTRUCTIVE_PATH = 'manifest/destructiveChanges.yaml';
export const PROJECT_PATH = 'erp-project.yaml';

export interface PackageType {
  readonly name: string;
  readonly members: readonly string[];
}

export interface Package {
  readonly version: 1;
  readonly types: readonly PackageType[];
}

export const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');

/** JSON Canonicalization Scheme (RFC 8785). */
export function jcs(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new Error('The value has no JSON form.');
  return text;
}

export const sortTypes = (types: ReadonlyMap<string, Iterable<string>>): PackageType[] =>
  [...types]
    .map(([name, members]) => ({ name, members: [...new Set(members)].sort(byCodePoint) }))
    .sort((a, b) => byCodePoint(a.name, b.name));

/** The members of a package or of a list of a destructive manifest, one by one, wildcards as they are. */
export const membersOf = (types: readonly PackageType[]): { type: string; fullName: string }[] =>
  types.flatMap(({ name, members }) => members.map((fullName) => ({ type: name, fullName })));

/** True for `*` and, for components of an object, `<Object>.*`. */
export function memberMatches(member: string, fullName: string): boolean {
  if (member === '*') return true;
  return member.endsWith('.*') ? fullName.startsWith(member.slice(0, -1)) : member === fullName;
}

export const inOrderOfPaths = (files: Readonly<Record<string, string>>): [path: string, text: string][] =>
  Object.entries(files).sort(([a], [b]) => byCodePoint(a, b));

/**
 * Hash of a project: paths and texts in order, then the explicit package. Equal for equal configuration, wherever and
 * whenever it is computed.
 */
export function manifestHash(files: Readonly<Record<string, string>>, explicit: Package): string {
  const hash = createHash('sha256');
  for (const [path, text] of inOrderOfPaths(files)) {
    if (path === PROJECT_PATH) continue;
    const normal = `${text.replace(/\r\n?/g, '\n').replace(/(?<!\n)\n+$/, '')}\n`;
    hash.update(`${path}\0${sha256(normal)}\n`);
  }
  hash.update(`package\0${sha256(jcs(explicit))}\n`);
  return `sha256:${hash.digest('hex')}`;
}

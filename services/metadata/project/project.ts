/**
 * A metadata project as a caller sends it (files and package) read into components in canonical form. What is wrong
 * with the form of the request is thrown (400); what is wrong with the content comes back as problems. Source:
 * docs/reference/metadata.md.
 */

import type { ErrorObject } from 'ajv';
import { LRUCache } from 'lru-cache';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { ruleInWords } from '../../../lib/errors/rule-words.ts';
import { LIMITS } from '../../../lib/limits.ts';
import {
  DESTRUCTIVE_PATH,
  inOrderOfPaths,
  jcs,
  MANIFEST_PATH,
  manifestHash,
  memberMatches,
  type Package,
  type PackageType,
  PROJECT_PATH,
  sha256,
  sortTypes,
} from '../../../lib/metadata/manifest.ts';
import { pathOf, pathPatternOf, pathProblem } from '../../../lib/metadata/paths.ts';
import { unfitTexts } from '../../../lib/schema/field-types/common.ts';
import { emitYaml } from '../../../lib/yaml/emit.ts';
import {
  countMarks,
  type ParsedYaml,
  type Position,
  parseYaml,
  YamlError,
  type YamlValue,
} from '../../../lib/yaml/parse.ts';
import type { Body } from '../kinds/component.ts';
import { componentKey } from '../kinds/component.ts';
import type { Naming, Problem } from '../kinds/kind.ts';
import { findKind, type Location, locate, validatorOf } from '../kinds/registry.ts';
import { API_NAME, canonicalBody, inNfc, withoutNulls } from '../kinds/schema.ts';

interface Draft {
  readonly type: string;
  readonly fullName: string;
  readonly path: string;
  readonly body: Body;
  /** Canonical YAML, and its SHA-256 (hex). */
  readonly yaml: string;
  readonly hash: string;
  /** Position of a value in the file as sent. */
  readonly position: ParsedYaml['position'];
}

interface Destructive {
  readonly types: readonly PackageType[];
  readonly alters: readonly PackageType[];
  /** Pointer to a member in the manifest, by the key of the component. */
  readonly places: ReadonlyMap<string, Position>;
}

export interface Project {
  readonly files: Readonly<Record<string, string>>;
  /** Explicit: wildcards expanded, sorted. */
  readonly package: Package;
  readonly drafts: ReadonlyMap<string, Draft>;
  /** Keys of components whose files are there and are no drafts, for what is wrong with them. */
  readonly unread: ReadonlySet<string>;
  readonly problems: readonly Problem[];
  /** null: no destructive manifest, or an empty one. */
  readonly destructive: Destructive | null;
  readonly manifestHash: string;
}

/** An answer names no more of them. */
export const VIOLATIONS_MAX = 100;

/** Throws everything that is wrong with the form of a request, under the code of the first. */
export function refuseAll(found: readonly Violation<ErrorCode>[]): void {
  const [first] = found;
  if (first) throw new PlatformError(first.code, first.message, { errors: found.slice(0, VIOLATIONS_MAX) });
}

/** Refuses paths and sizes at once, before any file is parsed. */
export function checkFiles(files: Readonly<Record<string, unknown>>): asserts files is Record<string, string> {
  const paths = Object.keys(files);
  if (paths.length > LIMITS.metadata_files_max)
    throw new PlatformError('TOO_MANY_ITEMS', `A project may have at most ${LIMITS.metadata_files_max} files.`, {
      details: { max: LIMITS.metadata_files_max },
    });
  const found: Violation<ErrorCode>[] = [];
  for (const path of paths) {
    const problem = pathProblem(path);
    const pointer = `/files/${pointerPart(path.slice(0, 300))}`;
    if (problem) found.push(violation(pointer, 'FILE_PATH_INVALID', `The path is ${problem}.`));
    if (typeof files[path] !== 'string')
      found.push(violation(pointer, 'PARAMETER_INVALID', 'A file is a text: a string.'));
  }
  refuseAll(found);
  for (const [path, text] of Object.entries(files))
    if (typeof text === 'string' && Buffer.byteLength(text) > LIMITS.metadata_file_max_bytes)
      throw new PlatformError('REQUEST_TOO_LARGE', `The file ${path} is larger than 1 MiB.`, {
        details: { maxBytes: LIMITS.metadata_file_max_bytes },
      });
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const misfit = (pointer: string, message: string): Violation => violation(pointer, 'PACKAGE_INVALID', message);

/** A manifest among the files: what is wrong with it is refused with path, line and column. */
class Manifest {
  readonly pointer: string;
  readonly #path: string;
  readonly #parsed: ParsedYaml;

  constructor(path: string, parsed: ParsedYaml) {
    this.pointer = `/files/${pointerPart(path)}`;
    this.#path = path;
    this.#parsed = parsed;
  }

  read<T>(reader: (value: YamlValue, pointer: string) => T): T {
    try {
      return reader(this.#parsed.value, this.pointer);
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'PACKAGE_INVALID') throw error;
      throw packageInvalid(
        (error.errors ?? []).map((one) => ({ ...one, params: { path: this.#path, ...this.#place(one) } })),
        error.details,
      );
    }
  }

  #place({ pointer }: { readonly pointer: string }): Position {
    return this.#parsed.position(pointer.slice(this.pointer.length));
  }
}

const packageInvalid = (found: readonly Violation[], details?: Record<string, unknown>): PlatformError =>
  new PlatformError('PACKAGE_INVALID', found[0]?.message ?? 'The package is invalid.', {
    errors: [...found],
    ...(details ? { details } : {}),
  });

const unknownKeys = (rest: object, pointer: string, message: string): Violation[] =>
  Object.keys(rest)
    .slice(0, VIOLATIONS_MAX)
    .map((key) => misfit(`${pointer}/${pointerPart(key)}`, message));

/** A package as sent, checked and without repeated members. `pointer` is where it stands. */
export function readPackage(
  value: unknown,
  pointer: string,
  membersMax: number = LIMITS.metadata_members_max,
): Package {
  if (!isRecord(value)) throw packageInvalid([misfit(pointer, 'A package is an object with version and types.')]);
  const { version, types, ...rest } = value;
  const found = unknownKeys(rest, pointer, 'A package has version and types only.');
  if (version !== 1) found.push(misfit(`${pointer}/version`, 'The package version is 1.'));
  const read = readTypes(types, `${pointer}/types`, found, membersMax);
  if (found.length > 0) throw packageInvalid(found, version === 1 ? undefined : { supported: [1] });
  return { version: 1, types: read };
}

/** A name, `*`, or the name of an object with `.*`; what a name may be is for its kind to say. */
const MEMBER = /^(?:\*|[^*]{1,198}\.\*|[^*]{1,200})$/;
const MEMBER_FORM = 'A member is a name such as Invoice__c.Amount__c, Invoice__c.* for all of an object, or * for all.';

/** Adds what is wrong with a list of types to `found`. */
function readTypes(
  types: unknown,
  pointer: string,
  found: Violation[],
  membersMax: number = LIMITS.metadata_members_max,
): PackageType[] {
  if (!Array.isArray(types)) {
    found.push(misfit(pointer, 'types is a list.'));
    return [];
  }
  const merged = new Map<string, Set<string>>();
  for (const [i, entry] of types.entries()) {
    if (found.length >= VIOLATIONS_MAX) break;
    const at = `${pointer}/${i}`;
    if (!isRecord(entry)) {
      found.push(misfit(at, 'A type has name and members.'));
      continue;
    }
    const { name, members, ...rest } = entry;
    found.push(...unknownKeys(rest, at, 'A type has name and members only.'));
    if (typeof name !== 'string' || !/^[A-Za-z]{1,40}$/.test(name))
      found.push(misfit(`${at}/name`, 'The name of a type is one word, such as CustomField.'));
    if (!Array.isArray(members)) found.push(misfit(`${at}/members`, 'members is a list of names.'));
    const type = typeof name === 'string' ? name : '';
    const set = merged.get(type) ?? new Set();
    merged.set(type, set);
    for (const [j, member] of (Array.isArray(members) ? members : []).entries())
      if (typeof member === 'string' && MEMBER.test(member)) set.add(member);
      else if (found.length < VIOLATIONS_MAX) found.push(misfit(`${at}/members/${j}`, MEMBER_FORM));
  }
  let count = 0;
  for (const members of merged.values()) count += members.size;
  if (count > membersMax) throw tooManyMembers(membersMax);
  return sortTypes(merged);
}

export const tooManyMembers = (max: number): PlatformError =>
  new PlatformError('TOO_MANY_ITEMS', `A package may have at most ${max} members.`, { details: { max } });

interface ReadFile {
  readonly draft: Draft | null;
  readonly problems: readonly Problem[];
}

// The same templates are deployed to many tenants; what a file says does not depend on the tenant.
const templateFiles = new LRUCache<string, ReadFile>({ max: 2_000 });

/**
 * Reads a project. `pkg` null: everything that is in `files`. Parsing yields to other work now and then.
 * Throws YAML_INVALID, PACKAGE_INVALID, PARAMETER_REQUIRED, TOO_MANY_ITEMS.
 */
export async function readProject(
  files: Readonly<Record<string, string>>,
  pkg: unknown,
  options: { template?: boolean; progress?: (done: number, total: number) => void } = {},
): Promise<Project> {
  refuseExcess(files);
  const { manifest, destructive, located, drafts, problems } = await readFiles(files, options);
  const given = pkg === null && manifest === null ? everything(located) : givenPackage(pkg, manifest);
  const explicit = expand(given, located);
  return {
    files,
    package: explicit,
    drafts,
    unread: new Set(located.map((l) => componentKey(l.kind.type, l.fullName)).filter((key) => !drafts.has(key))),
    problems: [...problems, ...mismatches(given, explicit, located)],
    destructive: destructive && destructive.types.length + destructive.alters.length > 0 ? destructive : null,
    manifestHash: manifestHash(files, explicit),
  };
}

/** The longest time for which reading files keeps other work waiting. */
const SLICE_MS = 10;

/** Content of a project's files, each by itself. */
interface Files {
  manifest: Manifest | null;
  destructive: Destructive | null;
  readonly located: Location[];
  readonly drafts: Map<string, Draft>;
  readonly problems: Problem[];
}

async function readFiles(
  files: Readonly<Record<string, string>>,
  { template = false, progress }: NonNullable<Parameters<typeof readProject>[2]>,
): Promise<Files> {
  const syntax = new SyntaxErrors();
  const found: Files = { manifest: null, destructive: null, located: [], drafts: new Map(), problems: [] };
  let slice = performance.now();
  const ordered = inOrderOfPaths(files);
  for (const [i, [path, text]] of ordered.entries()) {
    if (syntax.full) break;
    progress?.(i, ordered.length);
    if (performance.now() - slice > SLICE_MS) {
      await new Promise((resolve) => setImmediate(resolve));
      slice = performance.now();
    }
    if (path === PROJECT_PATH) syntax.parse(path, text);
    else if (path === MANIFEST_PATH || path === DESTRUCTIVE_PATH) {
      const parsed = syntax.parse(path, text);
      if (parsed && path === MANIFEST_PATH) found.manifest = new Manifest(path, parsed);
      else if (parsed)
        found.destructive = {
          ...new Manifest(path, parsed).read(readDestructive),
          places: placesOfMembers(parsed),
        };
    } else {
      const location = locate(path);
      const read = readComponent(path, text, location, syntax, template);
      if (!read) continue;
      if (location) found.located.push(location);
      found.problems.push(...read.problems);
      if (read.draft) found.drafts.set(componentKey(read.draft.type, read.draft.fullName), read.draft);
    }
  }
  syntax.refuse();
  return found;
}

/** A file of a component; null when it is not YAML. */
function readComponent(
  path: string,
  text: string,
  location: Location | null,
  syntax: SyntaxErrors,
  template: boolean,
): ReadFile | null {
  // A file that is not YAML belongs to no kind.
  if (!location && !/\.ya?ml$/.test(path)) return { draft: null, problems: [unknownFile(path, '')] };
  const cacheKey = `${path}\0${text}`;
  const cached = template ? templateFiles.get(cacheKey) : undefined;
  if (cached) return cached;
  const parsed = syntax.parse(path, text);
  if (!parsed) return null;
  const read = readFile(path, location, parsed);
  if (template) templateFiles.set(cacheKey, read);
  return read;
}

const MANY_MALFORMED = `More than ${VIOLATIONS_MAX} files are not well-formed metadata YAML; these are the first.`;

/** Parses files and collects those that are not well-formed, so that all are reported at once. */
class SyntaxErrors {
  readonly #errors: Violation[] = [];
  #first: { path: string; line: number; column: number } | undefined;

  /** As many as an answer shows: each costs time to find. */
  get full(): boolean {
    return this.#errors.length > VIOLATIONS_MAX;
  }

  parse(path: string, text: string): ParsedYaml | null {
    try {
      return parseYaml(text);
    } catch (error) {
      if (!(error instanceof YamlError)) throw error;
      const where = { path, line: error.line, column: error.column };
      this.#first ??= where;
      this.#errors.push(violation(`/files/${pointerPart(path)}`, 'YAML_INVALID', error.message, { params: where }));
      return null;
    }
  }

  refuse(): void {
    if (this.#first)
      throw new PlatformError('YAML_INVALID', this.full ? MANY_MALFORMED : 'A file is not well-formed metadata YAML.', {
        errors: this.#errors.slice(0, VIOLATIONS_MAX),
        details: this.#first,
      });
  }
}

/** Marks in all files together, for files of a hundred each on average; see countMarks. */
const PROJECT_MARKS_MAX = 1_000_000;

function refuseExcess(files: Readonly<Record<string, string>>): void {
  let marks = 0;
  for (const text of Object.values(files))
    try {
      marks += countMarks(text);
    } catch (error) {
      // The parser says it again, with the place.
      if (!(error instanceof YamlError)) throw error;
    }
  if (marks > PROJECT_MARKS_MAX)
    throw new PlatformError('TOO_MANY_ITEMS', 'The files have too many lines and items together.', {
      details: { max: PROJECT_MARKS_MAX },
    });
}

function givenPackage(pkg: unknown, manifest: Manifest | null): Package {
  const fromFile = manifest?.read(readPackage);
  if (pkg === undefined || pkg === null) {
    if (fromFile) return fromFile;
    throw new PlatformError('PARAMETER_REQUIRED', 'The body needs a package.', {
      errors: [violation('/package', 'PARAMETER_REQUIRED', 'A package is required.')],
    });
  }
  const fromBody = readPackage(pkg, '/package');
  if (fromFile && jcs(fromFile) !== jcs(fromBody))
    throw packageInvalid([misfit('/package', `The package differs from ${MANIFEST_PATH}.`)]);
  return fromBody;
}

function everything(located: readonly Location[]): Package {
  const types = new Map<string, string[]>();
  for (const { kind, fullName } of located) types.set(kind.type, [...(types.get(kind.type) ?? []), fullName]);
  return { version: 1, types: sortTypes(types) };
}

function expand(given: Package, located: readonly Location[]): Package {
  const types = new Map<string, string[]>();
  for (const { name, members } of given.types) {
    const list = types.get(name) ?? [];
    types.set(name, list);
    for (const member of members) {
      if (!member.endsWith('*')) list.push(member);
      else
        for (const { kind, fullName } of located)
          if (kind.type === name && memberMatches(member, fullName)) list.push(fullName);
    }
  }
  const explicit = sortTypes(types).filter((type) => type.members.length > 0);
  if (explicit.reduce((sum, type) => sum + type.members.length, 0) > LIMITS.metadata_members_max)
    throw tooManyMembers(LIMITS.metadata_members_max);
  return { version: 1, types: explicit };
}

const problem = (
  code: Problem['code'],
  type: string,
  fullName: string,
  path: string | null,
  message: string,
  remedy: string | null = null,
  at: Position | null = null,
): Problem => ({ code, type, fullName, path, line: at?.line ?? null, column: at?.column ?? null, message, remedy });

function mismatches(given: Package, explicit: Package, located: readonly Location[]): Problem[] {
  const found: Problem[] = [];
  const present = new Set(located.map((l) => componentKey(l.kind.type, l.fullName)));
  const named = new Set<string>();
  for (const { name } of given.types)
    if (!findKind(name)) found.push(problem('TYPE_UNKNOWN', name, '*', null, `There is no type ${name}.`));
  for (const { name, members } of explicit.types) {
    const kind = findKind(name);
    for (const member of members) {
      named.add(componentKey(name, member));
      if (!kind) continue;
      const path = pathOf(kind.type, member);
      if (path === null || pathProblem(path) !== null)
        found.push(
          problem('NAME_INVALID', name, member, null, `Members of ${name} have the form ${kind.memberFormat}.`),
        );
      else if (!present.has(componentKey(name, member)))
        found.push(
          problem(
            'PACKAGE_FILE_MISMATCH',
            name,
            member,
            path,
            'The package names it, and its file is missing.',
            `Add ${path} or take the member out.`,
          ),
        );
    }
  }
  for (const { kind, fullName } of located)
    if (!named.has(componentKey(kind.type, fullName)))
      found.push(
        problem(
          'PACKAGE_FILE_MISMATCH',
          kind.type,
          fullName,
          pathOf(kind.type, fullName),
          'The file is there, and the package does not name it.',
          'Name it in the package or leave the file out.',
        ),
      );
  return found;
}

/** Pointers to the members of a parsed manifest. */
function placesOfMembers({ value, position }: ParsedYaml): Map<string, Position> {
  const places = new Map<string, Position>();
  for (const list of ['alters', 'types'])
    for (const [i, type] of itemsOf(memberOf(value, list)).entries())
      for (const [j, member] of itemsOf(memberOf(type, 'members')).entries())
        places.set(
          componentKey(String(memberOf(type, 'name')), String(member)),
          position(`/${list}/${i}/members/${j}`),
        );
  return places;
}

function readDestructive(value: YamlValue, pointer: string): Pick<Destructive, 'types' | 'alters'> {
  if (!isRecord(value)) throw packageInvalid([misfit(pointer, 'A destructive manifest has version and types.')]);
  const { version, types = [], alters = [], ...rest } = value;
  const found: Violation[] = [];
  if (version !== 1) found.push(misfit(`${pointer}/version`, 'The version of the destructive manifest is 1.'));
  found.push(...unknownKeys(rest, pointer, 'A destructive manifest has version, types and alters only.'));
  const read = (key: string, list: unknown): PackageType[] => {
    const named = readTypes(list, `${pointer}/${key}`, found).filter((type) => type.members.length > 0);
    if (named.some(({ members }) => members.some((member) => member.endsWith('*'))))
      found.push(misfit(`${pointer}/${key}`, 'A destructive manifest names every member; there are no wildcards.'));
    return named;
  };
  const destructive = { types: read('types', types), alters: read('alters', alters) };
  if (found.length > 0) throw packageInvalid(found);
  return destructive;
}

/** A file at a path of no kind. */
function unknownFile(path: string, type: string): Problem {
  const kind = findKind(type);
  return kind
    ? problem('YAML_SCHEMA_INVALID', type, path, path, `Files of ${type} stand at ${pathPatternOf(kind.type)}.`)
    : problem('TYPE_UNKNOWN', type.slice(0, 100), path, path, 'The file belongs to no known type of component.');
}

/** One file: schema, identity with its path, canonical form. */
function readFile(path: string, location: Location | null, parsed: ParsedYaml): ReadFile {
  if (!location) {
    const given = isRecord(parsed.value) ? parsed.value['type'] : null;
    return { draft: null, problems: [unknownFile(path, typeof given === 'string' ? given : '')] };
  }
  const { kind, fullName } = location;
  const problems: Problem[] = [];
  const invalid = (pointer: string, message: string, code: Problem['code'] = 'YAML_SCHEMA_INVALID'): void => {
    problems.push(problem(code, kind.type, fullName, path, message, null, parsed.position(pointer)));
  };
  // Before they are normalized: it takes long where many marks follow one another.
  const unfit = unfitTexts(parsed.value, '');
  for (const { pointer, problem: why } of unfit) invalid(pointer, `${pointer} ${why}`);
  const value = withoutNulls(kind.schema, unfit.length === 0 ? inNfc(parsed.value) : parsed.value);
  const validate = validatorOf(kind);
  // Invalid names are reported below.
  const isNamedAsPath = isRecord(value) && value['apiName'] === location.apiName;
  const naming = kind.naming ?? NAMING;
  const saysName = isNamedAsPath && !naming.is(location.apiName);
  if (!validate(value))
    for (const error of simplify(validate.errors ?? []))
      if (!(saysName && error.pointer === '/apiName')) invalid(error.pointer, error.message);
  if (isRecord(value)) {
    const names: [string, string][] = [['apiName', location.apiName]];
    if (location.object !== null) names.push(['object', location.object]);
    for (const [key, expected] of names)
      if (typeof value[key] === 'string' && value[key] !== expected)
        invalid(`/${key}`, `${key} is ${JSON.stringify(String(value[key]).slice(0, 100))}, the path says ${expected}.`);
  }
  const named: [string, Naming][] = [[location.apiName, naming]];
  if (location.object !== null) named.push([location.object, NAMING]);
  for (const [name, { is, form }] of named)
    if (!is(name)) invalid('/apiName', `${name} is not a name: ${form}.`, 'NAME_INVALID');
    else if (name in Object.prototype)
      invalid('/apiName', `${name} is a name of every JavaScript object and cannot be taken.`, 'NAME_INVALID');
  if (problems.length > 0) return { draft: null, problems };
  const body = canonicalBody(kind.schema, value);
  const yaml = emitYaml(body);
  const position: Draft['position'] = (pointer, offset) => parsed.position(asWritten(pointer, body, value), offset);
  return { draft: { type: kind.type, fullName, path, body, yaml, hash: sha256(yaml), position }, problems };
}

const NAMING: Naming = {
  is: (name) => new RegExp(API_NAME).test(name),
  form: 'a letter, then letters, digits or _, 40 characters at most',
};

/** Position in a file of `pointer` of its canonical body: the items of a set may be written in any order. */
function asWritten(pointer: string, body: Body, value: YamlValue): string {
  let [canonical, written]: (YamlValue | undefined)[] = [body, value];
  const path = pointer.split('/').map((part, depth) => {
    if (depth === 0) return part;
    let key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(canonical) && Array.isArray(written)) {
      const item = canonical[Number(key)];
      const isIt = (one: YamlValue | undefined) => one === item;
      const at = isIt(written[Number(key)]) ? -1 : written.findIndex(isIt);
      if (at >= 0) key = String(at);
      [canonical, written] = [item, written[Number(key)]];
    } else [canonical, written] = [memberOf(canonical, key), memberOf(written, key)];
    return pointerPart(key);
  });
  return path.join('/');
}

const isMapping = (value: YamlValue | undefined): value is { [key: string]: YamlValue } => isRecord(value);

const memberOf = (value: YamlValue | undefined, key: string): YamlValue | undefined =>
  isMapping(value) && Object.hasOwn(value, key) ? value[key] : undefined;

/** The types of JSON Schema in the words of YAML. */
const WORDS: Readonly<Record<string, string>> = {
  string: 'a text; in quotes, where it would be read as a number, true, false or null',
  object: 'a mapping (key: value)',
  array: 'a list (- item)',
  boolean: 'true or false',
  integer: 'an integer',
  number: 'a number',
};

const itemsOf = (value: YamlValue | undefined): readonly YamlValue[] => (Array.isArray(value) ? value : []);

/** Ajv's errors as sentences; the umbrella errors of combined schemas say nothing on their own. */
function simplify(errors: readonly ErrorObject[]): { pointer: string; message: string }[] {
  return errors.slice(0, 50).map(({ keyword, instancePath, message, ...error }) => {
    const params: Record<string, unknown> = error.params;
    switch (keyword) {
      case 'additionalProperties': {
        const name = String(params['additionalProperty']);
        return {
          pointer: `${instancePath}/${pointerPart(name)}`,
          message: `There is no property ${JSON.stringify(name.slice(0, 100))} here.`,
        };
      }
      case 'required':
        return { pointer: instancePath, message: `The property ${params['missingProperty']} is missing.` };
      case 'type':
        return { pointer: instancePath, message: `The value must be ${WORDS[String(params['type'])] ?? message}.` };
      case 'uniqueItems':
        return {
          pointer: `${instancePath}/${Math.max(Number(params['i']), Number(params['j']))}`,
          message: 'The item stands in the list already.',
        };
      case 'enum': {
        const allowed = Array.isArray(params['allowedValues']) ? params['allowedValues'] : [];
        return { pointer: instancePath, message: `Must be one of ${allowed.slice(0, 40).join(', ')}.` };
      }
      case 'const':
        return { pointer: instancePath, message: `Must be ${JSON.stringify(params['allowedValue'])}.` };
      default:
        return { pointer: instancePath, message: `The value ${ruleInWords({ keyword, params, message })}.` };
    }
  });
}

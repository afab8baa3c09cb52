/**
 * A project as a folder: which files belong to it, and what stands against sending them. Only known paths are read, so
 * that a repository may hold anything beside them; what has the form of a component and is none is an error and not
 * skipped. Nothing outside the folder is read, since no symbolic link is followed.
 */
import { constants, lstat, open, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { LIMITS } from '../../lib/limits.ts';
import {
  DESTRUCTIVE_PATH,
  MANIFEST_PATH,
  manifestHash,
  membersOf,
  type Package,
  type PackageType,
  PROJECT_PATH,
} from '../../lib/metadata/manifest.ts';
import { type Location, locate, pathOf, pathProblem } from '../../lib/metadata/paths.ts';
import { COMPONENT_PATHS } from '../../lib/schema/snapshot.ts';
import { parseYaml, YamlError, type YamlValue } from '../../lib/yaml/parse.ts';
import { EXIT, Failure } from '../failure.ts';
import { emitPackage, explicitPackage, type Member, memberKey, readTypes } from './package.ts';
import { type Finding, localFailure } from './problems.ts';

/** A project in a folder. */
export interface Project {
  /** Absolute, without symbolic links. */
  readonly root: string;
  /** As they stand in the folder, but for line ends and byte order marks: all that belong to the project. */
  readonly files: ReadonlyMap<string, string>;
  /** Components by path, but for those that the destructive manifest deletes. */
  readonly components: ReadonlyMap<string, Location>;
  /** Explicit: what the manifest names, and files that it does not name yet. */
  readonly package: Package;
  /** Components whose files the manifest does not name yet. */
  readonly added: readonly Location[];
  /** Files of components that the destructive manifest deletes; they are not sent. */
  readonly doomed: readonly string[];
  /** Members of the manifest without a file. */
  readonly missing: readonly { type: string; fullName: string; path: string }[];
  readonly destructive: Destructive;
  /** null: nothing was retrieved into this folder. */
  readonly origin: Origin | null;
}

/** The destructive manifest. */
export interface Destructive {
  readonly types: readonly PackageType[];
  readonly alters: readonly PackageType[];
}

/** Origin of the files: erp-project.yaml. */
export interface Origin {
  readonly metadataVersion: number;
  readonly manifestHash: string | null;
  readonly retrievedAt: string | null;
  readonly baseUrl: string | null;
  /** Id of the tenant; null in a file that the API has written. */
  readonly tenantId: string | null;
}

const MANIFESTS = [MANIFEST_PATH, DESTRUCTIVE_PATH];
/** The folders in which components stand. */
export const TOP_FOLDERS: ReadonlySet<string> = new Set(
  Object.values(COMPONENT_PATHS).map((pattern) => pattern.slice(0, pattern.indexOf('/'))),
);
const DEPTH_MAX = 6;
/** Far more than the platform takes; only a bound on what is held in memory. */
const FILES_MAX = 50_000;
const BYTES_MAX = 256 * 1024 * 1024;
const READ_AT_ONCE = 16;

/** The folder of a project, without symbolic links. */
export async function projectRoot(folder: string): Promise<string> {
  const root = await realpath(folder).catch((error: unknown) => {
    throw new Failure('CLIENT_FILE', EXIT.usage, `There is no folder ${folder}.`, { cause: error });
  });
  if (!(await lstat(root)).isDirectory()) throw new Failure('CLIENT_FILE', EXIT.usage, `${folder} is not a folder.`);
  return root;
}

/** Reads a project. Throws a failure that names everything in it that cannot be sent. */
export async function readProject(folder: string): Promise<Project> {
  const root = await projectRoot(folder);
  const findings: Finding[] = [];
  const files = await readFiles(root, findings);
  refuseOrigin(files.get(PROJECT_PATH), findings);
  const manifest = readManifest(files, MANIFEST_PATH, findings);
  const project = describe(
    root,
    files,
    manifest?.types ?? [],
    readManifest(files, DESTRUCTIVE_PATH, findings),
    findings,
  );
  if (findings.length > 0) throw localFailure(findings);
  if (!manifest && project.components.size === 0)
    throw new Failure('CLIENT_PROJECT', EXIT.usage, `${folder} holds no project: it has no ${MANIFEST_PATH}.`, {
      hint: 'Retrieve one first: erp metadata retrieve --all',
    });
  return project;
}

/** The project of a folder that may have none yet. */
export async function readProjectIfAny(folder: string): Promise<Project | null> {
  const root = await projectRoot(folder);
  const found = await Promise.all(
    [MANIFEST_PATH, ...TOP_FOLDERS].map((path) => lstat(join(root, path)).catch(() => null)),
  );
  return found.some((entry) => entry !== null) ? readProject(folder) : null;
}

function describe(
  root: string,
  files: ReadonlyMap<string, string>,
  types: readonly PackageType[],
  destructive: Destructive | null,
  findings: Finding[],
): Project {
  const deleted = deletedBy(destructive);
  const components = new Map<string, Location>();
  const doomed: string[] = [];
  for (const path of files.keys()) {
    const location = locate(path);
    if (!location) continue;
    if (deleted(location)) doomed.push(path);
    else components.set(path, location);
  }
  const kept = types.map(({ name, members }) => ({
    name,
    members: members.filter((fullName) => !deleted({ type: name, fullName })),
  }));
  const { named, missing } = namedMembers(kept, components, findings);
  const added = [...components].filter(([path]) => !named.has(path)).map(([, location]) => location);
  return {
    root,
    files,
    components,
    doomed,
    added,
    missing,
    package: explicitPackage([
      ...[...components.values()].map(({ type, fullName }) => ({ type, fullName })),
      ...missing,
    ]),
    destructive: destructive ?? { types: [], alters: [] },
    origin: readOrigin(files.get(PROJECT_PATH)),
  };
}

/** Components that a destructive manifest deletes: those it names, and all that belongs to an object it names. */
function deletedBy(destructive: Destructive | null): (member: Member) => boolean {
  const named = new Set(membersOf(destructive?.types ?? []).map(memberKey));
  return (member) => {
    const [object, apiName] = member.fullName.split('.');
    return named.has(memberKey(member)) || (apiName !== undefined && named.has(`CustomObject:${object}`));
  };
}

/** Files that the manifest names, and names without a file. */
function namedMembers(
  types: readonly PackageType[],
  components: ReadonlyMap<string, Location>,
  findings: Finding[],
): { named: Set<string>; missing: Project['missing'] } {
  const named = new Set<string>();
  const missing: { type: string; fullName: string; path: string }[] = [];
  for (const { name, members } of types)
    for (const member of members) {
      if (member.endsWith('*')) {
        const prefix = member.slice(0, -1);
        for (const [path, { type, fullName }] of components)
          if (type === name && fullName.startsWith(prefix)) named.add(path);
        continue;
      }
      const path = pathOf(name, member);
      if (path === null) {
        const message = Object.hasOwn(COMPONENT_PATHS, name)
          ? `${member} is not a name of a ${name}.`
          : `This erp knows no type ${name}.`;
        findings.push({ code: 'CLIENT_MANIFEST', path: MANIFEST_PATH, message });
      } else if (components.has(path)) named.add(path);
      else missing.push({ type: name, fullName: member, path });
    }
  return { named, missing };
}

/** A manifest or a destructive manifest; null: there is none. */
function readManifest(files: ReadonlyMap<string, string>, path: string, findings: Finding[]): Destructive | null {
  const text = files.get(path);
  if (text === undefined) return null;
  try {
    const parsed = parseYaml(text);
    const value = isMapping(parsed.value) ? parsed.value : {};
    const problem = (pointer: string, message: string): void => {
      findings.push({ code: 'CLIENT_MANIFEST', path, ...parsed.position(pointer), message });
    };
    if (value['version'] !== 1) problem('/version', 'The version of a manifest is 1.');
    const alters = value['alters'] === undefined ? [] : readTypes(value['alters'], '/alters', problem);
    return { types: readTypes(value['types'], '/types', problem), alters };
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    const { line, column, message } = error;
    findings.push({ code: 'YAML_INVALID', path, line, column, message });
    return null;
  }
}

/** An erp-project.yaml that cannot be read would disarm the protection of what others have deployed. */
function refuseOrigin(text: string | undefined, findings: Finding[]): void {
  if (text === undefined) return;
  const found = { code: 'CLIENT_PROJECT', path: PROJECT_PATH, remedy: 'Mend it, or remove it and retrieve anew.' };
  try {
    const { value, position } = parseYaml(text);
    const version = isMapping(value) ? value['formatVersion'] : undefined;
    if (version !== undefined && version !== 1)
      findings.push({ ...found, ...position('/formatVersion'), message: 'This erp knows formatVersion 1 alone.' });
    else if (readOrigin(text) === null) findings.push({ ...found, message: 'It holds no metadataVersion.' });
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    const { line, column, message } = error;
    findings.push({ ...found, code: 'YAML_INVALID', line, column, message });
  }
}

/** Content of erp-project.yaml; null when it cannot be read. */
export function readOrigin(text: string | undefined): Origin | null {
  if (text === undefined) return null;
  try {
    const { value } = parseYaml(text);
    if (!isMapping(value)) return null;
    const textOf = (key: string): string | null => {
      const found = value[key];
      return typeof found === 'string' ? found : null;
    };
    const version = value['metadataVersion'];
    return typeof version === 'number' && Number.isInteger(version) && version >= 0
      ? {
          metadataVersion: version,
          manifestHash: textOf('manifestHash'),
          retrievedAt: textOf('retrievedAt'),
          baseUrl: textOf('baseUrl'),
          tenantId: textOf('tenantId'),
        }
      : null;
  } catch (error) {
    // It is informative: without it there is no protection against lost updates, which is said where it matters.
    if (error instanceof YamlError) return null;
    throw error;
  }
}

const isMapping = (value: YamlValue | undefined): value is { [key: string]: YamlValue } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The request: the files with a manifest that names all of them, and the package. */
export function toSend(project: Project): { files: Record<string, string>; package: Package } {
  const files = Object.fromEntries(project.files);
  for (const path of project.doomed) delete files[path];
  if (project.added.length + project.doomed.length > 0 || !project.files.has(MANIFEST_PATH))
    files[MANIFEST_PATH] = emitPackage(project.package);
  return { files, package: project.package };
}

/** The hash of a project as the platform computes it for what is sent. */
export function hashOf(project: Project): string {
  const { files, package: explicit } = toSend(project);
  return manifestHash(files, explicit);
}

async function readFiles(root: string, findings: Finding[]): Promise<Map<string, string>> {
  const paths: string[] = [];
  for (const entry of await readdir(root, { withFileTypes: true })) {
    const { name } = entry;
    const known = name === 'manifest' || TOP_FOLDERS.has(name) || name === PROJECT_PATH;
    if (!known) {
      const meant = [...TOP_FOLDERS, 'manifest', PROJECT_PATH].find((one) => one.toLowerCase() === name.toLowerCase());
      if (meant) findings.push({ code: 'CLIENT_PATH', path: name, message: `The name is written ${meant}.` });
    } else if (entry.isSymbolicLink()) findings.push(linked(name));
    else if (name === PROJECT_PATH) paths.push(name);
    else if (entry.isDirectory()) await collect(root, name, 1, paths, findings);
  }
  refuseCollisions(paths, findings);
  return readTexts(root, paths, findings);
}

/** Adds the files below a folder of the project. */
async function collect(
  root: string,
  folder: string,
  depth: number,
  paths: string[],
  findings: Finding[],
): Promise<void> {
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    // Files of editors and of git, such as .gitkeep, .Amount__c.yaml.swp.
    if (entry.name.startsWith('.')) continue;
    if (entry.isSymbolicLink()) findings.push(linked(path));
    else if (entry.isDirectory()) {
      if (depth < DEPTH_MAX) await collect(root, path, depth + 1, paths, findings);
    } else if (/\.ya?ml$/i.test(entry.name)) {
      const problem = problemOf(path);
      if (problem) findings.push(problem);
      else paths.push(path);
    }
    if (paths.length > FILES_MAX)
      throw new Failure(
        'CLIENT_PROJECT',
        EXIT.validation,
        `The folder holds more than ${FILES_MAX} files of a project.`,
      );
  }
}

const linked = (path: string): Finding => ({
  code: 'CLIENT_LINK',
  path,
  message: 'It is a symbolic link, and links are not followed.',
  remedy: 'Put the file itself there.',
});

/** Problems of a YAML file in a folder of the project. */
function problemOf(path: string): Finding | null {
  if (MANIFESTS.includes(path) || locate(path)) {
    const problem = pathProblem(path);
    return problem ? { code: 'CLIENT_PATH', path, message: `The path is ${problem}.` } : null;
  }
  const remedy = path.startsWith('manifest/')
    ? `The folder manifest holds ${MANIFESTS.join(' and ')} only.`
    : '`erp metadata types` shows where the files of each type stand.';
  return { code: 'CLIENT_PATH', path, message: 'The path belongs to no type of component.', remedy };
}

/** Names that differ in case only are one file on some machines and one component on the platform. */
function refuseCollisions(paths: readonly string[], findings: Finding[]): void {
  const seen = new Map<string, string>();
  for (const path of paths) {
    const other = seen.get(path.toLowerCase());
    if (other === undefined) seen.set(path.toLowerCase(), path);
    else
      findings.push({ code: 'CLIENT_PATH', path, message: `It differs from ${other} in upper and lower case only.` });
  }
}

async function readTexts(root: string, paths: readonly string[], findings: Finding[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  let bytes = 0;
  for (let at = 0; at < paths.length; at += READ_AT_ONCE) {
    const batch = paths.slice(at, at + READ_AT_ONCE);
    const read = await Promise.all(batch.map(async (path) => ({ path, found: await readText(join(root, path)) })));
    for (const { path, found } of read) {
      if (typeof found !== 'string') findings.push({ code: 'CLIENT_FILE', path, ...found });
      else {
        texts.set(path, found);
        bytes += found.length;
      }
    }
    if (bytes > BYTES_MAX)
      throw new Failure(
        'CLIENT_PROJECT',
        EXIT.validation,
        'The files of the project are larger than 256 MiB together.',
      );
  }
  return texts;
}

/** Opening a named pipe would wait for its writer. */
const WITHOUT_WAITING = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** A text without byte order mark and with LF line ends, as git and the platform keep it; or what is wrong with it. */
async function readText(path: string): Promise<string | { message: string; remedy?: string }> {
  const file = await open(path, WITHOUT_WAITING).catch((error: unknown) =>
    String(error instanceof Error ? error.message : error),
  );
  if (typeof file === 'string') return { message: `It cannot be read: ${file}` };
  try {
    const stat = await file.stat();
    if (!stat.isFile()) return { message: 'It is not a file.' };
    const { size } = stat;
    if (size > LIMITS.metadata_file_max_bytes)
      return { message: `It is larger than 1 MiB (${size} bytes).`, remedy: 'The platform takes no larger file.' };
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.readFile());
    return text.replace(/\r\n?/g, '\n');
  } catch (error) {
    if (error instanceof TypeError) return { message: 'It is not UTF-8.', remedy: 'Save it as UTF-8.' };
    throw error;
  } finally {
    await file.close();
  }
}

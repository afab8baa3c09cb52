/**
 * `erp metadata retrieve`: what the platform has, as files in a folder. Files that are as they should be are not touched.
 * An edit that nothing else holds is never overwritten: it must be committed to git first, or `--force` be given.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  DESTRUCTIVE_PATH,
  MANIFEST_PATH,
  manifestHash,
  membersOf,
  type Package,
  PROJECT_PATH,
} from '../../lib/metadata/manifest.ts';
import { COMPONENT_PATHS } from '../../lib/schema/snapshot.ts';
import { parseYaml, YamlError } from '../../lib/yaml/parse.ts';
import type { Run } from '../command.ts';
import { EXIT, Failure, usage } from '../failure.ts';
import type { Api } from '../http/api.ts';
import { openProgress } from '../output/progress.ts';
import { plain } from '../output/table.ts';
import { counted } from '../output/values.ts';
import { hashOf, type Origin, type Project, projectRoot, readOrigin, readProjectIfAny } from './folder.ts';
import { committedBlobs, isBlob } from './git.ts';
import { mergeYaml } from './merge-yaml.ts';
import { joinPackages, type Member, memberKey, names, parseMembers, readTypes } from './package.ts';
import { type Finding, localFailure } from './problems.ts';
import { projectText, retrieve, type Tree } from './retrieve.ts';
import { refuseOtherTenant } from './tenant.ts';
import { writeTree } from './write.ts';

export interface RetrieveOptions {
  dir: string;
  package?: string | undefined;
  type?: readonly string[] | undefined;
  all?: true | undefined;
  prune?: true | undefined;
  force?: true | undefined;
  otherTenant?: true | undefined;
}

/** Files that are named one by one without --verbose. */
const NAMED_MAX = 20;

/** Retrieves what the options name, or what the manifest of the folder names, and writes it into the folder. */
export async function retrieveIntoFolder(run: Run, options: RetrieveOptions): Promise<void> {
  const root = await projectRoot(options.dir);
  const project = await readProjectIfAny(options.dir);
  const wanted = await wantedPackage(options, project);
  const api = await run.api();
  const { tenant } = (await api.call('me.identity.get', {})).body;
  if (!options.otherTenant)
    await refuseOtherTenant(run, project, { tenant, what: `overwrite it with the files of ${tenant.name}` });
  const tree = await retrieveTree(run, api, wanted, tenant.id);
  const writing = writingOf(tree, project);
  const onlyHere = project ? [...project.components.keys()].filter((path) => !tree.files.has(path)) : [];
  const remove = options.prune ? onlyHere : [];
  if (project && !options.force) await refuseLoss(project, [...writing.keys(), ...remove]);
  await writeTree(root, { write: writing, remove });

  const written = [...writing.keys()];
  const value = {
    metadataVersion: tree.metadataVersion,
    manifestHash: tree.manifestHash,
    components: tree.components.size,
    written,
    removed: remove,
    onlyHere: options.prune ? [] : onlyHere,
    notFound: tree.notFound,
  };
  run.output.value(value, () => {
    const count = counted(tree.components.size, 'component', 'components');
    run.output.line(`Version ${tree.metadataVersion} of ${plain(tenant.name)} at ${api.baseUrl}: ${count}.`);
    showPaths(run, 'written', written);
    if (remove.length > 0) showPaths(run, 'removed', remove);
  });
  if (!options.prune && onlyHere.length > 0) {
    const what = counted(onlyHere.length, 'file is', 'files are');
    run.output.warn(`${what} not among what was retrieved: new here, deleted there, or not selected.`);
    for (const path of onlyHere.slice(0, NAMED_MAX)) run.output.note(`  ${path}`);
    run.output.note('They were left as they are; --prune removes them.');
  }
  const unknown = tree.notFound.filter(({ type, fullName }) => !isOnlyHere(project, { type, fullName }));
  for (const { type, fullName } of unknown) run.output.warn(`The platform has no ${plain(`${type} ${fullName}`)}.`);
  for (const member of membersOf(parseMembers(options.type ?? []).types))
    if (member.fullName.endsWith('*') && ![...tree.components.values()].some((one) => names(onlyOf(member), one)))
      run.output.warn(`Nothing on the platform matches ${memberKey(member)}.`);
}

const onlyOf = ({ type, fullName }: Member) => ({ types: [{ name: type, members: [fullName] }] });

const isOnlyHere = (project: Project | null, { type, fullName }: Member): boolean =>
  [...(project?.components.values() ?? [])].some((one) => one.type === type && one.fullName === fullName);

/** The same with a progress bar; what a project retrieves for other purposes goes through it as well. */
export async function retrieveTree(run: Run, api: Api, wanted: Package, tenantId: string): Promise<Tree> {
  const progress = openProgress(run.output, { quiet: true });
  try {
    return await retrieve(
      async ({ types }) => {
        const pkg = { version: 1 as const, types: types.map(({ name, members }) => ({ name, members: [...members] })) };
        return (await api.call('metadata.components.retrieve', { body: { package: pkg } })).body;
      },
      wanted,
      { baseUrl: api.baseUrl, tenantId },
      progress.update,
    );
  } finally {
    progress.end();
  }
}

function showPaths(run: Run, what: string, paths: readonly string[]): void {
  const shown = run.options.verbose ? paths : paths.slice(0, NAMED_MAX);
  run.output.line(`${counted(paths.length, 'file', 'files')} ${what}${paths.length > 0 ? ':' : '.'}`);
  for (const path of shown) run.output.line(`  ${path}`);
  if (paths.length > shown.length) run.output.line(`  … and ${paths.length - shown.length} more`);
}

async function wantedPackage(options: RetrieveOptions, project: Project | null): Promise<Package> {
  const selections = [options.package, options.type, options.all].filter((one) => one !== undefined).length;
  if (selections > 1) throw usage('--package, --type and --all cannot be combined.');
  if (options.all) return parseMembers(Object.keys(COMPONENT_PATHS));
  const selected =
    options.package !== undefined ? await readPackageFile(options.package) : options.type && parseMembers(options.type);
  // One version stands for the whole folder, so that what is there already is brought up to date with what is added.
  if (selected) return joinPackages(selected, project?.package ?? { version: 1, types: [] });
  if (!project)
    throw usage('The folder holds no project yet, so say what to retrieve.', 'All of it: erp metadata retrieve --all');
  return project.package;
}

/** A package in a file of its own. */
async function readPackageFile(path: string): Promise<Package> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new Failure('CLIENT_FILE', EXIT.usage, `${path} cannot be read.`, { cause: error });
  });
  const findings: Finding[] = [];
  try {
    const { value, position } = parseYaml(text);
    const types = typeof value === 'object' && value !== null && !Array.isArray(value) ? value['types'] : undefined;
    const read = readTypes(types, '/types', (pointer, message) => {
      findings.push({ code: 'CLIENT_MANIFEST', path, ...position(pointer), message });
    });
    if (findings.length === 0) return { version: 1, types: read };
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    findings.push({ code: 'YAML_INVALID', path, line: error.line, column: error.column, message: error.message });
  }
  throw localFailure(findings);
}

/** The files that differ from what the folder has. */
export function writingOf(tree: Tree, project: Project | null): Map<string, string> {
  const files = mergedFiles(tree, project);
  const writing = new Map<string, string>();
  for (const [path, text] of files) {
    if (project?.files.get(path) === text) continue;
    if (path === PROJECT_PATH && isSameOrigin(project?.origin ?? null, readOrigin(text))) continue;
    // A pending deletion is an edit like any other, and does not conflict with the retrieved files.
    if (path === DESTRUCTIVE_PATH && project && !isEmpty(project)) continue;
    writing.set(path, text);
  }
  return writing;
}

/** The files of the tree as the folder writes them, with its comments, and erp-project.yaml with the hash of these. */
function mergedFiles(tree: Tree, project: Project | null): ReadonlyMap<string, string> {
  const origin = readOrigin(tree.files.get(PROJECT_PATH));
  if (!project || !origin) return tree.files;
  const files = new Map<string, string>();
  for (const [path, text] of tree.files) {
    const mine = path === PROJECT_PATH ? undefined : project.files.get(path);
    files.set(path, mine === undefined ? text : mergeYaml(mine, text));
  }
  const hash = manifestHash(Object.fromEntries(files), tree.package);
  const source = { baseUrl: origin.baseUrl ?? '', tenantId: origin.tenantId ?? '' };
  return files.set(PROJECT_PATH, projectText({ ...tree, manifestHash: hash }, source));
}

const isEmpty = ({ destructive }: Project): boolean => destructive.types.length + destructive.alters.length === 0;

/** Nothing but the time of the retrieve is new, which is no reason for a change in git. */
function isSameOrigin(origin: Origin | null, next: Origin | null): boolean {
  return (
    origin !== null &&
    next !== null &&
    origin.metadataVersion === next.metadataVersion &&
    origin.manifestHash === next.manifestHash &&
    origin.baseUrl === next.baseUrl &&
    origin.tenantId === next.tenantId
  );
}

/** Refuses to overwrite or remove files with edits that neither the last retrieve nor git knows. */
export async function refuseLoss(project: Project, paths: readonly string[]): Promise<void> {
  if (project.origin?.manifestHash === hashOf(project)) return;
  const edited = paths.filter((path) => project.files.has(path) && path !== PROJECT_PATH && path !== MANIFEST_PATH);
  const lost = await notInGit(project.root, edited);
  if (lost.length === 0) return;
  const names = lost.slice(0, NAMED_MAX).join('\n  ');
  const more = lost.length > NAMED_MAX ? `\n  … and ${lost.length - NAMED_MAX} more` : '';
  throw new Failure(
    'CLIENT_UNSAVED',
    EXIT.conflict,
    `Edits that are not in git would be overwritten in ${counted(lost.length, 'file', 'files')}.`,
    { hint: `  ${names}${more}\nCommit them first, or overwrite them with --force. Nothing was changed.` },
  );
}

/** Those of the files whose content is not the one of the last commit; all of them where there is no git. */
async function notInGit(root: string, paths: readonly string[]): Promise<string[]> {
  const committed = await committedBlobs(root);
  const unsaved = await Promise.all(
    paths.map(async (path) => {
      const blob = committed.get(path);
      return blob === undefined || !isBlob(await readFile(join(root, path)), blob);
    }),
  );
  return paths.filter((_, at) => unsaved[at]);
}

/**
 * Retrieves a package of any size. The platform gives a bounded number of components per answer, so a larger package is
 * asked for in parts, which make one tree when all of them come from the same version; otherwise all are asked for anew.
 */

import type { OperationOutput } from '../../contracts/operations.ts';
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
import { belongsToObject, isTypeName, locate, pathProblem } from '../../lib/metadata/paths.ts';
import { emitYaml } from '../../lib/yaml/emit.ts';
import { ApiFailure, EXIT, Failure } from '../failure.ts';
import { emitDestructive, emitPackage, explicitPackage, type Member } from './package.ts';

export type Retrieved = OperationOutput<'metadata.components.retrieve'>;

/** The platform's content of a package at one version. */
export interface Tree {
  /** Everything, the manifests and erp-project.yaml among them. */
  readonly files: ReadonlyMap<string, string>;
  readonly package: Package;
  readonly components: ReadonlyMap<string, Retrieved['components'][number]>;
  readonly notFound: readonly Member[];
  readonly metadataVersion: number;
  readonly manifestHash: string;
  readonly generatedAt: string;
}

/** Reports progress: the step, how much of it is done, and how much there is as far as is known. */
export type Progress = (text: string, done?: number, total?: number) => void;

const ATTEMPTS_MAX = 5;

/** Asks the platform for a package. Throws ApiFailure TOO_MANY_ITEMS when it is too large for one answer. */
export type Ask = (pkg: Package) => Promise<Retrieved>;

/** Origin of files, as written to erp-project.yaml. */
export interface Source {
  readonly baseUrl: string;
  readonly tenantId: string;
}

/** Retrieves everything that a package names. */
export async function retrieve(ask: Ask, wanted: Package, source: Source, progress: Progress): Promise<Tree> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const answers = await inParts(ask, wanted, progress);
    const versions = new Set(answers.map(({ metadataVersion }) => metadataVersion));
    if (versions.size === 1) return treeOf(answers, wanted, source);
    progress('The configuration changed meanwhile; retrieving it again');
  }
  throw new Failure(
    'CLIENT_RETRIEVE',
    EXIT.conflict,
    'The configuration changed in each of 5 attempts to retrieve it.',
    {
      hint: 'Try again when fewer deployments are under way.',
    },
  );
}

async function inParts(ask: Ask, wanted: Package, progress: Progress): Promise<Retrieved[]> {
  const answers: Retrieved[] = [];
  const waiting = inSlices(wanted);
  let objects: string[] | undefined;
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    progress('Retrieving', answers.length, answers.length + waiting.length + 1);
    try {
      answers.push(await ask(next));
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.code !== 'TOO_MANY_ITEMS') throw error;
      if (isAllOfObjects(next)) objects ??= await objectNames(ask);
      waiting.unshift(...split(next, objects ?? [], error));
    }
  }
  return answers;
}

/** All components of a type of which every one belongs to an object. */
function isAllOfObjects({ types }: Package): boolean {
  const [only, ...others] = membersOf(types);
  return others.length === 0 && only?.fullName === '*' && belongsToObject(only.type);
}

async function objectNames(ask: Ask): Promise<string[]> {
  const { components } = await ask({ version: 1, types: [{ name: 'CustomObject', members: ['*'] }] });
  return components.map(({ fullName }) => fullName);
}

/** Parts of a package that is too large: by type, then by object, then by halves of what it names. */
function split(pkg: Package, objects: readonly string[], reason: Failure): Package[] {
  const members = membersOf(pkg.types);
  const [first] = members;
  if (first && isAllOfObjects(pkg))
    return halves(objects.map((object) => ({ type: first.type, fullName: `${object}.*` })));
  if (members.length > 1) return pkg.types.length > 1 ? halvesOfTypes(pkg.types) : halves(members);
  throw reason;
}

/** As many as an answer can hold, where they are named one by one. */
function inSlices(wanted: Package): Package[] {
  const members = membersOf(wanted.types);
  const max = LIMITS.metadata_retrieve_members_max;
  if (members.length <= max) return [wanted];
  const count = Math.ceil(members.length / max);
  return Array.from({ length: count }, (_, i) => explicitPackage(members.slice(i * max, (i + 1) * max)));
}

const halves = (members: readonly Member[]): Package[] => {
  const middle = Math.ceil(members.length / 2);
  return [members.slice(0, middle), members.slice(middle)].filter((half) => half.length > 0).map(explicitPackage);
};

const halvesOfTypes = (types: readonly PackageType[]): Package[] => {
  const middle = Math.ceil(types.length / 2);
  return [types.slice(0, middle), types.slice(middle)].map((half) => ({ version: 1, types: half }));
};

/** Folder of a type that this program does not know. */
const FOREIGN_PATH = /^[A-Za-z][A-Za-z0-9]*(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+\.yaml$/;

/**
 * True when a file may be written at the platform's path. The paths of an answer become paths of this machine, and a folder
 * holds things that are carried out: `.git`, `Makefile`. So a file stands where its type has it, and a type that only a
 * newer platform knows gets YAML in a folder of its own, if it was asked for.
 */
function mayBeWritten({ type, fullName, path }: Retrieved['components'][number], wanted: Package): boolean {
  if (pathProblem(path) !== null || path.split('/').some((name) => name.startsWith('.'))) return false;
  const location = locate(path);
  if (isTypeName(type)) return location?.type === type && location.fullName === fullName;
  const asked = wanted.types.some(({ name }) => name === type);
  return asked && location === null && FOREIGN_PATH.test(path) && !path.toLowerCase().startsWith('manifest/');
}

/** The text of erp-project.yaml. */
export const projectText = (
  { metadataVersion, manifestHash, generatedAt }: Pick<Tree, 'metadataVersion' | 'manifestHash' | 'generatedAt'>,
  { baseUrl, tenantId }: Source,
): string => emitYaml({ formatVersion: 1, metadataVersion, manifestHash, retrievedAt: generatedAt, baseUrl, tenantId });

function treeOf(answers: readonly Retrieved[], wanted: Package, source: Source): Tree {
  const files = new Map<string, string>();
  const components = new Map<string, Retrieved['components'][number]>();
  for (const answer of answers)
    for (const component of answer.components) {
      const text = answer.files[component.path];
      if (text === undefined || !mayBeWritten(component, wanted)) {
        const message = `The platform gave a file for ${component.type} ${component.fullName} that cannot be kept: ${component.path}.`;
        throw new Failure('CLIENT_PROTOCOL', EXIT.error, message, { hint: 'Nothing was written.' });
      }
      components.set(component.path, component);
      files.set(component.path, text);
    }
  const pkg = explicitPackage(components.values());
  files.set(MANIFEST_PATH, emitPackage(pkg));
  files.set(DESTRUCTIVE_PATH, emitDestructive([], []));
  const hash = manifestHash(Object.fromEntries(files), pkg);
  const { metadataVersion, generatedAt } = answers[0]!;
  files.set(PROJECT_PATH, projectText({ metadataVersion, manifestHash: hash, generatedAt }, source));
  return {
    files,
    package: pkg,
    components,
    notFound: answers.flatMap((answer) => answer.notFound.map(({ type, member }) => ({ type, fullName: member }))),
    metadataVersion,
    manifestHash: hash,
    generatedAt,
  };
}

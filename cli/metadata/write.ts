/**
 * Writes files into the folder of a project. Everything is first written beside the tree and then renamed into place, so
 * that an interruption before that leaves the tree as it was; erp-project.yaml comes last, so that one in between only
 * lets the next deployment find too many differences and never too few. Nothing is written through a symbolic link.
 */
import { lstat, mkdir, mkdtemp, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MANIFEST_PATH, PROJECT_PATH } from '../../lib/metadata/manifest.ts';
import { required } from '../../lib/values/required.ts';
import { EXIT, Failure } from '../failure.ts';

const STAGE = '.erp-writing-';
const WRITE_AT_ONCE = 16;

/** Changes of a tree: files to write, and files to remove. */
export interface Writing {
  readonly write: ReadonlyMap<string, string>;
  readonly remove: readonly string[];
}

/** Carries out a writing. Throws before anything has changed when a path leads through a link or something else. */
export async function writeTree(root: string, { write, remove }: Writing): Promise<void> {
  await clearStages(root);
  for (const path of [...write.keys(), ...remove]) await refuseForeign(root, path);
  if (write.size > 0) {
    const stage = await mkdtemp(join(root, STAGE));
    try {
      const staged = await stageFiles(stage, write);
      for (const path of inOrder([...write.keys()])) {
        await mkdir(dirname(join(root, path)), { recursive: true });
        await rename(required(staged, path), join(root, path));
      }
    } finally {
      await rm(stage, { recursive: true, force: true });
    }
  }
  for (const path of remove) {
    await rm(join(root, path), { force: true });
    await removeEmptyFolders(root, dirname(path));
  }
}

/** Temporary files of a killed process. */
async function clearStages(root: string): Promise<void> {
  for (const entry of await readdir(root, { withFileTypes: true }))
    if (entry.isDirectory() && entry.name.startsWith(STAGE)) await rm(join(root, entry.name), { recursive: true });
}

async function stageFiles(stage: string, files: ReadonlyMap<string, string>): Promise<Map<string, string>> {
  const staged = new Map([...files.keys()].map((path, i) => [path, join(stage, String(i))]));
  const entries = [...files];
  for (let at = 0; at < entries.length; at += WRITE_AT_ONCE)
    await Promise.all(
      entries
        .slice(at, at + WRITE_AT_ONCE)
        .map(([path, text]) => writeFile(required(staged, path), text, { flush: true })),
    );
  return staged;
}

/** The manifest and erp-project.yaml speak of all other files, so they come after them. */
const inOrder = (paths: readonly string[]): string[] => {
  const last = [MANIFEST_PATH, PROJECT_PATH];
  return [...paths.filter((path) => !last.includes(path)), ...last.filter((path) => paths.includes(path))];
};

/** Every folder on the way must be a folder of this project, and the file a file. */
async function refuseForeign(root: string, path: string): Promise<void> {
  const parts = path.split('/');
  for (let length = 1; length <= parts.length; length++) {
    const part = parts.slice(0, length).join('/');
    const entry = await lstat(join(root, part)).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      throw error;
    });
    if (!entry) return;
    if (entry.isSymbolicLink() || !(length === parts.length ? entry.isFile() : entry.isDirectory()))
      throw new Failure(
        'CLIENT_PATH',
        EXIT.validation,
        `${part} is ${entry.isSymbolicLink() ? 'a symbolic link, and links are not followed' : 'in the way of a file of the project'}.`,
        { hint: 'Move it away and try again; nothing was changed.' },
      );
  }
}

async function removeEmptyFolders(root: string, folder: string): Promise<void> {
  for (let at = folder; at !== '.'; at = dirname(at))
    try {
      await rmdir(join(root, at));
    } catch {
      // It holds something else.
      return;
    }
}

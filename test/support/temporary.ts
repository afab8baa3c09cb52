/** Folders that tests write into, gone when the last test of a file has ended. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders = new Set<string>();
const shared = new Map<string, string>();

/** A new folder, whose name begins with `erp-<name>-`. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `erp-${name}-`));
  folders.add(folder);
  return folder;
}

/** The one of this name that all tests of a file have together. */
export function sharedFolder(name: string): string {
  let folder = shared.get(name);
  if (folder === undefined) shared.set(name, (folder = temporaryFolder(name)));
  return folder;
}

export function removeTemporaryFolders(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  folders.clear();
  shared.clear();
}

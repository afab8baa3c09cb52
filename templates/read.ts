/** A template as the metadata service takes it: relative path → YAML text. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));

/** The YAML files of `templates/<name>`, manifest included, in the order of their paths. */
export async function templateFiles(name: string): Promise<Record<string, string>> {
  const directory = join(root, name);
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.yaml'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const files = paths.map(async (path) => [
    relative(directory, path).split(sep).join('/'),
    await readFile(path, 'utf8'),
  ]);
  return Object.fromEntries(await Promise.all(files));
}

/** Changes when any file of the template does. */
export function fingerprint(files: Record<string, string>): string {
  const hash = createHash('sha256');
  for (const [path, text] of Object.entries(files)) hash.update(`${path}\0${text}\0`);
  return hash.digest('hex');
}

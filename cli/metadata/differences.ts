/** Changes that a project would make on the platform, by component; and those made there meanwhile. */
import { createTwoFilesPatch } from 'diff';
import { jcs } from '../../lib/metadata/manifest.ts';
import { locate } from '../../lib/metadata/paths.ts';
import { byCodePoint } from '../../lib/values/code-points.ts';
import { parseYaml, YamlError, type YamlValue } from '../../lib/yaml/parse.ts';
import { type Project, toSend } from './folder.ts';
import type { Member } from './package.ts';
import type { Tree } from './retrieve.ts';

/** created: only here. changed: differs. missing: only on the platform, and named by the manifest. */
export type Status = 'created' | 'changed' | 'missing';

export interface Difference extends Member {
  readonly status: Status;
  readonly path: string;
  /** The file on the platform and here; null: there is none. */
  readonly platform: string | null;
  readonly local: string | null;
  /** The files say the same in other words: comments, order of keys, quotes. */
  readonly formattingOnly: boolean;
  /** The component was changed on the platform after it was retrieved. */
  readonly changedOnPlatform: boolean;
}

/** The differences of a project from the platform, in the order of paths. */
export function differencesOf(project: Project, tree: Tree): Difference[] {
  const { files } = toSend(project);
  const retrievedAt = project.origin?.retrievedAt ?? null;
  const missing = new Set(project.missing.map(({ path }) => path));
  return [...new Set([...project.components.keys(), ...missing])].sort(byCodePoint).flatMap((path): Difference[] => {
    const [local, platform] = [files[path] ?? null, tree.files.get(path) ?? null];
    const location = locate(path);
    if (!location || local === platform) return [];
    const updatedAt = tree.components.get(path)?.updatedAt;
    return [
      {
        type: location.type,
        fullName: location.fullName,
        path,
        status: platform === null ? 'created' : local === null ? 'missing' : 'changed',
        platform,
        local,
        formattingOnly: platform !== null && local !== null && isSame(platform, local),
        changedOnPlatform:
          updatedAt !== undefined && retrievedAt !== null && Date.parse(updatedAt) > Date.parse(retrievedAt),
      },
    ];
  });
}

/** Two texts that are the same value, whatever the order of keys. */
function isSame(a: string, b: string): boolean {
  const [x, y] = [yamlOf(a), yamlOf(b)];
  return x !== undefined && y !== undefined && jcs(x) === jcs(y);
}

function yamlOf(text: string): YamlValue | undefined {
  try {
    return parseYaml(text).value;
  } catch (error) {
    if (error instanceof YamlError) return undefined;
    throw error;
  }
}

/** The unified diff of a difference, from the platform to here. */
export function patchOf({ path, platform, local }: Difference): string {
  const [from, to] = [
    platform === null ? '/dev/null' : `platform/${path}`,
    local === null ? '/dev/null' : `local/${path}`,
  ];
  return createTwoFilesPatch(from, to, platform ?? '', local ?? '', undefined, undefined, { context: 3 }).replace(
    /^=+\n/,
    '',
  );
}

/** How much a tenant may have in all. Source: docs/reference/limits.md. */
import { LIMITS } from '../../../lib/limits.ts';
import type { State } from '../kinds/component.ts';
import type { Problem } from '../kinds/kind.ts';
import type { Prepared } from '../prepare.ts';

/** A problem of no component in particular. */
export const ABOUT_ALL = { type: 'Package', fullName: '*', path: null, line: null, column: null } as const;

/** Total size limits of a tenant: every process that serves it holds its snapshot, and parses it at once. */
export function tooLarge({ commit }: Prepared, after: State): Problem[] {
  let files = 0;
  for (const { yaml } of after.values()) files += yaml.length;
  const sizes: [what: string, bytes: number, max: number][] = [
    ['all files of the tenant', files, LIMITS.metadata_tenant_files_max_bytes],
    ['the compiled configuration', commit.snapshot.byteLength, LIMITS.metadata_tenant_snapshot_max_bytes],
  ];
  return sizes
    .filter(([, bytes, max]) => bytes > max)
    .map(([what, bytes, max]) => ({
      ...ABOUT_ALL,
      code: 'LIMIT_EXCEEDED',
      message: `With this deployment ${what} would have ${bytes} bytes, and ${max} are the most.`,
      remedy: 'Shorten texts, or leave out what is not needed.',
      details: { max },
    }));
}

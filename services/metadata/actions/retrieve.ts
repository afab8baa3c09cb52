import type { Config } from '../../../config/env.ts';
import type { OperationOutput } from '../../../contracts/operations.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import {
  DESTRUCTIVE_PATH,
  MANIFEST_PATH,
  manifestHash,
  memberMatches,
  type Package,
  PROJECT_PATH,
  sortTypes,
} from '../../../lib/metadata/manifest.ts';
import { byCodePoint } from '../../../lib/values/code-points.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { emitYaml } from '../../../lib/yaml/emit.ts';
import type { Component, State } from '../kinds/component.ts';
import { componentKey } from '../kinds/component.ts';
import { findKind } from '../kinds/registry.ts';
import { tooManyMembers } from '../project/project.ts';

/** Answer of `/metadata/retrieve`: the selected components as files, and the manifest that goes with them. */
export function retrieve(
  state: State,
  pkg: Package,
  context: { metadataVersion: number; baseUrl: string; now: number },
): OperationOutput<'metadata.components.retrieve'> {
  const { selected, notFound } = select(state, pkg);
  const byType = Map.groupBy(selected, ({ type }) => type);
  const types = sortTypes(new Map([...byType].map(([type, list]) => [type, list.map(({ fullName }) => fullName)])));
  const explicit = { version: 1 as const, types };
  const files: Record<string, string> = Object.fromEntries(selected.map(({ path, yaml }) => [path, yaml]));
  files[DESTRUCTIVE_PATH] = emitYaml({ version: 1, types: [] });
  files[MANIFEST_PATH] = emitYaml({
    version: 1,
    types: types.map(({ name, members }) => ({ name, members: [...members] })),
  });
  const hash = manifestHash(files, explicit);
  const generatedAt = formatTimestamp(context.now);
  files[PROJECT_PATH] = emitYaml({
    formatVersion: 1,
    metadataVersion: context.metadataVersion,
    manifestHash: hash,
    retrievedAt: generatedAt,
    baseUrl: context.baseUrl,
  });
  return {
    files,
    manifestHash: hash,
    generatedAt,
    metadataVersion: context.metadataVersion,
    package: explicit,
    components: selected.map((component) => ({
      type: component.type,
      fullName: component.fullName,
      path: component.path,
      hash: `sha256:${component.hash}`,
      updatedAt: component.updatedAt,
      updatedById: component.updatedById,
    })),
    notFound,
  };
}

/** The components that a package names, each once and in order, and the names without a component. */
function select(
  state: State,
  pkg: Package,
): { selected: readonly Component[]; notFound: { type: string; member: string }[] } {
  const selected = new Set<Component>();
  const notFound: { type: string; member: string }[] = [];
  const byType = Map.groupBy(state.values(), ({ type }) => type);
  for (const [i, { name, members }] of pkg.types.entries()) {
    if (!findKind(name))
      throw new PlatformError('PACKAGE_INVALID', `There is no type ${name}.`, {
        errors: [violation(`/package/types/${i}/name`, 'PACKAGE_INVALID', `There is no type ${name}.`)],
      });
    for (const member of members) {
      const one = state.get(componentKey(name, member));
      if (member.endsWith('*'))
        for (const component of byType.get(name) ?? [])
          if (memberMatches(member, component.fullName)) selected.add(component);
      if (one) selected.add(one);
      else if (!member.endsWith('*')) notFound.push({ type: name, member });
    }
  }
  const max = LIMITS.metadata_retrieve_members_max;
  if (selected.size > max) throw tooManyMembers(max);
  const sorted = [...selected].sort((a, b) => byCodePoint(a.type, b.type) || byCodePoint(a.fullName, b.fullName));
  return { selected: sorted, notFound };
}

export const publicBaseUrl = (config: Config): string => config.baseUrl ?? `http://localhost:${config.port}`;

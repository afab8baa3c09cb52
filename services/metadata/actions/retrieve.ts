import type { Config } from '../../../config/env.ts';
import { LIMITS } from '../../../config/limits.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { Component, State } from '../kinds/kind.ts';
import { componentKey } from '../kinds/kind.ts';
import { findKind } from '../kinds/registry.ts';
import { byCodePoint } from '../kinds/schema.ts';
import {
  DESTRUCTIVE_PATH,
  MANIFEST_PATH,
  manifestHash,
  memberMatches,
  type Package,
  PROJECT_PATH,
  sortTypes,
  tooManyMembers,
} from '../project/project.ts';
import { emitYaml } from '../yaml/emit.ts';
import type { YamlValue } from '../yaml/parse.ts';

/** What `/metadata/retrieve` answers: the selected components as files, and the manifest that goes with them. */
export function retrieve(
  state: State,
  pkg: Package,
  context: { metadataVersion: number; baseUrl: string; now: number },
): object {
  const selected: Component[] = [];
  const notFound: { type: string; member: string }[] = [];
  const byType = new Map<string, Component[]>();
  for (const component of state.values())
    byType.set(component.type, [...(byType.get(component.type) ?? []), component]);
  const seen = new Set<string>();
  for (const [i, { name, members }] of pkg.types.entries()) {
    if (!findKind(name))
      throw new PlatformError('PACKAGE_INVALID', `There is no type ${name}.`, {
        errors: [violation(`/package/types/${i}/name`, 'PACKAGE_INVALID', `There is no type ${name}.`)],
      });
    for (const member of members) {
      const found = member.endsWith('*')
        ? (byType.get(name) ?? []).filter((component) => memberMatches(member, component.fullName))
        : [state.get(componentKey(name, member))].filter((component) => component !== undefined);
      if (found.length === 0 && !member.endsWith('*')) notFound.push({ type: name, member });
      for (const component of found) {
        const key = componentKey(name, component.fullName);
        if (!seen.has(key)) selected.push(component);
        seen.add(key);
      }
    }
  }
  if (selected.length > LIMITS.metadata_members_max) throw tooManyMembers();
  selected.sort((a, b) => byCodePoint(a.type, b.type) || byCodePoint(a.fullName, b.fullName));

  const types = new Map<string, string[]>();
  const files: Record<string, string> = {};
  for (const { type, fullName, path, yaml } of selected) {
    types.set(type, [...(types.get(type) ?? []), fullName]);
    files[path] = yaml;
  }
  const explicit: Package = { version: 1, types: sortTypes(types) };
  files[DESTRUCTIVE_PATH] = emitYaml({ version: 1, types: [] });
  files[MANIFEST_PATH] = emitYaml(explicit as unknown as { [key: string]: YamlValue });
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

export const publicBaseUrl = (config: Config): string => config.baseUrl ?? `http://localhost:${config.port}`;

/** Packages: from options, from a file, and as YAML. */
import { memberMatches, membersOf, type Package, type PackageType, sortTypes } from '../../lib/metadata/manifest.ts';
import { COMPONENT_PATHS } from '../../lib/schema/snapshot.ts';
import { similarName } from '../../lib/values/similar.ts';
import { emitYaml } from '../../lib/yaml/emit.ts';
import type { YamlValue } from '../../lib/yaml/parse.ts';
import { usage } from '../failure.ts';

/** A component by type and name. */
export interface Member {
  readonly type: string;
  readonly fullName: string;
}

export const memberKey = ({ type, fullName }: Member): string => `${type}:${fullName}`;

const memberLists = (members: Iterable<Member>): Map<string, string[]> => {
  const types = new Map<string, string[]>();
  for (const { type, fullName } of members) {
    const list = types.get(type);
    if (list) list.push(fullName);
    else types.set(type, [fullName]);
  }
  return types;
};

/** The package that names exactly these components. */
export const explicitPackage = (members: Iterable<Member>): Package => ({
  version: 1,
  types: sortTypes(memberLists(members)),
});

/** Everything that one of the packages names. */
export const joinPackages = (...packages: readonly Package[]): Package =>
  explicitPackage(packages.flatMap(({ types }) => membersOf(types)));

/** True when a package names a component, by itself or by a wildcard. */
export const names = (pkg: { types: readonly PackageType[] }, { type, fullName }: Member): boolean =>
  pkg.types.some(({ name, members }) => name === type && members.some((member) => memberMatches(member, fullName)));

/** A package as the platform writes it into manifest/package.yaml. */
export const emitPackage = ({ types }: Package): string => emitYaml({ version: 1, types: typesValue(types) });

/** A destructive manifest. */
export const emitDestructive = (types: readonly PackageType[], alters: readonly PackageType[]): string =>
  emitYaml({ version: 1, types: typesValue(types), ...(alters.length > 0 ? { alters: typesValue(alters) } : {}) });

const typesValue = (types: readonly PackageType[]): YamlValue[] =>
  types.map(({ name, members }) => ({ name, members: [...members] }));

function typeHint(type: string): string {
  const meant = similarName(type, Object.keys(COMPONENT_PATHS));
  return meant === null ? 'erp metadata types lists them.' : `Did you mean ${meant}?`;
}

/** `CustomField:Invoice__c.*,Account.Rating__c`, or a type alone for all of it. */
export function parseMembers(texts: readonly string[]): Package {
  return explicitPackage(
    texts.flatMap((text) => {
      const [, type, list] = /^([A-Za-z]{1,40})(?::(.*))?$/s.exec(text) ?? [];
      const members = list === undefined ? ['*'] : list.split(',').map((member) => member.trim());
      if (!type || members.includes(''))
        throw usage(
          `${text} names no component.`,
          'Write the type and its members: CustomField:Invoice__c.Amount__c, CustomField:Invoice__c.*, Role',
        );
      if (!Object.hasOwn(COMPONENT_PATHS, type)) throw usage(`${text}: there is no type ${type}.`, typeHint(type));
      return members.map((fullName) => ({ type, fullName }));
    }),
  );
}

/** The types of a manifest that was parsed; what is wrong with it goes to `problem`. */
export function readTypes(
  value: YamlValue | undefined,
  pointer: string,
  problem: (pointer: string, message: string) => void,
): PackageType[] {
  if (!Array.isArray(value)) {
    problem(pointer, 'types is a list of types with their members.');
    return [];
  }
  const found: Member[] = [];
  for (const [i, entry] of value.entries()) {
    const { name, members } =
      typeof entry === 'object' && entry !== null && !Array.isArray(entry) ? entry : { name: null, members: null };
    if (typeof name !== 'string' || !Array.isArray(members)) {
      problem(`${pointer}/${i}`, 'A type has a name and a list of members.');
      continue;
    }
    for (const [j, member] of members.entries())
      if (typeof member === 'string' && member !== '') found.push({ type: name, fullName: member });
      else problem(`${pointer}/${i}/members/${j}`, 'A member is a name such as Invoice__c.Amount__c.');
  }
  return [...explicitPackage(found).types];
}

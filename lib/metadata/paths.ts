/** Paths of component files. Source: docs/reference/metadata.md#types. */
import { COMPONENT_PATHS, type ComponentTypeName } from '../schema/snapshot.ts';

export interface Location {
  readonly type: ComponentTypeName;
  readonly fullName: string;
  /** null: the component belongs to no object. */
  readonly object: string | null;
  readonly apiName: string;
}

export const isTypeName = (type: string): type is ComponentTypeName => Object.hasOwn(COMPONENT_PATHS, type);

/** As documented, with `{object}` and `{apiName}` for names. */
export const pathPatternOf = (type: ComponentTypeName): string => COMPONENT_PATHS[type];

/** Its members are named `<Object>.<apiName>`. */
export const belongsToObject = (type: string): boolean => isTypeName(type) && pathPatternOf(type).includes('{object}');

const LOCATORS = Object.keys(COMPONENT_PATHS)
  .filter(isTypeName)
  .map((type) => ({
    type,
    pattern: new RegExp(
      `^${pathPatternOf(type)
        .replaceAll('.', '\\.')
        .replace('{object}', '(?<object>[A-Za-z0-9_.-]+)')
        .replace('{apiName}', '(?<apiName>[A-Za-z0-9_.-]+?)')}$`,
    ),
  }));

/** The component of a path; null for a path of no type. */
export function locate(path: string): Location | null {
  for (const { type, pattern } of LOCATORS) {
    const { apiName, object = null } = pattern.exec(path)?.groups ?? {};
    if (apiName === undefined) continue;
    return { type, apiName, object, fullName: object === null ? apiName : `${object}.${apiName}` };
  }
  return null;
}

/** Path of a component's file; null when there is no such type, or the name has not the form of its members. */
export function pathOf(type: string, fullName: string): string | null {
  if (!isTypeName(type)) return null;
  const pattern = pathPatternOf(type);
  if (!belongsToObject(type)) return fullName.includes('.') ? null : pattern.replace('{apiName}', () => fullName);
  const [object, apiName, ...rest] = fullName.split('.');
  if (!object || !apiName || rest.length > 0) return null;
  return pattern.replace('{object}', () => object).replace('{apiName}', () => apiName);
}

const SEGMENTS = /^[A-Za-z0-9_.-]+(?:\/[A-Za-z0-9_.-]+)*$/;

/** The problem with a file path of a project, to follow "the path is"; null when it is valid. */
export function pathProblem(path: string): string | null {
  if (path.length > 255) return 'longer than 255 characters';
  if (!SEGMENTS.test(path)) return 'not a relative path of letters, digits, `_`, `.` and `-`';
  if (path.split('/').some((segment) => segment === '.' || segment === '..'))
    return 'not within the folder of the project';
  return null;
}

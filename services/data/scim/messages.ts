/** The messages of SCIM: what lists are asked by, how they are answered, and which attributes of a resource are shown. */

import { SCIM_PREFIX, type ScimCall } from '../../../contracts/scim.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { JsonError, parseJsonBytes } from '../../../lib/json/parse.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { scimError, shown } from './errors.ts';
import { localPath } from './filter.ts';

export type Json = Record<string, unknown>;

const LIST_RESPONSE = 'urn:ietf:params:scim:api:messages:2.0:ListResponse';
const NAMES_MAX = 100;

export const addressOf = (baseUrl: string, endpoint: string, id: string): string =>
  // A colon is one in a path (RFC 3986), and clients compare addresses of schemas with those that they expect.
  `${baseUrl}${SCIM_PREFIX}/${endpoint}/${encodeURIComponent(id).replaceAll('%3A', ':')}`;

export interface PageRequest {
  readonly filter: string | null;
  readonly sortBy: string | null;
  readonly descending: boolean;
  /** From 1. */
  readonly startIndex: number;
  readonly count: number;
}

export interface Page {
  readonly total: number;
  readonly resources: readonly Json[];
}

/** The body of a request as an object; throws BODY_REQUIRED or REQUEST_MALFORMED (invalidSyntax). */
export function readBody({ body }: ScimCall): Json {
  if (!body || body.length === 0) throw new PlatformError('BODY_REQUIRED', 'The request needs a body.');
  let value: unknown;
  try {
    value = parseJsonBytes(body, LIMITS.json_depth_max);
  } catch (error) {
    if (error instanceof JsonError) throw scimError('invalidSyntax', error.message);
    throw error;
  }
  if (!isObject(value)) throw scimError('invalidSyntax', 'The body must be a JSON object.');
  return value;
}

/** The value of a member of a body by its name, in whatever case it is written. */
export function member(body: Json, name: string): unknown {
  if (Object.hasOwn(body, name)) return body[name];
  const lower = name.toLowerCase();
  const key = Object.keys(body).find((one) => one.toLowerCase() === lower);
  return key === undefined ? undefined : body[key];
}

/** The parameters of a list, of the query or of the body of a search. */
export function pageRequest(given: Json): PageRequest {
  const startIndex = integer(given, 'startIndex', 1);
  if (startIndex > LIMITS.scim_start_index_max)
    throw scimError(
      'invalidValue',
      `startIndex is ${LIMITS.scim_start_index_max} at most: divide a longer list by a filter, such as meta.created.`,
    );
  const order = textOf(given, 'sortOrder')?.toLowerCase() ?? 'ascending';
  if (order !== 'ascending' && order !== 'descending')
    throw scimError('invalidValue', 'sortOrder must be ascending or descending.');
  return {
    filter: textOf(given, 'filter'),
    sortBy: textOf(given, 'sortBy'),
    descending: order === 'descending',
    // RFC 7644 section 3.4.2.4: a value below 1 is taken as 1, a negative count as 0.
    startIndex: Math.max(1, startIndex),
    count: Math.min(Math.max(0, integer(given, 'count', LIMITS.take_max)), LIMITS.take_max),
  };
}

function textOf(given: Json, name: string): string | null {
  const value = member(given, name);
  if (value === undefined || value === null || value === '') return null;
  if (typeof value !== 'string') throw scimError('invalidValue', `${name} must be a text.`);
  return value;
}

function integer(given: Json, name: string, standard: number): number {
  const value = member(given, name);
  if (value === undefined || value === null || value === '') return standard;
  const number = typeof value === 'string' && /^-?\d{1,9}$/.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isSafeInteger(number))
    throw scimError('invalidValue', `${name} must be a whole number.`);
  return number;
}

/** Attributes of a resource that a client requests. */
export interface Selection {
  readonly wants: (path: string) => boolean;
  readonly of: (resource: Json) => Json;
}

/** Attributes that every answer has (RFC 7643 section 7, `returned: always`). */
const ALWAYS = new Set(['schemas', 'id']);

export function selectionOf(given: Json): Selection {
  const only = names(given, 'attributes');
  const without = names(given, 'excludedAttributes') ?? [];
  const covers = (list: readonly string[], path: string): boolean =>
    list.some((name) => path === name || path.startsWith(`${name}.`));
  const touches = (list: readonly string[], path: string): boolean =>
    covers(list, path) || list.some((name) => name.startsWith(`${path}.`));
  const wants = (path: string): boolean =>
    ALWAYS.has(path) || ((only === null || touches(only, path)) && !covers(without, path));
  const pick = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => pick(item, path));
    if (!isObject(value)) return value;
    // Named as a whole: all of it, without what is excluded.
    const whole = only === null || covers(only, path);
    return Object.fromEntries(
      Object.entries(value).flatMap(([name, part]) => {
        const inner = `${path}.${name.toLowerCase()}`;
        return (whole && !covers(without, inner)) || (!whole && wants(inner)) ? [[name, part]] : [];
      }),
    );
  };
  const of = (resource: Json): Json =>
    Object.fromEntries(
      Object.entries(resource).flatMap(([name, value]): [string, unknown][] => {
        // The members of an extension are named without its schema.
        if (name.startsWith('urn:') && isObject(value)) {
          const kept = of(value);
          return Object.keys(kept).length > 0 ? [[name, kept]] : [];
        }
        const path = name.toLowerCase();
        return wants(path) ? [[name, pick(value, path)]] : [];
      }),
    );
  return { wants, of };
}

function names(given: Json, parameter: string): string[] | null {
  const value = member(given, parameter);
  if (value === undefined || value === null || value === '') return null;
  const list: unknown = typeof value === 'string' ? value.split(',') : value;
  if (!Array.isArray(list) || list.length > NAMES_MAX || !list.every((item) => typeof item === 'string'))
    throw scimError('invalidValue', `${parameter} must name ${NAMES_MAX} attributes at most: ${shown(value)}.`);
  return list.map((name) => localPath(name.trim())).filter((name) => name !== '');
}

/** The body of a list (RFC 7644 section 3.4.2). */
export const listResponse = ({ total, resources }: Page, startIndex: number, selection?: Selection): Json => ({
  schemas: [LIST_RESPONSE],
  totalResults: total,
  itemsPerPage: resources.length,
  startIndex,
  Resources: selection ? resources.map(selection.of) : resources,
});

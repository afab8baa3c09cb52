/** Bodies of the metadata operations: which properties there are, which must never be sent, and their types. */
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { escapePointer } from '../yaml/parse.ts';
import { checkFiles, isRecord, refuseAll, VIOLATIONS_MAX } from './project.ts';

/** What only the platform decides. Refused wherever they stand, paths and texts of files excepted. */
const FORBIDDEN: ReadonlySet<string> = new Set(['operationOverride', 'rollbackOf', 'actor', 'actorId', 'userId']);

type Check = (value: unknown) => string | null;

const isBoolean: Check = (value) => (typeof value === 'boolean' ? null : 'must be a boolean');
/** As large as PostgreSQL's integer, which keeps it. */
const isVersion: Check = (value) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2_147_483_647
    ? null
    : 'must be an integer from 0 to 2147483647';
const isHash: Check = (value) =>
  typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value) ? null : 'must be `sha256:` and 64 hex digits';
const isMap: Check = (value) => (isRecord(value) ? null : 'must be an object');

export interface ProjectBody {
  readonly files: Record<string, string>;
  readonly package?: unknown;
  readonly allowDestructiveChanges?: boolean;
  readonly baseMetadataVersion?: number;
  readonly checkOnly?: boolean;
  readonly expectedPlanHash?: string;
}

const PROJECT: Record<string, Check> = {
  files: isMap,
  package: isMap,
  allowDestructiveChanges: isBoolean,
  baseMetadataVersion: isVersion,
};
const DEPLOY: Record<string, Check> = { ...PROJECT, checkOnly: isBoolean, expectedPlanHash: isHash };

function findForbidden(value: unknown, pointer: string, found: Violation[]): void {
  if (typeof value !== 'object' || value === null || found.length >= VIOLATIONS_MAX) return;
  for (const [key, item] of Object.entries(value)) {
    const at = `${pointer}/${escapePointer(key)}`;
    if (!Array.isArray(value) && FORBIDDEN.has(key))
      found.push(violation(at, 'BODY_PROPERTY_FORBIDDEN', `Clients must not send ${key}.`));
    if (!(pointer === '' && key === 'files')) findForbidden(item, at, found);
  }
}

function checkBody(
  body: unknown,
  checks: Readonly<Record<string, Check>>,
  required: readonly string[],
): asserts body is Record<string, unknown> {
  if (!isRecord(body)) throw new PlatformError('BODY_REQUIRED', 'This operation needs a JSON object as its body.');
  const found: Violation[] = [];
  findForbidden(body, '', found);
  for (const key of Object.keys(body))
    if (!Object.hasOwn(checks, key) && !FORBIDDEN.has(key) && found.length < VIOLATIONS_MAX)
      found.push(
        violation(`/${escapePointer(key)}`, 'BODY_PROPERTY_UNKNOWN', `There is no property ${key.slice(0, 100)} here.`),
      );
  for (const key of required)
    if (body[key] === undefined) found.push(violation(`/${key}`, 'PARAMETER_REQUIRED', `${key} is required.`));
  for (const [key, value] of Object.entries(body)) {
    const message = Object.hasOwn(checks, key) ? checks[key]?.(value) : null;
    if (message) found.push(violation(`/${key}`, 'PARAMETER_INVALID', `${key} ${message}.`));
  }
  refuseAll(found);
}

/** `{package}` of a retrieve. */
export function retrieveBody(body: unknown): { package: unknown } {
  checkBody(body, { package: isMap }, ['package']);
  return { package: body['package'] };
}

export function validateBody(body: unknown): ProjectBody {
  checkProject(body, PROJECT);
  return body;
}

export function deployBody(body: unknown): ProjectBody {
  checkProject(body, DEPLOY);
  return body;
}

function checkProject(body: unknown, checks: Readonly<Record<string, Check>>): asserts body is ProjectBody {
  checkBody(body, checks, ['files']);
  if (isRecord(body['files'])) checkFiles(body['files']);
}

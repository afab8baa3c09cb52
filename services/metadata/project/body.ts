/** Bodies of the metadata operations: validated by the schemas of their rows, without what clients must never send. */
import { type Static, type TSchema, Type } from 'typebox';
import {
  DeployProjectBody,
  QuickDeployBody,
  RetrieveBody,
  RollbackBody,
  ValidateBody,
} from '../../../contracts/metadata.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { JsonError, parseJsonBytes } from '../../../lib/json/parse.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { bodyViolations } from '../../../lib/validation.ts';
import { checkFiles, isRecord, refuseAll, VIOLATIONS_MAX } from './project.ts';

/** Properties that only the platform sets. Refused at every depth, paths and texts of files excepted. */
const FORBIDDEN: ReadonlySet<string> = new Set(['operationOverride', 'rollbackOf', 'actor', 'actorId', 'userId']);

const closed = { additionalProperties: false };
/** Packages and files are read by `readPackage` and `checkFiles`, whose refusals have codes of their own. */
const anyPackage = Type.Object({});
const anyProject = { files: Type.Record(Type.String(), Type.Unknown()), package: Type.Optional(anyPackage) };

const RETRIEVE = Type.Object({ ...RetrieveBody.properties, package: anyPackage }, closed);
const VALIDATE = Type.Object({ ...ValidateBody.properties, ...anyProject }, closed);
const DEPLOY = Type.Object({ ...DeployProjectBody.properties, ...anyProject }, closed);

export type ProjectBody = Omit<Static<typeof DEPLOY>, 'files'> & { files: Record<string, string> };

/** Forms of a deployment besides the project, by the property that makes one. */
const SHORT_FORMS = { quickDeploy: QuickDeployBody, rollback: RollbackBody } as const;
const DEPLOY_PROPERTIES: ReadonlySet<string> = new Set([
  ...Object.keys(DEPLOY.properties),
  ...Object.keys(SHORT_FORMS),
]);

/** The body of a deploy. */
export type DeployForm =
  | { readonly form: 'project'; readonly project: ProjectBody }
  | ({ readonly form: 'quickDeploy' } & Static<typeof QuickDeployBody>['quickDeploy'])
  | ({ readonly form: 'rollback' } & Static<typeof RollbackBody>['rollback']);

/** The JSON object that the bytes of a request are; the gateway has left them to us. */
export function parseBody(bytes: Uint8Array): Record<string, unknown> {
  const refused = (code: ErrorCode, message: string, details?: Record<string, unknown>): PlatformError =>
    new PlatformError(code, message, { errors: [violation('', code, message)], ...(details ? { details } : {}) });
  let body: unknown;
  try {
    body = parseJsonBytes(bytes, LIMITS.json_depth_max);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw refused('REQUEST_MALFORMED', error.message, error.details);
  }
  if (!isRecord(body)) throw refused('PARAMETER_INVALID', 'The body must be a JSON object.');
  return body;
}

/** `{package}` of a retrieve. */
export function retrieveBody(body: unknown): { package: unknown } {
  checkBody(RETRIEVE, body);
  return body;
}

export function validateBody(body: unknown): ProjectBody {
  checkBody(VALIDATE, body);
  return withFiles(body);
}

export function deployBody(body: unknown): DeployForm {
  requireObject(body);
  refuseMixture(body);
  if (Object.hasOwn(body, 'quickDeploy')) {
    checkBody(SHORT_FORMS.quickDeploy, body);
    return { form: 'quickDeploy', ...body.quickDeploy };
  }
  if (Object.hasOwn(body, 'rollback')) {
    checkBody(SHORT_FORMS.rollback, body);
    return { form: 'rollback', ...body.rollback };
  }
  checkBody(DEPLOY, body);
  return { form: 'project', project: withFiles(body) };
}

/** A body of several forms is none of them. */
function refuseMixture(body: object): void {
  const names = Object.keys(body);
  const known = names.filter((name) => DEPLOY_PROPERTIES.has(name));
  if (known.length < 2 || !known.some((name) => Object.hasOwn(SHORT_FORMS, name))) return;
  const message = 'A deployment is a project, a quickDeploy or a rollback, and nothing of the others.';
  refuseAll([
    ...forbiddenIn(body),
    ...names
      .filter((name) => !DEPLOY_PROPERTIES.has(name) && !FORBIDDEN.has(name))
      .slice(0, VIOLATIONS_MAX)
      .map((name) => violation(`/${pointerPart(name)}`, 'BODY_PROPERTY_UNKNOWN', 'There is no such property here.')),
    ...known.map((name) => violation(`/${name}`, 'PARAMETER_CONFLICT', message)),
  ]);
}

function withFiles<Body extends { files: Record<string, unknown> }>({ files, ...body }: Body) {
  checkFiles(files);
  return { ...body, files };
}

/** Refuses, in this order: what is forbidden, unknown, missing, and of another type (in the order of the body). */
function checkBody<Schema extends TSchema>(schema: Schema, body: unknown): asserts body is Static<Schema> {
  requireObject(body);
  const names = Object.keys(body);
  const forbidden = forbiddenIn(body);
  const refused = new Set(forbidden.map(({ pointer }) => pointer));
  const isForbidden = ({ pointer }: Violation): boolean => FORBIDDEN.has(pointer.slice(1)) || refused.has(pointer);
  const isUnknown = ({ code }: Violation): boolean => code === 'BODY_PROPERTY_UNKNOWN';
  const place = ({ pointer }: Violation): number => names.indexOf(pointer.slice(1));
  const found = bodyViolations(schema, body).filter((one) => !isForbidden(one));
  refuseAll([
    ...forbidden,
    ...found.filter(isUnknown),
    ...found.filter((one) => !isUnknown(one)).sort((a, b) => place(a) - place(b)),
  ]);
}

function requireObject(body: unknown): asserts body is Record<string, unknown> {
  if (!isRecord(body)) throw new PlatformError('BODY_REQUIRED', 'This operation needs a JSON object as its body.');
}

function forbiddenIn(body: object): Violation<ErrorCode>[] {
  const found: Violation<ErrorCode>[] = [];
  const search = (value: unknown, pointer: string): void => {
    if (typeof value !== 'object' || value === null || found.length >= VIOLATIONS_MAX) return;
    for (const [key, item] of Object.entries(value)) {
      const at = `${pointer}/${pointerPart(key)}`;
      if (!Array.isArray(value) && FORBIDDEN.has(key))
        found.push(violation(at, 'BODY_PROPERTY_FORBIDDEN', `Clients must not send ${key}.`));
      if (at !== '/files') search(item, at);
    }
  };
  search(body, '');
  return found;
}

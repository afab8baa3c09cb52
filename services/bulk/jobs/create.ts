/** Creates jobs. An import waits for its parts, an export is queued at once. */
import type { CreateBody } from '../../../contracts/bulk.ts';
import type { Column, ObjectColumns } from '../../../contracts/data/columns.ts';
import { addressOf, type Handler } from '../../../contracts/operations.ts';
import type { Asker, RequestContext } from '../../../lib/context.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { localeOf } from '../../../lib/values/locale.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import type { BulkDeps } from '../deps.ts';
import { writable } from '../rows/columns.ts';
import { countJobsStatement, insertJobStatement, type JobRow, lockTenantStatement } from './job.sql.ts';
import { permitted, refuseAccessObjects, requireScope } from './permission.ts';
import { presentJob } from './present.ts';

export const createJob: Handler<'bulk.jobs.create', BulkDeps> = async (deps, request, call) => {
  const { body } = call;
  requireScope(request, body);
  refuseBody(body, request);
  const object = await permitted(deps, request, body);
  refuseFields(body, object);
  if (body.operation === 'export') await tryQuery(deps, request, body);
  return mutate(deps.database, request, call, {
    role: { service: 'bulk' },
    work: async (unit) => {
      const { tx } = unit;
      const { tenantId } = request;
      await tx.query(lockTenantStatement(tenantId));
      const counts = await tx.one<{ openOfUser: number; openOfTenant: number; ofTenant: number }>(
        countJobsStatement(request),
      );
      refuseTooMany(
        counts.openOfUser,
        LIMITS.bulk_open_jobs_of_user_max,
        'A user may have',
        'that have not ended: start, cancel or delete one',
      );
      refuseTooMany(
        counts.openOfTenant,
        LIMITS.bulk_open_jobs_of_tenant_max,
        'A tenant may have',
        'that have not ended',
      );
      refuseTooMany(counts.ofTenant, LIMITS.bulk_jobs_of_tenant_max, 'A tenant may have', 'that are kept');
      const jobId = uuidv7();
      const context = body.operation === 'export' ? request : null;
      const row = await tx.one<JobRow>(insertJobStatement(request, jobId, body, context));
      if (context) await deps.enqueue(tx, { tenantId, jobId });
      const { operation, objectApiName } = body;
      unit.audit({
        recordId: jobId,
        kind: 'create',
        changes: { operation: { from: null, to: operation }, object: { from: null, to: objectApiName } },
      });
      unit.tally.records = 0;
      return {
        status: 201,
        headers: { Location: addressOf('bulk.jobs.get', { jobId }) },
        body: presentJob(row),
      };
    },
  });
};

/** Throws all violations of names that are unknown to the user or cannot be written, which look alike. */
function refuseFields(body: CreateBody, object: ObjectColumns): void {
  const { externalIdField, columns = {} } = body;
  const errors: Violation[] = [];
  const isKey = ({ apiName, externalId, edit }: Column): boolean => apiName === externalIdField && externalId && edit;
  if (externalIdField !== undefined && !object.columns.some(isKey))
    errors.push(at('/externalIdField', 'PARAMETER_INVALID', 'externalIdField must be a field that is an external id.'));
  const isWritable = writable(body, object);
  for (const [given, name] of Object.entries(columns))
    if (name !== null && !isWritable(name))
      errors.push(
        at(
          `/columns/${pointerPart(given)}`,
          'PARAMETER_INVALID',
          `${JSON.stringify(name.slice(0, 100))} does not exist, or cannot be written by this operation.`,
        ),
      );
  if (errors.length > 0) throw refusal(errors);
}

/** Reads one record, so that an invalid query is refused before anything is queued. Pointers of violations are below /query. */
async function tryQuery(deps: BulkDeps, request: Asker, { objectApiName, query = {} }: CreateBody): Promise<void> {
  const entries = Object.entries(query);
  const unknown = entries
    .filter(([name]) => !QUERY_PARAMETERS.has(name))
    .map(([name]) =>
      at(
        `/query/${pointerPart(name)}`,
        'PARAMETER_UNKNOWN',
        `An export has no parameter ${JSON.stringify(name.slice(0, 100))}.`,
      ),
    );
  const known = Object.fromEntries(entries.filter(([name]) => QUERY_PARAMETERS.has(name)));
  try {
    await deps.read(request, objectApiName, { ...known, take: 1 });
  } catch (error) {
    if (!(error instanceof PlatformError) || !error.errors) throw error;
    const errors = error.errors.map((one) => ({ ...one, pointer: `/query${one.pointer ?? ''}` }));
    if (unknown.length > 0) throw refusal([...unknown, ...errors]);
    throw new PlatformError(error.code, error.message, {
      errors,
      ...(error.details ? { details: error.details } : {}),
    });
  }
  if (unknown.length > 0) throw refusal(unknown);
}

const QUERY_PARAMETERS: ReadonlySet<string> = new Set([
  'fields',
  'where',
  'whereIn',
  'filters',
  'sort',
  'orderBy',
  'orderDirection',
  'search',
  'searchFields',
]);

const at = (pointer: string, code: Violation['code'], message: string): Violation => violation(pointer, code, message);

function refusal(errors: readonly Violation[]): PlatformError {
  const [first] = errors;
  if (!first) throw new Error('Assertion failed: a refusal has a reason');
  const message = errors.length === 1 ? first.message : `The request has ${errors.length} problems; see errors.`;
  return new PlatformError(first.code as 'PARAMETER_CONFLICT', message, { errors: [...errors] });
}

/** Properties that only jobs with one of these operations have. */
const ONLY: Partial<Record<keyof CreateBody, readonly CreateBody['operation'][]>> = {
  externalIdField: ['upsert'],
  columns: ['create', 'update', 'upsert', 'delete'],
  allOrNone: ['create', 'update', 'upsert', 'delete'],
  checkOnly: ['create', 'update', 'upsert', 'delete'],
  duplicatePolicy: ['create', 'update', 'upsert'],
  conflictPolicy: ['update', 'upsert', 'delete'],
  query: ['export'],
  compression: ['export'],
};

/** Throws all violations of rules that the schema of the body cannot express. */
function refuseBody(body: CreateBody, { agentRunId }: Pick<RequestContext, 'agentRunId'>): void {
  const { operation, format, csv, externalIdField, duplicatePolicy } = body;
  const errors: Violation[] = [];
  for (const [name, operations] of Object.entries(ONLY))
    if (Object.hasOwn(body, name) && !operations.includes(operation))
      errors.push(at(`/${name}`, 'PARAMETER_CONFLICT', `${name} cannot be combined with the operation ${operation}.`));
  if (duplicatePolicy === 'report' && agentRunId !== null)
    errors.push(at('/duplicatePolicy', 'PARAMETER_CONFLICT', 'A job of an agent cannot confirm duplicates.'));
  if (operation === 'upsert' && externalIdField === undefined)
    errors.push(at('/externalIdField', 'PARAMETER_REQUIRED', 'externalIdField is required for an upsert.'));
  if (csv !== undefined && format !== 'csv')
    errors.push(at('/csv', 'PARAMETER_CONFLICT', `csv cannot be combined with the format ${format}.`));
  if (csv?.locale !== undefined && localeOf(csv.locale) === null)
    errors.push(at('/csv/locale', 'PARAMETER_INVALID', 'locale must be a language tag such as de-DE.'));
  if (errors.length > 0) throw refusal(errors);
  refuseAccessObjects(body);
}

function refuseTooMany(count: number, max: number, whose: string, which: string): void {
  if (count >= max)
    throw new PlatformError('TOO_MANY_ITEMS', `${whose} at most ${max} bulk jobs ${which}.`, { details: { max } });
}

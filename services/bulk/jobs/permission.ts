/** What a job requires: the scope of the operation on records, and the permission of its user at this moment. */
import { CARRIED_OUT, type CreateBody } from '../../../contracts/bulk.ts';
import type { ObjectColumns } from '../../../contracts/data/columns.ts';
import { operationRow } from '../../../contracts/operations.ts';
import { type Asker, askerOf, type RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { givesAccess } from '../../../lib/operation.ts';
import type { BulkDeps } from '../deps.ts';

type Work = Pick<CreateBody, 'operation' | 'objectApiName' | 'conflictPolicy'>;

/** Throws SCOPE_INSUFFICIENT for a token that could not do the same to single records. */
export function requireScope({ scopes }: Pick<RequestContext, 'scopes'>, { operation }: Pick<Work, 'operation'>): void {
  const { scope } = CARRIED_OUT[operation];
  if (scopes.includes(scope)) return;
  throw new PlatformError('SCOPE_INSUFFICIENT', `The access token lacks the scope ${scope}.`, {
    details: { required: ['bulk:run', scope] },
  });
}

/**
 * The object as the user sees it. Throws when they may not do this to its records, now.
 * @throws PlatformError OBJECT_NOT_FOUND, OBJECT_PERMISSION_DENIED, TOKEN_REVOKED, API_ACCESS_DISABLED.
 */
export async function permitted(deps: Pick<BulkDeps, 'describe'>, caller: Asker, work: Work): Promise<ObjectColumns> {
  const object = await deps.describe(askerOf(caller), work.objectApiName);
  const needs = NEEDS[work.operation].find((permission) => !object.may[permission]);
  if (needs) throw denied(work, needs, `You lack the permission to ${needs} records of ${work.objectApiName}.`);
  if (work.conflictPolicy === 'lastWriteWins' && !object.may.modifyAll)
    throw denied(
      work,
      'modifyAll',
      `lastWriteWins takes the permission to modify all records of ${work.objectApiName}.`,
    );
  return object;
}

const NEEDS = {
  create: ['create'],
  update: ['update'],
  upsert: ['create', 'update'],
  delete: ['delete'],
  export: ['read'],
} as const satisfies Record<Work['operation'], readonly (keyof ObjectColumns['may'])[]>;

const denied = ({ objectApiName }: Work, operation: string, message: string): PlatformError =>
  new PlatformError('OBJECT_PERMISSION_DENIED', message, {
    details: { objectApiName, operation, layer: 'objectPermission' },
  });

/** Throws for objects whose records give access: changing those takes further scopes and a recent sign-in, which a job cannot prove. */
export function refuseAccessObjects({ operation, objectApiName }: Work): void {
  const row = operationRow(CARRIED_OUT[operation].operationId);
  if (!givesAccess(row, objectApiName, undefined)) return;
  const message = `Records of ${objectApiName} say what users may do: change them one by one.`;
  throw new PlatformError('PARAMETER_INVALID', message, {
    errors: [violation('/objectApiName', 'PARAMETER_INVALID', message)],
  });
}

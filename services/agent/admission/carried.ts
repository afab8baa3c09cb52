/**
 * Calls about work on many records, such as a bulk job: they name, besides what their path has, the object and the operation
 * on its records that the work carries out, and policies judge them as both. Source: docs/reference/bulk.md.
 */
import type { Admission } from '../../../contracts/agent.ts';
import { CARRIED_OUT } from '../../../contracts/bulk.ts';
import { operationRow } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { relatedObjectsIn } from '../../../lib/query/conditions.ts';
import { referencesIn } from '../../../lib/query/expand.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { AgentDeps } from '../deps.ts';

export async function withCarriedOut(
  { carriedOut }: Pick<AgentDeps, 'carriedOut'>,
  { tenantId, userId, clientId }: Pick<RequestContext, 'tenantId' | 'userId' | 'clientId'>,
  call: Admission,
): Promise<Admission> {
  const where = operationRow(call.operationId)?.carriesOut;
  if (where === undefined) return call;
  const { jobId = '' } = call.pathParameters;
  const carried = where === 'body' ? namedIn(call.body) : await carriedOut({ tenantId, userId, clientId, jobId });
  if (!carried) return call;
  const { operationId, objectApiName } = carried;
  const query = isObject(call.body) ? call.body['query'] : undefined;
  const related = isObject(query) ? relatedObjectsIn(query['filters']) : [];
  const expanded = isObject(query) ? referencesIn(query) : [];
  return {
    ...call,
    pathParameters: { ...call.pathParameters, objectApiName, carriesOut: operationId },
    ...(related.length > 0 ? { related } : {}),
    ...(expanded.length > 0 ? { expanded } : {}),
  };
}

function namedIn(body: unknown): { operationId: string; objectApiName: string } | null {
  if (!isObject(body)) return null;
  const { operation, objectApiName } = body;
  const carried = typeof operation === 'string' ? ownEntry(CARRIED_OUT, operation) : undefined;
  return carried && typeof objectApiName === 'string' ? { operationId: carried.operationId, objectApiName } : null;
}

/** Calls under runs of agents as the gateway has them admitted, for tests that go on from there. */
import { createHash, randomUUID } from 'node:crypto';
import type { Admission, Admitted } from '../../contracts/agent.ts';
import { call } from '../../contracts/call.ts';
import type { RequestContext } from '../../lib/context.ts';
import { requestId, uuidv7 } from '../../lib/values/ids.ts';
import type { Api } from './client.ts';
import type { TestPlatform } from './platform.ts';

/** The request context of a user as the gateway makes it from their token. */
export async function contextOf(who: Api, more: Partial<RequestContext> = {}): Promise<RequestContext> {
  const { tenant, user, connection } = (await who.get('/identity')).body;
  return {
    requestId: requestId(),
    clientRequestId: null,
    tenantId: tenant.id,
    userId: user.id,
    clientId: connection.clientId,
    grantId: connection.grantId,
    scopes: connection.scopes,
    agent: connection.agent,
    person: true,
    agentRunId: null,
    tokenExpiresAt: connection.tokenExpiresAt,
    ip: null,
    channel: 'api',
    deadline: Date.now() + 30_000,
    ...more,
  };
}

/** The deletion of an invoice, which by default waits for a person. Another `id` is another request. */
export function aDeletion(runId: string, more: Partial<Admission> & { id?: string } = {}): Admission {
  const { id = uuidv7(), ...rest } = more;
  const path = `/api/v1/data/Invoice__c/${id}`;
  const headers = { 'if-match': '"1"' };
  return {
    runId,
    operationId: 'data.records.delete',
    method: 'DELETE',
    path,
    pathParameters: { objectApiName: 'Invoice__c', id },
    query: {},
    headers,
    fingerprint: createHash('sha256')
      .update(JSON.stringify([runId, path, headers]))
      .digest('hex'),
    idempotencyKey: randomUUID(),
    risk: 'high',
    cost: 2,
    mutation: true,
    agentApproval: 'policy',
    previewable: false,
    requestId: requestId(),
    duplicateConfirmation: false,
    ...rest,
  };
}

/** A list of invoices, which needs no approval. */
export const aList = (runId: string, more: Partial<Admission> = {}): Admission => ({
  ...aDeletion(runId),
  operationId: 'data.records.list',
  method: 'GET',
  path: '/api/v1/data/Invoice__c',
  pathParameters: { objectApiName: 'Invoice__c' },
  headers: {},
  fingerprint: null,
  idempotencyKey: null,
  risk: 'low',
  cost: 1,
  mutation: false,
  agentApproval: 'never',
  ...more,
});

export const admit = ({ broker }: TestPlatform, request: RequestContext, admission: Admission): Promise<Admitted> =>
  call(broker, 'agent.runs.admit', admission, { meta: { request: { ...request, requestId: admission.requestId } } });

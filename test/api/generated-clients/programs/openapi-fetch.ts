/** The program with types by openapi-typescript and requests by openapi-fetch. */
import createClient from 'openapi-fetch';
import type { paths } from '../generated/openapi-typescript.ts';
import { newKey, type Outcome, type Task } from './program.ts';

export async function run({ baseUrl, token, city, runId }: Task): Promise<Outcome> {
  const api = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });

  const listed = await api.GET('/data/{objectApiName}', {
    params: {
      path: { objectApiName: 'Account' },
      query: { where: JSON.stringify({ city }), sort: JSON.stringify([{ id: 'name', desc: true }]) },
    },
  });
  if (listed.error) throw new Error(listed.error.message);

  const checked = await api.POST('/data/{objectApiName}/check', {
    params: { path: { objectApiName: 'Contact' } },
    body: { operation: 'create', fields: { name: '' } },
  });
  if (checked.error) throw new Error(checked.error.message);

  const created = await api.POST('/data/{objectApiName}', {
    params: { path: { objectApiName: 'Contact' }, header: { 'Idempotency-Key': newKey() } },
    body: { name: 'Generated', lastName: 'Generated' },
  });
  if (created.error) throw new Error(created.error.message);
  const path = { objectApiName: 'Contact', id: created.data.id };
  const etag = created.response.headers.get('ETag') ?? '';

  const update = (jobTitle: string, ifMatch: string) =>
    api.PATCH('/data/{objectApiName}/{id}', {
      params: { path, header: { 'Idempotency-Key': newKey(), 'If-Match': ifMatch } },
      body: { jobTitle },
    });
  await update('Clerk', etag);
  const refused = await update('Buyer', etag);
  const current = await api.GET('/data/{objectApiName}/{id}', { params: { path } });
  const updated = await update('Buyer', current.response.headers.get('ETag') ?? '');
  if (updated.error) throw new Error(updated.error.message);

  const deleted = await api.DELETE('/data/{objectApiName}/{id}', {
    params: {
      path,
      header: {
        'Idempotency-Key': newKey(),
        'If-Match': updated.response.headers.get('ETag') ?? '',
        'X-Agent-Run-Id': runId,
      },
    },
  });
  const { approvalId, fingerprint } = deleted.error?.details ?? {};

  return {
    names: listed.data.records.map((record) => record.name),
    violations: checked.data.errors.map(({ code }) => code),
    refusal: refused.response.status === 412 ? refused.error?.code : undefined,
    jobTitle: updated.data.jobTitle,
    approval: { approvalId, fingerprint },
  };
}

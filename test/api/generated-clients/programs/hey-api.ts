/** The program with hey-api. */
import { createClient, createConfig } from '../generated/hey-api/client/index.ts';
import {
  dataRecordsCheck,
  dataRecordsCreate,
  dataRecordsDelete,
  dataRecordsGet,
  dataRecordsList,
  dataRecordsUpdate,
} from '../generated/hey-api/sdk.gen.ts';
import { newKey, type Outcome, type Task } from './program.ts';

export async function run({ baseUrl, token, city, runId }: Task): Promise<Outcome> {
  const client = createClient(createConfig({ baseUrl, auth: token }));

  const listed = await dataRecordsList({
    client,
    path: { objectApiName: 'Account' },
    query: { where: JSON.stringify({ city }), sort: JSON.stringify([{ id: 'name', desc: true }]) },
    throwOnError: true,
  });

  const checked = await dataRecordsCheck({
    client,
    path: { objectApiName: 'Contact' },
    body: { operation: 'create', fields: { name: '' } },
    throwOnError: true,
  });

  const created = await dataRecordsCreate({
    client,
    path: { objectApiName: 'Contact' },
    headers: { 'Idempotency-Key': newKey() },
    body: { name: 'Generated', lastName: 'Generated' },
    throwOnError: true,
  });
  const path = { objectApiName: 'Contact', id: created.data.id };
  const etag = created.response.headers.get('ETag') ?? '';

  const update = (jobTitle: string, ifMatch: string) =>
    dataRecordsUpdate({
      client,
      path,
      headers: { 'Idempotency-Key': newKey(), 'If-Match': ifMatch },
      body: { jobTitle },
    });
  await update('Clerk', etag);
  const refused = await update('Buyer', etag);
  const current = await dataRecordsGet({ client, path, throwOnError: true });
  const updated = await update('Buyer', current.response.headers.get('ETag') ?? '');
  if (updated.data === undefined) throw new Error(updated.error.message);

  const deleted = await dataRecordsDelete({
    client,
    path,
    headers: {
      'Idempotency-Key': newKey(),
      'If-Match': updated.response?.headers.get('ETag') ?? '',
      'X-Agent-Run-Id': runId,
    },
  });
  const { approvalId, fingerprint } = deleted.error?.details ?? {};

  return {
    names: listed.data.records.map((record) => record['name']),
    violations: checked.data.errors.map(({ code }) => code),
    refusal: refused.response?.status === 412 ? refused.error?.code : undefined,
    jobTitle: updated.data['jobTitle'],
    approval: { approvalId, fingerprint },
  };
}
